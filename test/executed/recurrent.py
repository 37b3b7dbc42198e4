#!/usr/bin/env python3
"""Recurrent layers with all their attributes against their equations, written out: lengths of sequences, directions, clip, peepholes, coupled gates,
the reset before and after the product, other functions. Each on one device, and cut into two stages, which must give the same bytes.
"""

import array
import itertools
import math
import pathlib
import struct
import tempfile
import zipfile

from harness import Failure, compile_model, main, run_artifact, write_npy

STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 3
LENGTHS = [5, 0, 2]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def clamp(x, bound):
    return max(-bound, min(bound, x)) if bound else x


FUNCTIONS = {
    "Sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "Tanh": math.tanh,
    "Relu": lambda x: max(x, 0),
    "Softsign": lambda x: x / (1 + abs(x)),
    "Softplus": lambda x: math.log1p(math.exp(x)),
    "ScaledTanh": lambda x: 1.5 * math.tanh(0.5 * x),
    "HardSigmoid": lambda x: max(0, min(1, 0.3 * x + 0.4)),
    "Elu": lambda x: x if x >= 0 else 0.7 * (math.exp(x) - 1),
}
# Parameters of those that have some: alpha, beta.
PARAMETERS = {"ScaledTanh": (1.5, 0.5), "HardSigmoid": (0.3, 0.4), "Elu": (0.7,)}


def product(rows, x):
    return [sum(a * b for a, b in zip(row, x)) for row in rows]


def step(op, data, d, x, h, c, options):
    """The next states of one sequence."""
    size, clip = HIDDEN, options.get("clip", 0)
    functions = [FUNCTIONS[name] for name in options["activations"]]
    w, r = data["w"][d], data["r"][d]
    wb, rb = data["b"][d][: GATES[op] * size], data["b"][d][GATES[op] * size:]
    part = lambda gate: slice(gate * size, gate * size + size)
    ins = [a + b for a, b in zip(product(w, x), wb)]
    recurrent = lambda gate, state: [a + b for a, b in zip(product(r[part(gate)], state), rb[part(gate)])]
    gate = lambda number, state, extra=None: [clamp(a + b + (extra[i] if extra else 0), clip)
                                              for i, (a, b) in enumerate(zip(ins[part(number)], recurrent(number, state)))]
    if op == "RNN":
        return [functions[0](v) for v in gate(0, h)], c
    if op == "GRU":
        z, reset = ([functions[0](v) for v in gate(k, h)] for k in (0, 1))
        if options.get("linear_before_reset"):
            sums = [clamp(a + q * b, clip) for a, q, b in zip(ins[part(2)], reset, recurrent(2, h))]
        else:
            sums = gate(2, [q * v for q, v in zip(reset, h)])
        return [(1 - u) * functions[1](v) + u * old for u, v, old in zip(z, sums, h)], c
    p = data["p"][d] if "p" in data else [0] * (3 * size)
    peep = lambda number, cell: [a * b for a, b in zip(p[part(number)], cell)]
    i = [functions[0](v) for v in gate(0, h, peep(0, c))]
    f = [1 - v for v in i] if options.get("input_forget") else [functions[0](v) for v in gate(2, h, peep(2, c))]
    g = [functions[1](v) for v in gate(3, h)]
    new = [a * b + u * v for a, b, u, v in zip(f, c, i, g)]
    o = [functions[0](v) for v in gate(1, h, peep(1, new))]
    return [a * functions[2](b) for a, b in zip(o, new)], new


def expected(op, data, options):
    """Y [T, D, B, H], flat, then the final states."""
    directions = len(data["w"])
    y = [[[[0.0] * HIDDEN for _ in range(BATCH)] for _ in range(directions)] for _ in range(STEPS)]
    finals = [[], []]
    for d, b in itertools.product(range(directions), range(BATCH)):
        h, c = data["h"][d][b], data["c"][d][b] if "c" in data else [0.0] * HIDDEN
        length = LENGTHS[b] if options.get("lengths") else STEPS
        turned = options["direction"] == "reverse" or d == 1
        for t in reversed(range(length)) if turned else range(length):
            h, c = step(op, data, d, data["x"][t][b], h, c, options)
            y[t][d][b] = h
        finals[0] += h
        finals[1] += c
    return [[v for t in y for d in t for b in d for v in b], *(finals if op == "LSTM" else finals[:1])]


def nest(values, shape):
    if len(shape) == 1:
        return list(values)
    size = len(values) // shape[0]
    return [nest(values[i * size:(i + 1) * size], shape[1:]) for i in range(shape[0])]


def npy(kind, shape, values):
    """The bytes of an .npy file; `kind` is a type of `array`."""
    described = {"i": "<i4", "d": "<f8"}[kind]
    header = f"{{'descr': '{described}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.array(kind, values).tobytes()


def floats(raw):
    """The elements of an .npy file of f32 or f64."""
    begin = 10 + struct.unpack("<H", raw[8:10])[0]
    return array.array("d" if b"<f8" in raw[:begin] else "f", raw[begin:])


