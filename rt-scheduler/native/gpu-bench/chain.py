#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A chain of three processes on a real GPU: camera, detect, brake, joined by registers (sampling edges).

Each process opens one task, marks releases with the stamp of the sample that it works on, and runs one kernel of a set
length in each job. Record the daemon's journal meanwhile; then `gpuseg trace taskset` makes a task set of it, `--set FILE`
of this program adds the chain to it, and `gpuseg trace check --taskset FILE --bounds` compares measured reaction time and
data age with their bounds.

usage: chain.py [--seconds N] [--sleep]        run the chain (GPUSEG_DIR names the daemon); --sleep: no GPU, a kernel sleeps
       chain.py --set FILE                     add the chain and max_period to a task set, in place
"""
import mmap
import os
import re
import signal
import struct
import sys
import time

SEGMENT_API = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../segment-api")
sys.path.insert(0, os.path.join(SEGMENT_API, "python"))
os.environ.setdefault("GPUSEG_LIBRARY", os.path.join(SEGMENT_API, "build/libgpuseg.so.0"))

MS = 1_000_000
# name, priority, period in ms, kernel in ms
TASKS = (("camera", 80, 50, 1.0), ("detect", 70, 80, 6.0), ("brake", 60, 100, 1.0))


def sleep_until(at_ns):
    while True:
        left = at_ns - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if left <= 0:
            return
        time.sleep(left / 1e9)


def kernel_of(length_ms, sleeps):
    """A function that runs one kernel of this length and waits for it."""
    if sleeps:
        return lambda: time.sleep(length_ms / 1e3)
    import torch
    torch.cuda.init()
    cycles = 1_000_000

    def run(n):
        torch.cuda._sleep(n)
        torch.cuda.synchronize()

    run(cycles)
    took = []
    for _ in range(20):
        before = time.perf_counter()
        run(20 * cycles)
        took.append((time.perf_counter() - before) / 20)
    n = int(cycles * length_ms / 1e3 / sorted(took)[10])
    return lambda: run(n)


def play(index, registers, seconds, sleeps, ready, go):
    import gpuseg
    name, priority, period_ms, length_ms = TASKS[index]
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) > len(TASKS):
        os.sched_setaffinity(0, {cpus[-1 - index]})
    kernel = kernel_of(length_ms, sleeps)
    for _ in range(20):   # the first kernels of a process take longer; they are not part of any job
        kernel()
    with gpuseg.Client(name) as client, gpuseg.Task(client, name, priority=priority, period_ns=period_ms * MS) as task:
        os.write(ready, b"r")
        start = struct.unpack("q", os.read(go, 8))[0]
        for job in range(int(seconds * 1000 / period_ms)):
            arrival = start + job * period_ms * MS
            sleep_until(arrival)
            stamp = gpuseg.now_ns() if index == 0 else struct.unpack_from("q", registers, 8 * (index - 1))[0]
            task.release(arrival, stamp)
            with gpuseg.segment(task):
                kernel()
            struct.pack_into("q", registers, 8 * index, stamp)
            task.complete()


def run(seconds, sleeps):
    registers = mmap.mmap(-1, 4096)
    ready_in, ready_out = os.pipe()
    children = []
    for index in range(len(TASKS)):
        go_in, go_out = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                play(index, registers, seconds, sleeps, ready_out, go_in)
                status = 0
            except BaseException as error:   # the child must not go on as its parent
                print(f"chain.py: {TASKS[index][0]}: {error}", file=sys.stderr)
            os._exit(status)
        os.close(go_in)
        children.append((pid, go_out))
    os.close(ready_out)   # so that the end of the last child ends the wait
    for _ in children:
        if os.read(ready_in, 1) != b"r":
            for pid, _ in children:
                os.kill(pid, signal.SIGKILL)
            sys.exit("chain.py: a task did not start")
    start = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 200 * MS
    for _, go in children:
        os.write(go, struct.pack("q", start))
    return max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid, _ in children)


def add_chain(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    names = {name: period for name, _, period, _ in TASKS}
    out = []
    for line in lines:
        for name, period in names.items():
            if f"name: {name}," in line:
                # a recording shows periods as they came; the program knows them
                line = re.sub(r" period: [^,]*,", f" period: {period}ms, max_period: {period}ms,", line)
        out.append(line)
    out += ["chains:", "  - {name: stop, tasks: [" + ", ".join(names) + "]}"]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


def main(arguments):
    if arguments[:1] == ["--set"] and len(arguments) == 2:
        add_chain(arguments[1])
        return 0
    seconds = 20
    if arguments[:1] == ["--seconds"] and len(arguments) > 1 and arguments[1].isdigit():
        seconds = int(arguments[1])
        arguments = arguments[2:]
    if arguments not in ([], ["--sleep"]):
        print(__doc__, file=sys.stderr)
        return 2
    return run(seconds, arguments == ["--sleep"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
