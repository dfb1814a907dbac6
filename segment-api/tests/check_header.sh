#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tables of results in the public headers have one row per code: a row that was joined to the one before it, or that
# lost its indentation, looks like prose and is overlooked. And C11 without POSIX compiles them, but for touches.
#   check_header.sh INCLUDE-DIR
set -eu
rows=$(grep -hcE '^ \*  +-E[A-Z0-9]+(, -E[A-Z0-9]+)* {2,}' "$1/gpuseg.h")
test "$rows" -ge 10 || { echo "gpuseg.h has $rows rows of results: this test looks for the wrong thing"; exit 1; }
if grep -nE '([^ *,]|, [a-z].*) -E[A-Z0-9]+ {2,}|^ \* -E[A-Z0-9]+ {2,}' "$1"/*.h; then
	echo "the rows above do not stand on a line of their own"
	exit 1
fi
echo '#include "gpuseg_cuda.h"
int main(void) { struct gpuseg_cuda s; return gpuseg_cuda_open(&s, 0, GPUSEG_CUDA_TOUCH) == -ENOTSUP; }' |
	"${CC:-cc}" -std=c11 -pedantic -Wall -Wextra -Werror -I"$1" -I"$(dirname "$0")/cudart" -fsyntax-only -xc -
