#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No circle between source files: neither of calls (what each object file defines and needs) nor of #include lines.
#   check_circles.sh BUILD
set -eu
build=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
# acyclic WHAT: the pairs "from to" in $tmp/pairs
acyclic() {
	test -s "$tmp/pairs"
	if ! tsort "$tmp/pairs" >/dev/null 2>"$tmp/circles"; then
		echo "$1 form a circle:"
		sed 's/^tsort: //' "$tmp/circles"
		failed=1
	fi
}
# calls OBJECTS SOURCE...
calls() {
	objects=$1
	shift
	for source; do
		name=${source##*/}
		echo "$objects/${name%.c}.o"
	done | xargs nm -A | awk -v OFS=' ' '
		{ file = $1; sub(/:.*/, "", file); name = $NF; kind = $(NF - 1) }
		kind ~ /^[TDBRVW]$/ { owner[name] = file }
		kind == "U" { need[++n] = file; what[n] = name }
		END { for (i = 1; i <= n; i++) if (what[i] in owner && owner[what[i]] != need[i]) print need[i], owner[what[i]] }
	' >"$tmp/pairs"
}
# includes DIRECTORY: by the names in quotes, which no two files share
includes() {
	grep -o '^#include "[^"]*"' "$1"/*.[ch] | sed 's|^.*/\([^/:]*\):#include "\(.*/\)*\([^"/]*\)"$|\1 \3|' >"$tmp/pairs"
}
calls "$build/obj" src/*.c
acyclic "calls of the library"
for directory in src inject; do
	includes $directory
	acyclic "#include lines of $directory"
done
exit $failed
