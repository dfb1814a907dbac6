# SPDX-License-Identifier: Apache-2.0
"""Which licence a jar has, from its Maven pom or that of its parents. Used by packaging/licences and fleet/licences."""
import os
import pathlib
import re
import xml.etree.ElementTree as xml

# What the licences are called in poms, in the order in which we choose where a jar offers several.
KNOWN = [
    (r"apache.*2|^apache-2\.0$|apache.org/licenses/LICENSE-2\.0", "Apache-2.0"),
    (r"^(the )?mit( license)?$|opensource.org/license/mit", "MIT"),
    (r"bsd[- ]2", "BSD-2-Clause"),
    (r"bsd[- ]3|3-clause bsd|new bsd|revised bsd|antlr.org/license", "BSD-3-Clause"),
    (r"eclipse.*2|epl[- ]2", "EPL-2.0"),
    (r"public domain|cc0", "CC0-1.0"),
]


class Unknown(Exception):
    """The pom of a jar is not there, or its licence is none of those asked for."""


def _strip(tag):
    return tag.split("}")[-1]


def _child(node, name):
    for c in node:
        if _strip(c.tag) == name:
            return c
    return None


def _text(node, name):
    c = _child(node, name) if node is not None else None
    return (c.text or "").strip() if c is not None else ""


class Repository:
    """A local Maven repository."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self._directories = {}
        for directory, _, files in os.walk(self.root):
            for file in files:
                if file.endswith((".pom", ".jar")):
                    self._directories.setdefault(file, set()).add(pathlib.Path(directory))

    def pom(self, jar):
        """The pom of a jar, which may have a classifier. Of several jars of one name, the one with the same bytes."""
        directories = {d for d in self._directories.get(jar.stem + ".pom", ())}
        if not directories:
            directories = {d for d in self._directories.get(jar.name, ())
                           if jar.stem.startswith(f"{d.parent.name}-{d.name}-")}
        if len(directories) > 1:
            directories = {d for d in directories
                           if (d / jar.name).exists() and (d / jar.name).read_bytes() == jar.read_bytes()}
        if len(directories) != 1:
            raise Unknown(f"{jar.name}: {len(directories)} poms in {self.root}; build with Maven first")
        directory = directories.pop()
        return directory / f"{directory.parent.name}-{directory.name}.pom"

    def facts(self, pom):
        """Licences, as pairs of name and address, and holders from a pom, else from the nearest parent that names them."""
        licences, holders = [], []
        while pom is not None:
            root = xml.parse(pom).getroot()
            section = _child(root, "licenses")
            if section is not None and not licences:
                licences = [(_text(item, "name"), _text(item, "url")) for item in section]
            if not holders:
                organisation = _text(_child(root, "organization"), "name")
                developers = _child(root, "developers")
                holders = [organisation] if organisation else [
                    _text(d, "name") for d in (developers if developers is not None else []) if _text(d, "name")]
            parent = _child(root, "parent")
            pom = None
            if parent is not None and not (licences and holders):
                group, artifact, version = (_text(parent, part) for part in ("groupId", "artifactId", "version"))
                pom = self.root / group.replace(".", "/") / artifact / version / f"{artifact}-{version}.pom"
                if not pom.exists():
                    pom = None
        return licences, holders


def choose(jar, licences, known=None):
    """The first of `known` that the jar offers."""
    for pattern, name in known or KNOWN:
        for words in licences:
            if any(re.search(pattern, word, re.I) for word in words if word):
                return name
    raise Unknown(f"{jar.name}: its licence is {licences or 'not stated'}, which is not in the list; look at it and add it")
