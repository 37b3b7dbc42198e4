#!/usr/bin/env python3
"""Derivatives of convolutions to images and weights: those that oneDNN computes, on processors with AVX-512 and held to AVX2, with one thread and with three
(the same bits), beside the loops of --reference; of images that windows do not cover, of channels that fill no vector, groups, depthwise windows, rows, and
several parts of a batch. What the library has no fast code for is a convolution. More of them at random: --random N."""

import pathlib
import random
import sys
import tempfile

from harness import SKIPPED, Failure, compile_model, main, run_artifact

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(SKIPPED)

CALLS, DX, NONE = ("conv_dx", "conv_dw"), ("conv_dx",), ()
# images, inputs, sizes, outputs, window, strides, low pads, high pads, groups, dilations; which are calls
CASES = [
    (2, 16, (14, 14), 32, (3, 3), (1, 1), (1, 1), (1, 1), 1, (1, 1), CALLS),
    (3, 5, (9, 11), 7, (3, 3), (1, 1), (1, 1), (1, 1), 1, (1, 1), CALLS),
    (2, 16, (15, 14), 24, (3, 3), (2, 2), (1, 1), (1, 1), 1, (1, 1), CALLS),
    (2, 16, (8, 8), 24, (3, 3), (2, 2), (0, 1), (1, 0), 1, (1, 1), CALLS),  # the last row is in no window
    (4, 32, (14, 14), 70, (1, 1), (2, 2), (0, 0), (0, 0), 1, (1, 1), CALLS),
    (2, 48, (7, 7), 300, (1, 1), (1, 1), (0, 0), (0, 0), 1, (1, 1), CALLS),
    (5, 16, (56, 56), 33, (3, 3), (1, 1), (1, 1), (1, 1), 1, (1, 1), CALLS),  # three images at a time, and two slices
    (2, 3, (20, 20), 16, (5, 5), (1, 1), (2, 2), (2, 2), 1, (1, 1), CALLS),
    (2, 3, (23, 23), 16, (7, 7), (2, 2), (3, 3), (3, 3), 1, (1, 1), ("conv_dw",)),
    (2, 32, (9, 9), 48, (3, 3), (1, 1), (1, 1), (1, 1), 4, (1, 1), NONE),  # the 12 outputs of a group fill no vector
    (2, 32, (9, 9), 64, (3, 3), (1, 1), (1, 1), (1, 1), 4, (1, 1), CALLS),
    (2, 40, (12, 12), 40, (3, 3), (1, 1), (1, 1), (1, 1), 40, (1, 1), CALLS),
    (9, 64, (30, 30), 64, (3, 3), (2, 2), (1, 1), (1, 1), 64, (1, 1), CALLS),
    (2, 20, (12, 12), 20, (5, 5), (1, 1), (2, 2), (2, 2), 20, (1, 1), DX),
    (3, 24, (13, 12), 24, (5, 3), (2, 1), (0, 2), (2, 1), 24, (1, 2), NONE),
    (2, 9, (12, 12), 9, (5, 5), (2, 2), (2, 1), (1, 2), 9, (1, 1), DX),
    (2, 8, (10, 10), 8, (3, 3), (1, 1), (2, 2), (2, 2), 1, (2, 2), NONE),
    (2, 8, (5, 5), 8, (3, 3), (3, 3), (1, 1), (1, 1), 1, (1, 1), NONE),
    (3, 12, (33,), 20, (3,), (1,), (1,), (1,), 1, (1,), CALLS),
    (3, 16, (33,), 16, (3,), (2,), (1,), (1,), 16, (1,), CALLS),
    (1, 4, (4, 5, 6), 5, (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1, (1, 1, 1), NONE),
    (1, 1, (1, 1), 1, (1, 1), (1, 1), (0, 0), (0, 0), 1, (1, 1), None),
]


def draw(rng):
    depthwise, grouped = rng.random() < 0.25, rng.random() < 0.2
    groups = rng.choice((8, 10, 16, 33, 48)) if depthwise else rng.choice((2, 4)) if grouped else 1
    inputs = groups if depthwise else groups * rng.choice((8, 16, 24)) if grouped else rng.choice((1, 3, 4, 8, 10, 16, 33, 64))
    outputs = groups if depthwise else groups * rng.choice((8, 16, 32)) if grouped else rng.choice((1, 3, 8, 10, 16, 40, 70, 130))
    rank = rng.choice((1, 2, 2, 2, 2))
    window = tuple(rng.choice((1, 1, 2, 3, 3, 3, 5, 7)) for _ in range(rank))
    strides = (rng.choice((1, 1, 1, 2, 2, 3)),) * rank
    low, high = (tuple(rng.randint(0, k // 2) for k in window) for _ in range(2))
    sizes = tuple(rng.randint(k, k + rng.choice((1, 6, 20, 40))) for k in window)
    return rng.randint(1, 9), inputs, sizes, outputs, window, strides, low, high, groups, (1,) * rank, None


def check_case(work, case, levels):
    images, inputs, sizes, outputs, window, strides, low, high, groups, dilations, calls = case
    result = [(size + p + q - (k - 1) * d - 1) // s + 1 for size, k, s, p, q, d in zip(sizes, window, strides, low, high, dilations)]
    shape = lambda *dims: f"float[{','.join(map(str, dims))}]"
    ints = lambda values: f"[{', '.join(map(str, values))}]"
    model, feed, noise = work / "conv.onnxtxt", work / "in.npz", np.random.default_rng(1)
    weights = noise.uniform(-1, 1, (outputs, inputs // groups, *window)).astype(np.float32)
    model.write_text(
        f'<ir_version: 10, opset_import: ["" : 21]>\ng ({shape(images, inputs, *sizes)} x) => ({shape(images, outputs, *result)} y)\n'
        f'<{shape(*weights.shape)} w = {{{", ".join(repr(float(v)) for v in weights.ravel())}}}> {{\n'
        f" y = Conv <kernel_shape = {ints(window)}, strides = {ints(strides)}, pads = {ints(low + high)}, dilations = {ints(dilations)}, group = {groups}> (x, w)\n}}\n")
    np.savez(feed, x=noise.uniform(-1, 1, (images, inputs, *sizes)).astype(np.float32), target=noise.uniform(-1, 1, (images, outputs, *result)).astype(np.float32))
    flags = ("--gradients", "inputs", "--loss", "mse:y,reduction=sum")
    compile_model(model, work / "usual.partita", *flags)
    compile_model(model, work / "reference.partita", *flags, "--reference")
    compile_model(model, work / "plan.mlir", *flags, "--emit", "plan")
    text = (work / "plan.mlir").read_text()
    found = tuple(kind for kind in CALLS if f"<{kind}," in text)
    if calls is not None and found != calls:
        raise Failure(f"{case}: {found} are calls")

    def run(artifact, level="ALL", threads=1):
        run_artifact(work / f"{artifact}.partita", "--input", feed, "--output", work / "out.npz", "--threads", threads, env={"ONEDNN_MAX_CPU_ISA": level})
        with np.load(work / "out.npz") as archive:
            return {name: archive[name] for name in ("x.grad", "w.grad")}

    wanted = run("reference")
    for level in levels:
        one, three = run("usual", level), run("usual", level, 3)
        for name, array in wanted.items():
            if ("conv_dx" if name == "x.grad" else "conv_dw") in found and one[name].tobytes() != three[name].tobytes():
                raise Failure(f"{case}, {level}: {name} has other bits with three threads")
            apart, length = np.linalg.norm(one[name] - array), np.linalg.norm(array)
            if not apart <= 2e-5 * length + 1e-30:
                raise Failure(f"{case}, {level}: {name} is {apart:.3g} off, of {length:.3g}")


def check(cases):
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            check_case(pathlib.Path(folder), case, ("ALL", "AVX2"))
    print(f"{len(cases)} convolutions have the derivatives of --reference, on both kinds of processors, with the same bits on three threads")


if __name__ == "__main__":
    many, rng = (int(sys.argv[2]) if sys.argv[1:2] == ["--random"] else 0), random.Random(7)
    main(lambda: check([*CASES, *(draw(rng) for _ in range(many))]), use_workers=True, optimize=8)
