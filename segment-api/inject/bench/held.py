#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holding launches on a real GPU: by itself, beside a mechanism that preempts, and under MPS. Prints a table last.

    held.py --out DIR [--gpuseg COMMAND] [--jobs N] [--configurations NAME,...] [--loads NAME,...]

A real-time program (kernels of 5 ms and of 0.35 ms, unmodified, `gpuseg exec --priority 80`) runs beside three best-effort
programs (`gpuseg exec --best-effort`): kernels of 20 ms, loops of large matrix products on four streams, of graphs of 1000
small kernels, trainings, or decoders that generate tokens.

driver     no daemon                          launch      --mechanism launch: launches are held, at most 500 us is queued
nvidia     --mechanism nvidia                 mps         no daemon; all are clients of one MPS server
both       the same with --hold-launches      mps-launch  the same with --mechanism launch
mps-co-run the same with --co-run 10%, after 200 jobs from which it learns
mps-turns  as mps-launch, best-effort programs one at a time: their weights differ by a hundredth
mps-begins as mps-launch, and the real-time program begins each job at its release, not up to 4 ms later at random
mps-period as mps-begins, and declares its period: begins are anticipated, with the default budget
mps-period-10, mps-period-20: the same with a budget of 10 and 20 %; launch-period-10: without MPS
nvidia-begins: --mechanism nvidia, begins at releases; nvidia-period, nvidia-period-off: the same, period declared, with the
           default budget; with touches and with exec --touch off; nvidia-period-idle: beside three more processes that are
           idle; nvidia-learned: the period is not declared, after 2 s of learning; nvidia-period-20, nvidia-period-20-off: budget of 20 %
nvidia-period-marked, nvidia-period-marked-off: the program is not under exec: it marks its segments itself, and declares its
           period; with GPUSEG_CUDA_TOUCH and without
alone-period, alone-period-off: the same as nvidia-period without a load

HELD_GRAPH=10 in the environment: a job is a graph of ten kernels, together as long.

Before all that the program runs alone without a daemon and without exec: `plain`, and `plain-period` with begins at
releases. The last columns compare p50 and p99 with those. Large products make the GPU lower its clock, and the kernels of the
real-time program run at that clock, too: "SM MHz" is the clock beside the load alone, as nvidia-smi names it, "in jobs" the
median in the program's own kernels, by its cycles and ns; "at its clock" are p50 and p99, divided by those alone and
multiplied by the ratio of these clocks.

Programs whose kernels fill the GPU for longer than 500 us take turns in every configuration with --mechanism launch but
mps-turns, where the scheduler's weights do it. What the daemon counted is in held.json, under `daemon`.

