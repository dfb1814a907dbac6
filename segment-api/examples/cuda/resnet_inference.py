# SPDX-License-Identifier: Apache-2.0
"""Real-time inference with PyTorch: ResNet-50, fp16, batch 1, in a CUDA graph; each run is a GPU segment.

    PYTHONPATH=../../python GPUSEG_LIBRARY=../../build/libgpuseg.so.0 python3 resnet_inference.py [JOBS] [--plain]

--plain marks nothing: for comparison. Prints response times in milliseconds and checks every result against the first.
"""
import sys
import time

import torch
import torchvision

arguments = [a for a in sys.argv[1:] if not a.startswith("-")]
plain = "--plain" in sys.argv
jobs = int(arguments[0]) if arguments else 100

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

if plain:
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
for _ in range(jobs):
    time.sleep(0.033)
    begun = time.perf_counter()
    with segment():
        graph.replay()
        torch.cuda.synchronize()
    times.append((time.perf_counter() - begun) * 1e3)
    wrong += not torch.equal(output, expected)
times.sort()
print(
    f"{'plain' if plain else 'segment'}: {jobs} jobs, p50 {times[jobs // 2]:.3f} p99 {times[int(jobs * 0.99)]:.3f} "
    f"max {times[-1]:.3f} ms, wrong results {wrong}"
)
sys.exit(1 if wrong else 0)
