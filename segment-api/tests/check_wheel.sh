#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install the Python package with pip into a fresh virtual environment, without network and with no variable set, and run the
# example against the tests' daemon; then the same from the wheel that make builds.
#   check_wheel.sh SOURCE-DIR BUILD-DIR
set -eu
src=$(realpath "$1") build=$(realpath "$2")
unset GPUSEG_LIBRARY PYTHONPATH LD_LIBRARY_PATH PYTHONDONTWRITEBYTECODE
# Debian's, if it is there: its venv module is a package of its own.
python=/usr/bin/python3
[ -x $python ] || python=python3
$python -c 'import ensurepip, venv' 2>/dev/null || { echo "skipped: python3-venv is not installed"; exit 77; }
. "$(dirname "$0")/with_daemon.sh"

# All variants build the wheel in one directory.
mkdir -p "$src/build"
exec 8>"$src/build/wheel.lock"
flock 8

# No index, and a proxy that does not exist: whoever wants the network fails.
export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9
try() { # NAME PIP-ARGUMENT...
	name=$1
	shift
	$python -m venv "$dir/$name"
	"$dir/$name/bin/pip" install -q "$@"
	# From another directory: the tree must not help.
	(cd "$dir" && "$name/bin/python" "$src/examples/06_python.py" 3 | tee /dev/stderr | grep -qx '3 jobs, managed')
	(cd "$dir" && "$name/bin/python" -c 'import gpuseg; print(gpuseg.version(), gpuseg._lib._name)') | tee /dev/stderr |
		grep -q "$name/lib.*/gpuseg/libgpuseg.so.0$"
	"$dir/$name/bin/pip" check
	"$dir/$name/bin/pip" uninstall -q -y gpuseg
	! "$dir/$name/bin/python" -c 'import gpuseg' 2>/dev/null
}
(cd "$src/.." && try tree .)
(cd "$src/.." && try isolated --no-build-isolation .)
first=$($python "$src/python/gpuseg_wheel.py" "$dir/first")
second=$($python "$src/python/gpuseg_wheel.py" "$dir/second")
cmp "$first" "$second"
try wheel "$first"

# Without the library, what is missing and what to do.
if said=$(cd "$dir" && PYTHONPATH=$src/python PYTHONDONTWRITEBYTECODE=1 GPUSEG_LIBRARY=/nonexistent/lib.so $python -c 'import gpuseg' 2>&1); then
	echo "a missing library was not noticed"
	exit 1
fi
echo "$said" | grep -q 'ImportError.*/nonexistent/lib.so.*pip install'
exec 3>&-
wait $daemon
test "$(grep -c '^1 ' "$dir/out")" -ge 9 # begins
