#!/usr/bin/env python3
"""Ops whose imports are more than a line against their definitions, written out: TopK, CumSum and the scatters for all widths and signs of their
elements, with ties, negative indices and several updates of one place; ConvTranspose with strides, pads, output_padding and groups that do not divide; products of integers with the largest magnitudes there are, which must be
exact, with padding, zero points and scales; products of few terms whose result is much larger than what it is computed from, and of many; convolutions of few planes; normalizations of rows that are nearly equal.
Each on one device with one and with several threads, and cut into two stages, which must all give the same bytes.
"""

import array
import itertools
import pathlib
import random
import struct
import tempfile
import zipfile

from harness import Failure, compile_model, main, run_artifact

# ONNX name: code of NumPy, code of array
TYPES = {"float": ("f4", "f"), "double": ("f8", "d"), "int32": ("i4", "i"), "int64": ("i8", "q"), "uint8": ("u1", "B"), "int16": ("i2", "h"),
         "uint64": ("u8", "Q"), "int8": ("i1", "b")}


def write(path, kind, shape, values):
    code, letter = TYPES[kind]
    order = "|" if code.endswith("1") else "<"
    header = f"{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({''.join(f'{s}, ' for s in shape)}), }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.array(letter, values).tobytes())


def check_model(work, inputs, outputs, body, expected, tolerance=0.0, constants=(), levels=("ALL",)):
    """`inputs`: {name: (type, shape, values)}; `outputs`: {name: (type, shape)}; `expected`: their elements, in the same order; `constants`: names of
    inputs that the compiler is given; `levels`: what of the processor oneDNN may use."""
    declare = lambda ports: ", ".join(f"{kind}[{','.join(map(str, shape))}] {name}" for name, (kind, shape, *_) in ports.items())
    model, artifact, out = work / "op.onnxtxt", work / "op.partita", work / "out.npz"
    model.write_text(f'<ir_version: 10, opset_import: ["" : 21]>\ng ({declare(inputs)}) => ({declare(outputs)}) {{\n  {body}\n}}\n')
    feeds, given = [], []
    for name, (kind, shape, values) in inputs.items():
        write(work / f"{name}.npy", kind, shape, values)
        if name in constants:
            given += ["--constant", f"{name}={work / name}.npy"]
        else:
            feeds += ["--input", f"{name}={work / name}.npy"]
    found = []
    for devices, threads in ((1, (1, 3)), (2, (1,))):
        compile_model(model, artifact, "--devices", devices, *given)
        for level, count in itertools.product(levels, threads):
            run_artifact(artifact, "--threads", count, *feeds, "--output", out, env={"ONEDNN_MAX_CPU_ISA": level})
            with zipfile.ZipFile(out) as archive:
                found.append([archive.read(f"{name}.npy") for name in outputs])
            out.unlink()
    if any(other != found[0] for other in found):
        raise Failure(f"{body}: other bytes with more threads or devices")
    for (name, (kind, _)), raw, values in zip(outputs.items(), found[0], expected):
        elements = array.array(TYPES[kind][1], raw[10 + struct.unpack("<H", raw[8:10])[0]:])
        for i, (a, b) in enumerate(zip(elements, values, strict=True)):
            if abs(a - b) > tolerance:
                raise Failure(f"{body}: element {i} of {name} is {a} instead of {b}\n{model.read_text()}")


