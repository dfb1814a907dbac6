#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpuseg exec` on a real GPU, beside run.py: other schedulers' cells, streams, decoding, static programs, soak, faults.

    cells.py --out DIR [--parts PART,...] [--gpuseg COMMAND] [--minutes N] [--rounds N] [--jobs N]

Parts (default: all), with the seconds that they take about:
  kernels       a 5 ms and a 0.5 ms kernel beside three processes with kernels of 20 ms or 0.5 ms: driver, exec, marks (110)
  streams       two streams of one process: CUDA's priorities and `--streams priority` (60)
  decode        a decoding step of tiny kernels beside three trainings, and a network beside three decoders (130)
  native        a decoder of 675 launches a token in C++ beside three trainings, and a network beside three decoders (100)
  static        programs with the CUDA runtime linked statically, dynamically, and without any shared library (20)
  frameworks    transformers and JAX, where the packages are there (60)
  soak          launches of all kinds for --minutes (1) in four processes, without a daemon (not with --managed-only) and with
                one: wrong results, growth (120 * minutes + 10)
  faults        kill -9 of the daemon at random, --rounds (50) times, while programs launch (120)

Prints a table last; results go to DIR/cells.json after each part. --gpuseg: as for run.py. Needs `make -C segment-api all
build/gpuseg-inject-launches`, `make -C rt-scheduler/native all gpu-bench`, nvcc for streams and static, PyTorch for decode
and frameworks. A part that fails says so in the table, and the others go on; the status is 1 then.
"""
import argparse
import contextlib
import json
import mmap
import os
import random
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback

import run
from run import BUILD, EXEC, HERE, LAUNCHES, REPOSITORY, WORKLOAD, Daemon

GPU_BENCH = os.path.join(REPOSITORY, "rt-scheduler/native/build")
UNMODIFIED = os.path.join(HERE, "unmodified.cu")
RT, BE = "gpuseg-bench-rt", "gpuseg-bench-be"
BY_EXEC = "exec --priority 80"
# Of be_page in gpu_work.cuh.
PAGE_BYTES, READY, STOP, KERNELS, WRONG, LAST_NS = 4096, 4, 8, 16, 24, 32
HANG_S = 5.0
SKIPPED = 77


class Failed(Exception):
    pass


class Page:
    """A mapped file of a bench program."""

    def __init__(self, directory):
        self.file = tempfile.NamedTemporaryFile(dir=directory)
        self.file.truncate(PAGE_BYTES)
        self.map = mmap.mmap(self.file.fileno(), PAGE_BYTES)

    def word(self, offset, kind="Q"):
        return struct.unpack_from("<" + kind, self.map, offset)[0]

    def set(self, offset, value, kind="I"):
        struct.pack_into("<" + kind, self.map, offset, value)


def environment_of(directory):
    environment = dict(os.environ, GPUSEG_DIR=directory)
    for name in list(environment):
        if name.startswith("GPUSEG_EXEC_") or name == "CUDA_INJECTION64_PATH":
            del environment[name]
    return environment


def wait_until(condition, seconds, what):
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            raise Failed(f"{what}: not within {seconds:g} s")
        time.sleep(0.01)


class Session:
    """What the parts have in common."""

    def __init__(self, arguments, directory, log):
        self.arguments, self.directory, self.log = arguments, directory, log
        self.per = None

    def keep(self, part, so_far):
        """In case that the part does not come to its end."""
        with open(os.path.join(self.arguments.out, f"{part}-so-far.json"), "w", encoding="utf-8") as file:
            json.dump(so_far, file, indent=1)

    def daemon(self):
        return Daemon(self.arguments.gpuseg, self.directory, self.log, self.arguments.mechanism)

    def bench(self, name):
        return os.path.join(self.arguments.bin, name)

    def calibrated(self):
        """ns of one iteration; loads the GPU for 5 s, so that its clocks are up."""
        if self.per is None:
            self.per = subprocess.run([self.bench(RT), "--calibrate"], stdout=subprocess.PIPE, check=True, timeout=60,
                                      text=True).stdout.strip()
        return self.per

    def program(self, how, command):
        return run.program(how, self.directory, command, self.log)

    def start(self, command, how="plain"):
        line = ([EXEC] + how.split()[1:] + ["--"] if how.startswith("exec") else []) + list(command)
        self.log.write(f"$ {shlex.join(line)} &\n")
        self.log.flush()
        return subprocess.Popen(line, env=environment_of(self.directory), stdout=self.log, stderr=self.log)

    @contextlib.contextmanager
    def best_effort(self, kernel_ms, count=3):
        """Processes that launch for ever, as they are. Yields their pages; wrong results are an error."""
        pages = [Page(self.directory) for _ in range(count)]
        per = self.calibrated()
        processes = [self.start([self.bench(BE), p.file.name, str(kernel_ms), per, "600"]) for p in pages]
        try:
            wait_until(lambda: all(p.word(KERNELS) > 2 for p in pages), 60, "best-effort processes start")
            yield pages
            for page in pages:
                page.set(STOP, 1)
            for process in processes:
                process.wait(30)
            if any(p.word(WRONG) for p in pages) or any(process.returncode for process in processes):
                raise Failed(f"a best-effort process of {kernel_ms} ms kernels computed something wrong; see the log")
        finally:
            for process in processes:
                process.kill()
                process.wait()

    def real_time(self, how, label, kernel_ms, pages=()):
        """Jobs of one kernel each, 10 to 14 ms apart."""
        jobs = self.arguments.jobs
        command = [self.bench(RT), "--mode", "segment" if how == "segment" else "none", "--kernel-ms", str(kernel_ms),
                   "--per", self.calibrated(), "--jobs", str(jobs), "--warm", "10", "--seed", "1", "--pause-ms", "10",
                   "--jitter-ms", "4"]
        if pages:
            command += ["--pages", ",".join(p.file.name for p in pages)]
        result = json.loads(self.program("plain" if how == "segment" else how, command))
        if result["wrong"]:
            raise Failed(f"{result['wrong']} wrong results with {how}")
        response = result["response_ns"]
        return {"label": label, "kernel_ms": kernel_ms, "jobs": result["jobs"], "p50_ms": response["p50"] / 1e6,
                "p99_ms": response["p99"] / 1e6, "max_ms": response["max"] / 1e6,
                "others_per_s": result["other_kernels"] / (result["loop_ns"] / 1e9)}


# ---- kernels of a set length, as in other schedulers' measurements

def kernels(session):
    rows = []

    def row(other_ms, *arguments):
        rows.append(dict(session.real_time(*arguments), other_ms=other_ms))

    def all_ways(other_ms, pages):
        for kernel_ms in (5, 0.5):
            row(other_ms, BY_EXEC, "exec", kernel_ms, pages)
            row(other_ms, "segment", "marks", kernel_ms, pages)

    for kernel_ms in (5, 0.5):
        row(None, "plain", "plain", kernel_ms)
    with session.daemon():
        all_ways(None, ())
    for other_ms in (20, 0.5):
        with session.best_effort(other_ms) as pages:
            for kernel_ms in (5, 0.5):
                row(other_ms, "plain", "driver", kernel_ms, pages)
            with session.daemon():
                all_ways(other_ms, pages)
    return rows


def kernels_table(rows):
    # Of XSched 1.2 on a GPU of this kind: p50, p99 in ms of a 5 ms kernel.
    lines = ["XSched, 5 ms kernel, p50 / p99: alone 5.29 / 5.76; beside 3 x 20 ms: level 1 22.7 / 28.1, level 3 8.6 / 9.5; "
             "beside 3 x 0.5 ms, p99: 7.2 to 12.3",
             f"{'kernel':>7} {'beside':>10} {'way':8} {'p50 ms':>9} {'p99 ms':>9} {'max ms':>9} {'others/s':>9}"]
    for kernel_ms in (5, 0.5):
        for other_ms in (None, 20, 0.5):
            for r in (r for r in rows if r["kernel_ms"] == kernel_ms and r["other_ms"] == other_ms):
                beside = f"3 x {other_ms:g} ms" if other_ms else "nothing"
                lines.append(f"{kernel_ms:4g} ms {beside:>10} {r['label']:8} {r['p50_ms']:9.3f} {r['p99_ms']:9.3f} "
                             f"{r['max_ms']:9.3f} {r['others_per_s']:9.1f}")
    return lines


# ---- streams of one process

def compiled(session, name, *options, source=UNMODIFIED):
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    path = os.path.join(session.directory, name)
    done = subprocess.run([nvcc, "-O2", "-std=c++17", "-gencode=arch=compute_90,code=sm_90",
                           "-gencode=arch=compute_80,code=compute_80", "-o", path, source, *options],
                          stdout=session.log, stderr=session.log, timeout=120, check=False)
    return path if done.returncode == 0 else None


def streams(session):
    program = compiled(session, "unmodified", "-cudart", "static")
    if not program:
        raise Failed("unmodified.cu cannot be compiled; see the log")
    rows = []
    with session.daemon():
        for case in session.arguments.streams.split(","):
            jobs = min(session.arguments.jobs, 100)
            ways = [("plain", "CUDA's priorities"), (BY_EXEC, "exec"),
                    (BY_EXEC + " --streams priority", "exec --streams priority")]
            for how, label in ways:
                result = json.loads(session.program(how, [program, "streams", case, str(jobs), "1"]))
                rows.append(dict(result, label=label))
                session.keep("streams", rows)
    return rows


def streams_table(rows):
    lines = [f"{'low stream':10} {'way':24} {'p50 ms':>9} {'p99 ms':>9} {'max ms':>9} {'ratio p99':>9} {'low/s':>8} "
             f"{'alone p50':>9} {'starved':>7}"]
    for r in rows:
        base = next(b for b in rows if b["case"] == r["case"])
        lines.append(f"{r['case']:10} {r['label']:24} {r['p50_ns'] / 1e6:9.3f} {r['p99_ns'] / 1e6:9.3f} "
                     f"{r['max_ns'] / 1e6:9.3f} {r['p99_ns'] / base['p99_ns']:9.3f} {r['low_per_s']:8.1f} "
                     f"{r['alone_p50_ns'] / 1e6:9.3f} {r['starved']:3}/{r['jobs']}")
    return lines


# ---- decoding

DECODE_PERIOD_MS, CNN_PERIOD_MS, DECODE_SECONDS = 40, 20, 5


def decode(session):
    rows = []

    def measure(how, label, kind, period, load=None):
        before, began = load.steps() if load else [], time.monotonic()
        row = run.workload(how, session.directory, kind, int(DECODE_SECONDS * 1000 / period), period, session.log)
        seconds = time.monotonic() - began
        after = load.steps() if load else []
        rows.append(dict(row, label=label, load=load.name if load else None,
                         steps_per_s=sum(b - a for a, b in zip(before, after)) / seconds))

    ways = ((BY_EXEC, "exec"), (BY_EXEC + " --hold-off 200us", "exec 200us"), ("marks", "marks"))
    for kind, period in (("decode", DECODE_PERIOD_MS), ("cnn", CNN_PERIOD_MS)):
        measure("plain", "alone", kind, period)
    with session.daemon():
        measure(BY_EXEC, "alone by exec", "decode", DECODE_PERIOD_MS)
    for kind, period, kinds, name in (("decode", DECODE_PERIOD_MS, run.TRAININGS, "3 trainings"),
                                      ("cnn", CNN_PERIOD_MS, ["serve-decode"] * 3, "3 decoders")):
        with run.Load(kinds) as load:
            load.name = name
            measure("plain", "driver", kind, period, load)
            with session.daemon():
                for how, label in ways:
                    measure(how, label, kind, period, load)
    return rows


def decode_table(rows):
    lines = [f"{'job':7} {'beside':12} {'way':14} {'p50 ms':>9} {'p99 ms':>9} {'max ms':>9} {'steps/s':>8} results"]
    for r in rows:
        mine = {x["digest"] for x in rows if x["kind"] == r["kind"]}
        lines.append(f"{r['kind']:7} {r['load'] or 'nothing':12} {r['label']:14} {r['p50_ms']:9.3f} {r['p99_ms']:9.3f} "
                     f"{r['max_ms']:9.3f} {r['steps_per_s']:8.1f} {'same' if len(mine) == 1 else 'DIFFERENT'}")
    return lines


# ---- decoding by a program in C++, whose launches do not wait for Python

NATIVE_PERIOD_MS, NATIVE_SECONDS = 20, 8


class Decoders(run.Load):
    """Such decoders without end, as they are."""

    def __init__(self, program, count=3):
        super().__init__([program] * count)

    def command(self, kind, page):
        return [kind, "--page", page]


def native(session):
    program = compiled(session, "decoder", "-I" + os.path.join(REPOSITORY, "segment-api/include"),
                       os.path.join(BUILD, "libgpuseg.a"), "-lpthread", source=os.path.join(HERE, "decoder.cu"))
    if not program:
        raise Failed("decoder.cu cannot be compiled; see the log")
    rows = []
    ways = (("plain", "driver"), (BY_EXEC, "exec"), (BY_EXEC + " --hold-off 200us", "exec 200us"), ("marks", "marks"))

    def measure(how, label, kind, load=None):
        before, began = load.steps() if load else [], time.monotonic()
        if kind == "decoder":
            count = int(NATIVE_SECONDS * 1000 / NATIVE_PERIOD_MS)
            result = json.loads(session.program(how, [program, "--jobs", str(count), "--period", str(NATIVE_PERIOD_MS)]))
            took = result["took_ns"]
            row = {"kind": kind, "jobs": count, "p50_ms": run.quantile(took, 0.5) / 1e6,
                   "p99_ms": run.quantile(took, 0.99) / 1e6, "max_ms": max(took) / 1e6, "digest": result["digest"]}
        else:
            row = run.workload(how, session.directory, kind, int(NATIVE_SECONDS * 1000 / CNN_PERIOD_MS), CNN_PERIOD_MS,
                               session.log)
        seconds = time.monotonic() - began
        rows.append(dict(row, label=label, load=load.name if load else None,
                         steps_per_s=sum(b - a for a, b in zip(before, load.steps() if load else [])) / seconds))
        session.keep("native", rows)

    for kind in session.arguments.native:
        measure("plain", "alone", kind)
    with session.daemon():
        for kind in session.arguments.native:
            measure(BY_EXEC, "alone by exec", kind)
    for kind, load, name in (("decoder", run.Load(), "3 trainings"), ("cnn", Decoders(program), "3 decoders")):
        if kind not in session.arguments.native:
            continue
        with load:
            load.name = name
            measure(*ways[0], kind, load)
            with session.daemon():
                for how, label in ways[1:] * session.arguments.repeat:
                    measure(how, label, kind, load)
    return rows


# ---- how a program is linked

LINKED = {"cudart static": ["-cudart", "static"], "cudart shared": ["-cudart", "shared"],
          "no shared library": ["-cudart", "static", "-Xlinker", "-static", "-Xcompiler", "-static"]}


def static(session):
    rows = []
    with session.daemon():
        for name, options in LINKED.items():
            program = compiled(session, "linked-" + name.replace(" ", "-"), *options)
            if not program:
                rows.append({"linked": name, "state": "skipped: it cannot be linked here"})
                continue
            plain = subprocess.run([program, "digest"], stdout=subprocess.PIPE, stderr=session.log, timeout=60,
                                   env=environment_of(session.directory), check=False)
            if plain.returncode != 0:
                rows.append({"linked": name, "state": f"skipped: without exec it ends with {plain.returncode}"})
                continue
            session.log.flush()
            log_at = os.path.getsize(session.log.name)
            outputs = [json.loads(session.program(BY_EXEC, [program, "digest"])) for _ in range(3)]
            with open(session.log.name, encoding="utf-8", errors="replace") as file:
                file.seek(log_at)
                followed = "follows" in file.read()
            same = all(o == json.loads(plain.stdout) for o in outputs)
            rows.append({"linked": name, "followed": followed, "same": same, "result": outputs[0],
                         "state": f"results {'same' if same else 'DIFFERENT'}, "
                                  f"{'followed' if followed else 'NOT followed: runs unmanaged'}"})
    return rows


def static_table(rows):
    return [f"{r['linked']:18} {r['state']}" for r in rows]


# ---- packages

def frameworks(session):
    rows = []
    with session.daemon():
        for kind in ("transformers", "jax"):
            present = subprocess.run([sys.executable, "-c", f"import {kind}; print({kind}.__version__)"],
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False, timeout=120)
            if present.returncode != 0:
                rows.append({"kind": kind, "state": "skipped: the package is not installed"})
                continue
            try:
                both = [run.workload(how, session.directory, kind, 200, 0, session.log) for how in ("plain", BY_EXEC)]
            except SystemExit as failed:   # a missing backend ends with 77
                skipped = f"ended with {SKIPPED}" in str(failed)
                rows.append({"kind": kind, "state": f"{'skipped' if skipped else 'FAILED'}: {failed}"})
                continue
            same = both[0]["digest"] == both[1]["digest"]
            rows.append({"kind": kind, "version": present.stdout.strip(), "runs": both, "same": same,
                         "state": f"{present.stdout.strip()}: results {'same' if same else 'DIFFERENT'}, p50 plain "
                                  f"{both[0]['p50_ms']:.3f} ms, exec {both[1]['p50_ms']:.3f} ms"})
    return rows


def frameworks_table(rows):
    return [f"{r['kind']:13} {r['state']}" for r in rows]


# ---- soak

def grown_of(process):
    status = {}
    with contextlib.suppress(OSError):
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            status = dict(line.split(":", 1) for line in file)
        return [int(status["VmRSS"].split()[0]), len(os.listdir(f"/proc/{process.pid}/fd"))]
    return [-1, -1]


def soak(session):
    seconds = max(10, int(session.arguments.minutes * 60))
    # Each real-time program rests for most of the time, so that the others have the GPU as well.
    ways = [("exec --priority 80", "60"), ("exec --priority 80 --hold-off 200us", "70"), ("exec --best-effort", "0"),
            ("exec --priority 70 --hold-off 0", "80")]
    plain = []
    if not session.arguments.managed_only:   # what they grow by themselves
        plain, _ = soaked(session, seconds, [("plain", rest) for _, rest in ways])
    with session.daemon() as daemon:
        managed, (before, after) = soaked(session, seconds, ways, daemon)
    return {"programs": plain + managed, "daemon_rss_kb": [before[0], after[0]], "daemon_fds": [before[1], after[1]]}


def soaked(session, seconds, ways, daemon=None):
    """All of these at once, and what the daemon had after a fifth of the time and near its end."""
    began = time.monotonic()
    outputs = [tempfile.TemporaryFile(mode="w+", dir=session.directory) for _ in ways]
    processes = [subprocess.Popen(([EXEC] + how.split()[1:] + ["--"] if how != "plain" else [])
                                  + [LAUNCHES, "soak", str(seconds), "4", rest],
                                  env=environment_of(session.directory), stdout=output, stderr=session.log)
                 for (how, rest), output in zip(ways, outputs)]
    grown = []
    try:
        for part in (0.2, 0.7):
            time.sleep(seconds * part)
            grown.append(grown_of(daemon.process) if daemon else None)
        for process in processes:
            process.wait(began + 2 * seconds + 60 - time.monotonic())
    except subprocess.TimeoutExpired:
        raise Failed("a program of the soak hangs") from None
    finally:
        for process in processes:
            process.kill()
            process.wait()
    rows = []
    for (how, _), process, output in zip(ways, processes, outputs):
        output.seek(0)
        text = output.read()
        if not text:
            raise Failed(f"a program of the soak ended with {process.returncode} and says nothing; see the log")
        rows.append(dict(json.loads(text), how=how, status=process.returncode))
    return rows, grown


def soak_table(result):
    lines = [f"{'program':32} {'launches':>12} {'kernels':>13} {'wrong':>5} {'checks':>7} {'RSS KiB':>17} {'fds':>7} "
             f"{'threads':>7}"]
    for r in result["programs"]:
        lines.append(f"{r['how']:32} {r['launches']:12} {r['kernels']:13} {r['wrong']:5} {r['checks']:7} "
                     f"{r['rss_kb'][0]:8}>{r['rss_kb'][1]:8} {r['fds'][0]:3}>{r['fds'][1]:3} "
                     f"{r['tasks'][0]:3}>{r['tasks'][1]:3}")
    lines.append(f"sum: {sum(r['launches'] for r in result['programs'])} launches, daemon RSS KiB "
                 f"{result['daemon_rss_kb'][0]}>{result['daemon_rss_kb'][1]}, descriptors "
                 f"{result['daemon_fds'][0]}>{result['daemon_fds'][1]}")
    return lines


# ---- faults

class Watched:
    """A program whose page counts its jobs: how long was it without progress?"""

    def __init__(self, name, process, page):
        self.name, self.process, self.page = name, process, page
        self.count, self.since, self.longest = page.word(KERNELS), time.monotonic(), 0.0

    def look(self):
        count, at = self.page.word(KERNELS), time.monotonic()
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended with {self.process.returncode}")
        if count != self.count:
            self.count, self.since = count, at
        self.longest = max(self.longest, at - self.since)
        return at - self.since


def faults(session):
    """Programs launch all the time; daemons are killed and follow each other. Nobody may stand still for HANG_S."""
    rng = random.Random(14)
    rounds, watched, stalls = [], [], []
    per = session.calibrated()

    def best_effort(index):
        page = Page(session.directory)
        watched.append(Watched(f"best effort {index}", session.start([session.bench(BE), page.file.name, "2", per, "600"]), page))

    def real_time(name, how, kernel_ms, pause_ms):
        page = Page(session.directory)
        watched.append(Watched(name, session.start(
            [session.bench(RT), "--mode", "none", "--kernel-ms", kernel_ms, "--per", per, "--jobs", "100000", "--pause-ms",
             pause_ms, "--jitter-ms", "2", "--own-page", page.file.name], how), page))

    def follow(seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for w in watched:
                if w.look() > HANG_S:
                    raise Failed(f"{w.name} hangs in round {len(rounds)}: no job for {HANG_S:g} s")
            time.sleep(0.005)

    def ready():
        return all(w.page.word(KERNELS) > w.count for w in watched)

    command = shlex.split(session.arguments.gpuseg) + ["run", "--dir", session.directory, "--policy", "fp", "--mechanism",
                                                       session.arguments.mechanism]
    socket = os.path.join(session.directory, "gpuseg.sock")
    daemon = None
    try:
        with session.daemon():
            # They find a daemon when they start, and use those that follow.
            real_time("exec --priority 80", BY_EXEC, "1", "4")
            real_time("exec --priority 70", "exec --priority 70 --hold-off 0", "0.3", "1")
            best_effort(1)
            best_effort(2)
            wait_until(ready, 60, "programs of the faults start")
            for w in watched:
                w.since, w.longest = time.monotonic(), 0.0
            follow(1)
        for _ in range(session.arguments.rounds):
            before = [w.longest for w in watched]
            for w in watched:
                w.longest = 0.0
            with contextlib.suppress(FileNotFoundError):
                os.unlink(socket)
            daemon = subprocess.Popen(command, stdout=session.log, stderr=session.log, cwd=REPOSITORY)
            limit = time.monotonic() + 30
            while not os.path.exists(socket):
                if daemon.poll() is not None or time.monotonic() > limit:
                    raise Failed("a daemon did not start; see the log")
                follow(0.02)
            follow(rng.uniform(0.05, 0.9))
            daemon.kill()
            daemon.wait()
            killed = time.monotonic()
            follow(0.4)
            while not all(w.since > killed for w in watched):   # each has done a job since
                follow(0.02)
            stalls.append(max(w.longest for w in watched))
            rounds.append({w.name: w.longest for w in watched})
            for w, longest in zip(watched, before):
                w.longest = max(w.longest, longest)
    finally:
        if daemon and daemon.poll() is None:
            daemon.kill()
            daemon.wait()
        for w in watched:
            w.page.set(STOP, 1)
        for w in watched:
            with contextlib.suppress(subprocess.TimeoutExpired):
                w.process.wait(20)
        hung = [w.name for w in watched if w.process.poll() is None]
        for w in watched:
            w.process.kill()
            w.process.wait()
    if hung:
        raise Failed(f"{', '.join(hung)} did not end when told to")
    wrong = [f"{w.name}: {w.process.returncode}" for w in watched if w.process.returncode != 0 or
             (w.name.startswith("best") and w.page.word(WRONG))]
    return {"rounds": len(rounds), "stalls_s": stalls, "by_round": rounds, "wrong": wrong,
            "longest_s": {w.name: w.longest for w in watched}}


def faults_table(result):
    stalls = sorted(result["stalls_s"])
    lines = [f"{result['rounds']} daemons killed, no program hung; longest time without a job: p50 "
             f"{stalls[len(stalls) // 2] * 1e3:.0f} ms, max {stalls[-1] * 1e3:.0f} ms; wrong results: "
             f"{', '.join(result['wrong']) or 'none'}"]
    return lines + [f"  {name:20} {seconds * 1e3:8.0f} ms" for name, seconds in result["longest_s"].items()]


# ----

PARTS = {"kernels": (kernels, kernels_table), "streams": (streams, streams_table), "decode": (decode, decode_table),
         "native": (native, decode_table), "static": (static, static_table), "frameworks": (frameworks, frameworks_table),
         "soak": (soak, soak_table), "faults": (faults, faults_table)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--gpuseg", default=os.path.join(REPOSITORY, "gpuseg"))
    parser.add_argument("--bin", default=GPU_BENCH, help="directory of gpuseg-bench-rt and -be")
    parser.add_argument("--mechanism", default="nvidia")
    parser.add_argument("--minutes", type=float, default=1, help="of the soak")
    parser.add_argument("--managed-only", action="store_true", help="soak without a daemon is left out")
    parser.add_argument("--rounds", type=int, default=50, help="of faults")
    parser.add_argument("--jobs", type=int, default=100, help="of each run of kernels and streams")
    parser.add_argument("--streams", default="kernels,default,copies,small,filling", help="what the lower stream does in streams")
    parser.add_argument("--native", default="decoder,cnn", help="real-time programs of native")
    parser.add_argument("--repeat", type=int, default=1, help="measurements of native beside a load, in turn")
    arguments = parser.parse_args()
    arguments.native = arguments.native.split(",")
    parts = arguments.parts.split(",")
    unknown = [p for p in parts if p not in PARTS]
    if unknown:
        parser.error(f"--parts has {', '.join(unknown)}; known are {', '.join(PARTS)}")
    if arguments.rounds < 1 or not 10 <= arguments.jobs <= 10000 or not 0 < arguments.minutes <= 600:
        parser.error("--rounds is at least 1, --jobs 10 to 10000, --minutes more than 0 and at most 600")
    os.makedirs(arguments.out, exist_ok=True)
    results = {"command": shlex.join(sys.argv), "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "failed": {},
               "seconds": {}}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory, \
            open(os.path.join(arguments.out, "cells.log"), "a", encoding="utf-8") as log:
        session = Session(arguments, directory, log)
        for part in parts:
            began = time.monotonic()
            try:
                results[part] = PARTS[part][0](session)
            except (Exception, SystemExit) as failed:   # one part must not cost the others
                results["failed"][part] = f"{type(failed).__name__}: {failed}"
                log.write(traceback.format_exc())
            results["seconds"][part] = round(time.monotonic() - began, 1)
            print(f"cells.py: {part}: {results['seconds'][part]} s {results['failed'].get(part, '')}", file=sys.stderr)
            with open(os.path.join(arguments.out, "cells.json"), "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
    for part in parts:
        print(f"== {part}, {results['seconds'][part]} s")
        lines = [f"FAILED: {results['failed'][part]}"] if part in results["failed"] else PARTS[part][1](results[part])
        print("\n".join(lines))
    sys.exit(1 if results["failed"] else 0)


if __name__ == "__main__":
    main()
