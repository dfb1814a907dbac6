#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs as users write them: nothing in them knows of gpuseg, unless --marks is given.

    workload.py cnn|vit|llm|decode|transformers|jax [--jobs N] [--period MS] [--marks] --json FILE
                                                            inference, one result per job
    workload.py train-cnn|train-vit|train-llm --page FILE   training without end; counts its steps
    workload.py serve-decode --page FILE                    inference without end; counts its steps

cnn: residual network of 50 layers, fp16, batch 1, in a CUDA graph. vit: transformer of 12 layers on images, fp16, eager.
llm: decoder of 12 layers that generates token by token with a cache, fp16, eager: one job is one token.
decode: the decoding step of a server for language models, as vLLM does it without graphs: many tiny kernels on the default
stream for a batch of sequences, whose tokens go to the host after each step. transformers: a model of that package with
random weights; jax: layers of a network under jax.jit. Both end with status 77 if the package is missing.
--json: response times in ns and a digest of all outputs. --marks: segments by hand, for comparison.
"""
import argparse
import contextlib
import hashlib
import itertools
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


class Served(nn.Module):
    """As servers run it eagerly: norms and rotations of elementary operations, a cache of fixed size."""
    WORDS, WIDTH, HEADS, LENGTH, LAYERS = 32000, 1024, 16, 512, 16

    def __init__(self):
        super().__init__()
        width, part = self.WIDTH, self.WIDTH // self.HEADS

        def matrix(*shape):
            return nn.Parameter(torch.randn(*shape) * shape[-1] ** -0.5)

        self.words = nn.Parameter(torch.randn(self.WORDS, width) * 0.5)
        self.layers = nn.ModuleList(nn.ParameterDict({
            "norm": nn.Parameter(torch.ones(width)), "norm2": nn.Parameter(torch.ones(width)), "qkv": matrix(3 * width, width),
            "out": matrix(width, width), "gate": matrix(2 * width, width), "up": matrix(2 * width, width),
            "down": matrix(width, 2 * width)}) for _ in range(self.LAYERS))
        angles = torch.outer(torch.arange(self.LENGTH), 1e4 ** (-torch.arange(0, part, 2) / part))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    @staticmethod
    def norm(x, weight):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight

    @staticmethod
    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, tokens, caches, at, seen):
        batch, part = tokens.shape[0], self.WIDTH // self.HEADS
        x = self.words[tokens]
        cos, sin = self.cos[at], self.sin[at]
        hidden = seen > at
        for layer, cache in zip(self.layers, caches):
            q, k, v = F.linear(self.norm(x, layer["norm"]), layer["qkv"]).view(batch, 3, self.HEADS, part).unbind(1)
            q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
            cache[0, :, :, at] = k
            cache[1, :, :, at] = v
            scores = (cache[0] @ q.unsqueeze(-1)).squeeze(-1) * part ** -0.5
            weights = scores.masked_fill(hidden, float("-inf")).float().softmax(-1).to(x.dtype)
            y = (weights.unsqueeze(-2) @ cache[1]).reshape(batch, self.WIDTH)
            x = x + F.linear(y, layer["out"])
            y = self.norm(x, layer["norm2"])
            x = x + F.linear(F.silu(F.linear(y, layer["gate"])) * F.linear(y, layer["up"]), layer["down"])
        return F.linear(x, self.words)


def decode(batch=8):
    model = Served().cuda().half()
    device = model.words.device
    caches = torch.zeros(model.LAYERS, 2, batch, model.HEADS, model.LENGTH, model.WIDTH // model.HEADS, device=device,
                         dtype=torch.half)
    seen = torch.arange(model.LENGTH, device=device)
    state = {"tokens": torch.arange(1, batch + 1, device=device), "at": 0}

    def job(_):
        at = state["at"]
        state["tokens"] = model(state["tokens"], caches, at, seen).float().argmax(-1)
        state["at"] = (at + 1) % model.LENGTH
        return hash_of(state["tokens"].tolist())   # as a server does, to send them on

    return job


def hash_of(tokens):
    value = 0
    for token in tokens:
        value = (value * 1000003 + token) % (1 << 61)
    return value


def transformers_decode():
    """Greedy decoding with a model of the package `transformers`; one job is a token."""
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError as missing:
        skip(missing)
    config = LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=16,
                         num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=2048)
    model = LlamaForCausalLM(config).cuda().eval().half()
    state = {"tokens": torch.tensor([[1, 2, 3, 4]], device=model.device), "cache": None, "length": 4}

    def job(_):
        if state["length"] > 1000:
            state.update(tokens=torch.tensor([[1, 2, 3, 4]], device=model.device), cache=None, length=4)
        output = model(input_ids=state["tokens"], past_key_values=state["cache"], use_cache=True)
        state["cache"] = output.past_key_values
        state["tokens"] = output.logits[:, -1:].argmax(-1)
        state["length"] += 1
        return int(state["tokens"].item())

    return job


def jax_layers():
    try:
        import jax
        import jax.numpy as jnp
    except ImportError as missing:
        skip(missing)
    if jax.default_backend() != "gpu":
        skip(f"jax has the backend {jax.default_backend()}, no GPU")
    keys = jax.random.split(jax.random.PRNGKey(1), 9)
    weights = [jax.random.normal(k, (2048, 2048), jnp.float16) * 0.02 for k in keys[:8]]
    state = {"x": jax.random.normal(keys[8], (16, 2048), jnp.float16)}

    @jax.jit
    def layers(x):
        for w in weights:
            x = x + jax.nn.gelu(x @ w)
        return x / (1e-3 + jnp.abs(x).max())

    def job(_):
        state["x"] = layers(state["x"])
        return hash_of(jax.device_get(state["x"]).view("uint16").ravel()[:64].tolist())

    return job


def skip(why):
    print(f"workload.py: {why}", file=sys.stderr)
    sys.exit(77)


INFERENCES = {"cnn": cnn, "vit": vit, "llm": llm, "decode": decode, "transformers": transformers_decode, "jax": jax_layers}


def infer(arguments):
    torch.manual_seed(1)
    with torch.no_grad():
        job = INFERENCES[arguments.kind]()
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


# ---- without end

def page_of(arguments):
    if os.path.getsize(arguments.page) < 4096:
        sys.exit(f"{arguments.page} has less than 4096 bytes")
    return mmap.mmap(os.open(arguments.page, os.O_RDWR), 4096)


def serve(arguments):
    torch.manual_seed(3)
    page = page_of(arguments)
    with torch.no_grad():
        job = INFERENCES[arguments.kind[len("serve-"):]]()
        for steps in itertools.count(1):
            job(steps)
            struct.pack_into("<Q", page, 0, steps)


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
    page = page_of(arguments)
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
    parser.add_argument("kind", choices=[*INFERENCES, "train-cnn", "train-vit", "train-llm", "serve-decode"])
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--period", type=float, default=0, help="ms; 0 = one job after the other")
    parser.add_argument("--marks", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--page")
    arguments = parser.parse_args()
    if arguments.kind.startswith("train-"):
        train(arguments)
    elif arguments.kind.startswith("serve-"):
        serve(arguments)
    else:
        infer(arguments)


if __name__ == "__main__":
    main()