--gpuseg is as in run.py. Needs `make -C segment-api`, `make -C rt-scheduler/native gpu-bench` and PyTorch. No setting of
the device is changed; the MPS server has a directory of its own and ends with its configuration.
"""
import argparse
import contextlib
import json
import mmap
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.abspath(os.path.join(HERE, "../../.."))
EXEC = os.path.join(REPOSITORY, "segment-api/build/gpuseg-exec")
NATIVE = os.path.join(REPOSITORY, "rt-scheduler/native/build")
PAGE_BYTES = 4096
LIMIT_S = 90
NVIDIA_20 = ["--mechanism", "nvidia", "--anticipation-budget", "20"]
CONFIGURATIONS = {   # options of the daemon, None = none; under MPS?
    "driver": (None, False),
    "nvidia": (["--mechanism", "nvidia"], False),
    "both": (["--mechanism", "nvidia", "--hold-launches"], False),
    "launch": (["--mechanism", "launch"], False),
    "mps": (None, True),
    "mps-launch": (["--mechanism", "launch"], True),
    "mps-co-run": (["--mechanism", "launch", "--co-run", "10%"], True),
    "mps-turns": (["--mechanism", "launch"], True),
    "mps-begins": (["--mechanism", "launch"], True),
    "mps-period": (["--mechanism", "launch"], True),
    "mps-period-10": (["--mechanism", "launch", "--anticipation-budget", "10"], True),
    "mps-period-20": (["--mechanism", "launch", "--anticipation-budget", "20"], True),
    "launch-period-10": (["--mechanism", "launch", "--anticipation-budget", "10"], False),
    "nvidia-begins": (["--mechanism", "nvidia"], False),
    "nvidia-period": (["--mechanism", "nvidia"], False),
    "nvidia-period-off": (["--mechanism", "nvidia"], False),
    "nvidia-period-idle": (["--mechanism", "nvidia"], False),
    "nvidia-period-marked": (["--mechanism", "nvidia"], False),
    "nvidia-period-marked-off": (["--mechanism", "nvidia"], False),
    "nvidia-learned": (["--mechanism", "nvidia", "--anticipate", "learned"], False),
    "nvidia-period-20": (NVIDIA_20, False),
    "nvidia-period-20-off": (NVIDIA_20, False),
    "alone-period": (NVIDIA_20, False),
    "alone-period-off": (NVIDIA_20, False),
}
WARM = {"mps-co-run": 200, "nvidia-learned": 200}   # jobs not counted: the daemon learns; others: 5, with a period 60
IDLE = {"nvidia-period-idle": 3}   # processes with a context and no work, besides
COUNTERS = ["anticipated", "anticipations_wasted", "anticipations_over_budget", "kept_free_ns", "long_kernels",
            "long_turns", "co_run_segments", "co_run_unfit", "preemptions", "begins"]
LOADS = ["kernels", "products", "graphs", "trainings", "decoders"]
GRAPH = os.environ.get("HELD_GRAPH", "")   # number of kernels of a job, launched as a graph; none: one kernel
JOBS = {"5": (25, 4), "0.35": (10, 4)}   # kernel in ms: period and jitter in ms


def native(name):
    for where in (NATIVE, os.path.join(NATIVE, "rm")):
        if os.path.exists(os.path.join(where, name)):
            return os.path.join(where, name)
    raise SystemExit(f"held.py: {name} is not built; make -C rt-scheduler/native gpu-bench")


def environment(directory, mps):
    result = {k: v for k, v in os.environ.items() if not k.startswith(("GPUSEG_EXEC_", "CUDA_MPS_", "CUDA_INJECTION64"))}
    result["GPUSEG_DIR"] = directory
    if mps:
        result["CUDA_MPS_PIPE_DIRECTORY"] = os.path.join(directory, "mps-pipe")
        result["CUDA_MPS_LOG_DIRECTORY"] = os.path.join(directory, "mps-log")
    return result


class Page:
    """A mapped file in which a program counts what it has done."""

    def __init__(self, offset):
        self.file = tempfile.NamedTemporaryFile(dir="/dev/shm")
        self.file.truncate(PAGE_BYTES)
        self.map = mmap.mmap(self.file.fileno(), PAGE_BYTES)
        self.offset = offset

    def count(self):
        return struct.unpack_from("<Q", self.map, self.offset)[0]


class Mps:
    def __init__(self, variables, log):
        self.variables, self.log = variables, log

    def __enter__(self):
        os.makedirs(self.variables["CUDA_MPS_PIPE_DIRECTORY"])
        os.makedirs(self.variables["CUDA_MPS_LOG_DIRECTORY"])
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=self.variables, stdout=self.log, stderr=self.log, check=True)
        return self

    def __exit__(self, *_):
        try:
            subprocess.run(["nvidia-cuda-mps-control"], input=b"quit -t 1\n", env=self.variables, stdout=self.log,
                           stderr=self.log, timeout=20, check=False)
        except subprocess.TimeoutExpired:
            print("held.py: the MPS server does not quit", file=sys.stderr)


class Daemon:
    def __init__(self, command, options, variables, log):
        self.line = shlex.split(command) + ["run", "--dir", variables["GPUSEG_DIR"], "--policy", "fp", "--idle", "spin"] + options
        self.socket, self.log = os.path.join(variables["GPUSEG_DIR"], "gpuseg.sock"), log

    def __enter__(self):
        self.process = subprocess.Popen(self.line, stdout=self.log, stderr=self.log, cwd=REPOSITORY)
        limit = time.monotonic() + 60
        while not os.path.exists(self.socket):
            if self.process.poll() is not None or time.monotonic() > limit:
                self.__exit__()
                raise SystemExit(f"held.py: the daemon did not start; see {self.log.name}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def sm_mhz():
    """The clock of the multiprocessors now; large matrix products make the GPU lower it."""
    with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
        return int(subprocess.run(["nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits"],
                                  stdout=subprocess.PIPE, timeout=10, check=False).stdout.split()[0])
    return None


class Idle:
    """Processes with a context that never work."""

    def __init__(self, count, per, variables, log):
        self.count, self.per, self.variables, self.log = count, per, variables, log

    def __enter__(self):
        self.pages = [Page(4) for _ in range(self.count)]
        self.processes = [subprocess.Popen(
            [native("gpuseg-bench-rt"), "--mode", "none", "--kernel-ms", "1", "--per", self.per, "--jobs", "1", "--own-page",
             page.file.name, "--gate"], env=self.variables, stdout=self.log, stderr=self.log) for page in self.pages]
        time.sleep(3)
        if any(p.poll() is not None for p in self.processes):
            self.__exit__()
            raise SystemExit(f"held.py: an idle process ended; see {self.log.name}")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


class Load:
    """Three best-effort programs of a kind."""

    def __init__(self, kind, per, managed, turns, variables, log):
        self.kind, self.per, self.managed, self.variables, self.log = kind, per, managed, variables, log
        self.turns = turns

    def command(self, n, page):
        if self.kind == "kernels":
            return [native("gpuseg-bench-be"), page, "20", self.per, "600"]
        if self.kind in ("products", "graphs"):
            return [sys.executable, os.path.abspath(__file__), "--" + self.kind, page]
        if self.kind == "decoders":
            return [sys.executable, os.path.join(HERE, "workload.py"), "serve-decode", "--page", page]
        return [sys.executable, os.path.join(HERE, "workload.py"), ["train-cnn", "train-vit", "train-llm"][n], "--page", page]

    def __enter__(self):
        self.pages, self.processes = [], []
        if self.kind == "none":
            return self
        for n in range(3):
            page = Page(16 if self.kind == "kernels" else 0)
            self.pages.append(page)
            line = self.command(n, page.file.name)
            if self.managed:
                weight = ["--weight", str(100 + n)] if self.turns else []
                line = [EXEC, "--best-effort", "--verbose"] + weight + ["--"] + line
            self.processes.append(subprocess.Popen(line, env=self.variables, stdout=self.log, stderr=self.log))
        limit = time.monotonic() + LIMIT_S
        while min(page.count() for page in self.pages) < 5:
            if any(p.poll() is not None for p in self.processes) or time.monotonic() > limit:
                self.__exit__()
                raise SystemExit(f"held.py: load {self.kind} did not start; see {self.log.name}")
            time.sleep(0.1)
        return self

    def counts(self):
        return [page.count() for page in self.pages] or [0]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def counted(command, directory):
    """What the daemon has counted so far, and what each program says of its kernels."""
    line = shlex.split(command) + ["status", "--json", "--dir", directory]
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY, check=False, timeout=30)
    if done.returncode != 0:
        return {"error": done.stderr.decode()[-500:]}
    status = json.loads(done.stdout)
    return {"counters": {c["label"]: c["value"] for c in status.get("counters", []) if c["label"] in COUNTERS},
            "kernels": {task["name"] + " " + str(task["pid"]): task["kernels"] for task in status.get("tasks", [])
                        if "kernels" in task}}


def real_time(kernel_ms, per, jobs, managed, load, variables, log, warm=5, declared=False, exact=False, touch=True,
              marked=False):
    """One run of the real-time program; also what the load did between its first job and its last."""
    period, jitter = JOBS[kernel_ms]
    jitter = 0 if exact else jitter
    page = Page(16)
    line = [native("gpuseg-bench-rt"), "--mode", "segment" if marked else "none", "--kernel-ms", kernel_ms, "--per", per,
            "--jobs", str(jobs), "--warm", str(warm), "--period-ms", str(period), "--jitter-ms", str(jitter), "--own-page",
            page.file.name]
    if GRAPH:
        line += ["--graph", GRAPH]
    if marked:
        line += ["--touches"] if touch else []
    elif managed:
        line = [EXEC, "--priority", "80", "--verbose"] + (["--period", f"{period}ms"] if declared else []) + (
            [] if touch else ["--touch", "off"]) + ["--"] + line
    log.write(f"$ {shlex.join(line)}\n")
    log.flush()
    said_from = os.path.getsize(log.name)
    process = subprocess.Popen(line, env=variables, stdout=subprocess.PIPE, stderr=log)
    limit = time.monotonic() + LIMIT_S
    began = before = now = after = None
    while process.poll() is None:
        if time.monotonic() > limit:
            process.kill()
            raise SystemExit(f"held.py: {shlex.join(line)} hangs; see {log.name}")
        if page.count() >= warm:
            now, after = time.monotonic(), load.counts() if load else [0]
            if began is None:
                began, before = now, after
        time.sleep(0.002)
    if process.returncode != 0:
        raise SystemExit(f"held.py: {shlex.join(line)} ended with {process.returncode}; see {log.name}")
    result = json.loads(process.stdout.read())
    times = result["response_ns"]
    with open(log.name, encoding="utf-8", errors="replace") as said:
        said.seek(said_from)
        touches = re.search(r"(\d+) touches before", said.read())
    touched = int(touches.group(1)) if touches else result.get("touches", 0)
    return {"kernel_ms": float(kernel_ms), "jobs": result["jobs"], "wrong": result["wrong"], "missed": result["missed"],
            "touches": touched, "job_mhz": result.get("sm_mhz", {}).get("p50", 0),
            "p50_ms": times["p50"] / 1e6, "p99_ms": times["p99"] / 1e6, "max_ms": times["max"] / 1e6,
            "load_per_s": sum(b - a for a, b in zip(before, after)) / max(now - began, 1e-3)}


def products(page):
    """Large matrix products on four streams, at most 16 of them queued on each."""
    import torch
    map_ = mmap.mmap(os.open(page, os.O_RDWR), PAGE_BYTES)
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    outputs = [torch.empty_like(a) for _ in range(4)]
    streams = [torch.cuda.Stream() for _ in range(4)]
    queued = [[] for _ in range(4)]
    done = 0
    torch.cuda.synchronize()
    while True:
        for n in range(4):
            with torch.cuda.stream(streams[n]):
                torch.mm(a, a, out=outputs[n])
                event = torch.cuda.Event()
                event.record()
            queued[n].append(event)
            if len(queued[n]) > 16:
                queued[n].pop(0).synchronize()
                done += 1
                struct.pack_into("<Q", map_, 0, done)


def graphs(page):
    """Graphs of 1000 small kernels, at most four of them queued."""
    import torch
    map_ = mmap.mmap(os.open(page, os.O_RDWR), PAGE_BYTES)
    x = torch.zeros(1 << 20, device="cuda")
    x.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(1000):
            x.add_(1)
    queued, done = [], 0
    while True:
        graph.replay()
        event = torch.cuda.Event()
        event.record()
        queued.append(event)
        if len(queued) > 4:
            queued.pop(0).synchronize()
            done += 1
            struct.pack_into("<Q", map_, 0, done)


def measure(name, kind, arguments, per, log):
    options, mps = CONFIGURATIONS[name]
    rows = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        variables = environment(directory, mps)
        parts = ([Mps(variables, log)] if mps else []) + (
            [Daemon(arguments.gpuseg, options, variables, log)] if options else [])
        log.write(f"== {name} {kind}\n")
        log.flush()
        entered = []
        try:
            if name in IDLE:
                parts.append(Idle(IDLE[name], per, variables, log))
            for part in parts + [Load(kind, per, options is not None, name == "mps-turns", variables, log)]:
                part.__enter__()
                entered.append(part)
            load = entered[-1]
            before, began = load.counts(), time.monotonic()
            time.sleep(1)
            alone = sum(b - a for a, b in zip(before, load.counts())) / (time.monotonic() - began)
            clock = sm_mhz()
            for kernel_ms in arguments.kernels.split(","):
                jobs = arguments.jobs if kernel_ms == "5" else 2 * arguments.jobs
                declared = "-period" in name
                row = real_time(kernel_ms, per, jobs, options is not None, load, variables, log,
                                WARM.get(name, 60 if declared else 5), declared, declared or name.endswith(("-begins", "-learned")),
                                not name.endswith("-off"), "-marked" in name)
                row.update(configuration=name, load=kind, load_alone_per_s=alone, sm_mhz=clock)
                if options is not None:
                    row["daemon"] = counted(arguments.gpuseg, directory)
                rows.append(row)
        finally:
            for part in reversed(entered):
                part.__exit__()
    return rows


def at_its_clock(row, plain):
    """p50 and p99, divided by those alone, if the clock of the GPU had been that of the jobs alone: what is not the clock's."""
    if not row["job_mhz"] or not plain["job_mhz"]:
        return ""
    slower = row["job_mhz"] / plain["job_mhz"]
    return f"{row['p50_ms'] / plain['p50_ms'] * slower:6.3f} {row['p99_ms'] / plain['p99_ms'] * slower:5.3f}"


