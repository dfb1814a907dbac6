#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills one party at a random moment of a segment, many times, on a real GPU, and measures how long anybody hangs.

    fault_rounds.py --kind daemon|holder|victim --rounds N --build DIR --gpuseg COMMAND --per NS [--seed N]

daemon   kill -9 of the daemon while others are off the GPU: the watchdog must enable them
holder   kill -9 of the process whose segment runs: the daemon must enable the others
victim   kill -9 of a process that is off the GPU: segment and others must go on
Hang = from the kill to the next kernel that each best-effort process finishes. It contains the rest of that kernel
(20 ms of work) and its turns with the others; how long that takes undisturbed is printed as "usual".
"""
import argparse
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

LIMIT_S = 20.0


class Other:
    """A best-effort process and the page in which it counts."""

    def __init__(self, args, directory, number):
        self.path = os.path.join(directory, f"other-{number}")
        with open(self.path, "wb") as f:
            f.write(bytes(4096))
        self.process = subprocess.Popen(
            [f"{args.build}/gpuseg-bench-be", self.path, "20", args.per, "600"], stdout=subprocess.DEVNULL)
        with open(self.path, "r+b") as f:
            self.page = mmap.mmap(f.fileno(), 4096)
        wait(lambda: self.word(4) == 1, "best-effort process")

    def word(self, at):
        return struct.unpack_from("<I", self.page, at)[0]

    def kernels(self):
        return struct.unpack_from("<Q", self.page, 16)[0]

    def wrong(self):
        return struct.unpack_from("<Q", self.page, 24)[0]

    def last_ns(self):
        return struct.unpack_from("<q", self.page, 32)[0]

    def stop(self):
        struct.pack_into("<I", self.page, 8, 1)
        return self.process.wait(LIMIT_S)


def wait(condition, what):
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"not within {LIMIT_S} s: {what}")
        time.sleep(0.0005)


def hang_ms(others, begun_ns):
    """Until each has finished a kernel that ended after the event."""
    worst = 0.0
    for o in others:
        wait(lambda: o.last_ns() > begun_ns, f"pid {o.process.pid} hangs after the kill")
        worst = max(worst, (o.last_ns() - begun_ns) / 1e6)
    return worst


def start_daemon(args, directory):
    process = subprocess.Popen(
        args.gpuseg.split() + ["run", "--dir", directory, "--mechanism", "nvidia", "--policy", "fp", "--no-warm-up"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if "ready" in line:
            time.sleep(0.4)  # it looks at the processes that run already
            return process
    raise SystemExit("the daemon did not start")


def start_holder(args, directory):
    """Returns when its first segment has run."""
    path = directory + "-holder"
    with open(path, "wb") as f:
        f.write(bytes(4096))
    process = subprocess.Popen(
        [f"{args.build}/gpuseg-bench-rt", "--own-page", path, "--mode", "wait", "--kernel-ms", "60", "--pause-ms",
         "60" if args.kind == "victim" else "5", "--per", args.per, "--jobs", "100000"], env=dict(os.environ, GPUSEG_DIR=directory), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    with open(path, "r+b") as f:
        process.page = mmap.mmap(f.fileno(), 4096)
    wait(lambda: struct.unpack_from("<Q", process.page, 16)[0] >= 1, "first segment of the holder")
    return process


def in_window(holder):
    """Waits until a segment begins to run: the others are off."""
    wait(lambda: struct.unpack_from("<I", holder.page, 4)[0] == 0, "the end of a segment")
    wait(lambda: struct.unpack_from("<I", holder.page, 4)[0] == 1, "a segment")


def stop_holder(holder):
    if holder is None:
        return None
    holder.terminate()
    return json.loads(holder.communicate(timeout=LIMIT_S)[0])


def holder_figures(answer, extra):
    if answer is not None:
        extra["holder_jobs"] = extra.get("holder_jobs", 0) + answer["jobs"]
        extra["holder_wrong"] = extra.get("holder_wrong", 0) + answer["wrong"]


def summary(args, hangs, usual, others, extra):
    hangs = sorted(hangs)
    result = {"kind": args.kind, "rounds": len(hangs), "hang_ms": {
        "p50": round(hangs[len(hangs) // 2], 1), "max": round(hangs[-1], 1)}, "usual_ms": round(usual, 1),
        "wrong": sum(o.wrong() for o in others)}
    result.update(extra)
    print(json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["daemon", "holder", "victim"], required=True)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--build", required=True)
    parser.add_argument("--gpuseg", required=True)
    parser.add_argument("--per", required=True)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    started = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that whatever was started is stopped
    directory = tempfile.mkdtemp(dir="/dev/shm", prefix="gpuseg-fault-")
    os.chmod(directory, 0o755)
    run = os.path.join(directory, "run")
    processes = []
    others = []
    extra = {}
    try:
        others = [Other(args, directory, i) for i in range(3)]
        usual = 0.0
        for _ in range(10):
            usual = max(usual, hang_ms(others, time.monotonic_ns()))
        hangs = []
        daemon = None if args.kind == "daemon" else start_daemon(args, run)
        processes.append(daemon)
        holder = None
        victims = []
        for number in range(args.rounds):
            if number % 10 == 0:
                print(f"{args.kind}: round {number}, {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
            if args.kind == "daemon":
                daemon = start_daemon(args, run)
                processes.append(daemon)
            if args.kind != "victim":
                holder = start_holder(args, run)
                processes.append(holder)
            elif not victims:
                # they start while no segment runs: a start-up that is taken off again and again takes seconds
                holder_figures(stop_holder(holder), extra)
                victims = [Other(args, directory, f"victim-{number}-{i}") for i in range(5)]
                processes.extend(v.process for v in victims)
                holder = start_holder(args, run)
                processes.append(holder)
            in_window(holder)
            time.sleep(rng.random() * 0.05)  # of 60 ms
            begun = time.monotonic_ns()
            if args.kind == "daemon":
                daemon.send_signal(signal.SIGKILL)
                hangs.append(hang_ms(others, begun))
                daemon.wait(LIMIT_S)
                holder.kill()
                holder.wait(LIMIT_S)
            elif args.kind == "holder":
                holder.send_signal(signal.SIGKILL)
                hangs.append(hang_ms(others, begun))
                holder.wait(LIMIT_S)
            else:
                victim = victims.pop()
                victim.process.send_signal(signal.SIGKILL)
                exited = time.monotonic_ns()
                victim.process.wait(LIMIT_S)
                extra["slowest_exit_ms"] = max(
                    extra.get("slowest_exit_ms", 0), round((time.monotonic_ns() - exited) / 1e6, 1))
                hangs.append(hang_ms(others, begun))
        if args.kind == "victim":
            holder_figures(stop_holder(holder), extra)
        summary(args, hangs, usual, others, extra)
    finally:
        for p in reversed(processes):
            if p is not None and p.poll() is None:
                p.terminate()
                try:
                    p.wait(5)
                except subprocess.TimeoutExpired:
                    p.kill()
        for o in others:
            o.stop()
        subprocess.run(["rm", "-rf", directory], check=False)


if __name__ == "__main__":
    sys.exit(main())
