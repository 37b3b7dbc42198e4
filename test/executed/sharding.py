#!/usr/bin/env python3
"""Tensors that are cut over devices: every case, with weights and inputs cut along each of their dimensions, over 2, 3 and 4 devices, gives the numbers
of one device; so do replicas and stages together with them, by threads and by processes, with a last step that is not full. Which collectives a cut
needs, and how many bytes they move, is counted. Wrong shardings are errors."""

import itertools
import json
import pathlib
import random
import tempfile

from harness import Failure, compile_model, main, run_artifact, write_npy

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
SAMPLES = 7  # with two samples a micro-batch, the last one is not full


def weight(name, seed, *shape):
    """An initializer of the text form; its values are sixteenths, so that sums of few products are exact."""
    noise = random.Random(seed)
    count = 1
    for size in shape:
        count *= size
    values = ", ".join(str(noise.randrange(-8, 9) / 16) for _ in range(count))
    return f"float[{','.join(map(str, shape))}] {name} = {{{values}}}"


def graph(inputs, outputs, weights, nodes, constants=()):
    port = lambda name, shape: f"{shape} {name}"
    tensors = [weight(name, seed, *shape) for seed, (name, shape) in enumerate(weights.items())] + list(constants)
    text = f"{HEADER}g ({', '.join(port(*p) for p in inputs.items())}) => ({', '.join(port(*p) for p in outputs.items())})\n"
    return text + "<" + ",\n ".join(tensors) + ">\n{\n" + "".join(f"  {node}\n" for node in nodes) + "}\n"


# name: (inputs, outputs, weights, nodes, constants, [shardings that are tried besides one dimension of one tensor at a time])
CASES = {
    "two layers": (
        {"x": "float[n,12]"}, {"y": "float[n,12]"},
        {"w1": (12, 24), "b1": (24,), "w2": (24, 12), "b2": (12,)},
        ["[a] a = MatMul(x, w1)", "[b] b = Add(a, b1)", "[c] c = Relu(b)", "[d] d = MatMul(c, w2)", "[e] e = Add(d, b2)", "[f] y = Add(e, x)"],
        (), ["{w1: [null, tensor], w2: [null, tensor]}", "{w1: [null, tensor], w2: [tensor, null]}"]),
    "attention over heads, of a weight of three parts": (
        {"x": "float[n,4,24]"}, {"y": "float[n,4,24]"},
        {"qkv": (24, 72), "out": (24, 24)},
        ["[p] p = MatMul(x, qkv)", "[s] q, k, v = Split<axis = 2, num_outputs = 3>(p)",
         "[q1] q1 = Reshape(q, heads)", "[q2] q2 = Transpose<perm = [0, 2, 1, 3]>(q1)",
         "[k1] k1 = Reshape(k, heads)", "[k2] k2 = Transpose<perm = [0, 2, 3, 1]>(k1)",
         "[v1] v1 = Reshape(v, heads)", "[v2] v2 = Transpose<perm = [0, 2, 1, 3]>(v1)",
         "[m] m = MatMul(q2, k2)", "[r] r = Softmax<axis = -1>(m)", "[o] o = MatMul(r, v2)",
         "[o1] o1 = Transpose<perm = [0, 2, 1, 3]>(o)", "[o2] o2 = Reshape(o1, rows)", "[y] y = MatMul(o2, out)"],
        ["int64[4] heads = {0, 4, 12, 2}", "int64[3] rows = {0, 4, 24}"],
        ["{qkv: [null, {tensor: 3}]}", "{qkv: [null, {tensor: 3}], out: [tensor, null]}"]),
    "sizes that do not divide": (
        {"x": "float[n,7]"}, {"y": "float[n,5]", "z": "float[n,11]"},
        {"w1": (7, 11), "b1": (11,), "w2": (11, 5)},
        ["[a] a = MatMul(x, w1)", "[b] z = Add(a, b1)", "[c] c = Sigmoid(z)", "[d] d = MatMul(c, w2)", "[e] e = Exp(d)", "[s] y = Softmax<axis = 1>(e)"],
        (), []),
    "images": (
        {"x": "float[n,4,6,6]"}, {"y": "float[n,12,3,3]"},
        {"w1": (12, 4, 3, 3), "b1": (12,), "w2": (12, 12, 3, 3)},
        ["[a] a = Conv<pads = [1, 1, 1, 1]>(x, w1, b1)", "[b] b = Relu(a)", "[c] c = Conv<pads = [1, 1, 1, 1]>(b, w2)",
         "[d] d = Add(c, a)", "[e] y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(d)"],
        (), ["{w1: [tensor, null, null, null], w2: [null, tensor, null, null]}"]),
    "a convolution in groups": (
        {"x": "float[n,12,5,5]"}, {"y": "float[n,24,5,5]"},
        {"w": (24, 1, 3, 3), "s": (24, 1, 1)},
        ["[a] a = Conv<group = 12, pads = [1, 1, 1, 1]>(x, w)", "[c] y = Mul(a, s)"],
        (), []),
    "an embedding, a norm, a head": (
        {"ids": "int64[n,5]"}, {"y": "float[n,5,12]"},
        {"table": (7, 12), "scale": (12,), "bias": (12,), "head": (12, 12)},
        ["[a] a = Gather(table, ids)", "[b] b = LayerNormalization(a, scale, bias)", "[c] c = MatMul(b, head)", "[d] y = Softmax<axis = 2>(c)"],
        (), []),
    "reductions": (
        {"x": "float[n,12]"}, {"s": "float[n,1]", "m": "float[n,1]", "a": "float[n,1]", "t": "int64[n,1]"},
        {"w": (12, 24)},
        ["[p] p = MatMul(x, w)", "[s] s = ReduceSum(p, one)", "[m] m = ReduceMax(p, one)", "[a] a = ReduceMean(p, one)", "[t] t = ArgMax<axis = 1>(p)"],
        ["int64[1] one = {1}"], []),
    "moved elements": (
        {"x": "float[n,12]"}, {"y": "float[n,6,8]", "z": "float[n,48]", "c": "float[n,24]"},
        {"w": (12, 24), "v": (12, 24)},
        ["[p] p = MatMul(x, w)", "[q] q = MatMul(x, v)", "[c] z = Concat<axis = 1>(p, q)", "[r] r = Reshape(z, shape)",
         "[t] t = Transpose<perm = [0, 2, 1]>(r)", "[s] y = Slice(t, from, to, axes)", "[u] c = CumSum(p, one)"],
        ["int64[3] shape = {-1, 8, 6}", "int64[1] from = {0}", "int64[1] to = {6}", "int64[1] axes = {1}", "int64 one = {1}"],
        ["{w: [null, tensor], v: [null, tensor]}", "{w: [tensor, null], v: [null, tensor]}"]),
    "a tensor that is needed cut in another dimension": (
        {"x": "float[n,6,24]"}, {"y": "float[n,6,4]"},
        {"w": (24, 4)},
        ["[r] r = Relu(x)", "[s] s = Softmax<axis = 1>(r)", "[p] y = MatMul(s, w)"],
        (), ["{x: [null, tensor, null], w: [tensor, null]}", "{x: [null, tensor, null], w: [{tensor: 2}, null]}"]),
    "a recurrent layer": (
        {"x": "float[n,3,12]"}, {"y": "float[n,1,3,4]"},
        {"w": (1, 16, 12), "r": (1, 16, 4)},
        ["[a] y = LSTM<hidden_size = 4>(x, w, r)"], (), []),
    "a weight that is computed at load": (
        {"x": "float[n,12]"}, {"y": "float[n,24]"},
        {"w": (24, 12), "s": (24,)},
        ["[t] t = Transpose<perm = [1, 0]>(w)", "[e] e = Exp(t)", "[u] u = Mul(e, s)", "[p] y = MatMul(x, u)"], (), []),
}


