#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks on a real GPU how the daemon handles processes with forks, several contexts or MPS. Prints one line per check.

    process_checks.py --kind shapes|slices|mps --build DIR --gpuseg COMMAND --per NS [--gpus N] [--out DIR]

shapes  fork, fork and exec, two contexts on one GPU, contexts on two GPUs: what `gpuseg status` shows, and which contexts
        are disabled during a segment of another process
slices  proportional shares: are time slices restored after a kill -9 and after a stop of the daemon
mps     processes under an MPS server of the test (skipped if nvidia-cuda-mps-control is not installed): a task outside of
        MPS disables them; for a task that is a client, server and clients stay enabled, and the others are disabled

--per is ns_per_iteration, as printed by `gpuseg-bench-rt --calibrate`. Exit status: 0 all as expected, 1 otherwise.
Writes DIR/checks-KIND.json.
"""
import argparse
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from fault_rounds import LIMIT_S, READY, STOP, KERNELS, WRONG, start_daemon, wait

SECOND, CHILD = 12, 72  # struct be_page
SEGMENT_MS = 300
SETTLE_S = 0.03
WATCH_S = 0.15
KERNEL_MS = "2"


class Program:
    """A process with a page in which it counts."""

    def __init__(self, checks, name, command, env=None):
        self.name = name
        self.page = checks.page(name)
        command = [self.page.path if word == "PAGE" else word for word in command]
        self.process = subprocess.Popen(command, env=env or os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        checks.programs.append(self)

    def await_ready(self):
        wait(lambda: self.page.word(READY) == 1 or self.process.poll() is not None, f"{self.name} works")
        if self.process.poll() is not None:
            raise SystemExit(f"{self.name} ended: {self.process.stdout.read()}")

    def stop(self):
        """Its exit status; 1 = a result was wrong."""
        self.page.set(STOP, 1)
        try:
            self.process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate(timeout=LIMIT_S)
            return -1
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LIMIT_S)


class Page:
    def __init__(self, path):
        self.path = path
        with open(path, "wb") as f:
            f.write(bytes(4096))
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 4096)

    def word(self, at):
        return struct.unpack_from("<I", self.map, at)[0]

    def kernels(self):
        return struct.unpack_from("<Q", self.map, KERNELS)[0]

    def wrong(self):
        return struct.unpack_from("<Q", self.map, WRONG)[0]

    def set(self, at, value):
        struct.pack_into("<I", self.map, at, value)


class Checks:
    def __init__(self, args, directory):
        self.args = args
        self.directory = directory
        self.programs = []
        self.daemons = []
        self.rows = []

    def page(self, name):
        return Page(os.path.join(self.directory, f"page-{len(self.programs)}-{name}"))

    def row(self, check, expected, found, good):
        self.rows.append({"check": check, "expected": expected, "found": str(found), "good": bool(good)})
        print(f"{check:62} | {expected:24} | {str(found):30.30} | {'ok' if good else 'WRONG'}", flush=True)

    def note(self, check, found):
        """Something to know, that cannot be wrong."""
        self.rows.append({"check": check, "found": str(found)})
        print(f"{check:62} | {'-':24} | {found}", flush=True)

    # programs

    def daemon(self, *options):
        run = os.path.join(self.directory, f"run-{len(self.daemons)}")
        self.args.daemon_options = " ".join(options)
        process = start_daemon(self.args, run)
        process.run = run
        self.daemons.append(process)
        return process

    def end(self, daemon):
        daemon.terminate()
        try:
            return daemon.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            return daemon.wait(LIMIT_S)

    def shape(self, *mode, env=None):
        return Program(self, mode[0], [f"{self.args.build}/gpuseg-bench-proc", "PAGE", KERNEL_MS, self.args.per, "300",
                                       *mode], env)

    def task(self, daemon, name, *options, env=None):
        env = dict(env or os.environ, GPUSEG_DIR=daemon.run)
        return Program(self, name, [f"{self.args.build}/gpuseg-bench-rt", "--own-page", "PAGE", "--per", self.args.per,
                                    "--jobs", "100000", "--jitter-ms", "0", "--name", name, *options], env)

    def holder(self, daemon, gpu):
        """Segments of 300 ms with pauses; the others are off while one runs."""
        task = self.task(daemon, "holder", "--mode", "wait", "--kernel-ms", str(SEGMENT_MS), "--pause-ms", "150",
                         "--priority", "80", "--gpu", str(gpu))
        wait(lambda: task.page.kernels() >= 1 or task.process.poll() is not None, "the holder's first segment")
        if task.process.poll() is not None:
            raise SystemExit(f"holder ended: {task.process.stdout.read()}")
        return task

    # what the daemon knows

    def command(self, daemon, *words):
        return subprocess.run(self.args.gpuseg.split() + [*words, "--dir", daemon.run], text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout

    def contexts(self, daemon):
        """By GPU, then by pid: what `gpuseg status` shows."""
        status = json.loads(self.command(daemon, "status", "--json"))
        return [{c["pid"]: c for c in gpu.get("contexts", [])} for gpu in status["gpus"]]

    def await_units(self, daemon, pid, gpu=0):
        """Channels of the process on the GPU, as soon as there are any; 0 after 10 s."""
        end = time.monotonic() + 10
        while True:
            units = self.contexts(daemon)[gpu].get(pid, {}).get("units", 0)
            if units > 0 or time.monotonic() > end:
                return units
            time.sleep(0.1)

    def slices(self, pid):
        """Time slices of a process's compute work, microseconds."""
        out = subprocess.run([f"{self.args.build}/gpuseg-rm", "list", str(pid)], text=True, timeout=60,
                             stdout=subprocess.PIPE, check=False).stdout
        return sorted({t["timeslice_us"] for t in json.loads(out)["tsgs"] if t["gr0"]}) if out else []

    # checks

    def finished(self, holder, pages):
        """Kernels that each finished within 150 ms in the middle of one segment of the holder."""
        for _ in range(20):
            wait(lambda: holder.page.word(READY) == 0, "the end of a segment")
            wait(lambda: holder.page.word(READY) == 1, "a segment")
            jobs = holder.page.kernels()
            time.sleep(SETTLE_S)
            before = [p.kernels() for p in pages]
            time.sleep(WATCH_S)
            after = [p.kernels() for p in pages]
            if holder.page.word(READY) == 1 and holder.page.kernels() == jobs:
                return [b - a for a, b in zip(before, after)]
        raise SystemExit("no segment was long enough to look into it")

    def off(self, what, finished):
        self.row(what, "at most 1 kernel", f"{finished} kernels", finished <= 1)

    def on(self, what, finished):
        self.row(what, "at least 2 kernels", f"{finished} kernels", finished >= 2)

    def goes_on(self, what, page):
        before = page.kernels()
        try:
            wait(lambda: page.kernels() > before + 2, what)
            self.row(what, "goes on", "goes on", True)
        except SystemExit as e:
            self.row(what, "goes on", e, False)

    def ends(self, program):
        status = program.stop()
        self.row(f"{program.name}: all results right", "exit status 0", status, status == 0 and program.page.wrong() == 0)


