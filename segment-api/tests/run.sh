#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run test programs (and scripts) and sum up: exit 0 = passed, 77 = skipped, else failed.
#   run.sh LABEL COUNTS-FILE TEST...      appends "passed failed skipped" to COUNTS-FILE
# Each test has a limit of 330 s, more than its own alarm. $RUNNER goes before compiled programs (qemu-aarch64).
# test_inject, which waits for programs most of its time, runs beside the others.
label=$1 counts=$2
shift 2
passed=0 failed=0 skipped=0 beside=
# report STATUS: of test $name, whose output is in $counts.log
report() {
	case $1 in
	0) passed=$((passed + 1)); echo "ok    [$label] $name" ;;
	77) skipped=$((skipped + 1)); echo "skip  [$label] $name: $(sed -n 's/.*skipped: //p' "$counts.log" | tail -1)" ;;
	*) failed=$((failed + 1)); echo "FAIL  [$label] $name (exit $1)"; sed 's/^/      /' "$counts.log" ;;
	esac
}
for test; do
	case $test in
	*/test_inject)
		{ timeout -k 5 330 $RUNNER "$test" >"$counts.beside" 2>&1; echo $? >"$counts.status"; } &
		beside=$test ;;
	esac
done
for test; do
	case $test in
	*.sh*) name=$(basename "${test%% *}") && name="$name ${test##*[ /]}" ;;
	*.py*) name=$(echo "$test" | sed 's,.*tests/\([a-z_]*\.py\).*,\1,') ;;
	*) name=$(basename "$test") ;;
	esac
	[ "$test" != "$beside" ] || continue
	case $test in
	*.sh*|*.py*) timeout -k 5 330 $test >"$counts.log" 2>&1 ;;
	*) timeout -k 5 330 $RUNNER $test >"$counts.log" 2>&1 ;;
	esac
	report $?
done
if [ -n "$beside" ]; then
	wait
	name=$(basename "$beside")
	mv "$counts.beside" "$counts.log"
	report "$(cat "$counts.status")"
	rm -f "$counts.status"
fi
rm -f "$counts.log"
echo "$passed $failed $skipped" >>"$counts"
