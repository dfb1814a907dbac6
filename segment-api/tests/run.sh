#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run test programs (and scripts) and sum up: exit 0 = passed, 77 = skipped, else failed.
#   run.sh LABEL COUNTS-FILE TEST...      appends "passed failed skipped" to COUNTS-FILE
# Each test has a limit of 330 s, more than its own alarm. $RUNNER goes before compiled programs (qemu-aarch64).
label=$1 counts=$2
shift 2
passed=0 failed=0 skipped=0
for test; do
	case $test in
	*.sh*) name=$(basename "${test%% *}") && name="$name ${test##*[ /]}" ;;
	*.py*) name=$(echo "$test" | sed 's,.*tests/\([a-z_]*\.py\).*,\1,') ;;
	*) name=$(basename "$test") ;;
	esac
	case $test in
	*.sh*|*.py*) timeout -k 5 330 $test >"$counts.log" 2>&1 ;;
	*) timeout -k 5 330 $RUNNER $test >"$counts.log" 2>&1 ;;
	esac
	status=$?
	case $status in
	0) passed=$((passed + 1)); echo "ok    [$label] $name" ;;
	77) skipped=$((skipped + 1)); echo "skip  [$label] $name: $(sed -n 's/.*skipped: //p' "$counts.log" | tail -1)" ;;
	*) failed=$((failed + 1)); echo "FAIL  [$label] $name (exit $status)"; sed 's/^/      /' "$counts.log" ;;
	esac
done
rm -f "$counts.log"
echo "$passed $failed $skipped" >>"$counts"