def table(rows):
    lines = [f"{'load':10} {'configuration':20} {'kernel ms':>9} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} {'load/s':>8} "
             f"{'by itself':>9} {'SM MHz':>6} {'in jobs':>7} {'touches':>7} {'alone p50':>9} {'p99':>7} {'p50/alone':>9} "
             f"{'p99/alone':>9} {'at its clock':>12}"]
    alone = {(r["configuration"], r["kernel_ms"]): r for r in rows if r["configuration"].startswith("plain")}
    for r in rows:
        exact = "-period" in r["configuration"] or r["configuration"].endswith(("-begins", "-learned"))
        plain = alone.get(("plain-period" if exact else "plain", r["kernel_ms"]))
        lines.append(f"{r['load']:10} {r['configuration']:20} {r['kernel_ms']:9.2f} {r['p50_ms']:8.3f} {r['p99_ms']:8.3f} "
                     f"{r['max_ms']:8.3f} {r['load_per_s']:8.1f} {r['load_alone_per_s']:9.1f} {r.get('sm_mhz') or 0:6d} "
                     f"{r['job_mhz']:7d} {r['touches']:7d}"
                     + (f" {plain['p50_ms']:9.3f} {plain['p99_ms']:7.3f} {r['p50_ms'] / plain['p50_ms']:9.3f} "
                        f"{r['p99_ms'] / plain['p99_ms']:9.3f} {at_its_clock(r, plain)}" if plain else "")
                     + (f"  WRONG {r['wrong']}" if r["wrong"] else ""))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--gpuseg", default=os.path.join(REPOSITORY, "gpuseg"))
    parser.add_argument("--jobs", type=int, default=100, help="of 5 ms, twice as many of 0.35 ms")
    parser.add_argument("--configurations", default=",".join(CONFIGURATIONS))
    parser.add_argument("--kernels", default=",".join(JOBS), help="of the real-time program, ms")
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further configuration after this long")
    parser.add_argument("--products", help=argparse.SUPPRESS)
    parser.add_argument("--graphs", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.products:
        products(arguments.products)
    if arguments.graphs:
        graphs(arguments.graphs)
    if not arguments.out:
        parser.error("--out DIR is missing")
    os.makedirs(arguments.out, exist_ok=True)
    results = {"command": shlex.join(sys.argv), "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "rows": []}
    limit = time.monotonic() + arguments.seconds
    with open(os.path.join(arguments.out, "held.log"), "w", encoding="utf-8") as log:
        per = subprocess.run([native("gpuseg-bench-rt"), "--calibrate"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
        results["ns_per_iteration"] = float(per)
        plain = environment("/nonexistent", False)
        for kernel_ms in arguments.kernels.split(","):
            for name in ["plain", "plain-period"]:
                row = real_time(kernel_ms, per, arguments.jobs, False, None, plain, log, exact=name == "plain-period")
                results["rows"].append(dict(row, configuration=name, load="none", load_alone_per_s=0))
        names = arguments.configurations.split(",")
        without = [name for name in names if name.startswith("alone-")]
        for kind in (["none"] if without else []) + arguments.loads.split(","):
            for name in without if kind == "none" else [n for n in names if n not in without]:
                if time.monotonic() > limit:
                    print(f"held.py: no time left for {kind} {name}")
                    continue
                try:
                    results["rows"] += measure(name, kind, arguments, per, log)
                except (SystemExit, subprocess.CalledProcessError, OSError) as e:   # the others are worth having
                    print(f"held.py: {kind} {name}: {e}")
                    results.setdefault("failures", []).append(f"{kind} {name}: {e}")
                with open(os.path.join(arguments.out, "held.json"), "w", encoding="utf-8") as file:
                    json.dump(results, file, indent=1)
    print(table(results["rows"]))


if __name__ == "__main__":
    main()
