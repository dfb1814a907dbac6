#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what `gpuseg selftest --evidence` wrote on machines, and makes README's rows of it.

usage: table.py [FILE... | -]     without arguments: all files here, and README.md is written; -: the rows are printed;
                                  FILE: it is checked alone. Exit status 1: a file is refused, and a line says why
"""
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
README = HERE.parents[1] / "README.md"
LINK = "[self-tests](traces/machines)"
KEYS = {"selftest", "simulated", "program_sha256", "machine", "level", "sentence", "exit_status", "took_s", "checks",
        "measured"}
LATER = {"mechanism"}  # not in the first files: nvidia
MACHINE = {"hardware", "board", "cpus", "memory_gib", "gpus", "gpu", "driver", "module", "gsp_firmware", "kernel",
           "persistence"}
CHECK = {"id", "verdict", "value", "reason"}
SERIES = {"n", "p50", "p90", "max"}
# What the self-test writes nowhere. Serial numbers of NVIDIA have 13 digits.
NAMES = (("a UUID", r"GPU-|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-"),
         ("an address on the PCI bus", r"\b[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b"),
         ("a hardware address", r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"),
         ("a serial number", r"\d{10,}"),
         ("a user's directory", r"/home/|/root\b|/Users/"),
         ("an e-mail address or a user at a host", r"[\w.]@\w"))
MAKERS = {"nvidia": "NVIDIA", "tegra": "Jetson", "amd": "AMD"}
# level of the self-test: mechanism ({}: the one that was tested) and its level, best first
LEVELS = {"preempts": ("`{}`", "3"), "drains": ("`{}`; running kernels end first", "2"),
          "slices": ("`launch`; the GPU keeps to time slices", "1"), "launch": ("`launch`", "1"), "gate": ("`gate`", "1"),
          "nothing": ("none", "")}


class Refused(Exception):
    pass


def strings(value):
    """Every text in it, keys too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def same_keys(found, expected, where):
    if not isinstance(found, dict) or set(found) != expected:
        odd = sorted(set(found) ^ expected) if isinstance(found, dict) else [str(found)]
        raise Refused(f"{where}: {', '.join(odd)}: not as gpuseg selftest --evidence writes it")


def check(path):
    """The evidence in a file, or Refused."""
    try:
        evidence = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as why:
        raise Refused(str(why)) from why
    same_keys({key: evidence[key] for key in evidence if key not in LATER} if isinstance(evidence, dict) else evidence,
              KEYS, "the file")
    if evidence.get("mechanism", "nvidia") not in MAKERS:
        raise Refused(f"mechanism {evidence['mechanism']!r} is none of {', '.join(MAKERS)}")
    same_keys(evidence["machine"], MACHINE, "machine")
    for row in evidence["checks"]:
        same_keys(row, CHECK, "checks")
    for name, series in evidence["measured"].items():
        same_keys(series, SERIES, f"measured.{name}")
    if evidence["level"] not in LEVELS:
        raise Refused(f"level {evidence['level']!r} is none of {', '.join(LEVELS)}")
    if not re.fullmatch(r"[0-9a-f]{64}|unknown", evidence["program_sha256"]):
        raise Refused("program_sha256 is no hash")
    if evidence["simulated"] is not False:
        raise Refused("it is simulated; only real machines belong here")
    for text in strings({key: value for key, value in evidence.items() if key != "program_sha256"}):
        for what, pattern in NAMES:
            if re.search(pattern, text):
                raise Refused(f"{what} in \"{text}\"; take it out, and tell us which check wrote it")
    return evidence


def machine(evidence):
    """One machine in a row."""
    is_at = evidence["machine"]
    rights = next((row["value"] for row in evidence["checks"] if row["id"] == "rights"), "")
    who = "root" if rights == "CAP_SYS_PTRACE" else "a user"
    short = "" if evidence["level"] != "preempts" or evidence["exit_status"] == 0 else ", not all that it relies on"
    return f"{is_at['gpu']} ({is_at['driver']} {is_at['module']}, as {who}{short})".replace("|", "/")


def rows():
    """One row for each mechanism and level that a machine has; every file is checked."""
    of = {(mechanism, level): set() for mechanism in MAKERS for level in LEVELS}
    for path in sorted(HERE.glob("*.json")):
        try:
            evidence = check(path)
        except Refused as why:
            raise Refused(f"{path.name}: {why}") from why
        of[evidence.get("mechanism", "nvidia"), evidence["level"]].add(machine(evidence))
    return [f"| {MAKERS[mechanism]}, as {LINK} say | {LEVELS[level][0].format(mechanism)} | {LEVELS[level][1]} | "
            f"{'; '.join(sorted(found))} |\n" for (mechanism, level), found in of.items() if found]


def write():
    """Puts the rows where README has them."""
    made = rows()
    lines = README.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if LINK in line)
    rest = [line for line in lines if LINK not in line]
    README.write_text("".join(rest[:at] + made + rest[at:]), encoding="utf-8")


def main(arguments):
    try:
        if arguments == ["-"]:
            sys.stdout.writelines(rows())
        elif arguments:
            for name in arguments:
                try:
                    check(pathlib.Path(name))
                except Refused as why:
                    raise Refused(f"{name}: {why}") from why
        else:
            write()
    except Refused as why:
        print(f"table.py: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
