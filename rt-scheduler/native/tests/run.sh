#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD TEST... - runs the test programs and check-format.sh, adds their counts up; last line: N passed, N failed, N skipped
# A test that fails is played once more; a line beginning with "again" says so, and only the second counts.
# Tests of the self-test wait for programs that hang or lie, most of their time: they run beside the others, and are reported last.
build=$1
shift
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
# play TEST: its output and status to $work/TEST.*
play() {
	case $1 in
	*/check-format.sh) "$1" rt-scheduler ;;
	*) GPUSEG_TEST_BUILD="$build" nice -n 5 "$build/$1" ;;
	esac >"$work/$(basename "$1").out"
	echo $? >"$work/$(basename "$1").status"
}
report() {
	name=$(basename "$1")
	read -r status <"$work/$name.status" || status=1
	echo "$1"
	if [ "$status" -ne 0 ]; then
		sed 's/^/  first time: /' "$work/$name.out"
		echo "again $1: it failed (status $status) and is played once more"
		play "$1"
		read -r status <"$work/$name.status" || status=1
	fi
	sed 's/^/  /' "$work/$name.out"
	counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$work/$name.out" | tail -n 1)
	if [ -z "$counts" ]; then
		echo "  $1 ended with status $status and no count"
		failed=$((failed + 1))
		return
	fi
	read -r p f s <<END
$counts
END
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}
waiting=
for test in "$@"; do
	case $test in
	test_selftest|test_boards)
		waiting="$waiting $test"
		play "$test" &
		;;
	esac
done
for test in "$@"; do
	case " $waiting " in
	*" $test "*) ;;
	*) play "$test" && report "$test" ;;
	esac
done
wait
for test in $waiting; do
	report "$test"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
