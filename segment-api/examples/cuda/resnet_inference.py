# SPDX-License-Identifier: Apache-2.0
"""Real-time inference with PyTorch: ResNet-50, fp16, batch 1, in a CUDA graph; each run is a GPU segment.

    PYTHONPATH=../../python GPUSEG_LIBRARY=../../build/libgpuseg.so.0 python3 resnet_inference.py [JOBS] [--plain]

--plain leaves out the marks, for comparison. Prints response times in milliseconds and checks every result against the first.
"""
import argparse
import contextlib
import sys
import time

import torch
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("jobs", nargs="?", type=int, default=100)
parser.add_argument("--plain", action="store_true")
arguments = parser.parse_args()

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

segment = contextlib.nullcontext
if not arguments.plain:
    import gpuseg

    client = gpuseg.Client()
    task = gpuseg.Task(client, "resnet50", priority=80)

    def segment():
        return gpuseg.segment(task)


times = []
wrong = 0
for _ in range(arguments.jobs):
    time.sleep(0.033)
    begun = time.perf_counter_ns()
    with segment():
        graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter_ns() - begun) / 1e6)
    wrong += not torch.equal(output, expected)
times.sort()
print(f"{'plain' if arguments.plain else 'segment'}: {len(times)} jobs, p50 {times[len(times) // 2]:.3f} "
      f"p99 {times[len(times) * 99 // 100]:.3f} max {times[-1]:.3f} ms, wrong results {wrong}")
sys.exit(1 if wrong else 0)
