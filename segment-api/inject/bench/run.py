#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpuseg exec` on a real GPU: are results the same, what does it cost, does it help? Prints a table last.

    run.py --out DIR [--gpuseg COMMAND] [--seconds N] [--only PART,...] [--kinds KIND,...]

--gpuseg: the command line of this checkout, to which `run ...` is added; default ./gpuseg. A machine without Maven gives
the Java runtime and the class path: --gpuseg "jre/bin/java @options -cp classes:lib/* dev.gpuseg.tools.cli.Gpuseg".
Parts: launches, followed, alone, load. Kinds, of alone and load: cnn, vit, llm. Needs `make -C segment-api` and PyTorch;
results go to DIR/results.json.
"""
import argparse
import json
import math
import mmap
import os
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.abspath(os.path.join(HERE, "../../.."))
BUILD = os.path.join(REPOSITORY, "segment-api/build")
EXEC = os.path.join(BUILD, "gpuseg-exec")
LAUNCHES = os.path.join(BUILD, "gpuseg-inject-launches")
WORKLOAD = [sys.executable, os.path.join(HERE, "workload.py")]
KINDS = {"cnn": 20.0, "vit": 30.0, "llm": 20.0}   # period in ms beside a load
TRAININGS = ["train-cnn", "train-vit", "train-llm"]
LIMIT_S = 120
CUPTI = "exec --priority 80 --calls cupti"
HOWS = ("plain", "exec --priority 80", CUPTI)


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)]


class Daemon:
    """A daemon for as long as the block runs."""

    def __init__(self, command, directory, log, mechanism="nvidia"):
        self.command, self.directory, self.log, self.mechanism = command, directory, log, mechanism

    def __enter__(self):
        self.process = subprocess.Popen(
            shlex.split(self.command) + ["run", "--dir", self.directory, "--policy", "fp", "--mechanism",
                                         self.mechanism, "--idle", "spin"], stdout=self.log, stderr=self.log, cwd=REPOSITORY)
        limit = time.monotonic() + 60
        while not os.path.exists(os.path.join(self.directory, "gpuseg.sock")):
            if self.process.poll() is not None or time.monotonic() > limit:
                raise SystemExit(f"run.py: the daemon did not start; see {self.log.name}")
            time.sleep(0.05)
        time.sleep(2)   # it warms up
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def program(how, directory, command, log):
    """Runs it to its end: plain, by exec, or marked by hand. What it printed on stdout; SystemExit if it fails or hangs."""
    environment = dict(os.environ, GPUSEG_DIR=directory)
    for name in list(environment):
        if name.startswith("GPUSEG_EXEC_") or name == "CUDA_INJECTION64_PATH":
            del environment[name]
    line = list(command)
    if how.startswith("exec"):
        line = [EXEC, "--verbose"] + how.split()[1:] + ["--"] + line
    elif how == "marks":
        line.append("--marks")
    log.write(f"$ {shlex.join(line)}\n")
    log.flush()
    try:
        done = subprocess.run(line, env=environment, stdout=subprocess.PIPE, stderr=log, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"run.py: {shlex.join(line)} hangs; see {log.name}") from None
    if done.returncode != 0:
        raise SystemExit(f"run.py: {shlex.join(line)} ended with {done.returncode}; see {log.name}")
    return done.stdout.decode()


def workload(how, directory, kind, jobs, period, log):
    with tempfile.NamedTemporaryFile() as file:
        program(how, directory, WORKLOAD + [kind, "--jobs", str(jobs), "--period", str(period), "--json", file.name], log)
        result = json.load(open(file.name, encoding="utf-8"))
    took = result.pop("took_ns")
    return {"how": how, "kind": kind, "jobs": jobs, "p50_ms": quantile(took, 0.5) / 1e6, "p99_ms": quantile(took, 0.99) / 1e6,
            "max_ms": max(took) / 1e6, "digest": result["digest"]}


def launches(arguments, directory, log):
    rows = []
    for kind in ("tiny", "graph"):
        for repetition in range(2):
            for how in HOWS:
                row = json.loads(program(how, directory, [LAUNCHES, kind], log))
                rows.append(dict(row, how=how, repetition=repetition))
    return rows


FOLLOWED = {"all": "", "nothing": "none", "graphs": "cuGraphLaunch", "synchronisations": "cuCtxSync,cuStreamSync"}


def followed(arguments, directory, log):
    """What makes the launch of a graph longer: CUPTI itself, its callbacks, or the segment?"""
    rows = []
    for kernels in ("20", "200"):
        for rest in ("0", "500"):
            command = [LAUNCHES, "graph", "2000", kernels, rest]
            rows.append(dict(json.loads(program("plain", directory, command, log)), followed="plain"))
            for name, value in FOLLOWED.items():
                rows.append(dict(json.loads(program(CUPTI, directory, ["env", f"GPUSEG_EXEC_FOLLOW={value}"] + command, log)),
                                 followed=name))
            rows.append(dict(json.loads(program("exec --priority 80", directory, command, log)), followed="by wrappers"))
    return rows


def alone(arguments, directory, log):
    rows = []
    for kind in arguments.kinds:
        for repetition in range(2):
            for how in HOWS:
                rows.append(dict(workload(how, directory, kind, 400, 0, log), repetition=repetition))
    return rows


class Load:
    """Processes of these kinds, as they are; three trainings by default."""

    def __init__(self, kinds=None):
        self.kinds = kinds or TRAININGS

    def __enter__(self):
        self.files, self.pages, self.processes = [], [], []
        for kind in self.kinds:
            file = tempfile.NamedTemporaryFile()
            file.truncate(4096)
            self.files.append(file)
            self.pages.append(mmap.mmap(file.fileno(), 4096))
            self.processes.append(subprocess.Popen(self.command(kind, file.name)))
        limit = time.monotonic() + LIMIT_S
        while min(self.steps()) < 5:
            if any(p.poll() is not None for p in self.processes) or time.monotonic() > limit:
                self.__exit__()
                raise SystemExit(f"run.py: one of {', '.join(self.kinds)} did not start")
            time.sleep(0.2)
        return self

    def command(self, kind, page):
        return WORKLOAD + [kind, "--page", page]

    def steps(self):
        return [struct.unpack_from("<Q", page, 0)[0] for page in self.pages]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def under_load(arguments, directory, log, out):
    rows = []

    def measure(load, how, label, kind):
        before, began = load.steps(), time.monotonic()
        period = KINDS[kind]
        row = workload(how, directory, kind, int(arguments.seconds * 1000 / period), period, log)
        seconds = time.monotonic() - began
        row.update(label=label, steps_per_s=sum(b - a for a, b in zip(before, load.steps())) / seconds)
        rows.append(row)
        json.dump(rows, open(os.path.join(out, "load.json"), "w", encoding="utf-8"), indent=1)

    for kind in arguments.kinds:
        rows.append(dict(workload("plain", directory, kind, int(arguments.seconds * 1000 / KINDS[kind]), KINDS[kind], log),
                         label="alone", steps_per_s=0))
    with Load() as load:
        for kind in arguments.kinds:
            measure(load, "plain", "driver", kind)
        with Daemon(arguments.gpuseg, directory, log):
            for kind in arguments.kinds:
                measure(load, "exec --priority 80", "exec", kind)
                measure(load, "marks", "marks", kind)
    return rows


def table(results):
    lines = []
    rows = results.get("launches", [])
    for kind, unit in (("tiny", "us a launch"), ("graph", "us a graph of 20")):
        best = {how: min(r["us_p50"] for r in rows if r["kind"] == kind and r["how"] == how) for how in HOWS if rows}
        for how in HOWS[1:] if best else ():
            lines.append(f"{kind:7} plain {best['plain']:8.2f}  {how:35} {best[how]:8.2f}  {unit}, "
                         f"{best[how] - best['plain']:+.2f}, ratio {best[how] / best['plain']:.3f}")
    for kind in KINDS:
        mine = [r for r in results.get("alone", []) if r["kind"] == kind]
        best = {how: min(r["p50_ms"] for r in mine if r["how"] == how) for how in HOWS if mine}
        same = "same" if len({r["digest"] for r in mine}) == 1 else "DIFFERENT"
        for how in HOWS[1:] if best else ():
            lines.append(f"{kind:7} plain p50 {best['plain']:8.3f} ms  {how:35} p50 {best[how]:8.3f} ms  "
                         f"ratio {best[how] / best['plain']:.3f}  results {same}")
    for row in results.get("followed", []):
        lines.append(f"graph of {row['kernels']:3} kernels, rest {row['rest_us']:3} us, followed {row['followed']:17} "
                     f"p50 {row['us_p50']:8.2f} us  p99 {row['us_p99']:8.2f} us")
    rows = results.get("load", [])
    if rows:
        lines.append(f"{'beside 3 trainings':20} {'p50 ms':>9} {'p99 ms':>9} {'max ms':>9} {'steps/s':>8}")
    for kind in KINDS:
        for row in (r for r in rows if r["kind"] == kind):
            lines.append(f"{kind:5} {row['label']:14} {row['p50_ms']:9.3f} {row['p99_ms']:9.3f} {row['max_ms']:9.3f} "
                         f"{row['steps_per_s']:8.1f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--gpuseg", default=os.path.join(REPOSITORY, "gpuseg"))
    parser.add_argument("--seconds", type=float, default=12, help="of each run beside the load")
    parser.add_argument("--only", default="launches,followed,alone,load")
    parser.add_argument("--kinds", default=",".join(KINDS))
    arguments = parser.parse_args()
    arguments.kinds = arguments.kinds.split(",")
    if not set(arguments.kinds) <= set(KINDS):
        parser.error(f"--kinds is {','.join(arguments.kinds)}; known are {', '.join(KINDS)}")
    parts = arguments.only.split(",")
    os.makedirs(arguments.out, exist_ok=True)
    results = {"command": shlex.join(sys.argv), "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory, \
            open(os.path.join(arguments.out, "run.log"), "w", encoding="utf-8") as log:
        try:
            if {"launches", "followed", "alone"} & set(parts):
                with Daemon(arguments.gpuseg, directory, log):
                    if "launches" in parts:
                        results["launches"] = launches(arguments, directory, log)
                    if "followed" in parts:
                        results["followed"] = followed(arguments, directory, log)
                    if "alone" in parts:
                        results["alone"] = alone(arguments, directory, log)
            if "load" in parts:
                results["load"] = under_load(arguments, directory, log, arguments.out)
        finally:
            with open(os.path.join(arguments.out, "results.json"), "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
            print(table(results))


if __name__ == "__main__":
    main()
