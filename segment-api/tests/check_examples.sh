#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run every example against the tests' daemon.
#   check_examples.sh SOURCE-DIR BUILD-DIR
set -eu
src=$1 build=$2
. "$(dirname "$0")/with_daemon.sh"
for example in 01_periodic_task 02_two_segments 03_timeout 04_hint 05_raii; do
	echo "$example"
	"$build/examples/$example" 3
done
GPUSEG_LIBRARY=$build/libgpuseg.so.0 PYTHONPATH=$src/python PYTHONDONTWRITEBYTECODE=1 ${PYTHON:-python3} "$src/examples/06_python.py" 3
echo ros2/robot.launch.py
PYTHONDONTWRITEBYTECODE=1 ${PYTHON:-python3} "$src/tests/launch_example.py" "$src/examples/ros2/robot.launch.py" "$build/gpuseg-exec"
exec 3>&-
wait $daemon
test "$(grep -c '^1 ' "$dir/out")" -ge 15 # begins
