#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs as users write them: nothing in them knows of gpuseg, unless --marks is given.

    workload.py cnn|vit|llm [--jobs N] [--period MS] [--marks] --json FILE    inference, one result per job
    workload.py train-cnn|train-vit|train-llm --page FILE                     training without end; counts its steps

cnn: residual network of 50 layers, fp16, batch 1, in a CUDA graph. vit: transformer of 12 layers on images, fp16, eager.
llm: decoder of 12 layers that generates token by token with a cache, fp16, eager: one job is one token.
--json: response times in ns and a digest of all outputs. --marks: segments by hand, for comparison.
"""
import argparse
import contextlib
import hashlib
import json
import mmap
import os
import struct
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

REPOSITORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
WARM_UP = 20


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        outside = 4 * width
        self.path = nn.Sequential(
            nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside))
        self.skip = nn.Identity() if stride == 1 and inside == outside else nn.Sequential(
            nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        return F.relu(self.path(x) + self.skip(x))


def residual_network():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(inside, width, stride if i == 0 else 1))
            inside = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, cache=None, at=0, causal=False):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if cache is not None:
            cache[0, :, :, at:at + length] = k
            cache[1, :, :, at:at + length] = v
            k, v = cache[0, :, :, :at + length], cache[1, :, :, :at + length]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(x)


class ImageTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 768, 16, 16)
        self.positions = nn.Parameter(torch.randn(1, 196, 768) * 0.02)
        self.blocks = nn.ModuleList(Block(768, 12) for _ in range(12))
        self.head = nn.Linear(768, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class Decoder(nn.Module):
    WORDS, WIDTH, HEADS, LENGTH = 32000, 1024, 16, 1024

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.WORDS, self.WIDTH)
        self.positions = nn.Embedding(self.LENGTH, self.WIDTH)
        self.blocks = nn.ModuleList(Block(self.WIDTH, self.HEADS) for _ in range(12))
        self.head = nn.Linear(self.WIDTH, self.WORDS, bias=False)

    def forward(self, tokens, caches=None, at=0):
        length = tokens.shape[1]
        x = self.words(tokens) + self.positions(torch.arange(at, at + length, device=tokens.device))
        for i, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[i], at, causal=length > 1)
        return self.head(x)

    def caches(self, batch):
        return torch.zeros(len(self.blocks), 2, batch, self.HEADS, self.LENGTH, self.WIDTH // self.HEADS,
                           device="cuda", dtype=torch.half)


# ---- inference: a function that does one job and returns its output on the host

def cnn():
    model = residual_network().cuda().eval().half().to(memory_format=torch.channels_last)
    image = torch.randn(1, 3, 224, 224, device="cuda").half().to(memory_format=torch.channels_last)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            model(image)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = model(image)

    def job(_):
        graph.replay()
        torch.cuda.synchronize()
        return output

    return job


def vit():
    model = ImageTransformer().cuda().eval().half()
    image = torch.randn(1, 3, 224, 224, device="cuda").half()

    def job(_):
        output = model(image)
        torch.cuda.synchronize()
        return output

    return job


def llm():
    model = Decoder().cuda().eval().half()
    caches = model.caches(1)
    state = {"token": torch.tensor([[1]], device="cuda"), "at": 0}

    def job(_):
        if state["at"] == model.LENGTH:
            state["at"] = 0
        logits = model(state["token"], caches, state["at"])[:, -1]
        state["token"] = logits.argmax(-1, keepdim=True)
        state["at"] += 1
        return int(state["token"].item())   # as a server does, to send it on

    return job


def infer(arguments):
    torch.manual_seed(1)
    with torch.no_grad():
        job = {"cnn": cnn, "vit": vit, "llm": llm}[arguments.kind]()
        for n in range(WARM_UP):
            job(n)
        torch.cuda.synchronize()
        segment = contextlib.nullcontext
        if arguments.marks:
            sys.path.insert(0, os.path.join(REPOSITORY, "segment-api/python"))
            os.environ.setdefault("GPUSEG_LIBRARY", os.path.join(REPOSITORY, "segment-api/build/libgpuseg.so.0"))
            import gpuseg
            client = gpuseg.Client(arguments.kind)
            task = gpuseg.Task(client, arguments.kind, priority=80)

            def segment():
                return gpuseg.segment(task)
        digest = hashlib.sha256()
        took = []
        period = arguments.period / 1e3
        begin = time.monotonic()
        for n in range(arguments.jobs):
            if period:
                left = begin + n * period - time.monotonic()
                if left > 0:
                    time.sleep(left)
                else:
                    begin -= left   # late: the next job is a period from here
            before = time.perf_counter_ns()
            with segment():
                output = job(n)
            took.append(time.perf_counter_ns() - before)
            if isinstance(output, int):
                digest.update(struct.pack("q", output))
            elif n % 50 == 0:   # all are the same; a copy of each would be a part of the load
                digest.update(output.cpu().numpy().tobytes())
        seconds = time.monotonic() - begin
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump({"kind": arguments.kind, "took_ns": took, "digest": digest.hexdigest(), "seconds": seconds}, file)


# ---- training

def train(arguments):
    torch.manual_seed(2)
    kind = arguments.kind[len("train-"):]
    if kind == "llm":
        model = Decoder().cuda()
        data = torch.randint(0, Decoder.WORDS, (8, 257), device="cuda")
    else:
        model = (residual_network() if kind == "cnn" else ImageTransformer()).cuda()
        data = torch.randn(64, 3, 224, 224, device="cuda")
        labels = torch.randint(0, 1000, (64,), device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    page = mmap.mmap(os.open(arguments.page, os.O_RDWR | os.O_CREAT, 0o600), 4096) if os.path.getsize(
        arguments.page) >= 4096 else sys.exit(f"{arguments.page} has less than 4096 bytes")
    steps = 0
    while True:
        with torch.autocast("cuda", torch.float16):
            if kind == "llm":
                logits = model(data[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), data[:, 1:].flatten())
            else:
                loss = F.cross_entropy(model(data), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 4 == 0:
            loss.item()   # as a program does that logs its loss
        struct.pack_into("<Q", page, 0, steps)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["cnn", "vit", "llm", "train-cnn", "train-vit", "train-llm"])
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--period", type=float, default=0, help="ms; 0 = one job after the other")
    parser.add_argument("--marks", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--page")
    arguments = parser.parse_args()
    if arguments.kind.startswith("train-"):
        train(arguments)
    else:
        infer(arguments)


if __name__ == "__main__":
    main()
