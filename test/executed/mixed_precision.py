#!/usr/bin/env python3
"""--mixed-precision bf16 on CPUs: products of bf16 in a model of f32.

    mixed_precision.py           all
    mixed_precision.py numpy     these parts

numpy      the parameters that two layers learn are those of NumPy with the same roundings, and not those without
plans      pipelines have the bits of one device; replicas and cut tensors train nearly as one device does
processes  two processes learn the bits of one
inference  a transformer and a network of dense layers give nearly what they give in f32
"""

import dataclasses
import pathlib
import sys
import tempfile

from harness import BIN, SKIPPED, Failure, compile_model, main, run

try:
    import numpy as np
    import onnx
except ImportError as error:
    print(f"skipped: no {error.name} (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

from training import case_named, parameters_of, train, write_data, write_model
from training_cases import Graph

BATCH = 16
STEPS = 6
RATE = 0.5
FLAGS = ["--mixed-precision", "bf16"]
# Whether the bits are those of one device.
PLANS = ((("--devices", 2, "--schedule", "1f1b"), True), (("--devices", 2, "--recompute", "full"), True),
         (("--data-parallel", 2, "--zero", 3), False), (("--devices", 2, "--tensor-parallel", 2), False))


def as_bf16(array):
    """Rounded to the nearest number of bf16, to the even one of two; as f64."""
    bits = np.asarray(array, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def learn_by_numpy(parameters, x, target, rounded, fused):
    """Steps of SGD of two layers and a mean squared error, of two micro-batches. `rounded`: what each product reads and gives; with `fused` it is rounded once
    a bias has been added."""
    w, b, v, c = (np.float64(parameters[name]) for name in ("w", "b", "v", "c"))

    def layer(x, w, b):
        return rounded(x @ rounded(w) + rounded(b)) if fused else rounded(x @ rounded(w)) + b

    for step in range(STEPS):
        sums = [np.zeros_like(each) for each in (w, b, v, c)]
        samples = slice(step * 2 * BATCH, (step + 1) * 2 * BATCH)
        for part, wanted in zip(np.split(x[samples], 2), np.split(target[samples], 2)):
            read = rounded(part)
            a = layer(read, w, b)
            h = rounded(np.maximum(a, 0))
            dy = (layer(h, v, c) - wanted) / wanted.size  # 2 / (2 micro-batches)
            da = rounded(rounded(dy) @ rounded(v).T) * (a > 0)
            for sum, each in zip(sums, (rounded(read.T @ rounded(da)), da.sum(0), rounded(h.T @ rounded(dy)), dy.sum(0))):
                sum += each
        w, b, v, c = (np.float64(np.float32(each - RATE * sum)) for each, sum in zip((w, b, v, c), sums))
    return {"w": w, "b": b, "v": v, "c": c}


def write_layers(work):
    """The model's path, its samples, and the flags that give them to partita-run."""
    noise, g = np.random.default_rng(9), Graph(np.float32)
    shapes = {"w": (24, 40), "b": (40,), "v": (40, 8), "c": (8,)}
    parameters = {name: 0.3 * noise.standard_normal(shape) for name, shape in shapes.items()}
    g.node("Add", g.node("MatMul", g.node("Relu", g.node("Add", g.node("MatMul", "x", "w"), "b")), "v"), "c", outputs=["y"])
    path = work / "layers.onnx"
    onnx.save(g.model(("x", g.kind, [BATCH, 24]), ("y", g.kind, [BATCH, 8]), parameters), path)
    arrays = {"x": noise.standard_normal((2 * BATCH * STEPS, 24)).astype(np.float32), "t": noise.standard_normal((2 * BATCH * STEPS, 8)).astype(np.float32)}
    for name, array in arrays.items():
        np.save(work / f"layers.{name}.npy", array)
    return path, arrays, [word for name in arrays for word in ("--data", f"{name}={work}/layers.{name}.npy")]


LAYERS_FLAGS = ["--loss", "mse:y:t", "--optimizer", f"sgd,learning_rate={RATE}", "--micro-batches", 2, *FLAGS]


def compare_with_numpy(model, arrays, exported, fused):
    """How far what was learned is from NumPy's, with the roundings, and without."""
    found, begun, off = parameters_of(exported), parameters_of(model), {}
    for name, rounded in (("bf16", as_bf16), ("f32", np.float64)):
        wanted = learn_by_numpy(begun, arrays["x"], arrays["t"], rounded, fused)
        off[name] = max(np.linalg.norm(found[each] - wanted[each]) / np.linalg.norm(wanted[each] - begun[each]) for each in wanted)
    # A sum that is added in another order is rounded to a neighbour now and then.
    if not off["bf16"] < 1e-3 < off["f32"]:
        raise Failure(f"products of bf16: of what was learned, {off['bf16']:.1e} differs from NumPy's with roundings, and {off['f32']:.1e} from that without")
    return f"NumPy's parameters, to {off['bf16']:.1e} of what was learned ({off['f32']:.1e} without roundings)"


def learn(work, model, data, name, *flags, ranks=0):
    artifact, exported = work / f"{name}.partita", work / f"{name}.trained.onnx"
    compile_model(model, artifact, *flags)
    lines = train(artifact, *data, "-t", 1, "--export", exported, folder=work / f"{name}.run", steps=STEPS, ranks=ranks)
    return lines, exported


def check_numpy(work):
    model, arrays, data = write_layers(work)
    _, exported = learn(work, model, data, "layers", *LAYERS_FLAGS)
    print(f"products of bf16: {compare_with_numpy(model, arrays, exported, fused=False)}")


def transformer(work):
    case = dataclasses.replace(case_named("transformer-adamw"))
    return write_model(work, case.model, "f32"), write_data(work, case, "f32"), case.flags()


def compare_plans(learn):
    """Compares PLANS with one device, and with f32. `learn(name, *flags)` trains, and returns the lines of the log and the trained file."""
    plain, _ = learn("plain")
    one, exported = learn("one", *FLAGS)
    alone = exported.read_bytes()
    for number, (plan, same) in enumerate(PLANS):
        lines, exported = learn(f"plan{number}", *FLAGS, *plan)
        if same and exported.read_bytes() != alone:
            raise Failure(f"products of bf16, {plan}: other bits than on one device")
        for others, what in ((one, "one device"), (plain, "f32")):
            apart = max(abs(line["loss"] - other["loss"]) / abs(line["loss"]) for line, other in zip(lines, others, strict=True))
            if not apart < 1e-2 or (others is plain and apart == 0):
                raise Failure(f"products of bf16, {plan}: losses differ from those of {what} by {apart:.1e}")


def check_plans(work):
    model, data, flags = transformer(work)
    compare_plans(lambda name, *more: learn(work, model, data, name, *flags, *more))
    print(f"products of bf16: {len(PLANS)} plans learn as one device")


def check_processes(work):
    model, data, flags = transformer(work)
    found = [learn(work, model, data, f"ranks{ranks}", *flags, *FLAGS, "--devices", 2, ranks=ranks)[1].read_bytes() for ranks in (0, 2)]
    if found[0] != found[1]:
        raise Failure("products of bf16: two processes learn other bits than one")
    print("products of bf16: two processes learn the bits of one")


def check_inference(work):
    noise = np.random.default_rng(5)
    for name in ("transformer-adamw", "mnist-momentum"):
        model = write_model(work, case_named(name).model, "f32")
        loaded = onnx.load(model)
        known = {each.name for each in loaded.graph.initializer}
        inputs = []
        for value in loaded.graph.input:
            if value.name in known:
                continue
            shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
            is_float = value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
            array = noise.standard_normal(shape).astype(np.float32) if is_float else noise.integers(0, 5, shape)
            np.save(work / f"{value.name}.npy", array)
            inputs += ["--input", f"{value.name}={work}/{value.name}.npy"]
        results = []
        for flags in ((), FLAGS):
            compile_model(model, work / "infer.partita", *flags)
            run([BIN / "partita-run", work / "infer.partita", *inputs, "--output", work / "out"])
            results.append(np.load(next((work / "out").glob("*.npy"))))
        apart = np.abs(results[1] - results[0]).max() / np.abs(results[0]).max()
        if not 0 < apart < 0.03:
            raise Failure(f"{name}: with products of bf16, results differ by {apart:.1e} of the largest")
    print("products of bf16: two models infer")


def check():
    parts = {"numpy": check_numpy, "plans": check_plans, "processes": check_processes, "inference": check_inference}
    for name in sys.argv[1:] or parts:
        with tempfile.TemporaryDirectory() as work:
            parts[name](pathlib.Path(work))


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
