#!/usr/bin/env python3
"""Tensors that are cut over devices.

    sharding.py [cases] [reshards]

Cases: every case, with weights and inputs cut along each of their dimensions, over 2, 3 and 4 devices, gives the numbers
of one device; so do replicas and stages together with them, with a last step that is not full. Processes with one device each, with several and with
different numbers of them give the bits of threads. Which collectives a cut needs, and how many bytes they move, is counted. Wrong shardings are errors.

Reshards: tensors of two and three dimensions go from every way to cut them over the axes of a mesh, partial sums included, to every other one. The
elements are small integers, so the result must be exact."""

import itertools
import json
import math
import pathlib
import random
import struct
import sys
import tempfile
import zipfile

from harness import ALL, BIN, Failure, compile_model, main, run, run_artifact, some, write_npy

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
    "attention over heads, three of them": (
        {"x": "float[n,4,24]"}, {"y": "float[n,4,24]"},
        {"qkv": (24, 72), "out": (24, 24)},
        ["[p] p = MatMul(x, qkv)", "[s] q, k, v = Split<axis = 2, num_outputs = 3>(p)",
         "[q1] q1 = Reshape(q, heads)", "[q2] q2 = Transpose<perm = [0, 2, 1, 3]>(q1)",
         "[k1] k1 = Reshape(k, heads)", "[k2] k2 = Transpose<perm = [0, 2, 3, 1]>(k1)",
         "[v1] v1 = Reshape(v, heads)", "[v2] v2 = Transpose<perm = [0, 2, 1, 3]>(v1)",
         "[m] m = MatMul(q2, k2)", "[r] r = Softmax<axis = -1>(m)", "[o] o = MatMul(r, v2)",
         "[o1] o1 = Transpose<perm = [0, 2, 1, 3]>(o)", "[o2] o2 = Reshape(o1, rows)", "[y] y = MatMul(o2, out)"],
        ["int64[4] heads = {0, 4, 3, 8}", "int64[3] rows = {0, 4, 24}"],
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
    "rows of a table, with infinities and negative zeros": (
        {"ids": "int64[n,5]", "places": "int64[n,6]"}, {"y": "float[n,5,6]", "z": "float[n,6]"},
        {"table": (11, 6), "column": (8, 6)},
        ["[t] t = Neg(table)", "[i] i = Reciprocal(t)", "[a] a = Gather(t, ids)", "[b] b = Reciprocal(a)", "[c] c = Gather(i, ids)", "[y] y = Add(b, c)",
         "[z] z = GatherElements(column, places)"],
        (), []),
    "sums of what is infinite beyond the end": (
        {"x": "float[n,7]"}, {"y": "float[n,5]", "s": "float[n,1]", "h": "float[n,1]", "l": "float[n,1]", "p": "float[n,1]", "i": "int32[n,1]", "q": "float[n]"},
        {"w": (7, 11), "v": (11, 5)},
        ["[z] z = MatMul(x, w)", "[a] a = Abs(z)", "[g] g = Log(a)", "[y] y = MatMul(g, v)", "[s] s = ReduceMean(g, one)", "[h] h = ReduceMax(g, one)",
         "[l] l = ReduceMin(g, one)", "[p] p = ReduceProd(g, one)", "[c] c = Cast<to = 6>(z)", "[d] d = Add(c, seven)", "[i] i = ReduceMin(d, one)",
         "[m] m = ReduceL2<keepdims = 0>(g, one)", "[q] q = Neg(m)"],
        ["int64[1] one = {1}", "int32 seven = {7}"], []),
    "a convolution of channels that do not divide": (
        {"x": "float[n,3,5,5]"}, {"y": "float[n,7,3,3]"},
        {"w": (5, 3, 3, 3), "b": (5,), "v": (7, 5, 3, 3)},
        ["[a] a = Conv<pads = [1, 1, 1, 1]>(x, w, b)", "[e] e = Exp(a)", "[c] c = Conv<pads = [1, 1, 1, 1]>(e, v)", "[y] y = MaxPool<kernel_shape = [3, 3], strides = [1, 1]>(c)"],
        (), []),
    "a tensor that is needed cut in another dimension": (
        {"x": "float[n,6,24]"}, {"y": "float[n,6,4]"},
        {"w": (24, 4)},
        ["[r] r = Relu(x)", "[s] s = Softmax<axis = 1>(r)", "[p] y = MatMul(s, w)"],
        (), ["{x: [null, tensor, null], w: [tensor, null]}", "{x: [null, tensor, null], w: [{tensor: 2}, null]}"]),
    "a recurrent layer": (
        {"x": "float[n,3,12]"}, {"y": "float[n,3,1,4]"},
        {"w": (1, 16, 12), "r": (1, 16, 4)},
        ["[a] y = LSTM<hidden_size = 4, layout = 1>(x, w, r)"], (), []),
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
        write_npy(work / f"{name}.npy", shape, "f4" if kind == "float" else "i8", seed=seed, low=-7 if kind == "int64" else None, high=7 if kind == "int64" else None)
        flags += ["--input", f"{name}={work / name}.npy"]
    return flags


def same_numbers(artifact, flags, reference, what):
    status, text = run_artifact(artifact, *flags, "--threads", "1", "--compare", reference, "--rtol", "1e-5", "--atol", "2e-6", expect=None)
    if status != 0:
        raise Failure(f"{what}: other numbers than one device's\n{text}")


# How many devices each process has: all in one, one each, and what lies between; a mesh's axes end within a process, between processes, or both.
ARRANGEMENTS = {
    3: [(2,), (2, "--device-map", "0,2/1")],
    4: [(1,), (2,), (3,), (4,), (2, "--device-map", "0,2/1,3"), (2, "--device-map", "0,3/1-2")],
    8: [(3,), (4, "--device-map", "0,7/1,3,5/2/4,6"), (8,)],
}


def same_bits(artifact, flags, what, work, turn):
    """Whatever the processes, the bits are those of threads. Cases take turns at the arrangements."""
    threads, processes = work / "threads.npz", work / "processes.npz"
    run_artifact(artifact, *flags, "--threads", "1", "--output", threads)
    devices = json.loads(run_artifact(artifact, "--plan", "--json"))["devices"]
    for ranks, *arranged in some(ARRANGEMENTS[len(devices)], 3, turn):
        run_artifact(artifact, *flags, "--threads", "1", "--output", processes, *arranged, ranks=ranks)
        if threads.read_bytes() != processes.read_bytes():
            raise Failure(f"{what}: other bits on {ranks} processes {' '.join(arranged)}")


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
    count, number = 0, list(CASES).index(name)
    for turn, (shard, size) in enumerate(shardings(weights, more), number):
        # Two of three numbers of devices, in turns.
        left_out = 2 + turn % 3 if size >= 4 and not ALL else None
        for devices in (2, 3, 4):
            if size < devices or devices == left_out:
                continue
            split.write_text(partition({"tensor": devices}, shard))
            compile_model(model, cut, *dim, "--partition", split)
            same_numbers(cut, flags, reference, f"{name}: {shard} over {devices}")
            count += 1
    # Together with replicas and stages, in every order of the axes. Cases take turns at the mesh that processes have, too.
    shard = more[0] if more else next(shard for shard, size in shardings(weights, more) if size > 2)
    meshes = ({"tensor": 3}, {"data": 2, "tensor": 2}, {"stage": 2, "tensor": 2}, {"tensor": 2, "data": 2, "stage": 2})
    by_processes = some(meshes, len(meshes), number)
    for turn, mesh in enumerate(meshes, number):
        split.write_text(partition(mesh, shard))
        compile_model(model, cut, *dim, "--partition", split)
        same_numbers(cut, flags, reference, f"{name}: {mesh}")
        if mesh in by_processes:
            same_bits(cut, flags, f"{name}: {mesh}", work, turn)
        count += 1
    print(f"{name}: {count} shardings give the numbers of one device")


# Reshards: the mesh, the shape, the element type, and how a partial result is joined. Dimensions of 24 and 48 are also cut in blocks; others do not divide.
RESHARDS = [
    ({"a": 2}, (24, 7), "f32", "sum"),
    ({"a": 3}, (7, 24), "f16", "max"),
    ({"a": 4}, (24, 13), "i64", "sum"),
    ({"a": 8}, (13, 48), "f32", "prod"),
    ({"a": 2}, (5, 24, 3), "f16", "sum"),
    ({"a": 3}, (4, 7, 24), "i32", "min"),
    ({"a": 4}, (24, 5, 6), "f64", "sum"),
    ({"a": 8}, (9, 48, 10), "f32", "sum"),
    ({"a": 2, "b": 2}, (24, 7), "f32", "sum"),
    ({"a": 2, "b": 3}, (7, 24), "i32", "sum"),
    ({"b": 4, "a": 2}, (24, 10), "f32", "max"),
    ({"a": 2, "b": 2}, (5, 24, 6), "f32", "sum"),
    ({"a": 2, "b": 4}, (9, 48, 10), "f64", "sum"),
]


def blocks_of(size, devices):
    return 2 if size in (24, 48) and size % (2 * devices) == 0 else 1


def cuts_of(shape, mesh, partial):
    """All ways to cut a tensor: by dimension the axes and the number of blocks; and the axes along which it is partial."""
    places = [None, *range(len(shape)), *(["partial"] if partial else [])]
    for where in itertools.product(places, repeat=len(mesh)):
        of = lambda place: [axis for axis, found in zip(mesh, where) if found == place]
        orders = [list(itertools.permutations(of(dim))) for dim in range(len(shape))]
        for axes in itertools.product(*orders):
            for blocks in {1, *(blocks_of(shape[d], devices_of(mesh, cut)) for d, cut in enumerate(axes) if cut)}:
                yield [(cut, blocks if blocks_of(shape[d], devices_of(mesh, cut)) == blocks and cut else 1) for d, cut in enumerate(axes)], of("partial")


def devices_of(mesh, axes):
    product = 1
    for axis in axes:
        product *= mesh[axis]
    return product


def attribute(dims, partial=(), kind="sum"):
    text = ", ".join("{" + ", ".join(f'"{axis}"' for axis in axes) + (f" blocks {blocks}" if blocks > 1 else "") + "}" for axes, blocks in dims)
    joined = ", ".join(f'#dist.partial<"{axis}" {kind}>' for axis in partial)
    return f"dist.sharding = #dist.sharding<[{text}]{f' partial [{joined}]' if partial else ''}>"


def reshard_module(mesh, shape, kind, reduction, pairs):
    """For each pair of layouts: a reduction of x along the mesh makes the first one, and the sum with z, which is cut so, needs the second one."""
    tensor = lambda *sizes: f"tensor<{'x'.join(map(str, (*sizes, *shape)))}x{kind}>"
    whole, terms = tensor(), tensor(*mesh.values())
    dims = ", ".join(map(str, range(len(mesh))))
    lines, results = [], []
    for number, ((cuts, partial), (wanted, _)) in enumerate(pairs):
        summed = [([axis] if axis in partial else [], 1) for axis in mesh]
        lines += [
            f'  %a{number} = dist.reshard %x reason "" {{{attribute(summed + cuts)}}} : {terms}',
            f"  %b{number} = nn.reduce {reduction} %a{number} [{dims}] {{{attribute(cuts, partial, reduction)}}} : {terms} -> {whole}",
            f'  %c{number} = dist.reshard %b{number} reason "" {{{attribute(wanted)}}} : {whole}',
            f'  %d{number} = dist.reshard %z reason "" {{{attribute(wanted)}}} : {whole}',
            f"  %e{number} = nn.sub %c{number}, %d{number} {{{attribute(wanted)}}} : {whole}",
            f'  %f{number} = dist.reshard %e{number} reason "" : {whole}']
        results.append(f"%f{number}")
    axes = ", ".join(f'#dist.axis<"{axis}" = {size}>' for axis, size in {"stage": 0, **mesh}.items())
    named = ", ".join(f'{whole} {{nn.name = "y{i}"}}' for i in range(len(results)))
    return (f'func.func @main(%x: {terms} {{nn.name = "x"}}, %z: {whole} {{nn.name = "z"}}) -> ({named}) attributes {{dist.axes = [{axes}]}} {{\n'
            + "\n".join(lines) + f"\n  return {', '.join(results)} : {', '.join([whole] * len(results))}\n}}\n")


def check_reshards(mesh, shape, kind, reduction, work):
    pairs = list(itertools.product(cuts_of(shape, mesh, True), cuts_of(shape, mesh, False)))
    whole, local, cut, split, inputs, expected = (work / file for file in ("whole.mlir", "local.mlir", "cut.partita", "split.yaml", "in.npz", "out.npz"))
    whole.write_text(reshard_module(mesh, shape, kind, reduction, pairs))
    run([BIN / "partita-opt", "--dist-localize", whole, "-o", local])
    split.write_text(f"mesh: {{{', '.join(f'{axis}: {size}' for axis, size in mesh.items())}}}\n")
    table = compile_model(local, cut, "--reference", "--no-optimize", "--micro-batches", "1", "--partition", split)
    # One device would join all terms.
    noise, count = random.Random(0), devices_of({"": 1, **dict(enumerate(shape))}, ["", *range(len(shape))])
    terms = [[noise.randrange(1, 4) for _ in range(count)] for _ in range(devices_of(mesh, mesh))]
    z = [noise.randrange(-9, 9) for _ in range(count)]
    join = {"sum": sum, "prod": math.prod, "max": max, "min": min}[reduction]
    y = [join(column) - minus for *column, minus in zip(*terms, z)]
    write_npz(inputs, kind, {"x": ((*mesh.values(), *shape), sum(terms, [])), "z": (shape, z)})
    write_npz(expected, kind, {f"y{number}": (shape, y) for number in range(len(pairs))})
    status, text = run_artifact(cut, "--input", inputs, "--threads", "1", "--compare", expected, "--rtol", "0", "--atol", "0", expect=None)
    if status != 0:
        raise Failure(f"{mesh}, {shape}, {kind}: other numbers than one device's\n{text}")
    print(f"{mesh}, {kind} {shape}, {reduction}: {len(pairs)} reshards give the numbers of one device")
    return {kind for kind in ("all_reduce", "reduce_scatter", "all_to_all", "all_gather") if f" {kind} along" in table}


def write_npz(path, kind, tensors):
    code, size, pack = {"f16": ("f2", 2, "e"), "f32": ("f4", 4, "f"), "f64": ("f8", 8, "d"), "i32": ("i4", 4, "i"), "i64": ("i8", 8, "q")}[kind]
    with zipfile.ZipFile(path, "w") as file:
        for name, (shape, values) in tensors.items():
            header = f"{{'descr': '<{code}', 'fortran_order': False, 'shape': ({''.join(f'{s}, ' for s in shape)}), }}"
            header += " " * (63 - (10 + len(header)) % 64) + "\n"
            file.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{pack}", *values))


def check():
    wanted = sys.argv[1:] or ["cases", "reshards"]
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES if "cases" in wanted else ():
            check_case(name, pathlib.Path(folder))
        for case in RESHARDS if "reshards" in wanted else ():
            if len(kinds := check_reshards(*case, pathlib.Path(folder))) != 4:
                raise Failure(f"{case}: of the collectives there are only {kinds}")


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
