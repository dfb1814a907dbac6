#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line of the Debian package gpuseg-tools.
case "${1:-}" in
exec | latency | selftest)
	program="gpuseg-$1"
	shift
	exec "/usr/libexec/gpuseg/$program" "$@" # starts at once, without a Java runtime
	;;
esac
if [ "${1:-}" = fleet ]; then
	if [ "${2:-}" != agent ]; then
		echo "gpuseg fleet: use gpuseg fleet agent, the agent of a Kubernetes node" >&2
		exit 2
	fi
	if [ ! -d /usr/share/gpuseg/agent ]; then
		echo "gpuseg fleet agent: not in this package; it is in the image that fleet/kubernetes/image/build makes" >&2
		exit 1
	fi
	shift 2
	exec /usr/lib/gpuseg/launch dev.gpuseg.fleet.kubernetes.AgentMain '/usr/share/gpuseg/agent/*' "$@"
fi
case "${1:-}" in
status | set | -V | --version)
	# The same without Java where it can; else status 125, and nothing was changed.
	status=0
	/usr/libexec/gpuseg/gpuseg-ask "$@" || status=$?
	[ "$status" -eq 125 ] || exit "$status"
	;;
esac
exec /usr/lib/gpuseg/launch dev.gpuseg.tools.cli.Gpuseg '/usr/share/gpuseg/tools/*:/usr/share/gpuseg/jar/*' "$@"
