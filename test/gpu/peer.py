#!/usr/bin/env python3
"""PyTorch on GPU 0, compiled with mode="max-autotune": the models of export_models.py that are named, in f32 without TF32, and the roofs of this GPU.

    peer.py [--seconds S] NAME...

A step is timed as partita-run times it, from inputs in pinned memory of the host to results there, and by the GPU's clock without these transfers.

Exit status 77, with the reason, where PyTorch or what the models need is not installed, or sees no GPU.
"""

import argparse
import statistics
import sys
import time


def median_ms(torch, step, seconds):
    """The median time of a step, by the GPU's own clock."""
    for _ in range(3):
        step()
    times, begin, end = [], torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    while len(times) < 10 or sum(times) < seconds * 1000:
        begin.record()
        step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def median_host_ms(torch, step, seconds):
    """The median time of a step, by the host's clock."""
    for _ in range(3):
        step()
    times = []
    while len(times) < 10 or sum(times) < seconds * 1000:
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    try:
        import torch

        from export_models import MODELS
    except ImportError as missing:
        print(missing)
        sys.exit(77)
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU")
        sys.exit(77)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    a = torch.empty(2**28, device="cuda")
    b = torch.empty_like(a)
    ms = median_ms(torch, lambda: b.copy_(a), options.seconds)
    print(f"ok      roof of copies: {2 * a.numel() * 4 / ms / 1e6:.0f} GB/s")
    del a, b
    for kind in (torch.float32, torch.float16):
        x, y = (torch.randn(8192, 8192, device="cuda", dtype=kind) for _ in range(2))
        ms = median_ms(torch, lambda: x @ y, options.seconds)
        print(f"ok      roof of products, {kind}: {2 * 8192**3 / ms / 1e9:.1f} TFLOP/s")
        del x, y
    for name in options.names:
        if name not in MODELS:
            print(f"not done: PyTorch {name}: export_models.py has no such model")
            continue
        try:
            torch.manual_seed(0)
            model, inputs, _ = MODELS[name]()
        except ImportError as missing:
            print(f"not done: PyTorch {name}: {missing}")
            continue
        compiled = torch.compile(model.eval().cuda(), mode="max-autotune")
        here = [x.pin_memory() for x in inputs]
        there = [x.cuda() for x in inputs]

        def step():
            return compiled(*(x.cuda(non_blocking=True) for x in here)).cpu()

        with torch.no_grad():
            alone = median_ms(torch, lambda: compiled(*there), options.seconds)
            whole = median_host_ms(torch, step, options.seconds)
        print(f"ok      PyTorch {name}: {whole:.3f} ms a step with transfers from and to the host; {alone:.3f} ms without", flush=True)


if __name__ == "__main__":
    main()