def check_layer(op, options, work, doubles=False):
    element = "double" if doubles else "float"
    directions = 2 if options["direction"] == "bidirectional" else 1
    all_gates = GATES[op] * HIDDEN
    shapes = {"x": (STEPS, BATCH, INPUTS), "w": (directions, all_gates, INPUTS), "r": (directions, all_gates, HIDDEN),
              "b": (directions, 2 * all_gates), "h": (directions, BATCH, HIDDEN)}
    if op == "LSTM":
        shapes["c"] = shapes["h"]
        if options.get("peepholes"):
            shapes["p"] = (directions, 3 * HIDDEN)
    data, feeds = {}, []
    for seed, (name, shape) in enumerate(shapes.items()):
        path = work / f"{name}.npy"
        write_npy(path, shape, seed=seed)
        values = floats(path.read_bytes())
        if doubles:
            path.write_bytes(npy("d", shape, values))
        data[name] = nest(values, shape)
        feeds += ["--input", f"{name}={path}"]
    if options.get("lengths"):
        path = work / "l.npy"
        path.write_bytes(npy("i", (BATCH,), LENGTHS))
        feeds += ["--input", f"l={path}"]
    names = options["activations"] * directions
    attributes = [f"hidden_size = {HIDDEN}", f'direction = "{options["direction"]}"', "activations = [" + ", ".join(f'"{n}"' for n in names) + "]"]
    for place, attribute in enumerate(("activation_alpha", "activation_beta")):
        values = [PARAMETERS[n][place] for n in names if len(PARAMETERS.get(n, ())) > place]
        attributes += [f"{attribute} = [{', '.join(map(str, values))}]"] if values else []
    if "clip" in options:
        attributes.append(f"clip = {options['clip']}")
    attributes += [f"{flag} = 1" for flag in ("linear_before_reset", "input_forget") if options.get(flag)]
    ports = [f"{element}[{','.join(map(str, shape))}] {name}" for name, shape in shapes.items()]
    ports += [f"int32[{BATCH}] l"] if options.get("lengths") else []
    operands = ["x", "w", "r", "b", "l" if options.get("lengths") else "", "h"]
    operands += ["c"] if op == "LSTM" else []
    operands += ["p"] if options.get("peepholes") else []
    state = f"{element}[{directions},{BATCH},{HIDDEN}]"
    results = [f"{element}[{STEPS},{directions},{BATCH},{HIDDEN}] y", f"{state} yh", f"{state} yc"][: 3 if op == "LSTM" else 2]
    outputs = [r.split()[-1] for r in results]
    model = work / "layer.onnxtxt"
    text = ", ".join(o if o else '""' for o in operands)
    model.write_text('<ir_version: 10, opset_import: ["" : 21]>\n'
                     f"g ({', '.join(ports)}) => ({', '.join(results)}) {{\n"
                     f"  {', '.join(outputs)} = {op}<{', '.join(attributes)}>({text})\n}}\n")
    found = []
    for devices in (1, 2):
        artifact, out = work / "layer.partita", work / "out.npz"
        compile_model(model, artifact, "--devices", devices)
        run_artifact(artifact, "--threads", "1", *feeds, "--output", out)
        with zipfile.ZipFile(out) as archive:
            found.append([archive.read(f"{name}.npy") for name in outputs])
        out.unlink()
    if found[0] != found[1]:
        raise Failure(f"{op} {options}: two devices give other bytes than one")
    for name, raw, values in zip(outputs, found[0], expected(op, data, options)):
        worst = max(abs(a - b) for a, b in zip(floats(raw), values, strict=True))
        # Attributes are of 32 bits.
        if worst > (1e-7 if doubles else 1e-5):
            raise Failure(f"{op} {options} {element}: {name} differs by {worst}")


def check():
    layers = [("RNN", {"activations": [name]}) for name in FUNCTIONS]
    layers += [("RNN", {"activations": ["Tanh"], "clip": 0.4, "lengths": True})]
    for flags in ({}, {"linear_before_reset": True}, {"lengths": True}, {"clip": 0.5}, {"clip": 0.5, "linear_before_reset": True, "lengths": True}):
        layers.append(("GRU", {"activations": ["Sigmoid", "Tanh"], **flags}))
    layers.append(("GRU", {"activations": ["HardSigmoid", "ScaledTanh"]}))
    for flags in ({}, {"peepholes": True}, {"input_forget": True}, {"lengths": True, "peepholes": True}, {"clip": 0.5, "peepholes": True, "input_forget": True}):
        layers.append(("LSTM", {"activations": ["Sigmoid", "Tanh", "Tanh"], **flags}))
    layers.append(("LSTM", {"activations": ["HardSigmoid", "Elu", "Softsign"]}))
    with tempfile.TemporaryDirectory() as folder:
        for number, (op, options) in enumerate(layers):
            directions = ("forward", "reverse", "bidirectional")
            for direction in directions if options.get("lengths") or number % 3 == 0 else ("bidirectional",):
                check_layer(op, {**options, "direction": direction}, pathlib.Path(folder))
            check_layer(op, {**options, "direction": "bidirectional"}, pathlib.Path(folder), doubles=True)
    print(f"{len(layers)} layers agree with their equations, in f32 and f64, on one device and cut into two stages")


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
