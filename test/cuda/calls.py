#!/usr/bin/env python3
"""Library calls of GPUs, compiled and run on test/gpu-emulator: each type, layout and epilogue of a product, a convolution, a pool or attention becomes the call that is
expected, or none, and gives the CPU's numbers by the library and by our own kernel. Then small models, by kernels alone, and by calls on one and two
devices.

PARTITA_GPU_EMULATOR is the folder with the emulator's libraries. Skipped where it is missing.
"""

import itertools
import math
import pathlib
import random
import re
import sys
import tempfile

from execute import EMULATOR, TARGET, in_threads, summarise, write_input

from harness import BIN, SKIPPED, Failure, compile_model, data_folder, input_names, main, run, some
from vectors import shape_text
import models as executed

B, M, N, K = 3, 5, 12, 16
# dims of lhs, batch, contracted; dims of rhs, batch, contracted; "?": what reads lhs and rhs in another order, by views or a kernel.
LAYOUTS = {
    "rows": ((M, K), [], [1], (K, N), [], [0]),
    "rows-columns": ((M, K), [], [1], (N, K), [], [1]),
    "columns-rows": ((K, M), [], [0], (K, N), [], [0]),
    "columns": ((K, M), [], [0], (N, K), [], [1]),
    "batch": ((B, M, K), [0], [2], (B, K, N), [0], [1]),
    "batch-columns": ((B, K, M), [0], [1], (B, N, K), [0], [2]),
    "heads": ((M, B, K), [1], [2], (N, B, K), [1], [2]),  # of attention: a batch inside rows
    "images": ((2, M, K), [], [2], (K, N), [], [0]),  # several dimensions are rows
    "two-sums": ((M, 4, 4), [], [1, 2], (4, 4, N), [], [0, 1]),
    "vector": ((K,), [], [0], (K, N), [], [0]),
}
# The steps of an epilogue, and the post-ops of the call. What follows a "|" is a kernel.
EPILOGUES = {
    "": "",
    "bias": "add",
    "bias relu": "add relu",
    "bias gelu": "add gelu_tanh",
    "relu": "relu",
    "gelu": "gelu_tanh",
    "addend": "add",
    "bias addend": "add add",
    "addend bias relu": "add add relu",
    "scale": "linear",
    "scale bias": "linear add",
    "scale addend gelu": "linear add gelu_tanh",
    "relu scale": "relu |",
    "relu bias": "relu |",
    "addend addend": "add |",
    "erf": "|",
    "exp": "|",
    "per-row": "|",
}
# x[N, spatial.., C], outputs, windows, strides, dilations, pads, groups; and which library computes it.
CONVOLUTIONS = {
    "3x3": ((2, 6, 5, 8), 12, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), 1, "conv"),
    "stride": ((1, 9, 9, 4), 8, (3, 3), (2, 2), (1, 1), ((1, 1), (1, 1)), 1, "conv"),
    "dilated": ((1, 9, 9, 4), 4, (3, 3), (1, 1), (2, 2), ((2, 2), (2, 2)), 1, "conv"),
    "groups": ((1, 6, 6, 8), 12, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), 4, "conv"),
    "depthwise": ((1, 6, 6, 8), 8, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), 8, "conv"),
    "pixels": ((2, 4, 4, 8), 12, (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), 1, "dot"),
    "uneven-pads": ((1, 6, 6, 4), 8, (3, 3), (1, 1), (1, 1), ((2, 1), (0, 1)), 1, None),
    "one-dimension": ((2, 11, 4), 8, (5,), (2,), (1,), ((2,), (2,)), 1, "conv"),
    "three-dimensions": ((1, 5, 4, 6, 4), 8, (3, 2, 3), (1, 1, 2), (1, 1, 1), ((1, 0, 1), (1, 0, 1)), 1, "conv"),
}
# Of convolutions by cuDNN, which adds and has ReLU only with a bias.
CONV_EPILOGUES = {"": "", "bias": "add", "bias addend relu": "add add relu", "addend bias": "add add", "relu": "|", "addend": "|",
                  "bias relu scale": "add relu |", "bias gelu": "add |"}
