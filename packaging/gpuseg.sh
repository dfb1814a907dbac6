#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line of the Debian package gpuseg-tools.
exec /usr/lib/gpuseg/launch dev.gpuseg.tools.cli.Gpuseg '/usr/share/gpuseg/tools/*:/usr/share/gpuseg/jar/*' "$@"
