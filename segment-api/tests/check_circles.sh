#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No circle between source files: neither of calls (what each object file defines and needs) nor of #include lines. And no
# file of inject writes a part of a GPU that belongs to another one.
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
		sed 's/^tsort: //; s/^.*pairs: //' "$tmp/circles"
		failed=1
	fi
}
# objects DIRECTORY SOURCE...
objects() {
	directory=$1
	shift
	for source; do
		name=${source##*/}
		echo "$directory/${name%.c}.o"
	done
}
# calls: of the object files on stdin
calls() {
	xargs nm -A | awk -v OFS=' ' '
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
objects "$build/obj" src/*.c | calls
acyclic "calls of the library"
{
	objects "$build/obj-inject" $(ls inject/*.c | grep -v '/exec\.c$') # a program of its own
	objects "$build/obj-inject/src" $(ls src/*.c | grep -v -e '/by_hand\.c$' -e '/sim\.c$')
} | calls
acyclic "calls of libgpuseg-inject.so"
for directory in src inject; do
	includes $directory
	acyclic "#include lines of $directory"
done
# owned FIELD FILE: only FILE writes the part FIELD of a GPU or a context
owned() {
	if grep -nE "(\.|->)$1\.[a-z_.]+(\[[^]]*\])? *([-+|&]?=[^=]|\+\+|--)" inject/*.c | grep -v "^inject/$2:"; then
		echo "only inject/$2 may write $1"
		failed=1
	fi
}
owned segment segments.c
owned pauses hold_off.c
owned flight flight.c
owned kernels kernels.c
owned touch touch.c
exit $failed
