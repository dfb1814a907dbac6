#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Can test_threads find a race at all? Builds it with each race that can be planted in the library (GPUSEG_PLANT_RACE in
# src/client.c) under gcc's ThreadSanitizer and expects a report of it. That the library has none is what `make tsan` says.
#   check_races.sh SOURCES BUILD
set -u
sources=$1 build=$2 limit=100
command -v gcc >/dev/null || { echo "skipped: gcc is not installed"; exit 77; }
failed=0
GPUSEG_TEST_BASE=$(mktemp -d /dev/shm/gpuseg-race-XXXXXX) || exit 1
export GPUSEG_TEST_BASE
trap 'rm -rf "$GPUSEG_TEST_BASE"' EXIT

# plant NUMBER FUNCTION TEST: the race, a function that the report names, the test that finds it
plant() {
	dir=$build/race-$1
	make -s -C "$sources" CC=gcc BUILD="$dir" SAN='-fsanitize=thread -fno-omit-frame-pointer' \
		CFLAGS="-DGPUSEG_PLANT_RACE=$1" "$dir/tests/test_threads" "$dir/tests/serve_fixture" || exit 1
	for attempt in 1 2 3; do # a machine that stands still may order two threads by chance
		RUNNER='' TSAN_OPTIONS=halt_on_error=1 timeout -k 5 $limit "$dir/tests/test_threads" "$3" >"$dir/log" 2>&1
		if grep -q 'WARNING: ThreadSanitizer: data race' "$dir/log" && grep -q "$2" "$dir/log"; then
			echo "race $1 is reported by $3 (attempt $attempt)"
			return
		fi
	done
	echo "race $1 is not reported by $3:"
	tail -n 20 "$dir/log"
	failed=1
}

plant 1 left_behind should_survive_a_storm_of_connections_tasks_segments_and_rolls
plant 2 gpuseg_connect should_connect_while_the_daemon_is_replaced
plant 3 make_successor should_survive_a_storm_of_connections_tasks_segments_and_rolls
exit $failed
