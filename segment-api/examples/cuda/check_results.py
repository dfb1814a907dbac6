#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does your PyTorch compute what it should where it may use only a part of the GPU's multiprocessors?

    gpuseg exec --best-effort -- python3 check_results.py       what the place of this program may use
    python3 check_results.py --limits                           every number, in an MPS server of its own

Libraries choose their kernels by the number of multiprocessors that they see, and cuBLAS 13.1 chooses some that compute
parts of a product wrong (docs/space.md). Products, convolutions and attention are compared with the same in float64, in
memory that was filled with NaN before. Needs PyTorch; --limits takes half a minute. Status 1: with what this program may
use something is wrong; --limits: with every number.
"""
import argparse
import atexit
import itertools
import json
import os
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional as F

PERCENT = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
ROWS = 512           # of a product that are compared
TOLERANCE = 0.03     # of the largest value; bfloat16 rounds to 0.004
REPEATS = 3
AT_ONCE = 6          # processes
SHAPES = ((12544, 2304, 768), (12544, 768, 2304), (12544, 768, 3072), (12544, 3072, 768), (64, 1000, 768),
          (4096, 4096, 4096))


def filled_with_nan():
    """What is allocated next was NaN."""
    torch.full((1 << 28,), float("nan"), device="cuda")


def differs(value, expected):
    """NaN differs from everything."""
    return not bool(((value.double() - expected).abs().max() <= TOLERANCE * expected.abs().max()))


def products(kind):
    for m, n, k in SHAPES:
        a, b, c = (torch.randn(*size, device="cuda").to(kind) for size in ((m, k), (k, n), (m, n)))
        for name, left, right in (("", a, b), (", gradient of input", c, b.t()), (", gradient of weights", a.t(), c)):
            expected = left[:ROWS].double() @ right.double()
            for _ in range(REPEATS):
                filled_with_nan()
                value = left @ right
                if differs(value[:ROWS], expected) or not bool(torch.isfinite(value).all()):
                    yield f"product {m} x {k} x {n}{name}"
                    break


def network(name, function, *inputs):
    """The output of a function and its gradients; it computes in the type of its inputs."""
    def results(kind):
        with_gradients = [value.detach().to(kind).requires_grad_() for value in inputs]
        output = function(*with_gradients)
        output.backward(torch.ones_like(output) / output.shape[-1])
        return [output.detach(), *(value.grad for value in with_gradients)]

    expected = results(torch.double)
    for kind in (torch.bfloat16, torch.half):
        filled_with_nan()
        for i, (value, right) in enumerate(zip(results(kind), expected)):
            if differs(value, right):
                yield f"{name}, {'gradient ' + str(i) if i else 'output'}, {str(kind)[6:]}"


def wrong():
    """What is wrong with the limit of this process."""
    torch.manual_seed(1)
    found = [f"{what}, {str(kind)[6:]}" for kind in (torch.bfloat16, torch.half) for what in products(kind)]
    image, weights = torch.randn(16, 64, 56, 56, device="cuda"), torch.randn(128, 64, 3, 3, device="cuda") / 24
    found += network("convolution", lambda x, w: F.conv2d(x, w, padding=1), image, weights)
    parts = [torch.randn(4, 12, 256, 64, device="cuda") for _ in range(3)]
    found += network("attention", F.scaled_dot_product_attention, *parts)
    return torch.cuda.get_device_properties(0).multi_processor_count, found


def verdict(found):
    """How many of each family are wrong, and one of each."""
    families = {}
    for what in found:
        families.setdefault(what.split(" ")[0].rstrip(","), []).append(what)
    return "right" if not found else "WRONG: " + "; ".join(f"{len(all_of_it)} like {all_of_it[0]}"
                                                          for all_of_it in families.values())


def with_limit(percent):
    """A process for one limit, since that holds for a process; gives the end of a pipe."""
    out, into = os.pipe()
    if os.fork() == 0:
        os.environ[PERCENT] = f"{percent:.2f}"
        try:
            answer = wrong()
        except Exception as error:   # whatever it is, it is told
            answer = ["", [f"{type(error).__name__}: {error}".splitlines()[0]]]
        os.write(into, json.dumps(answer).encode())
        os._exit(0)
    os.close(into)
    return out


def own_server():
    directory = tempfile.mkdtemp()
    os.environ.update(CUDA_MPS_PIPE_DIRECTORY=directory, CUDA_MPS_LOG_DIRECTORY=directory)
    subprocess.run(["nvidia-cuda-mps-control", "-d"], check=True)
    atexit.register(subprocess.run, ["nvidia-cuda-mps-control"], input="quit\n", text=True, check=False)


def count():
    """The multiprocessors of the GPU; asked in a process of its own, since one that has used CUDA cannot fork."""
    return int(subprocess.check_output([sys.executable, "-c", "import torch; print(torch.cuda.get_device_properties(0)"
                                        ".multi_processor_count)"], text=True))


def every_limit():
    own_server()
    whole = count()
    percents = iter([(n + 0.02) * 100 / whole for n in range(2, whole, 2)] + [100])
    running, seen = [], {}
    while True:
        started = [with_limit(percent) for percent in itertools.islice(percents, AT_ONCE - len(running))]
        running += started
        if not running:
            break
        end = running.pop(0)
        with os.fdopen(end) as file:
            answered, found = json.loads(file.read() or '["", ["ended early"]]')
        if answered not in seen:
            seen[answered] = found
            print(f"{answered or 'it did not run'}: {verdict(found)}", flush=True)
    right = sorted(n for n, found in seen.items() if n and not found)
    print(f"right with {', '.join(map(str, right))} of {whole} multiprocessors; n of them are 100 n / {whole} percent, "
          "rounded up to two decimals")
    return 0 if right else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", action="store_true", help="try every limit in an MPS server of its own")
    if parser.parse_args().limits:
        return every_limit()
    multiprocessors, found = wrong()
    print(f"{multiprocessors} multiprocessors: {verdict(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
