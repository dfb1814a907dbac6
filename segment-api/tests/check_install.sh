#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install into an empty root; build and run a program against it by pkg-config and by CMake; check the manual.
#   check_install.sh SOURCE-DIR WORK-DIR VERSION pkg-config|cmake|man
set -eu
src=$1 work=$2 version=$3 part=$4
rm -rf "$work"
mkdir -p "$work/consumer"
work=$(cd "$work" && pwd)
make -s -C "$src" install BUILD="${BUILD:-build}" DESTDIR="$work/root" PREFIX=/opt/gpuseg
root=$work/root/opt/gpuseg
need() {
	command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; exit 77; }
}
cat >"$work/consumer/main.c" <<EOF
#include <gpuseg.h>
#include <string.h>
int main(void)
{
	return strcmp(gpuseg_version(), "$version") != 0 || gpuseg_now_ns() <= 0;
}
EOF
case $part in
pkg-config)
	need pkg-config
	export PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root
	pkg-config --exact-version="$version" gpuseg
	${CC:-cc} -Wall -Werror "$work/consumer/main.c" $(pkg-config --cflags --libs gpuseg) -o "$work/consumer/main"
	LD_LIBRARY_PATH=$root/lib "$work/consumer/main"
	;;
cmake)
	need cmake
	cat >"$work/consumer/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(gpuseg @VERSION@ REQUIRED)
add_executable(main main.c)
target_link_libraries(main PRIVATE gpuseg::gpuseg)
add_executable(main_static main.c)
target_link_libraries(main_static PRIVATE gpuseg::gpuseg_static)
EOF
	sed -i "s/@VERSION@/${version%.*}/" "$work/consumer/CMakeLists.txt"
	cmake -S "$work/consumer" -B "$work/consumer/build" -DCMAKE_PREFIX_PATH="$root" >/dev/null
	cmake --build "$work/consumer/build" >/dev/null
	"$work/consumer/build/main"
	"$work/consumer/build/main_static"
	if cmake -S "$work/consumer" -B "$work/consumer/build2" -DCMAKE_PREFIX_PATH=/nonexistent >/dev/null 2>&1; then
		echo "found without a package: this test proves nothing"
		exit 1
	fi
	;;
man)
	need groff
	cd "$root/share/man"
	for page in man3/*.3 man7/*.7; do
		out=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
		test -z "$out" || { echo "$page: $out"; exit 1; }
	done
	grep -q "^\\.TH gpuseg 7 .* \"gpuseg $version\"" man7/gpuseg.7
	;;
esac