def shapes(c):
    gpus = 2 if c.args.gpus > 1 else 1
    daemon = c.daemon("--gpus", str(gpus))

    plain = c.shape("plain")
    plain.await_ready()
    base = c.await_units(daemon, plain.process.pid)
    c.row("plain: channels on GPU 0", "> 0", base, base > 0)
    c.ends(plain)
    time.sleep(1)
    gone = c.contexts(daemon)[0].get(plain.process.pid, {}).get("units", 0)
    c.row("plain: channels after its end", "0", gone, gone == 0)

    forked = c.shape("fork")
    forked.await_ready()
    child = forked.page.word(CHILD)
    units = c.await_units(daemon, forked.process.pid)
    time.sleep(2)  # longer than a look takes
    inherited = c.contexts(daemon)[0].get(child, {}).get("units", 0)
    c.row("fork: channels of the parent", f"{base}", units, units == base)
    c.row("fork: channels of the child, which has its descriptors", "0", inherited, inherited == 0)
    holder = c.holder(daemon, 0)
    c.off("fork: the parent, during a segment of another process", c.finished(holder, [forked.page])[0])
    holder.close()
    c.goes_on("fork: the parent, afterwards", forked.page)
    c.ends(forked)

    page = c.page("executed")
    parent = c.shape("exec", f"{c.args.build}/gpuseg-bench-be", page.path, KERNEL_MS, c.args.per, "300")
    parent.await_ready()
    wait(lambda: page.word(READY) == 1, "the executed program")
    child = parent.page.word(CHILD)
    units = [c.await_units(daemon, parent.process.pid), c.await_units(daemon, child)]
    c.row("exec: channels of parent and child", "> 0 each", units, min(units) > 0)
    holder = c.holder(daemon, 0)
    seen = c.finished(holder, [parent.page, page])
    c.off("exec: the parent, during a segment", seen[0])
    c.off("exec: the child, during a segment", seen[1])
    holder.close()
    c.goes_on("exec: the parent, afterwards", parent.page)
    c.goes_on("exec: the child, afterwards", page)
    page.set(STOP, 1)
    c.ends(parent)

    two = c.shape("two")
    two.await_ready()
    units = c.await_units(daemon, two.process.pid)
    time.sleep(2)
    units = c.contexts(daemon)[0][two.process.pid]["units"]
    c.row("two contexts on one GPU: channels", f"> {base}", units, units > base)
    holder = c.holder(daemon, 0)
    c.off("two: the first context, during a segment", c.finished(holder, [two.page])[0])
    two.page.set(SECOND, 1)
    c.goes_on("two: the second context, between segments", two.page)
    c.off("two: the second context, during a segment", c.finished(holder, [two.page])[0])
    holder.close()
    c.goes_on("two: the second context, afterwards", two.page)
    c.ends(two)

    if gpus == 2:
        both = c.shape("gpus")
        both.await_ready()
        units = [c.await_units(daemon, both.process.pid, gpu) for gpu in range(2)]
        c.row("contexts on both GPUs: channels on each", "> 0 each", units, min(units) > 0)
        for gpu in range(2):
            holder = c.holder(daemon, gpu)
            for second in range(2):
                both.page.set(SECOND, second)
                c.goes_on(f"gpus: GPU {second}, with a task on GPU {gpu}", both.page)
                (c.off if second == gpu else c.on)(f"gpus: GPU {second}, during a segment on GPU {gpu}",
                                                   c.finished(holder, [both.page])[0])
            holder.close()
        c.ends(both)
    else:
        c.note("contexts on both GPUs", "not run: --gpus is 1")
    status = c.end(daemon)
    c.row("the daemon stops", "exit status 0", status, status == 0)


