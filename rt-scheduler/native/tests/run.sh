#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD TEST... - runs the test programs and check-format.sh, adds their counts up; last line: N passed, N failed, N skipped
# A test that fails is played once more; a line beginning with "again" says so, and only the second counts.
build=$1
shift
passed=0 failed=0 skipped=0
# play: $test, its $output and $status
play() {
	case $test in
	*/check-format.sh) output=$("$test" rt-scheduler) ;;
	*) output=$(GPUSEG_TEST_BUILD="$build" nice -n 5 "$build/$test") ;;
	esac
	status=$?
}
for test in "$@"; do
	echo "$test"
	play
	if [ $status -ne 0 ]; then
		printf '%s\n' "$output" | sed 's/^/  first time: /'
		echo "again $test: it failed (status $status) and is played once more"
		play
	fi
	printf '%s\n' "$output" | sed 's/^/  /'
	counts=$(printf '%s\n' "$output" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' | tail -n 1)
	if [ -z "$counts" ]; then
		echo "  $test ended with status $status and no count"
		failed=$((failed + 1))
		continue
	fi
	read -r p f s <<END
$counts
END
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
