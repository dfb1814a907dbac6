#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stalls all other processes again and again while a command runs.

    sudo rt-scheduler/native/tests/stall.py [--seed N] COMMAND...

It simulates the effect of a busy host on a virtual machine: every 3 to 15 s one process on each CPU is busy at SCHED_FIFO 99
for 0.1 to 0.9 s, all at the same time. A test that fails only with it mistakes delays of the machine for delays of the
product. Needs CAP_SYS_NICE. Exit status: that of the command; 2 if it cannot stall the machine.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import time

LENGTHS_S = (0.1, 0.2, 0.4, 0.9)  # below the 0.95 s of each second that the kernel leaves to real-time threads
PAUSE_S = (3, 15)


def stall(cpu, seed, start):
    """Ends with the process that started it."""
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    plan = random.Random(seed)  # the same on each CPU
    parent = os.getppid()
    at = start
    while os.getppid() == parent:
        at += plan.uniform(*PAUSE_S)
        length = plan.choice(LENGTHS_S)
        time.sleep(max(0.0, at - time.monotonic()))
        while time.monotonic() < at + length:
            pass
        at += length


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of lengths and pauses (default: 1)")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("no command")
    scheduler = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
        os.sched_setscheduler(0, *scheduler)
    except PermissionError:
        print("stall.py: SCHED_FIFO 99 is not permitted: run as root or with CAP_SYS_NICE", file=sys.stderr)
        return 2
    start = time.monotonic()
    pids = []
    for cpu in sorted(os.sched_getaffinity(0)):
        pid = os.fork()
        if pid == 0:
            stall(cpu, options.seed, start)
            os._exit(0)
        pids.append(pid)
    try:
        status = subprocess.call(options.command)
        return status if status >= 0 else 128 - status
    except OSError as e:
        print(f"stall.py: {options.command[0]}: {e.strerror}", file=sys.stderr)
        return 2
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    sys.exit(main())
