# SPDX-License-Identifier: Apache-2.0
"""Best-effort work: ResNet-50 training on random images, without end. It does not use gpuseg.

    python3 resnet_training.py READY_FILE [SECONDS]     until the file is removed
    python3 resnet_training.py --page FILE [SECONDS]    counts its steps in a page of `gpuseg bench gpu`, until that stops it
"""
import mmap
import os
import struct
import sys
import time

import torch
import torchvision

PAGE_BYTES = 4096
READY_AT, STOP_AT, STEPS_AT, WRONG_AT = 4, 8, 16, 24  # struct be_page of rt-scheduler/native/gpu-bench

arguments = sys.argv[1:]
page = None
if arguments and arguments[0] == "--page":
    del arguments[0]
    with open(arguments[0], "r+b") as f:
        page = mmap.mmap(f.fileno(), PAGE_BYTES)

model = torchvision.models.resnet50().cuda().train().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
images = torch.randn(128, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
labels = torch.randint(0, 1000, (128,), device="cuda")


def step():
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def wanted():
    if page is None:
        return os.path.exists(arguments[0])
    return struct.unpack_from("<I", page, STOP_AT)[0] == 0


for _ in range(5):
    step()
torch.cuda.synchronize()
if page is None:
    with open(arguments[0], "w") as ready:
        ready.write(f"{os.getpid()}\n")
else:
    struct.pack_into("<i", page, 0, os.getpid())
    struct.pack_into("<I", page, READY_AT, 1)
seconds = float(arguments[1]) if len(arguments) > 1 else 60.0
begun = time.monotonic()
steps = 0
loss = None
while time.monotonic() - begun < seconds and wanted():
    loss = step()
    torch.cuda.synchronize()
    steps += 1
    if page is not None:
        struct.pack_into("<Q", page, STEPS_AT, steps)
finite = loss is None or bool(torch.isfinite(loss))
if page is not None and not finite:
    struct.pack_into("<Q", page, WRONG_AT, 1)
print(f"{steps * 128 / (time.monotonic() - begun):.1f} images/s, loss is finite: {finite}")
sys.exit(0 if finite else 1)