# x in its order, windows, strides, dilations, pads; and whether cuDNN computes it. Its images lie densely, and have no more than three dimensions with a
# channel among them where channels lie innermost.
POOLS = {
    "pool-2x2": ((2, 6, 6, 8), (1, 2, 2, 1), (1, 2, 2, 1), (1, 1, 1, 1), ((0, 0, 0, 0), (0, 0, 0, 0)), True),
    "pool-border": ((1, 7, 9, 3), (1, 3, 3, 1), (1, 2, 2, 1), (1, 1, 1, 1), ((0, 1, 1, 0), (0, 1, 1, 0)), True),
    "pool-rest": ((2, 8, 8, 4), (1, 3, 3, 1), (1, 2, 2, 1), (1, 1, 1, 1), ((0, 0, 0, 0), (0, 0, 0, 0)), True),
    "pool-channels-outside": ((2, 3, 9, 7), (1, 1, 3, 3), (1, 1, 2, 2), (1, 1, 1, 1), ((0, 0, 1, 1), (0, 0, 1, 1)), True),
    "pool-one-dimension": ((2, 11, 4), (1, 3, 1), (1, 2, 1), (1, 1, 1), ((0, 1, 0), (0, 1, 0)), True),
    "pool-three-dimensions-outside": ((1, 4, 5, 4, 6), (1, 1, 3, 2, 3), (1, 1, 1, 1, 2), (1,) * 5, ((0, 0, 1, 0, 1), (0, 0, 1, 0, 1)), True),
    "pool-three-dimensions": ((1, 5, 4, 6, 4), (1, 3, 2, 3, 1), (1, 1, 1, 2, 1), (1,) * 5, ((0, 1, 0, 1, 0), (0, 1, 0, 1, 0)), False),
    "pool-uneven-pads": ((1, 8, 8, 4), (1, 3, 3, 1), (1, 2, 2, 1), (1, 1, 1, 1), ((0, 0, 0, 0), (0, 1, 1, 0)), False),
    "pool-dilated": ((1, 9, 9, 4), (1, 3, 3, 1), (1, 1, 1, 1), (1, 2, 2, 1), ((0, 0, 0, 0), (0, 0, 0, 0)), False),
    "pool-border-alone": ((1, 6, 6, 4), (1, 2, 2, 1), (1, 1, 1, 1), (1, 1, 1, 1), ((0, 2, 2, 0), (0, 2, 2, 0)), False),
    "pool-of-channels": ((2, 5, 5, 8), (1, 3, 1, 3), (1, 1, 1, 1), (1, 1, 1, 1), ((0, 1, 0, 1), (0, 1, 0, 1)), False),
}
# What a pool combines, and the call. The library has no epilogue, and no sum. An average "inside" leaves the border out.
POOL_EPILOGUES = {"max": "pool_max", "max relu": "pool_max", "average": "pool_avg", "average bias": "pool_avg", "share": "pool_avg", "inside": "pool_avg",
                  "inside bias": "pool_avg", "sum": None}
# q[B, H, M, D], L, E, whether heads lie inside rows; and whether cuDNN computes it. Heads are multiples of 8.
ATTENTIONS = {
    "attention": ((2, 3, 5, 16), 7, 24, False, True),
    "attention-in-rows": ((2, 4, 6, 8), 6, 8, True, True),
    "attention-one-row": ((1, 2, 1, 64), 19, 64, False, True),
    "attention-one-key": ((2, 1, 4, 8), 1, 8, False, True),
    "attention-12": ((1, 2, 5, 12), 5, 12, False, False),
}
# Masks with what they stand for: q's B, H and M, or 1. A factor is no call.
MASKS = {"": None, "mask": (1, 0, 0), "whole mask": (1, 1, 1), "mask of rows": (0, 0, 1), "factor": (1, 1, 1)}
# In halves a function of several ops rounds after each of them, so the library's is another one.
NOT_OF_HALVES = ("gelu",)
TOLERANCES = {"f32": ("1e-5", "1e-5"), "f16": ("2e-3", "2e-3"), "bf16": ("2e-2", "2e-2"), "i8": ("0", "0")}
GELU = (("h", 0.5), ("c", 0.044715), ("r", 0.7978845608028654), ("o", 1.0))


