#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two streams of one process with tasks of their own: a controller goes before the mapping that runs beside it.

    gpuseg exec -- python3 two_streams.py [--seconds N]

The streams share a GPU context, so the driver cannot preempt one for the other; `gpuseg exec` orders their launches.
Prints the response times of the controller. Without `gpuseg exec` it says so and leaves the order to CUDA.
"""
import argparse
import threading
import time

import gpuseg
import torch


def mapping(task, stop):
    """Many long kernels; nobody waits for them."""
    stream = torch.cuda.Stream()
    task.stream(stream)
    with torch.cuda.stream(stream):
        a = torch.randn(4096, 4096, device="cuda", dtype=torch.half)
        while not stop.is_set():
            for _ in range(50):
                a = (a @ a).clamp_(-1, 1)
            stream.synchronize()


def control(task, seconds):
    """A short job every 20 ms."""
    stream = torch.cuda.Stream()
    if not task.stream(stream):
        print("not under `gpuseg exec`: CUDA alone orders the streams")
    took = []
    with torch.cuda.stream(stream):
        state, gain = torch.zeros(256, device="cuda"), torch.randn(256, 256, device="cuda") / 16
        for _ in range(int(seconds / 0.02)):
            time.sleep(0.02)
            begin = time.perf_counter()
            for _ in range(10):
                state = torch.tanh(gain @ state + 1)
            stream.synchronize()
            took.append(time.perf_counter() - begin)
    return sorted(took)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    torch.cuda.init()
    with gpuseg.Client("two_streams", unmanaged_ok=True) as client, \
            gpuseg.Task(client, "control", priority=60) as high, gpuseg.Task(client, "mapping", priority=10) as low:
        stop = threading.Event()
        thread = threading.Thread(target=mapping, args=(low, stop))
        thread.start()
        try:
            took = control(high, arguments.seconds)
        finally:
            stop.set()
            thread.join()
    print(f"control: p50 {took[len(took) // 2] * 1e3:.2f} ms, p99 {took[len(took) * 99 // 100] * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
