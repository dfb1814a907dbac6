#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The version of gpuseg stands in the root pom.xml; this is the only place to read it from.
#   version.sh            prints it: major.minor.patch, without -SNAPSHOT
#   version.sh --check    does every other place that must spell it out say the same? Exit status 0 or 1
#   version.sh --write    makes the modules' poms and gpuseg.h say the same
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
header=$root/segment-api/include/gpuseg.h

# The first <version> of the root pom is its own; that of a module's pom is its parent's.
pom_version() {
	sed -n 's:^ *<version>\(.*\)</version>.*:\1:p' "$1" | head -n 1
}
whole=$(pom_version "$root/pom.xml") # with -SNAPSHOT
version=${whole%-SNAPSHOT}
case $version in
*[!0-9.]* | '' | *.*.*.* | .* | *.) echo "pom.xml: version \"$whole\" is not major.minor.patch[-SNAPSHOT]" >&2 && exit 1 ;;
*.*.*) ;;
*) echo "pom.xml: version \"$whole\" is not major.minor.patch[-SNAPSHOT]" >&2 && exit 1 ;;
esac
poms=$(sed -n 's:^ *<module>\(.*\)</module>.*:\1/pom.xml:p' "$root/pom.xml")

header_version() {
	awk '/^#define GPUSEG_VERSION_(MAJOR|MINOR|PATCH) / { v = v s $3; s = "." } END { print v }' "$header"
}

status=0
expect() { # FILE FOUND EXPECTED
	[ "$2" = "$3" ] && return 0
	echo "$1 says \"$2\", pom.xml says \"$3\"; run config/version.sh --write, or make that place read the version"
	status=1
}

case ${1:-} in
'')
	echo "$version"
	;;
--check)
	expect segment-api/include/gpuseg.h "$(header_version)" "$version"
	for pom in $poms; do
		expect "$pom" "$(pom_version "$root/$pom")" "$whole"
	done
	# Places in the sources that spell a version out, in the forms that are in use.
	found=$(cd "$root" && find . \( -name target -o -name build -o -name .git \) -prune -o -type f \( -name '*.java' -o -name '*.py' \
		-o -name '*.7' -o -name '*.3' -o -name 'check_install.sh' -o -path ./packaging/tests/run-all \) -print |
		xargs grep -nE '(VERSION|__version__|version) = "(gpuseg )?[0-9]+\.[0-9]+\.[0-9]+"|^\.TH .*"gpuseg [0-9.]+"|\)" = [0-9]+\.[0-9]+\.[0-9]+ \]' || true)
	while IFS= read -r line; do
		[ -n "$line" ] || continue
		expect "$(echo "$line" | cut -d: -f1,2)" "$(echo "$line" | cut -d: -f3- | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)" "$version"
	done <<END
$found
END
	exit "$status"
	;;
--write)
	for pom in $poms; do
		line=$(grep -n '<version>' "$root/$pom" | head -n 1 | cut -d: -f1)
		sed -i "${line}s:<version>.*</version>:<version>$whole</version>:" "$root/$pom"
	done
	IFS=. read -r major minor patch <<END
$version
END
	sed -i -e "s/^\(#define GPUSEG_VERSION_MAJOR\) .*/\1 $major/" -e "s/^\(#define GPUSEG_VERSION_MINOR\) .*/\1 $minor/" \
		-e "s/^\(#define GPUSEG_VERSION_PATCH\) .*/\1 $patch/" "$header"
	;;
*)
	echo "usage: config/version.sh [--check | --write]" >&2
	exit 2
	;;
esac