def emulated(*command, seed=1, **options):
    """`seed`: which order of the streams."""
    return run(list(command), env={"LD_LIBRARY_PATH": str(EMULATOR), "CUDA_EMU_SEED": str(seed)}, **options)


class Module:
    """The text of a module; values of `kind` come from arguments of f32, or of i8."""

    def __init__(self, kind):
        self.kind, self.lines, self.arguments, self.count = kind, [], [], 0

    def emit(self, text):
        self.count += 1
        self.lines.append(f"  %{self.count} = {text}")
        return f"%{self.count}"

    def tensor(self, dims, kind=None):
        return "tensor<" + "".join(f"{size}x" for size in dims) + (kind or self.kind) + ">"

    def argument(self, dims):
        fed = "i8" if self.kind == "i8" else "f32"
        name = f"%x{len(self.arguments)}"
        self.arguments.append((name, dims, fed))
        if fed == self.kind:
            return name
        return self.emit(f"nn.cast {name} : {self.tensor(dims, fed)} -> {self.tensor(dims)}")

    def splat(self, dims, number):
        return self.emit(f"nn.constant dense<{number!r}> : {self.tensor(dims)}")

    def op(self, name, dims, *operands):
        return self.emit(f"nn.{name} {', '.join(operands)} : {self.tensor(dims)}")

    def table(self, dims, numbers):
        """A list along each of `dims`: what they make together."""
        value = ", ".join(repr(math.prod(place)) for place in itertools.product(*numbers))
        flat = self.emit(f"nn.constant dense<[{value}]> : {self.tensor((math.prod(dims),))}")
        return self.emit(f"nn.reshape {flat} : {self.tensor((math.prod(dims),))} -> {self.tensor(dims)}")

    def broadcast(self, value, size, place, dims):
        return self.emit(f"nn.broadcast {value} [{place}] : {self.tensor((size,))} -> {self.tensor(dims)}")

    def step(self, step, value, dims):
        if step == "bias":
            return self.op("add", dims, value, self.broadcast(self.argument(dims[-1:]), dims[-1], len(dims) - 1, dims))
        if step == "per-row":
            return self.op("add", dims, value, self.broadcast(self.argument(dims[:1]), dims[0], 0, dims))
        if step == "addend":
            return self.op("add", dims, value, self.argument(dims))
        if step == "scale":
            return self.op("mul", dims, value, self.splat(dims, 0.375))
        if step in ("gelu", "erf"):
            h, c, r, o = (self.splat(dims, number) for _, number in GELU)
            if step == "erf":
                inner = self.op("erf", dims, self.op("mul", dims, value, r))
            else:
                cube = self.op("mul", dims, self.op("mul", dims, value, value), value)
                inner = self.op("tanh", dims, self.op("mul", dims, self.op("add", dims, value, self.op("mul", dims, cube, c)), r))
            return self.op("mul", dims, self.op("mul", dims, value, h), self.op("add", dims, inner, o))
        return self.op(step, dims, value)

    def text(self, value, dims, kind):
        arguments = ", ".join(f"{name}: {self.tensor(shape, fed)}" for name, shape, fed in self.arguments)
        result = self.tensor(dims, "i32" if self.kind == "i8" else "f32")
        if kind != result[-4:-1]:
            value = self.emit(f"nn.cast {value} : {self.tensor(dims, kind)} -> {result}") if self.kind != "i8" else value
        body = "\n".join(self.lines)
        return f"func.func @main({arguments}) -> {result} {{\n{body}\n  return {value} : {result}\n}}\n"


