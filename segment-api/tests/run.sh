#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run test programs (and scripts) and sum up: exit 0 = passed, 77 = skipped, else failed.
#   run.sh LABEL COUNTS-FILE TEST...      appends "passed failed skipped" to COUNTS-FILE
# Each test has a limit of 900 s, each of its cases an alarm of its own; a time is printed from 5 s on. $RUNNER goes before
# compiled programs (qemu-aarch64). Tests that mostly wait for programs which they start run beside the others, two at a time.
# Any number of run.sh may work at the same time, also with one COUNTS-FILE: the lines of a test stay together.
# A test that leaves something in $GPUSEG_TEST_BASE, a directory of its own in shared memory, fails.
# One that fails is played once more; if it passes then, a line beginning with "again" says so, with what it said at first.
label=$1 counts=$2
shift 2
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
shared=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)/gpuseg-XXXXXX") || exit 1
trap 'rm -rf "$work" "$shared"' EXIT
chmod 711 "$shared" # tests of several users go through it
trap 'exit 1' INT TERM HUP
# named TEST: sets $name
named() {
	case $1 in
	*.sh*) name=$(basename "${1%% *}") && name="$name ${1##*[ /]}" ;;
	*.py*) name=$(echo "$1" | sed 's,.*tests/\([a-z_]*\.py\).*,\1,') ;;
	*) name=$(basename "$1") ;;
	esac
}
# run TEST: its output, status and seconds in $work/$name.*
run() {
	play "$1"
	case $status in 0|77) return ;; esac
	mv "$work/$name.log" "$work/$name.first"
	play "$1"
}
play() {
	began=$(date +%s)
	GPUSEG_TEST_BASE=$(mktemp -d "$shared/XXX") && chmod 711 "$GPUSEG_TEST_BASE" || exit 1
	export GPUSEG_TEST_BASE
	case $1 in
	*.sh*|*.py*) timeout -k 5 900 $1 ;;
	*) timeout -k 5 900 $RUNNER $1 ;;
	esac >"$work/$name.log" 2>&1
	status=$?
	# What a test that was ended leaves is removed by another process, which may not have run yet.
	for turn in 1 2 3 4 5 6 7 8 9 10; do
		left=$(find "$GPUSEG_TEST_BASE" -mindepth 1 | head -5)
		[ -n "$left" ] || break
		sleep 0.5
	done
	if [ -n "$left" ]; then
		echo "left behind:" $left >>"$work/$name.log"
		[ $status -ne 0 ] || status=1
	fi
	echo "$status $(($(date +%s) - began))" >"$work/$name.status"
}
# report: what became of $name
report() {
	read -r status seconds <"$work/$name.status" || status=1
	took=
	[ "${seconds:-0}" -lt 5 ] || took=" ($seconds s)"
	exec 9>>"$counts.lock"
	flock 9
	case $status in
	0)
		passed=$((passed + 1))
		if [ -e "$work/$name.first" ]; then
			echo "again [$label] $name passed when it was played once more$took; at first it said:"
			sed 's/^/      /' "$work/$name.first"
		else
			echo "ok    [$label] $name$took"
		fi ;;
	77) skipped=$((skipped + 1)); echo "skip  [$label] $name: $(sed -n 's/.*skipped: //p' "$work/$name.log" | tail -1)" ;;
	*) failed=$((failed + 1)); echo "FAIL  [$label] $name (exit $status)$took"; sed 's/^/      /' "$work/$name.log" ;;
	esac
	exec 9>&-
}
first= second=
for test; do
	case $test in
	*/test_inject|*/test_touch) first="$first $test" ;;
	*/test_exec_faults|*/test_held|*/test_inject_cupti|*/test_descriptors) second="$second $test" ;;
	esac
done
waiting="$first $second"
one_by_one() {
	for test; do
		named "$test"
		run "$test"
	done
}
one_by_one $first &
one_by_one $second &
for test; do
	case " $waiting " in
	*" $test "*) continue ;;
	esac
	named "$test"
	run "$test"
	report
done
wait
for test in $waiting; do
	named "$test"
	report
done
echo "$passed $failed $skipped" >>"$counts"
