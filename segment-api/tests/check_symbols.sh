#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library exports what gpuseg.h declares and libgpuseg.map lists, versioned, and nothing else.
#   check_symbols.sh SOURCE-DIR LIBRARY
set -eu
src=$1 lib=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
grep -A2 '^GPUSEG_API' "$src/include/gpuseg.h" | grep -o 'gpuseg_[a-z_]*(' | tr -d '(' | sort -u >"$tmp/header"
sed -n 's/^\t\(gpuseg_[a-z_]*\);$/\1/p' "$src/libgpuseg.map" | sort -u >"$tmp/map"
nm -D --defined-only "$lib" | awk '$2 == "T" { print $3 }' | sort -u >"$tmp/exported"
sed 's/@@GPUSEG_0\.[123456]$//' "$tmp/exported" | sort -u >"$tmp/names"
test -s "$tmp/header"
diff "$tmp/header" "$tmp/map"
diff "$tmp/map" "$tmp/names"
if nm -D --defined-only "$lib" | awk '$2 != "T" && $2 != "A"' | grep .; then
	echo "data or weak symbols are exported"
	exit 1
fi
readelf -d "$lib" | grep -q 'SONAME.*libgpuseg\.so\.0]'
if nm -D --undefined-only "$lib" | grep -Ew 'abort|exit|_exit|printf|fprintf|puts'; then
	echo "the library prints or ends the process"
	exit 1
fi
# The manual has a page for each function.
for name in $(cat "$tmp/map"); do
	test -f "$src/man/$name.3" || { echo "man/$name.3 is missing"; exit 1; }
done
