#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs as users write them, for `gpuseg bench gpu`. They know nothing of gpuseg, except with --marks.

    workload.py PROGRAM --jobs N [--period MS] [--marks] [--samples FILE] [--pages FILE,...]
        N jobs, measured. The last line is JSON: response times in ns, a digest of what was computed, and what the
        programs without end have done meanwhile (--pages). Status 1: a result was wrong.
    workload.py PROGRAM --page FILE
        without end; counts its jobs in FILE (struct be_page of gpu_work.cuh), and stops when that says so

cnn        inference: residual network of 50 layers, fp16, batch 1, in a CUDA graph
vit        inference: transformer of 12 layers on images, fp16, eager
llm        decoder of 12 layers with a cache, fp16, eager; one job is one token, which goes to the host
train-cnn, train-vit, train-llm
           one step of training such a network; only without end
products   a product of matrices of 8192 x 8192, fp16, on one of four streams; only without end
"""
import argparse
import contextlib
import hashlib
import json
import math
import mmap
import os
import struct
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

SEGMENT_API = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../segment-api")
PAGE_BYTES, PID_AT, READY_AT, STOP_AT, JOBS_AT, WRONG_AT = 4096, 0, 4, 8, 16, 24   # of struct be_page
WARM_UP = 20
CHECK_EVERY = 16   # a copy of each output would be a part of the load
LOSS_EVERY = 4     # steps of a training
QUEUED = 16        # products on each stream


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


# ---- each gives a function that does one job: an inference gives its output, a training its loss now and then

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

    def job():
        graph.replay()
        torch.cuda.synchronize()
        return output

    return job


def vit():
    model = ImageTransformer().cuda().eval().half()
    image = torch.randn(1, 3, 224, 224, device="cuda").half()

    def job():
        output = model(image)
        torch.cuda.synchronize()
        return output

    return job


def llm():
    model = Decoder().cuda().eval().half()
    caches = torch.zeros(len(model.blocks), 2, 1, model.HEADS, model.LENGTH, model.WIDTH // model.HEADS, device="cuda",
                         dtype=torch.half)
    token, at = torch.tensor([[1]], device="cuda"), 0

    def job():
        nonlocal token, at
        token = model(token, caches, at)[:, -1].argmax(-1, keepdim=True)
        at = (at + 1) % model.LENGTH
        return int(token.item())   # as a server does, to send it on

    return job


def training(model, loss_of):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    steps = 0

    def job():
        nonlocal steps
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(model)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        steps += 1
        return loss.item() if steps % LOSS_EVERY == 0 else None   # as a program does that logs it

    return job


def on_images(network):
    images = torch.randn(64, 3, 224, 224, device="cuda")
    labels = torch.randint(0, 1000, (64,), device="cuda")
    return training(network.cuda(), lambda model: F.cross_entropy(model(images), labels))


def on_text():
    text = torch.randint(0, Decoder.WORDS, (8, 257), device="cuda")
    return training(Decoder().cuda(),
                    lambda model: F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()))


def products():
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    outputs = [torch.empty_like(a) for _ in range(4)]
    streams = [torch.cuda.Stream() for _ in outputs]
    queued = [[] for _ in outputs]
    torch.cuda.synchronize()
    n = 0

    def job():
        nonlocal n
        n = (n + 1) % len(streams)
        if len(queued[n]) == QUEUED:
            queued[n].pop(0).synchronize()
        with torch.cuda.stream(streams[n]):
            torch.mm(a, a, out=outputs[n])
            event = torch.cuda.Event()
            event.record()
        queued[n].append(event)

    return job


INFERENCES = {"cnn": cnn, "vit": vit, "llm": llm}
PROGRAMS = {**INFERENCES, "train-cnn": lambda: on_images(residual_network()),
            "train-vit": lambda: on_images(ImageTransformer()), "train-llm": on_text, "products": products}


# ---- what `gpuseg bench gpu` expects of a program

def page_of(path):
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), PAGE_BYTES)


def jobs_in(pages):
    return sum(struct.unpack_from("<Q", page, JOBS_AT)[0] for page in pages)


def marks(name):
    sys.path.insert(0, os.path.join(SEGMENT_API, "python"))
    os.environ.setdefault("GPUSEG_LIBRARY", os.path.join(SEGMENT_API, "build/libgpuseg.so.0"))
    import gpuseg
    client = gpuseg.Client(name)
    task = gpuseg.Task(client, name, priority=80)
    return lambda: gpuseg.segment(task)


def measure(job, arguments):
    """Jobs at their period; one that is late moves those after it. True: every result was right."""
    for _ in range(WARM_UP):
        job()
    torch.cuda.synchronize()
    segment = marks(arguments.program) if arguments.marks else contextlib.nullcontext
    pages = [page_of(path) for path in arguments.pages.split(",") if path]
    digest, first, wrong, took, windows_ns = hashlib.sha256(), None, 0, [], 0
    before, begun_ns = jobs_in(pages), time.perf_counter_ns()
    due_ns = begun_ns
    for n in range(arguments.jobs):
        now_ns = time.perf_counter_ns()
        if now_ns < due_ns:
            time.sleep((due_ns - now_ns) / 1e9)
        due_ns = max(due_ns, now_ns) + int(arguments.period * 1e6)
        begin_ns = time.perf_counter_ns()
        with segment():
            output = job()
            took.append(time.perf_counter_ns() - begin_ns)
        windows_ns += time.perf_counter_ns() - begin_ns
        if isinstance(output, int):
            digest.update(struct.pack("<q", output))
        elif n % CHECK_EVERY == 0:
            computed = output.cpu().numpy().tobytes()
            first = first or computed
            wrong += computed != first
            digest.update(computed)
    loop_ns, meanwhile = time.perf_counter_ns() - begun_ns, jobs_in(pages) - before
    if arguments.samples:
        with open(arguments.samples, "w", encoding="utf-8") as file:
            file.write("response_ns\n" + "".join(f"{ns}\n" for ns in took))
    took.sort()
    response = {f"p{p}": took[len(took) * p // 100] for p in (50, 95, 99)}
    print(json.dumps({"mode": "marks" if arguments.marks else "none", "jobs": len(took), "wrong": wrong, "loop_ns": loop_ns,
                      "windows_ns": windows_ns, "other_kernels": meanwhile, "digest": digest.hexdigest(),
                      "torch": torch.__version__, "response_ns": {"min": took[0], **response, "max": took[-1]}}))
    return wrong == 0


def without_end(job, page):
    """True: no loss was infinite."""
    for _ in range(LOSS_EVERY):
        job()
    torch.cuda.synchronize()
    wrong = done = 0
    struct.pack_into("<i", page, PID_AT, os.getpid())
    struct.pack_into("<I", page, READY_AT, 1)
    while struct.unpack_from("<I", page, STOP_AT)[0] == 0:
        output = job()
        done += 1
        wrong += isinstance(output, float) and not math.isfinite(output)
        struct.pack_into("<QQ", page, JOBS_AT, done, wrong)
    torch.cuda.synchronize()
    return wrong == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--period", type=float, default=0, help="ms; 0: one job after the other")
    parser.add_argument("--marks", action="store_true", help="segments marked by hand, for comparison")
    parser.add_argument("--samples")
    parser.add_argument("--pages", default="")
    parser.add_argument("--page")
    arguments = parser.parse_args()
    if (arguments.jobs is None) == (arguments.page is None):
        parser.error("give either --jobs or --page")
    if arguments.jobs is not None and (arguments.program not in INFERENCES or arguments.jobs < 1):
        parser.error(f"--jobs is for {', '.join(INFERENCES)}, at least 1; {arguments.program} runs without end: --page FILE")
    torch.manual_seed(1)
    with torch.set_grad_enabled(arguments.program.startswith("train-")):
        job = PROGRAMS[arguments.program]()
        good = measure(job, arguments) if arguments.page is None else without_end(job, page_of(arguments.page))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
