#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The daemon of the Debian package gpuseg-daemon: `gpuseg-daemon run`, `gpuseg-daemon release`, `gpuseg-daemon config`.
exec /usr/lib/gpuseg/launch dev.gpuseg.daemon.launch.DaemonMain '/usr/share/gpuseg/jar/*' "$@"
