#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does run.sh fail a test that leaves something in shared memory, and remove it? Does it play once more what fails, and say so?
#   check_run.sh SOURCES
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo 'echo "$GPUSEG_TEST_BASE" >"$1"; ${2-true} "$GPUSEG_TEST_BASE/left"' >"$work/test.sh"
fail() { echo "$1:"; cat "$work/said"; exit 1; }

"$1/tests/run.sh" check "$work/counts" "sh $work/test.sh $work/base" >"$work/said" 2>&1
grep -q '^1 0 0$' "$work/counts" || fail "a test that leaves nothing"
"$1/tests/run.sh" check "$work/counts" "sh $work/test.sh $work/base touch" >"$work/said" 2>&1
grep -q '^0 1 0$' "$work/counts" && grep -q 'left behind: .*/left' "$work/said" || fail "a test that leaves a file"
! [ -e "$(cat "$work/base")" ] || fail "its file is still there"
echo '[ -e "$1" ] || { touch "$1"; echo "a stall"; exit 1; }' >"$work/flaky.sh"
"$1/tests/run.sh" check "$work/counts" "sh $work/flaky.sh $work/once" >"$work/said" 2>&1
[ "$(tail -n 1 "$work/counts")" = "1 0 0" ] && grep -q '^again .*played once more' "$work/said" && grep -q '^ *a stall' "$work/said" ||
	fail "a test that passes at the second time"
