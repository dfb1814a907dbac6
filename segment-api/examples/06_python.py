# SPDX-License-Identifier: Apache-2.0
"""A periodic task in Python, after `pip install .` in the top directory of the tree.

    python3 examples/06_python.py [JOBS]
"""
import sys
import time

import gpuseg

PERIOD_NS = 30_000_000

jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
with gpuseg.Client(unmanaged_ok=True) as client:
    task = gpuseg.Task(client, "segmentation", priority=30, period_ns=PERIOD_NS)
    release_ns = gpuseg.now_ns()
    for _ in range(jobs):
        time.sleep(max(0, release_ns - gpuseg.now_ns()) / 1e9)
        task.release(release_ns)
        with gpuseg.segment(task):
            time.sleep(0.002)  # launch and synchronise
        task.complete()
        release_ns += PERIOD_NS
    print(f"{jobs} jobs, {'managed' if client.managed else 'unmanaged'}")
