# SPDX-License-Identifier: Apache-2.0
"""Best-effort work: ResNet-50 training on random images, without end. Knows nothing of gpuseg.

    python3 resnet_training.py READY_FILE [SECONDS]
"""
import os
import sys
import time

import torch
import torchvision

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
    step()
torch.cuda.synchronize()
with open(sys.argv[1], "w") as ready:
    ready.write(f"{os.getpid()}\n")
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
begun = time.monotonic()
steps = 0
while time.monotonic() - begun < seconds and os.path.exists(sys.argv[1]):
    loss = step()
    torch.cuda.synchronize()
    steps += 1
print(f"{steps * 128 / (time.monotonic() - begun):.1f} images/s, loss is finite: {bool(torch.isfinite(loss))}")
sys.exit(0 if torch.isfinite(loss) else 1)
