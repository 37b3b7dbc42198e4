#!/usr/bin/env python3
"""Stages that form any graph, not only a chain: every case, split over devices, gives the bytes of one device, by every schedule, by threads
and in turn by processes, with fewer and more micro-batches than stages and a last one that is not full. The numbers of one case are computed here too."""

import array
import itertools
import json
import math
import pathlib
import random
import struct
import tempfile
import zipfile

from harness import ALL, SCHEDULES, Failure, compile_model, main, run_artifact, write_npy

SAMPLES, BATCH, WIDTH = 8, 3, 8  # eight samples, three a micro-batch: the last one has two

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def weight(name, seed, rows=WIDTH, columns=WIDTH):
    """An initializer of the text form; its values are sixteenths, so that the text holds them exactly."""
    noise = random.Random(seed)
    values = ", ".join(str(noise.randrange(-16, 17) / 16) for _ in range(rows * columns))
    return f"float[{rows},{columns}] {name} = {{{values}}}"


def graph(inputs, outputs, weights, nodes):
    port = lambda name: f"float[n,{WIDTH}] {name}"
    text = f"{HEADER}g ({', '.join(map(port, inputs))}) => ({', '.join(map(port, outputs))})\n"
    if weights:
        text += "<" + ",\n ".join(weight(name, seed) for seed, name in enumerate(weights)) + ">\n"
    return text + "{\n" + "".join(f"  {node}\n" for node in nodes) + "}\n"


def blocks(*stages):
    """A partition file with a block a stage."""
    text = "".join(f"  B{i}: [{', '.join(stage.split())}]\n" for i, stage in enumerate(stages))
    return f"blocks:\n{text}stages: [{', '.join(f'[B{i}]' for i in range(len(stages)))}]\n"


# name: (inputs, outputs, weights, nodes, partition, edges between devices)
CASES = {
    "a skip connection over a stage": (
        ["x"], ["y"], ["v", "w"],
        ["[a] a = MatMul(x, v)", "[b] b = Tanh(a)", "[c] c = MatMul(b, w)", "[d] y = Add(c, a)"],
        blocks("a", "b", "c d"), {(0, 1), (1, 2), (0, 2)}),
    "a weight of two stages, and what is computed from it at load": (
        ["x"], ["y"], ["w"],
        ["[t] t = Exp(w)", "[a] a = MatMul(x, w)", "[s] s = Tanh(a)", "[b] b = MatMul(s, t)", "[r] r = Tanh(b)", "[c] c = MatMul(r, w)", "[d] y = MatMul(c, t)"],
        blocks("a s", "b r", "c d"), {(0, 1), (1, 2)}),
    "branches side by side": (
        ["x"], ["y"], ["u", "v", "w", "r", "s"],
        ["[a] a = MatMul(x, u)", "[b] b = MatMul(a, v)", "[p] p = Tanh(b)", "[c] c = MatMul(a, w)", "[q] q = Sigmoid(c)",
         "[d] d = MatMul(p, r)", "[e] e = MatMul(q, s)", "[f] y = Add(d, e)"],
        blocks("a", "b p", "c q", "d e f"), {(0, 1), (0, 2), (1, 3), (2, 3)}),
    "an output of an early stage": (
        ["x"], ["early", "y"], ["v", "w"],
        ["[a] early = MatMul(x, v)", "[b] b = Tanh(early)", "[c] y = MatMul(b, w)"],
        blocks("a", "b", "c"), {(0, 1), (1, 2)}),
    "an input of two stages, and one of a late stage": (
        ["x", "late"], ["y"], ["u", "v", "w"],
        ["[a] a = MatMul(x, u)", "[b] b = Tanh(a)", "[c] c = MatMul(b, v)", "[d] d = MatMul(c, w)", "[e] e = Add(d, x)", "[f] y = Mul(e, late)"],
        blocks("a b", "c", "d e f"), {(0, 1), (1, 2)}),
    "an output that is an input": (
        ["x"], ["x", "y"], ["v", "w"],
        ["[a] a = MatMul(x, v)", "[b] b = Tanh(a)", "[c] y = MatMul(b, w)"],
        blocks("a b", "c"), {(0, 1)}),
    "a stage without a parameter": (
        ["x"], ["y"], ["v", "w"],
        ["[a] a = MatMul(x, v)", "[b] b = LogSoftmax(a)", "[c] y = MatMul(b, w)"],
        blocks("a", "b", "c"), {(0, 1), (1, 2)}),
    "a value of the first stage that the last one reads": (
        ["x"], ["y"], ["u", "v", "w"],
        ["[a] a = MatMul(x, u)", "[b] b = Tanh(a)", "[c] c = MatMul(b, v)", "[d] d = MatMul(c, w)", "[e] e = MatMul(d, u)", "[f] y = Add(e, a)"],
        blocks("a b", "c", "d", "e f"), {(0, 1), (1, 2), (2, 3), (0, 3)}),
    "a value of the first stage that all others read, with more buffers than two": (
        ["x"], ["y"], ["u", "v", "w"],
        ["[a] a = MatMul(x, u)", "[b] b = MatMul(a, v)", "[b2] b2 = Add(b, a)", "[c] c = MatMul(b2, w)", "[c2] c2 = Add(c, a)", "[d] d = MatMul(c2, u)",
         "[d2] d2 = Add(d, a)", "[e] e = MatMul(d2, v)", "[e2] e2 = Add(e, a)", "[f] f = MatMul(e2, w)", "[f2] y = Add(f, a)"],
        blocks("a", "b b2", "c c2", "d d2", "e e2", "f f2"), {(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5)}),
    "an output that another stage reads": (
        ["x"], ["y", "z"], ["v", "w"],
        ["[a] a = MatMul(x, v)", "[b] y = MatMul(a, w)", "[c] c = MatMul(y, v)", "[d] z = Add(c, a)"],
        blocks("a", "b", "c d"), {(0, 1), (0, 2), (1, 2)}),
}


