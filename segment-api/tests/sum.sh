#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sum the counts that run.sh wrote; the last line of every `make test*`.
awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0 }' "$1"
