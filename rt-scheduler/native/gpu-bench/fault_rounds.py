#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a process at a random moment of a segment, many times, on a real GPU, and measures how long others are frozen.

    fault_rounds.py --kind daemon|holder|victim --build DIR --gpuseg COMMAND [--rounds N] [--seed N] [--out DIR]

daemon   kill -9 of the daemon while contexts are disabled: the watchdog must enable them
holder   kill -9 of the process whose segment runs: the daemon must enable the others
victim   kill -9 of a process whose context is disabled: the segment and the others must continue

Every best-effort process records the end of the first kernel that it finishes after the kill. One of them, the probe, has
kernels of 0.5 ms: its time is the freeze plus a few milliseconds for the turns of the others. The others have kernels of
20 ms, so their times include the rest of a kernel and the turns. "usual" is the same time without a kill. For kind victim
the freeze includes the rest of the segment (60 ms), which continues.

Writes DIR/faults-KIND.csv, one line per round, and DIR/faults-KIND.json. Exit status 1: a result was wrong, or a freeze was
longer than the watchdog's period plus the usual time (for kind victim: plus the segment).
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
WATCHDOG_PERIOD_MS = 100.0  # the daemon's default
SEGMENT_MS = 60.0
LONG_MS = 20.0
PROBE_MS = 0.5
READY, STOP, KERNELS, WRONG, MARK, AFTER = 4, 8, 16, 24, 56, 64  # struct be_page


class Other:
    """A best-effort process and the page in which it counts."""

    def __init__(self, args, directory, number, kernel_ms=LONG_MS):
        self.path = os.path.join(directory, f"other-{number}")
        with open(self.path, "wb") as f:
            f.write(bytes(4096))
        self.process = subprocess.Popen(
            [f"{args.build}/gpuseg-bench-be", self.path, str(kernel_ms), args.per, "600"], stdout=subprocess.DEVNULL
        )
        with open(self.path, "r+b") as f:
            self.page = mmap.mmap(f.fileno(), 4096)
        wait(lambda: struct.unpack_from("<I", self.page, READY)[0] == 1, "best-effort process")

    def wrong(self):
        return struct.unpack_from("<Q", self.page, WRONG)[0]

    def mark(self, at_ns):
        struct.pack_into("<q", self.page, MARK, 0)
        struct.pack_into("<q", self.page, AFTER, 0)
        struct.pack_into("<q", self.page, MARK, at_ns)

    def after_ns(self):
        return struct.unpack_from("<q", self.page, AFTER)[0]

    def stop(self):
        struct.pack_into("<I", self.page, STOP, 1)
        return self.process.wait(LIMIT_S)


def wait(condition, what):
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"not within {LIMIT_S} s: {what}")
        time.sleep(0.0005)


def mark(others, at_ns):
    for o in others:
        o.mark(at_ns)


def next_ms(others, marked_ns):
    """For each the time from the mark until the end of the first kernel that it finished later."""
    for o in others:
        wait(lambda: o.after_ns() > 0, f"pid {o.process.pid} hangs after the kill")
    return [(o.after_ns() - marked_ns) / 1e6 for o in others]


def undisturbed(others):
    now = time.monotonic_ns()
    mark(others, now)
    return next_ms(others, now)


