# SPDX-License-Identifier: Apache-2.0
# Sourced with $build set: starts the tests' daemon until the shell ends; $dir is a directory for as long, GPUSEG_DIR names the
# daemon.
dir=$(mktemp -d)
mkfifo "$dir/in"
"$build/tests/serve_fixture" <"$dir/in" >"$dir/out" &
daemon=$!
exec 3>"$dir/in"
trap 'exec 3>&-; wait $daemon || true; rm -rf "$dir"' EXIT
while ! [ -s "$dir/out" ]; do sleep 0.02; done
GPUSEG_DIR=$(head -1 "$dir/out")
export GPUSEG_DIR
