#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line of the Debian package gpuseg-tools.
if [ "${1:-}" = exec ]; then
	shift
	exec /usr/libexec/gpuseg/gpuseg-exec "$@" # starts at once, without a Java runtime
fi
exec /usr/lib/gpuseg/launch dev.gpuseg.tools.cli.Gpuseg '/usr/share/gpuseg/tools/*:/usr/share/gpuseg/jar/*' "$@"
