# SPDX-License-Identifier: Apache-2.0
"""Best-effort work: ResNet-50 training on random images. It does not use gpuseg.

    python3 resnet_training.py READY_FILE [SECONDS]     until the file is removed
"""
import os
import sys
import time

import torch
import torchvision

ready = sys.argv[1]
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
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


for _ in range(5):
    loss = step()
torch.cuda.synchronize()
with open(ready, "w") as file:
    file.write(f"{os.getpid()}\n")
begun = time.monotonic()
steps = 0
while time.monotonic() - begun < seconds and os.path.exists(ready):
    loss = step()
    torch.cuda.synchronize()
    steps += 1
finite = bool(torch.isfinite(loss))
print(f"{steps * 128 / (time.monotonic() - begun):.1f} images/s, loss is finite: {finite}")
sys.exit(0 if finite else 1)