def await_slices(c, pid, wanted, limit_s=5):
    begun = time.monotonic()
    while True:
        found = c.slices(pid)
        if found == wanted or time.monotonic() - begun > limit_s:
            return found, (time.monotonic() - begun) * 1e3


def slices(c):
    plain = c.shape("plain")
    plain.await_ready()
    own = c.slices(plain.process.pid)
    c.note("time slice of an untouched process, us", own)

    rules = os.path.join(c.directory, "policy.yaml")
    with open(rules, "w", encoding="ascii") as f:
        f.write("version: 1\nsharing: timeslices\nquantum: 1ms\n")
    daemon = c.daemon("--policy-file", rules)
    task = c.task(daemon, "logger", "--mode", "segment", "--kernel-ms", "5", "--pause-ms", "60000", "--priority", "0")
    for _ in range(100):
        said = c.command(daemon, "set", "logger", "--weight", "400")
        if "no task" not in said:
            break
        time.sleep(0.1)
    found, _ = await_slices(c, task.process.pid, [4000], LIMIT_S)
    c.row("shares of 400: the task's, us", "[4000]", found, found == [4000])
    daemon.kill()
    daemon.wait(LIMIT_S)
    for name, pid in (("the task", task.process.pid), ("the process that never registered", plain.process.pid)):
        found, ms = await_slices(c, pid, own)
        c.row(f"shares: {name}, after a kill -9", f"{own}", f"{found} after {ms:.0f} ms", found == own)
    task.close()
    c.ends(plain)