def shardings(weights, more):
    """One dimension of one weight at a time, and those of the case."""
    for name, shape in weights.items():
        for dim in range(len(shape)):
            entry = ["null"] * len(shape)
            entry[dim] = "tensor"
            yield f"{{{name}: [{', '.join(entry)}]}}", shape[dim]
    for text in more:
        yield text, 12


def write_inputs(work, inputs):
    flags = []
    for seed, (name, type_) in enumerate(inputs.items()):
        kind, dims = type_[:-1].split("[")
        shape = [SAMPLES if size == "n" else int(size) for size in dims.split(",")]
        write_npy(work / f"{name}.npy", shape, "f4" if kind == "float" else "i8", seed=seed, high=7 if kind == "int64" else None)
        flags += ["--input", f"{name}={work / name}.npy"]
    return flags


def same_numbers(artifact, flags, reference, what, ranks=0):
    status, text = run_artifact(artifact, *flags, "--threads", "1", "--compare", reference, "--rtol", "1e-5", "--atol", "2e-6", ranks=ranks, expect=None)
    if status != 0:
        raise Failure(f"{what}: other numbers than one device's\n{text}")


def partition(mesh, shard):
    return f"mesh: {{{', '.join(f'{axis}: {size}' for axis, size in mesh.items())}}}\nshard: {shard}\nmicro_batches: 2\n"


def check_case(name, work):
    inputs, outputs, weights, nodes, constants, more = CASES[name]
    model, one, reference, split, cut = (work / file for file in ("m.onnxtxt", "one.partita", "one.npz", "split.yaml", "cut.partita"))
    model.write_text(graph(inputs, outputs, weights, nodes, constants))
    dim = ("--dim", "n=2")
    compile_model(model, one, *dim)
    flags = write_inputs(work, inputs)
    run_artifact(one, *flags, "--threads", "1", "--output", reference)
    count = 0
    for (shard, size), devices in itertools.product(shardings(weights, more), (2, 3, 4)):
        if size < devices:
            continue
        split.write_text(partition({"tensor": devices}, shard))
        compile_model(model, cut, *dim, "--partition", split)
        same_numbers(cut, flags, reference, f"{name}: {shard} over {devices}")
        count += 1
    # Together with replicas and stages, in every order of the axes, by threads and by processes.
    shard = more[0] if more else next(shard for shard, size in shardings(weights, more) if size > 2)
    for mesh in ({"data": 2, "tensor": 2}, {"stage": 2, "tensor": 2}, {"tensor": 2, "data": 2, "stage": 2}):
        split.write_text(partition(mesh, shard))
        compile_model(model, cut, *dim, "--partition", split)
        devices = 1
        for size in mesh.values():
            devices *= size
        for ranks in (0, devices):
            same_numbers(cut, flags, reference, f"{name}: {mesh}, {'MPI' if ranks else 'threads'}", ranks)
        count += 1
    print(f"{name}: {count} shardings give the numbers of one device")


def check():
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            check_case(name, pathlib.Path(folder))


if __name__ == "__main__":
    main(check, use_workers=True)