def write_model(folder, name):
    inputs, outputs, weights, nodes, partition, edges = CASES[name]
    model, split = folder / "model.onnxtxt", folder / "split.yaml"
    model.write_text(graph(inputs, outputs, weights, nodes))
    split.write_text(partition)
    feed = []
    for seed, port in enumerate(inputs):
        write_npy(folder / f"{port}.npy", (SAMPLES, WIDTH), seed=seed)
        feed += ["--input", f"{port}={folder / port}.npy"]
    return model, split, feed


def runs(name, batches):
    """(schedule, micro-batches, whether by processes too): by processes one of nine, another one for the next case."""
    combinations = itertools.product(SCHEDULES, batches)
    return [(*both, number % (4 if ALL else 9) == 0) for number, both in enumerate(combinations, list(CASES).index(name))]


def outputs(artifact, folder, feed, ranks=0):
    out = folder / "out.npz"
    out.unlink(missing_ok=True)
    run_artifact(artifact, "--threads", "1", *feed, "--output", out, ranks=ranks)
    return out.read_bytes()


def compile_json(model, artifact, *flags):
    return json.loads(compile_model(model, artifact, "--dim", f"n={BATCH}", "--json", "--quiet", *flags))


def check_case(folder, name):
    model, split, feed = write_model(folder, name)
    compile_json(model, folder / "one.partita")
    expected = outputs(folder / "one.partita", folder, feed)
    artifact = folder / "split.partita"
    for schedule, batches, processes in runs(name, (1, 2, 7)):
        plan = compile_json(model, artifact, "--partition", split, "--schedule", schedule, "--micro-batches", batches)
        edges = {(int(t["source"][4:]), int(t["target"][4:])) for t in plan["transfers"]}
        if edges != CASES[name][5]:
            raise Failure(f"{name}: values go between devices {sorted(edges)}, not {sorted(CASES[name][5])}")
        for ranks in (0, len(plan["stages"]))[:1 + processes]:
            if outputs(artifact, folder, feed, ranks) != expected:
                raise Failure(f"{name}, {schedule}, {batches} micro-batches, {ranks or 'no'} processes: not the bytes of one device")


def check_laps(folder, name):
    """The stages in turn on two devices: values go there and back, and wait for the second lap."""
    model, split, feed = write_model(folder, name)
    compile_json(model, folder / "one.partita")
    expected = outputs(folder / "one.partita", folder, feed)
    stages = split.read_text().split("stages: [[")[1].count("], [") + 1
    with split.open("a") as file:
        file.write(f"devices: [{', '.join(str(stage % 2) for stage in range(stages))}]\n")
    artifact = folder / "laps.partita"
    for schedule, batches, processes in runs(name, (1, 3, 7)):
        compile_json(model, artifact, "--partition", split, "--schedule", schedule, "--micro-batches", batches)
        for ranks in (0, 2)[:1 + processes]:
            if outputs(artifact, folder, feed, ranks) != expected:
                raise Failure(f"{name}, on two devices in turn, {schedule}, {batches} micro-batches, {ranks or 'no'} processes: not the bytes of one device")


