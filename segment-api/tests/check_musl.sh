#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Do programs of musl run behind the wrappers as by themselves, also one that asks for symbols?
#   check_musl.sh BUILD
set -eu
build=$1
if ! nm -D "$build/libgpuseg-wrap.so" | grep -q ' w dlvsym'; then
	echo "libgpuseg-wrap.so needs dlvsym(), which musl has not"
	exit 1
fi
command -v musl-gcc >/dev/null || { echo "skipped: musl-gcc is not installed"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/program.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	int (*const say)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "puts");
	void *const none = dlsym(RTLD_DEFAULT, "cuLaunchKernel");

	return say && !none && say("as by itself") >= 0 ? 0 : 1;
}
END
musl-gcc -o "$dir/program" "$dir/program.c"
for preload in '' "$(realpath "$build")/libgpuseg-wrap.so"; do
	[ "$(LD_PRELOAD="$preload" "$dir/program" 2>&1)" = "as by itself" ] || {
		echo "with \"$preload\" preloaded:"
		LD_PRELOAD="$preload" "$dir/program"
		exit 1
	}
done