def product(kind, layout, epilogue):
    """A module of a product, and the tensors that it reads."""
    left, left_batch, left_sum, right, right_batch, right_sum = LAYOUTS[layout]
    module = Module(kind)
    lhs, rhs = module.argument(left), module.argument(right)
    dims = tuple(left[d] for d in left_batch)
    dims += tuple(size for d, size in enumerate(left) if d not in left_batch + left_sum)
    dims += tuple(size for d, size in enumerate(right) if d not in right_batch + right_sum)
    result = "i32" if kind == "i8" else kind
    value = module.emit(f"nn.dot {lhs}, {rhs} batch {left_batch} x {right_batch} contract {left_sum} x {right_sum} : "
                        f"{module.tensor(left)}, {module.tensor(right)} -> {module.tensor(dims, result)}")
    for step in epilogue.split():
        value = module.step(step, value, dims)
    return module.text(value, dims, result), module.arguments


def convolution(kind, form, epilogue):
    """The same of a convolution."""
    images, outputs, window, strides, dilations, (low, high), groups, _ = CONVOLUTIONS[form]
    module = Module(kind)
    weights = (outputs, images[-1] // groups, *window)
    x, w = module.argument(images), module.argument(weights)
    spatial = tuple((size + a + b - (k - 1) * d - 1) // s + 1 for size, k, s, d, a, b in zip(images[1:-1], window, strides, dilations, low, high))
    dims = (images[0], *spatial, outputs)
    lists = [f"[{', '.join(map(str, values))}]" for values in (strides, dilations, low, high)]
    value = module.emit(f"nn.conv {x}, {w} channels_last strides {lists[0]} dilations {lists[1]} pads {lists[2]} x {lists[3]} groups {groups} : "
                        f"{module.tensor(images)}, {module.tensor(weights)} -> {module.tensor(dims)}")
    for step in epilogue.split():
        value = module.step(step, value, dims)
    return module.text(value, dims, kind), module.arguments


def pool(kind, form, epilogue):
    """The same of a pool."""
    images, window, strides, dilations, (low, high), _ = POOLS[form]
    combined, *steps = epilogue.split()
    module = Module(kind)
    x = module.argument(images)
    dims = tuple((size + a + b - (k - 1) * d - 1) // s + 1 for size, k, s, d, a, b in zip(images, window, strides, dilations, low, high))
    lists = [f"[{', '.join(map(str, values))}]" for values in (window, strides, dilations, low, high)]
    value = module.emit(f"nn.window_reduce {'max' if combined == 'max' else 'sum'} {x} window {lists[0]} strides {lists[1]} dilations {lists[2]} "
                        f"pads {lists[3]} x {lists[4]} : {module.tensor(images)} -> {module.tensor(dims)}")
    elements = math.prod(window)
    if combined == "average":
        value = module.op("div", dims, value, module.splat(dims, float(elements)))
    elif combined == "inside":
        counts = [[float(sum(0 <= i * s - a + d * j < size for j in range(k))) for i in range(places)]
                  for size, places, k, s, d, a in zip(images, dims, window, strides, dilations, low)]
        value = module.op("div", dims, value, module.table(dims, counts))
    elif combined == "share":
        value = module.op("mul", dims, value, module.splat(dims, 1 / elements))
    for step in steps:
        value = module.step(step, value, dims)
    return module.text(value, dims, kind), module.arguments


def attention(kind, form, epilogue):
    (batch, heads, rows, depth), keys, width, in_rows, _ = ATTENTIONS[form]
    module = Module(kind)

    def side(length, size):
        if not in_rows:
            return module.argument((batch, heads, length, size))
        x = module.argument((batch, length, heads, size))
        return module.emit(f"nn.transpose {x} [0, 2, 1, 3] : {module.tensor((batch, length, heads, size))} -> {module.tensor((batch, heads, length, size))}")

    q, k, v = side(rows, depth), side(keys, depth), side(keys, width)
    mask = ""
    if epilogue:
        dims = tuple(size if has else 1 for size, has in zip((batch, heads, rows), MASKS[epilogue])) + (keys,)
        mask = f"{'mask_mul' if epilogue == 'factor' else 'mask_add'} {module.argument(dims)} : {module.tensor(dims)} "
    dims = (batch, heads, rows, width)
    value = module.emit(f"nn.attention {q}, {k}, {v} {mask}scale 0.3 : {module.tensor((batch, heads, rows, depth))}, "
                        f"{module.tensor((batch, heads, keys, depth))}, {module.tensor((batch, heads, keys, width))} -> {module.tensor(dims)}")
    if in_rows:
        value = module.emit(f"nn.transpose {value} [0, 2, 1, 3] : {module.tensor(dims)} -> {module.tensor((batch, rows, heads, width))}")
        dims = (batch, rows, heads, width)
    return module.text(value, dims, kind), module.arguments


def attentions():
    """(type, form, mask, kind of call and its post-ops, or None)."""
    for kind in ("f32", "f16", "bf16"):
        for form, described in ATTENTIONS.items():
            for mask in MASKS:
                if mask == "" or form in ("attention", "attention-in-rows"):
                    yield kind, form, mask, ("attention", "") if kind != "f32" and described[-1] and mask != "factor" else None


def pools():
    """(type, form, epilogue, kind of call and its post-ops, or None)."""
    for kind in ("f32", "f16", "bf16"):
        for form, described in POOLS.items():
            for epilogue, call in (("max", "pool_max"), ("average", "pool_avg"), ("inside", "pool_avg")):
                yield kind, form, epilogue, (call, "") if described[-1] else None
        for epilogue, call in POOL_EPILOGUES.items():
            if kind == "f32" or epilogue != "share":  # which halves round
                yield kind, "pool-border", epilogue, call and (call, "")


def cases():
    """(type, layout, epilogue, kind of call and its post-ops, or None)."""
    yield from dict.fromkeys(pools())
    yield from attentions()
    for case in products():
        yield (*case[:3], None if case[3] is None else ("dot", case[3]))
    for kind in ("f32", "f16", "bf16"):
        for form, described in CONVOLUTIONS.items():
            yield kind, form, "bias relu", described[-1] and (described[-1], "add relu")
        for epilogue, steps in CONV_EPILOGUES.items():
            if kind == "f32" or not any(word in epilogue.split() for word in NOT_OF_HALVES):
                yield kind, "3x3", epilogue, ("conv", steps.partition("|")[0])


def products():
    """(type, layout, epilogue, the post-ops of the call that computes it or None)."""
    for kind in ("f32", "f16", "bf16"):
        for layout in LAYOUTS:
            yield kind, layout, "", ""
        for epilogue, steps in EPILOGUES.items():
            if epilogue and (kind == "f32" or not any(word in epilogue.split() for word in NOT_OF_HALVES)):
                yield kind, "rows", epilogue, steps.partition("|")[0]
        for layout in ("batch", "images", "columns"):
            yield kind, layout, "addend bias relu", "add add relu"
    for layout in LAYOUTS:
        # Signed integers that lie side by side along the sum, on both sides.
        yield "i8", layout, "", "" if layout in ("rows-columns", "heads") else None


def run_case(folder, case):
    kind, layout, epilogue, call = case
    name = "-".join((kind, layout, *epilogue.split()))
    make = next(make for known, make in ((LAYOUTS, product), (CONVOLUTIONS, convolution), (POOLS, pool), (ATTENTIONS, attention)) if layout in known)
    text, arguments = make(kind, layout, epilogue)
    source = folder / f"{name}.mlir"
    source.write_text(text)
    calls = re.findall(r"plan\.call <(\w+)(.*)", run([BIN / "partita-compile", source, "--emit", "plan", *TARGET]))
    expected = [] if call is None else [(call[0], call[1].split())]
    if [(library, re.findall(r"post_op<(\w+)", rest)) for library, rest in calls] != expected:
        return f"{name}: expected {f'the call {call}' if call else 'no call'}, and got {calls}"
    noise, feeds = random.Random(name), []
    for number, (port, dims, fed) in enumerate(arguments):
        path = folder / f"{name}.{number}.npy"
        write_input(path, dims, fed, noise)
        feeds += ["--input", f"{port[1:]}={path}"]
    artifact, reference = folder / f"{name}.partita", folder / f"{name}.npz"
    # GPUs round what each op gives; with halves only the plainest loops of CPUs do.
    compile_model(source, artifact, "--quiet", *(("--reference",) if kind in ("f16", "bf16") else ()))
    run([BIN / "partita-run", artifact, *feeds, "--output", reference])
    relative, absolute = TOLERANCES[kind]
    for flags in ((), ("--no-library-calls",)):
        compile_model(source, artifact, "--quiet", *TARGET, *flags)
        status, said = emulated(BIN / "partita-run", artifact, *feeds, "--compare", reference, "--rtol", relative, "--atol", absolute, expect=None)
        if status:
            return f"{name}{' by a kernel' if flags else ''}: {said.strip()}"
    return None


MODELS = ("decoder/gpt2-nopast-pt1.3", "encoder/bert-tiny-mlm-vespa", "cnn/mnist-pytorch-java")


def run_model(folder, name):
    case = data_folder() / "models" / name
    vectors = case / "refeval_data_set_0"
    names = input_names(case / "model.onnx")
    shapes = [word for k, port in enumerate(names) for word in ("--shape", f"{port}={shape_text((vectors / f'input_{k}.pb').read_bytes())}")]
    # With library calls execute.py has it on one device.
    ways = ((("--no-library-calls",), ()), ((), ()), (("--devices", "2"), ("--devices", "cuda:0*2")))
    for number, (flags, places) in enumerate(some(ways, 2)):
        artifact = folder / f"{name.replace('/', '-')}.{number}.partita"
        run([BIN / "partita-compile", case / "model.onnx", "--quiet", "-o", artifact, *TARGET, *shapes, *flags])
        for seed in (1, 2) if places else (1,):
            status, said = emulated(BIN / "partita-run", artifact, "--test-data", vectors, *places, *executed.TOLERANCES.get(name, executed.TOLERANCE),
                                    seed=seed, expect=None, timeout=900)
            if status:
                return f"{name} {' '.join(flags)}, seed {seed}: {said.strip()}"
    return None


def run_graphs(folder, name):
    """Units as graphs, piece by piece, and piece by piece because times are asked for: the same bits, by the launches that were asked for."""
    model, artifact, fed = data_folder() / "models" / name / "model.onnx", folder / "graphs.partita", folder / "graphs.npy"
    run([BIN / "partita-compile", model, "--quiet", "-o", artifact, *TARGET])
    write_input(fed, (3, 1, 28, 28), "f32", random.Random(name))
    outputs = set()
    for number, (flags, in_graphs) in enumerate((((), True), (("--no-graphs",), False), (("--profile", folder / "trace.json"), False))):
        output = folder / f"graphs.{number}.npz"
        said = run([BIN / "partita-run", artifact, "--input", fed, "--output", output, *flags],
                   env={"LD_LIBRARY_PATH": str(EMULATOR), "CUDA_EMU_SEED": "2", "CUDA_EMU_TRACE": "1"})
        outputs.add(output.read_bytes())
        calls = re.findall(r"call \d+: (\w+)", said)
        if len(outputs) > 1 or "remark" in said or ("cuGraphLaunch" in calls) != in_graphs:
            return f"{name} {' '.join(map(str, flags))}: {len(outputs)} different results, {len(calls)} calls: {sorted(set(calls))}"
    return None


def check():
    if not (EMULATOR / "libcublasLt.so.13").exists():
        print(f"skipped: no emulator at {EMULATOR} (set PARTITA_GPU_EMULATOR)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        summarise(in_threads(lambda case: run_case(folder, case), list(cases())), "products, convolutions and pools")
        summarise(in_threads(lambda name: run_model(folder, name), MODELS), "models")
        summarise([run_graphs(folder, "cnn/mnist-pytorch-java")], "model with and without graphs")


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