def check_overlap(folder):
    """With one micro-batch only branches can overlap: then a step is shorter than its stages one after another."""
    model, split, _ = write_model(folder, "branches side by side")
    plan = compile_json(model, folder / "a.partita", "--partition", split, "--micro-batches", 1)
    apart = sum(stage["predicted_ms"] for stage in plan["stages"])
    transfers = [t for t in plan["transfers"] if t["target"] == "cpu:3"]
    if len(transfers) != 2:
        raise Failure(f"the joining stage gets {len(transfers)} values, not 2")
    sequential = compile_json(model, folder / "a.partita", "--partition", split, "--micro-batches", 1, "--schedule", "sequential")
    shortest = min(plan["stages"][1]["predicted_ms"], plan["stages"][2]["predicted_ms"])
    if plan["predicted_ms"] > sequential["predicted_ms"] - shortest / 2 or apart <= shortest:
        raise Failure(f"branches do not overlap: a step is {plan['predicted_ms']} ms, {sequential['predicted_ms']} ms one device at a time")


def check_cut_cluster(folder):
    """A block that ends within operations that are computed together: they stay together, with a remark."""
    model, split, artifact = folder / "cut.onnxtxt", folder / "cut.yaml", folder / "cut.partita"
    model.write_text(graph(["x"], ["y"], ["v", "w"], ["[a] a = MatMul(x, v)", "[b] b = Relu(a)", "[c] y = MatMul(b, w)"]))
    split.write_text(blocks("a", "b c"))
    text = compile_model(model, artifact, "--dim", f"n={BATCH}", "--partition", split)
    if "cut operations that are computed together; 'b' goes with 'a' to stage 0" not in text:
        raise Failure(f"no remark about the node that goes to another stage:\n{text}")
    write_npy(folder / "x.npy", (SAMPLES, WIDTH))
    feed = ["--input", f"x={folder / 'x.npy'}"]
    found = outputs(artifact, folder, feed)
    compile_model(model, artifact, "--dim", f"n={BATCH}")
    if outputs(artifact, folder, feed) != found:
        raise Failure("a cut cluster: not the bytes of one device")


def read_floats(path):
    """Values of a little-endian f32 .npy (or the only member of an .npz)."""
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            data = archive.read(archive.namelist()[0])
    else:
        data = path.read_bytes()
    (length,) = struct.unpack_from("<H", data, 8)
    return array.array("f", data[10 + length:])


def check_numbers(folder):
    """The skip connection in plain Python: y = tanh(x v) w + x v."""
    model, split, feed = write_model(folder, "a skip connection over a stage")
    artifact = folder / "numbers.partita"
    compile_json(model, artifact, "--partition", split, "--micro-batches", 2)
    outputs(artifact, folder, feed)
    x, found = read_floats(folder / "x.npy"), read_floats(folder / "out.npz")
    v, w = ([float(t) for t in weight("w", seed)[:-1].split("{")[1].split(",")] for seed in (0, 1))
    product = lambda row, matrix: [sum(row[k] * matrix[k * WIDTH + j] for k in range(WIDTH)) for j in range(WIDTH)]
    for sample in range(SAMPLES):
        a = product(x[sample * WIDTH:(sample + 1) * WIDTH], v)
        c = product([math.tanh(value) for value in a], w)
        for j in range(WIDTH):
            expected, value = a[j] + c[j], found[sample * WIDTH + j]
            if not abs(value - expected) <= 1e-5 * (1 + abs(expected)):
                raise Failure(f"sample {sample}, element {j}: {value}, but Python computes {expected}")
    if len(found) != SAMPLES * WIDTH:
        raise Failure(f"{len(found)} values for {SAMPLES * WIDTH}")


def check(folder):
    check_numbers(folder)
    check_overlap(folder)
    check_cut_cluster(folder)
    for name in CASES:
        check_case(folder, name)
        check_laps(folder, name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        main(lambda: check(pathlib.Path(work)), use_workers=True, optimize=8)
    print(f"{len(CASES)} graphs of stages give the bytes of one device")