def start_daemon(args, directory):
    settings = directory + ".yaml"
    with open(settings, "w") as file:
        file.write("warm-up: false\n")
    process = subprocess.Popen(
        args.gpuseg.split() + ["run", "--dir", directory, "--mechanism", "nvidia", "--policy", "fp", "--config", settings]
        + args.daemon_options.split(),
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
        [f"{args.build}/gpuseg-bench-rt", "--own-page", path, "--mode", "wait", "--kernel-ms", str(SEGMENT_MS),
         "--pause-ms", "60" if args.kind == "victim" else "5", "--per", args.per, "--jobs", "100000"],
        env=dict(os.environ, GPUSEG_DIR=directory), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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


def spread(values):
    v = sorted(values)
    return {"p50": round(v[len(v) // 2], 2), "p99": round(v[int(len(v) * 0.99)], 2), "max": round(v[-1], 2)}


def summary(args, rows, usual, wrong, extra):
    """Prints and records; what is wrong with the rounds, or an empty list."""
    freeze = spread([row["freeze_ms"] for row in rows])
    usual_probe = spread([u[-1] for u in usual])
    limit = WATCHDOG_PERIOD_MS + usual_probe["max"] + (SEGMENT_MS if args.kind == "victim" else 0)
    result = {
        "kind": args.kind,
        "rounds": len(rows),
        "seed": args.seed,
        "command": " ".join(sys.argv),
        "freeze_ms": freeze,
        "usual_probe_ms": usual_probe,
        "watchdog_period_ms": WATCHDOG_PERIOD_MS,
        "limit_ms": round(limit, 2),
        "rounds_beyond_limit": sum(row["freeze_ms"] > limit for row in rows),
        "long_kernels_ms": spread([max(row["next_ms"]) for row in rows]),
        "usual_long_kernels_ms": spread([max(u) for u in usual]),
        "exit_of_killed_ms": spread([row["exit_ms"] for row in rows]),
        "wrong": wrong,
    }
    result.update(extra)
    print(json.dumps(result), flush=True)
    if args.out:
        with open(os.path.join(args.out, f"faults-{args.kind}.json"), "w") as f:
            f.write(json.dumps(result, indent=2) + "\n")
        with open(os.path.join(args.out, f"faults-{args.kind}.csv"), "w") as f:
            names = [f"process_{i + 1}_ms" for i in range(len(rows[0]["next_ms"]) - 1)]
            f.write(",".join(["round", "killed_after_ms", "freeze_ms"] + names + ["exit_of_killed_ms", "wrong_so_far"]) + "\n")
            for number, row in enumerate(rows):
                times = [row["killed_after_ms"], row["freeze_ms"]] + row["next_ms"][:-1] + [row["exit_ms"]]
                f.write(",".join([str(number)] + [f"{t:.3f}" for t in times] + [str(row["wrong"])]) + "\n")
    return wrong + extra.get("holder_wrong", 0) + result["rounds_beyond_limit"] == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=["daemon", "holder", "victim"], required=True)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--build", required=True, help="directory of the CUDA programs")
    parser.add_argument("--gpuseg", required=True, help="command line of gpuseg")
    parser.add_argument("--daemon-options", default="", help="more for gpuseg run")
    parser.add_argument("--per", help="ns per iteration; measured by gpuseg-bench-rt --calibrate where it is not given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="record rounds and summary in this directory")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error(f"--rounds is {args.rounds}; use 1 or more")
    if args.out:
        os.makedirs(args.out, exist_ok=True)
    if not args.per:
        args.per = subprocess.run([f"{args.build}/gpuseg-bench-rt", "--calibrate"], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.strip()
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
        for i in range(3):
            others.append(Other(args, directory, i))
        others.append(Other(args, directory, "probe", PROBE_MS))
        usual = [undisturbed(others) for _ in range(20)]
        rows = []
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
                # they start while no segment runs: a start-up that is disabled again and again takes seconds
                holder_figures(stop_holder(holder), extra)
                victims = [Other(args, directory, f"victim-{number}-{i}") for i in range(5)]
                processes.extend(v.process for v in victims)
                holder = start_holder(args, run)
                processes.append(holder)
            in_window(holder)
            opened_ns = time.monotonic_ns()
            time.sleep(rng.random() * 0.05)  # of 60 ms
            victim = victims.pop() if args.kind == "victim" else None
            target = {"daemon": daemon, "holder": holder, "victim": victim and victim.process}[args.kind]
            begun = time.monotonic_ns()
            mark(others, begun)
            target.send_signal(signal.SIGKILL)
            target.wait(LIMIT_S)
            exit_ms = (time.monotonic_ns() - begun) / 1e6
            times = next_ms(others, begun)
            rows.append({"killed_after_ms": (begun - opened_ns) / 1e6, "freeze_ms": times[-1], "next_ms": times,
                         "exit_ms": exit_ms, "wrong": sum(o.wrong() for o in others)})
            if args.kind == "daemon":
                holder.kill()
                holder.wait(LIMIT_S)
        if args.kind == "victim":
            holder_figures(stop_holder(holder), extra)
        for o in others:
            o.stop()
        good = summary(args, rows, usual, sum(o.wrong() for o in others), extra)
        return 0 if good else 1
    finally:
        for p in reversed(processes):
            if p is not None and p.poll() is None:
                p.terminate()
                try:
                    p.wait(5)
                except subprocess.TimeoutExpired:
                    p.kill()
        for o in others:
            if o.process.poll() is None:
                o.process.kill()
                o.process.wait(LIMIT_S)
        subprocess.run(["rm", "-rf", directory], check=False)


if __name__ == "__main__":
    sys.exit(main())