def random_values(kind, count, low=None, high=None):
    if kind in ("float", "double"):
        return [random.randint(-64, 64) / 8 for _ in range(count)]  # exact sums, and ties
    letter = TYPES[kind][1]
    bits = 8 * array.array(letter).itemsize
    least, most = (0, 2**bits - 1) if letter.isupper() else (-2 ** (bits - 1), 2 ** (bits - 1) - 1)
    few = [least, most, 0, 1, most // 2, most // 2 + 1]
    return [random.choice(few) if low is None else random.randint(low, high) for _ in range(count)]


def wrapped(kind, value):
    if kind in ("float", "double"):
        return value
    letter = TYPES[kind][1]
    bits = 8 * array.array(letter).itemsize
    value %= 2**bits
    return value if letter.isupper() or value < 2 ** (bits - 1) else value - 2**bits


def check_top_k(work):
    for kind, (rows, size, count), largest, axis in zip(itertools.cycle(TYPES), [(3, 17, 5), (5, 9, 9), (1, 1000, 1), (2, 300, 299)] * 4,
                                                        itertools.cycle((1, 0, 1)), itertools.cycle((0, 1))):
        x = random_values(kind, rows * size)
        at = (lambda r, i: r * size + i) if axis else (lambda r, i: i * rows + r)
        shape = lambda n: (rows, n) if axis else (n, rows)
        places = [sorted(range(size), key=lambda i: ((-1 if largest else 1) * x[at(r, i)], i))[:count] for r in range(rows)]
        order = itertools.product(range(rows), range(count)) if axis else ((r, i) for i in range(count) for r in range(rows))
        order = list(order)
        check_model(work, {"x": (kind, shape(size), x)}, {"v": (kind, shape(count)), "p": ("int64", shape(count))},
                    f"k = Constant<value_ints = [{count}]>()\n  v, p = TopK<axis = {axis}, largest = {largest}>(x, k)",
                    [[x[at(r, places[r][i])] for r, i in order], [places[r][i] for r, i in order]])


def check_cumsum(work):
    flags = itertools.cycle(itertools.product((0, 1), (0, 1)))
    for kind, (outer, size, inner) in zip(["float", "double", "int32", "int64", "float"] * 2, [(2, 7, 3), (1, 50, 1), (3, 1, 2), (1, 5, 300), (4, 6, 1)] * 2):
        exclusive, reverse = next(flags)
        x = random_values(kind, outer * size * inner)
        y = [0] * len(x)
        for o, i in itertools.product(range(outer), range(inner)):
            total = 0
            for s in reversed(range(size)) if reverse else range(size):
                at = (o * size + s) * inner + i
                y[at] = wrapped(kind, total if exclusive else total + x[at])
                total += x[at]
        check_model(work, {"x": (kind, (outer, size, inner), x)}, {"y": (kind, (outer, size, inner))},
                    f"a = Constant<value_int = 1>()\n  y = CumSum<exclusive = {exclusive}, reverse = {reverse}>(x, a)", [y])


COMBINE = {"none": lambda a, b: b, "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "max": max, "min": min}


def check_scatters(work):
    for kind, (reduction, combine) in zip(itertools.cycle(TYPES), list(COMBINE.items()) * 3):
        if kind in ("uint8", "int16", "int8") and reduction in ("add", "mul"):
            kind = "int64"
        # Elements along the axis 1 of [3, 5, 2], some of them twice.
        x, updates = random_values(kind, 30), random_values(kind, 2 * 4 * 2)
        indices = [random.randint(-5, 4) for _ in updates]
        y = list(x)
        for i, (a, b, c) in enumerate(itertools.product(range(2), range(4), range(2))):
            at = (a * 5 + indices[i] % 5) * 2 + c
            y[at] = wrapped(kind, combine(y[at], updates[i]))
        check_model(work, {"x": (kind, (3, 5, 2), x), "i": ("int64", (2, 4, 2), indices), "u": (kind, (2, 4, 2), updates)}, {"y": (kind, (3, 5, 2))},
                    f'y = ScatterElements<axis = 1, reduction = "{reduction}">(x, i, u)', [y])
        # Rows of 7 in a table of 4 x 6.
        x, updates = random_values(kind, 4 * 6 * 7), random_values(kind, 9 * 7)
        places = [(random.randint(-4, 3), random.randint(-6, 5)) for _ in range(9)]
        y = list(x)
        for i, (a, b) in enumerate(places):
            for k in range(7):
                at = (a % 4 * 6 + b % 6) * 7 + k
                y[at] = wrapped(kind, combine(y[at], updates[i * 7 + k]))
        check_model(work, {"x": (kind, (4, 6, 7), x), "i": ("int64", (9, 2), [p for pair in places for p in pair]), "u": (kind, (9, 7), updates)},
                    {"y": (kind, (4, 6, 7))}, f'y = ScatterND<reduction = "{reduction}">(x, i, u)', [y])


def conv_transpose(x, w, bias, inputs, outputs, groups, sizes, kernel, strides, low, result):
    y = [[[bias[o]] * result[1] for _ in range(result[0])] for o in range(outputs)]
    ins, outs = inputs // groups, outputs // groups
    for c, o in itertools.product(range(inputs), range(outs)):
        own = c // ins * outs + o
        for i, j, k, l in itertools.product(range(sizes[0]), range(sizes[1]), range(kernel[0]), range(kernel[1])):
            a, b = i * strides[0] + k - low[0], j * strides[1] + l - low[1]
            if 0 <= a < result[0] and 0 <= b < result[1]:
                y[own][a][b] += x[(c * sizes[0] + i) * sizes[1] + j] * w[((c * outs + o) * kernel[0] + k) * kernel[1] + l]
    return [v for channel in y for row in channel for v in row]


def check_conv_transpose(work):
    #         in, out, groups, sizes, kernel, strides, pads low, high, output_padding
    for case in [(3, 5, 1, (4, 6), (2, 2), (2, 2), (0, 0), (0, 0), (0, 0)), (2, 3, 1, (3, 5), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
                 (4, 2, 1, (3, 2), (4, 5), (3, 2), (1, 2), (0, 1), (0, 0)), (2, 2, 1, (2, 3), (1, 1), (2, 3), (0, 0), (0, 0), (1, 2)),
                 (1, 1, 1, (5, 1), (9, 3), (3, 1), (4, 1), (4, 0), (2, 0)), (4, 6, 2, (3, 3), (3, 3), (2, 2), (1, 0), (0, 1), (0, 0)),
                 (2, 1, 1, (3, 3), (2, 2), (2, 2), (3, 2), (0, 1), (0, 0)), (3, 4, 1, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1), (0, 0))]:
        inputs, outputs, groups, sizes, kernel, strides, low, high, extra = case
        result = [s * (n - 1) + e + k - a - b for s, n, e, k, a, b in zip(strides, sizes, extra, kernel, low, high)]
        count = lambda *factors: [random.randint(-8, 8) / 4 for _ in range(factors[0] * factors[1] * factors[2] * factors[3])]
        x, w, bias = count(1, inputs, *sizes), count(inputs, outputs // groups, *kernel), count(outputs, 1, 1, 1)
        attributes = f"group = {groups}, strides = {list(strides)}, pads = {list(low + high)}, output_padding = {list(extra)}"
        check_model(work, {"x": ("float", (1, inputs, *sizes), x), "w": ("float", (inputs, outputs // groups, *kernel), w), "b": ("float", (outputs,), bias)},
                    {"y": ("float", (1, outputs, *result))}, f"y = ConvTranspose<{attributes}>(x, w, b)",
                    [conv_transpose(x, w, bias, inputs, outputs, groups, sizes, kernel, strides, low, result)], tolerance=1e-5)


def check_integer_products(work):
    # rows, terms, columns; types of both; zero points. The sums pass what f32 counts.
    for rows, terms, columns, x_kind, y_kind, zeros in [(2, 700, 3, "uint8", "int8", (None, None)), (3, 300, 2, "uint8", "uint8", (3, 250)),
                                                        (1, 1500, 2, "int8", "int8", (-128, 127)), (4, 5, 3, "int8", "uint8", (None, 0))]:
        x, y = random_values(x_kind, rows * terms), random_values(y_kind, terms * columns)
        x[:terms], y[::columns] = [max(x)] * terms, [max(y)] * terms
        a, b = zeros[0] or 0, zeros[1] or 0
        sums = [sum((x[i * terms + k] - a) * (y[k * columns + j] - b) for k in range(terms)) for i in range(rows) for j in range(columns)]
        inputs, names = {"x": (x_kind, (rows, terms), x), "y": (y_kind, (terms, columns), y)}, ["x", "y"]
        for name, kind, zero in (("a", x_kind, zeros[0]), ("b", y_kind, zeros[1])):
            if zero is not None:
                inputs[name] = (kind, (1,), [zero])
            names.append(name if zero is not None else '""')
        check_model(work, inputs, {"z": ("int32", (rows, columns))}, f"z = MatMulInteger({', '.join(names)})", [sums])
    # inputs, outputs, groups, size, kernel
    for inputs, outputs, groups, size, kernel in [(40, 2, 1, 4, 3), (6, 6, 6, 5, 3), (4, 6, 2, 4, 2), (600, 1, 1, 1, 1)]:
        x = [random.choice((0, 255)) for _ in range(inputs * size * size)]
        w = [random.choice((-128, 127)) for _ in range(outputs * inputs // groups * kernel * kernel)]
        result, ins, outs, y = size - kernel + 1, inputs // groups, outputs // groups, []
        for o, i, j in itertools.product(range(outputs), range(result), range(result)):
            y.append(sum((x[((o // outs * ins + c) * size + i + k) * size + j + l] - 7) * w[((o * ins + c) * kernel + k) * kernel + l]
                         for c, k, l in itertools.product(range(ins), range(kernel), range(kernel))))
        check_model(work, {"x": ("uint8", (1, inputs, size, size), x), "w": ("int8", (outputs, ins, kernel, kernel), w), "a": ("uint8", (1,), [7])},
                    {"y": ("int32", (1, outputs, result, result))}, f"y = ConvInteger<group = {groups}>(x, w, a)", [y])


def convolve(x, w, zero, inputs, outputs, groups, size, kernel, pad):
    """Sums of integers; outside of the image is what means 0."""
    result, ins, outs, y = size + 2 * pad - kernel + 1, inputs // groups, outputs // groups, []
    for o, i, j in itertools.product(range(outputs), range(result), range(result)):
        total = 0
        for c, k, l in itertools.product(range(ins), range(kernel), range(kernel)):
            r, s = i + k - pad, j + l - pad
            if 0 <= r < size and 0 <= s < size:
                total += (x[((o // outs * ins + c) * size + r) * size + s] - zero) * w[((o * ins + c) * kernel + k) * kernel + l]
        y.append(total)
    return result, y


def check_quantised_products(work):
    # Scales are powers of two: what is expected is exact. The zero point is an input, or known.
    levels = ("ALL", "AVX2")
    for kind, zero, constants in [("uint8", 131, ("w", "ws")), ("int8", -7, ("w", "ws", "z")), ("uint8", 0, ("w", "ws", "z")), ("int8", 3, ())]:
        for inputs, outputs, groups, size, kernel, pad in [(3, 20, 1, 6, 3, 1), (16, 16, 16, 5, 3, 1), (8, 12, 4, 5, 3, 2), (7, 9, 1, 4, 1, 0)]:
            x, w = random_values(kind, inputs * size * size), random_values("int8", outputs * inputs // groups * kernel * kernel)
            scales, bias = [2.0 ** random.randint(-9, -5) for _ in range(outputs)], random_values("float", outputs)
            result, sums = convolve(x, w, zero, inputs, outputs, groups, size, kernel, pad)
            y = [0.5 * scales[i // result**2] * s + bias[i // result**2] for i, s in enumerate(sums)]
            body = (f"s = Constant<value_float = 0.5>()\n  p = DequantizeLinear(x, s, z)\n  q = DequantizeLinear<axis = 0>(w, ws)\n"
                    f"  y = Conv<group = {groups}, pads = {[pad] * 4}>(p, q, b)")
            check_model(work, {"x": (kind, (1, inputs, size, size), x), "w": ("int8", (outputs, inputs // groups, kernel, kernel), w), "z": (kind, (1,), [zero]),
                               "ws": ("float", (outputs,), scales), "b": ("float", (outputs,), bias)},
                        {"y": ("float", (1, outputs, result, result))}, body, [y], constants=constants, levels=levels, tolerance=1e-3)
            check_model(work, {"x": (kind, (1, inputs, size, size), x), "w": ("int8", (outputs, inputs // groups, kernel, kernel), w), "z": (kind, (1,), [zero])},
                        {"y": ("int32", (1, outputs, result, result))}, f"y = ConvInteger<group = {groups}, pads = {[pad] * 4}>(x, w, z)", [sums],
                        constants=[c for c in constants if c != "ws"], levels=levels)
        rows, terms, columns = 5, 70, 9
        x, w = random_values(kind, rows * terms), random_values("int8", terms * columns)
        scales = [2.0 ** random.randint(-9, -5) for _ in range(columns)]
        for op, shape, at, axis in [("MatMul(p, q)", (terms, columns), lambda k, j: k * columns + j, 1),
                                    ("Gemm<transB = 1>(p, q)", (columns, terms), lambda k, j: j * terms + k, 0)]:
            y = [0.5 * scales[j] * sum((x[i * terms + k] - zero) * w[at(k, j)] for k in range(terms)) for i in range(rows) for j in range(columns)]
            body = (f"s = Constant<value_float = 0.5>()\n  p = DequantizeLinear(x, s, z)\n  q = DequantizeLinear<axis = {axis}>(w, ws)\n  y = {op}")
            check_model(work, {"x": (kind, (rows, terms), x), "w": ("int8", shape, w), "z": (kind, (1,), [zero]), "ws": ("float", (columns,), scales)},
                        {"y": ("float", (rows, columns))}, body, [y], constants=constants, levels=levels, tolerance=1e-3)


def check_products(work):
    for rows, terms, columns, constants in [(31, 3, 1030, ("w", "b")), (33, 16, 1030, ()), (70, 8, 2100, ("w", "b")), (97, 5, 1024, ("w",)),
                                            (64, 2, 1025, ("w", "b")), (5, 1100, 40, ("w", "b")), (1, 130, 1024, ("w",)), (19, 257, 33, ())]:
        x, w, b, z = (random_values("float", count) for count in (rows * terms, terms * columns, columns, rows * columns))
        y = [max(sum(x[i * terms + k] * w[k * columns + j] for k in range(terms)) + b[j], 0) + z[i * columns + j]
             for i in range(rows) for j in range(columns)]
        check_model(work, {"x": ("float", (rows, terms), x), "w": ("float", (terms, columns), w), "b": ("float", (columns,), b),
                           "z": ("float", (rows, columns), z)}, {"y": ("float", (rows, columns))},
                    "p = MatMul(x, w)\n  q = Add(p, b)\n  r = Relu(q)\n  y = Add(r, z)", [y], constants=constants, levels=("ALL", "AVX2"))


def check_planes(work):
    # images, planes, height, width; kernel, strides, pads at the begin and the end. The last one is more than fits a band of rows.
    for images, planes, height, width, kernel, strides, low, high in [(2, 3, 9, 8, (3, 3), (2, 2), (1, 1), (0, 1)), (1, 2, 7, 7, (1, 2), (1, 3), (0, 0), (0, 0)),
                                                                      (3, 3, 5, 6, (5, 3), (1, 1), (4, 1), (4, 1)), (2, 3, 120, 300, (2, 2), (3, 4), (1, 0), (2, 3))]:
        sizes, pads = (height, width), [*low, *high]
        rows, columns = ((sizes[d] + low[d] + high[d] - kernel[d]) // strides[d] + 1 for d in (0, 1))
        count = images * 16 * rows * columns
        x, w, b, z = (random_values("float", n) for n in (images * planes * height * width, 16 * planes * kernel[0] * kernel[1], 16, count))
        y = []
        for n, o, i, j in itertools.product(range(images), range(16), range(rows), range(columns)):
            total = b[o]
            for c, k, l in itertools.product(range(planes), range(kernel[0]), range(kernel[1])):
                r, s = i * strides[0] + k - low[0], j * strides[1] + l - low[1]
                if 0 <= r < height and 0 <= s < width:
                    total += x[((n * planes + c) * height + r) * width + s] * w[((o * planes + c) * kernel[0] + k) * kernel[1] + l]
            y.append(max(total, 0) + z[len(y)])
        shape = (images, 16, rows, columns)
        check_model(work, {"x": ("float", (images, planes, height, width), x), "w": ("float", (16, planes, *kernel), w), "b": ("float", (16,), b),
                           "z": ("float", shape, z)}, {"y": ("float", shape)},
                    f"p = Conv<strides = {list(strides)}, pads = {pads}>(x, w, b)\n  q = Relu(p)\n  y = Add(q, z)", [y], constants=("w", "b"), levels=("ALL", "AVX2"))


def check_normalizations(work):
    """Of numbers near to 8 that differ by 0.01: a variance that is the difference of two means has no digit left."""
    rng = random.Random(5)
    shape, size = (2, 4, 3, 2), 48
    x = [struct.unpack("<f", struct.pack("<f", 8 + 0.01 * rng.uniform(-1, 1)))[0] for _ in range(size)]
    scale, bias = [1.0, -0.5, 2.0, 0.75], [0.0, 0.25, -1.0, 0.5]

    def normal(row):
        mean = sum(row) / len(row)
        deviation = (sum((v - mean) ** 2 for v in row) / len(row) + 1e-5) ** 0.5
        return [(v - mean) / deviation for v in row]

    vectors = {"s": ("float", (4,), scale), "b": ("float", (4,), bias)}
    for body, rows in (("y = GroupNormalization <num_groups: int = 2> (x, s, b)", 12), ("y = InstanceNormalization (x, s, b)", 6)):
        plain = [v for i in range(0, size, rows) for v in normal(x[i:i + rows])]
        wanted = [v * scale[i // 6 % 4] + bias[i // 6 % 4] for i, v in enumerate(plain)]
        check_model(work, {"x": ("float", shape, x), **vectors}, {"y": ("float", shape)}, body, [wanted], tolerance=1e-3)


def check():
    random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        for op in (check_top_k, check_cumsum, check_scatters, check_conv_transpose, check_integer_products, check_quantised_products, check_products,
                   check_planes, check_normalizations):
            op(pathlib.Path(folder))
    print("TopK, CumSum, ScatterElements, ScatterND, Conv, ConvTranspose, MatMul, MatMulInteger, ConvInteger and normalizations agree with their definitions")


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
