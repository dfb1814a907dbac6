# SPDX-License-Identifier: Apache-2.0
"""Real-time inference with PyTorch: ResNet-50, fp16, batch 1, in a CUDA graph; each run is a GPU segment.

    PYTHONPATH=../../python GPUSEG_LIBRARY=../../build/libgpuseg.so.0 python3 resnet_inference.py [JOBS] [--plain]
        [--json] [--samples FILE] [--pages FILE,FILE,...]

--plain leaves out the marks, for comparison. Prints response times in milliseconds and checks every result against the first.
--json prints one JSON object instead, times in nanoseconds; --samples writes every response time to a CSV file; --pages
counts the steps of trainings (resnet_training.py --page) during the run.
"""
import argparse
import json
import mmap
import struct
import sys
import time

import torch
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("jobs", nargs="?", type=int, default=100)
parser.add_argument("--plain", action="store_true")
parser.add_argument("--json", action="store_true")
parser.add_argument("--samples")
parser.add_argument("--pages", default="")
arguments = parser.parse_args()
jobs = arguments.jobs

STEPS_AT = 16
pages = []
for path in filter(None, arguments.pages.split(",")):
    with open(path, "rb") as f:
        pages.append(mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ))


def steps():
    return sum(struct.unpack_from("<Q", page, STEPS_AT)[0] for page in pages)


torch.manual_seed(1)
torch.backends.cudnn.benchmark = True
model = torchvision.models.resnet50().cuda().eval().half().to(memory_format=torch.channels_last)
image = torch.randn(1, 3, 224, 224, device="cuda").half().to(memory_format=torch.channels_last)
with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            model(image)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = model(image)
graph.replay()
torch.cuda.synchronize()
expected = output.clone()

if arguments.plain:
    from contextlib import nullcontext

    def segment():
        return nullcontext()
else:
    import gpuseg

    client = gpuseg.Client()
    task = gpuseg.Task(client, "resnet50", priority=80)

    def segment():
        return gpuseg.segment(task)


times = []
wrong = 0
windows = 0
loop_from = time.perf_counter_ns()
steps_from = steps()
for _ in range(jobs):
    time.sleep(0.033)
    begun = time.perf_counter_ns()
    with segment():
        graph.replay()
        torch.cuda.synchronize()
        done = time.perf_counter_ns()
    times.append(done - begun)
    windows += time.perf_counter_ns() - begun
    wrong += not torch.equal(output, expected)
loop_ns = time.perf_counter_ns() - loop_from
steps_meanwhile = steps() - steps_from
if arguments.samples:
    with open(arguments.samples, "w") as f:
        f.write("response_ns\n" + "".join(f"{t}\n" for t in times))
times.sort()
figures = {
    "min": times[0],
    "p50": times[jobs // 2],
    "p95": times[int(jobs * 0.95)],
    "p99": times[int(jobs * 0.99)],
    "max": times[-1],
}
mode = "plain" if arguments.plain else "segment"
if arguments.json:
    print(
        json.dumps(
            {
                "mode": mode,
                "jobs": jobs,
                "wrong": wrong,
                "loop_ns": loop_ns,
                "windows_ns": windows,
                "other_kernels": steps_meanwhile,
                "response_ns": figures,
                "torch": torch.__version__,
            }
        )
    )
else:
    print(
        f"{mode}: {jobs} jobs, p50 {figures['p50'] / 1e6:.3f} p99 {figures['p99'] / 1e6:.3f} "
        f"max {figures['max'] / 1e6:.3f} ms, wrong results {wrong}"
    )
sys.exit(1 if wrong else 0)