def mps_processes(pipe):
    """MPS processes that belong to our control daemon: its environment is theirs."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            name = os.path.basename(os.readlink(f"/proc/{entry}/exe"))
            with open(f"/proc/{entry}/environ", "rb") as f:
                ours = f"CUDA_MPS_PIPE_DIRECTORY={pipe}".encode() in f.read().split(b"\0")
        except OSError:
            continue
        if ours and name.startswith("nvidia-cuda-mps-"):
            found[int(entry)] = name
    return found


def mps(c):
    control = shutil.which("nvidia-cuda-mps-control")
    if not control:
        c.note("MPS", "not run: nvidia-cuda-mps-control is not installed")
        return
    pipe = os.path.join(c.directory, "mps-pipe")
    log = os.path.join(c.directory, "mps-log")
    os.mkdir(pipe)
    os.mkdir(log)
    env = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=pipe, CUDA_MPS_LOG_DIRECTORY=log)
    try:
        subprocess.run([control, "-d"], env=env, timeout=20, check=True)
        clients = [c.shape("plain", env=env) for _ in range(2)]
        for client in clients:
            client.await_ready()
        servers = [pid for pid, name in mps_processes(pipe).items() if name == "nvidia-cuda-mps-server"]
        c.row("MPS: servers", "1", len(servers), len(servers) == 1)
        for pid in servers + [p.process.pid for p in clients]:
            said = subprocess.run([f"{c.args.build}/gpuseg-rm", "list", str(pid)], text=True, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout.strip()
            c.note(f"gpuseg-rm list {'server' if pid in servers else 'client'} {pid}", said[:2000])
        daemon = c.daemon()
        time.sleep(3)
        for pid, context in c.contexts(daemon)[0].items():
            c.note(f"the daemon's table: {context['name']}", f"pid {pid}, {context.get('units')} channels, "
                   f"{context.get('remark', '')}")
        holder = c.holder(daemon, 0)
        seen = c.finished(holder, [p.page for p in clients])
        for number, kernels in enumerate(seen):
            c.off(f"MPS: client {number}, during a segment of a process outside", kernels)
        table = json.loads(c.command(daemon, "status", "--json"))
        c.note("MPS: enforcement incomplete", [gpu["enforcement_incomplete"] for gpu in table["gpus"]])
        holder.close()
        for number, client in enumerate(clients):
            c.goes_on(f"MPS: client {number}, afterwards", client.page)
        # With server and other clients off such a task hung on an H200 (580.159.04): they have to stay on
        inside = c.task(daemon, "inside", "--mode", "wait", "--kernel-ms", "5", "--pause-ms", "10", "--priority", "80",
                        env=env)
        end = time.monotonic() + LIMIT_S
        while inside.page.kernels() < 20 and time.monotonic() < end and inside.process.poll() is None:
            time.sleep(0.05)
        c.row("MPS: segments of a task that is a client itself", "20 or more", inside.page.kernels(),
              inside.page.kernels() >= 20)
        for pid, context in c.contexts(daemon)[0].items():
            c.note(f"the daemon's table, with that task: {context['name']}", f"pid {pid}, {context.get('units')} channels, "
                   f"{context.get('remark', '')}")
        table = c.contexts(daemon)[0]
        for pid in servers + [p.process.pid for p in clients]:
            remark = table.get(pid, {}).get("remark", "")
            c.row(f"MPS: with that task, remark of pid {pid}", "stays enabled", remark, "stays enabled" in remark)
        for number, client in enumerate(clients):
            c.goes_on(f"MPS: client {number}, with that task", client.page)
        inside.process.send_signal(signal.SIGTERM)
        for client in clients:
            c.ends(client)
        inside.close()
        c.end(daemon)
    finally:
        for program in c.programs:
            program.close()
        try:
            subprocess.run([control], env=env, input="quit\n", text=True, timeout=15, stdout=subprocess.DEVNULL, check=False)
        except subprocess.TimeoutExpired:
            pass
        end = time.monotonic() + 5
        while mps_processes(pipe) and time.monotonic() < end:
            time.sleep(0.1)
        for pid in mps_processes(pipe):
            os.kill(pid, signal.SIGKILL)
        c.note("MPS: processes of ours that are left", sorted(mps_processes(pipe).values()))
        for name in sorted(os.listdir(log)):
            with open(os.path.join(log, name), encoding="utf-8", errors="replace") as f:
                c.note(f"MPS log {name}", f.read()[-600:].replace("\n", " / "))


def main():
    parser = argparse.ArgumentParser()
    kinds = {"shapes": shapes, "slices": slices, "mps": mps}
    parser.add_argument("--kind", choices=sorted(kinds), required=True)
    parser.add_argument("--build", required=True, help="directory of the CUDA programs")
    parser.add_argument("--gpuseg", required=True, help="command line of gpuseg")
    parser.add_argument("--per", required=True, help="ns per iteration, of gpuseg-bench-rt --calibrate")
    parser.add_argument("--gpus", type=int, default=1, help="of this machine; 2 or more: processes on two are checked")
    parser.add_argument("--out", help="record the checks in this directory")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that whatever was started is stopped
    directory = tempfile.mkdtemp(dir="/dev/shm", prefix="gpuseg-checks-")
    checks = Checks(args, directory)
    try:
        kinds[args.kind](checks)
    finally:
        for program in reversed(checks.programs):
            program.close()
        for daemon in checks.daemons:
            if daemon.poll() is None:
                checks.end(daemon)
        if args.out:
            os.makedirs(args.out, exist_ok=True)
            with open(os.path.join(args.out, f"checks-{args.kind}.json"), "w", encoding="utf-8") as f:
                json.dump({"kind": args.kind, "command": " ".join(sys.argv), "checks": checks.rows}, f, indent=1)
        shutil.rmtree(directory, ignore_errors=True)
    wrong = [row for row in checks.rows if not row.get("good", True)]
    print(f"{args.kind}: {len(checks.rows)} lines, {len(wrong)} wrong", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
