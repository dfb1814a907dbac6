#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Are the C, C++, CUDA and HIP files below these directories formatted as .clang-format says?
#   check-format.sh DIRECTORY...          directories relative to the root of the repository; build output is left out
#   check-format.sh --fix DIRECTORY...    format them in place
# Exit status 0 (yes), 1 (no: it names the files), 77 (not checked: it says why). The last line is a count.
#
# Versions of clang-format differ. These agree on every file of this repository; another one is not asked.
VERSIONS='14 16 19'
COLUMNS_MAX=120 # clang-format does not break comments (ReflowComments: false), so their width is checked here

root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
fix=
[ "$1" = --fix ] && fix=1 && shift

skip() {
	echo "skipped: $1"
	echo "0 passed, 0 failed, 1 skipped"
	exit 77
}

formatter= other=
for candidate in $CLANG_FORMAT clang-format $(printf 'clang-format-%s ' $VERSIONS); do
	major=$("$candidate" --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
	[ -n "$major" ] || continue
	case " $VERSIONS " in
	*" $major "*) formatter=$candidate && break ;;
	*) other="$other $candidate is version $major;" ;;
	esac
done
if [ -z "$formatter" ]; then
	[ -z "$other" ] || skip "no clang-format of version $VERSIONS:$other"
	skip "clang-format is not installed (version $VERSIONS)"
fi

cd "$root" || exit 1
files=$(find "$@" \( -name build -o -name target \) -prune -o -type f \( -name '*.[ch]' -o -name '*.[ch]pp' -o -name '*.cu' \
	-o -name '*.cuh' -o -name '*.hip' \) -print | sort)
if [ -z "$files" ]; then
	echo "no source files below $*"
	exit 1
fi
# shellcheck disable=SC2086 # names without spaces
[ -z "$fix" ] || "$formatter" -i $files || exit 1

status=0
for file in $files; do
	if ! output=$("$formatter" --dry-run -Werror "$file" 2>&1); then
		echo "$file is not formatted; run \`make format\`"
		printf '%s\n' "$output" | head -n 3
		status=1
	fi
done
# shellcheck disable=SC2086
awk -v max=$COLUMNS_MAX '
	{
		columns = 0
		n = split($0, part, "\t")
		for (i = 1; i <= n; i++) {
			columns += length(part[i])
			if (i < n)
				columns += 8 - columns % 8
		}
		if (columns > max) {
			print FILENAME ":" FNR ": " columns " columns, " max " are allowed"
			wide = 1
		}
	}
	END { exit wide }' $files || status=1
if [ "$status" -eq 0 ]; then
	echo "1 passed, 0 failed, 0 skipped"
else
	echo "0 passed, 1 failed, 0 skipped"
fi
exit "$status"
