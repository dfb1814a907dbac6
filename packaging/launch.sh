#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program of the Debian packages gpuseg-daemon and gpuseg-tools: finds a Java runtime (17 or later) for it.
#   launch MAIN-CLASS CLASS-PATH [ARGUMENT...]
set -eu

main=$1
classes=$2
shift 2
share=/usr/share/gpuseg
private=/usr/lib/gpuseg

# The major version of a runtime, from its release file: asking the runtime itself would cost half a second.
major() {
    sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release" 2> /dev/null
}

suits() {
    [ -x "$1/bin/java" ] && [ "$(major "$1" || true)" -ge 17 ] 2> /dev/null
}

found=
on_path="$(command -v java || true)"
if [ -n "$on_path" ]; then
    on_path="$(dirname "$(dirname "$(readlink -f "$on_path")")")"
fi
for home in "${GPUSEG_JAVA_HOME:-}" "$private/jre" "$on_path" /usr/lib/jvm/*; do
    if [ -n "$home" ] && suits "$home"; then
        found="$home"
        break
    fi
done
if [ -z "$found" ]; then
    echo "gpuseg: no Java runtime 17 or later found; install one: apt install default-jre-headless, or set GPUSEG_JAVA_HOME" >&2
    exit 1
fi
extra=
if [ "$(major "$found")" -ge 24 ]; then
    extra="--sun-misc-unsafe-memory-access=allow --enable-native-access=ALL-UNNAMED"
fi
case "${1:-}" in
run) extra="$extra @$share/config/daemon.jvm" ;;
# They end before the second compiler would pay, and need no collector with threads of its own.
status | top | cgroups | set | policy | stop | -V | --version) extra="$extra -XX:TieredStopAtLevel=1 -XX:+UseSerialGC" ;;
esac
# Java takes the encoding of arguments and of names of files from the locale, and cannot be told otherwise.
LC_ALL=C.UTF-8
export LC_ALL
# shellcheck disable=SC2086 # both are lists of options
exec "$found/bin/java" "@$share/jvm.options" $extra ${GPUSEG_JAVA_OPTS:-} -cp "$classes" "$main" "$@"
