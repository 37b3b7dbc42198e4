#!/usr/bin/env python3
"""Where weights and constants come from: .npy constants, names that are defined twice, a model with external data, one of more than 2 GiB. The models are written here, with as
much of protobuf's wire format as that takes. Standard library only."""

import array
import json
import os
import pathlib
import shutil
import struct
import tempfile

from harness import BIN, Failure, compile_model, run, run_artifact, main, write_npy

BIG_ROWS, BIG_COLUMNS = 1 << 16, 1 << 13  # 2 GiB of floats a weight


def varint(value):
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def message(*parts):
    """A protobuf message of fields (number, text, bytes or integer)."""
    data = b""
    for number, value in parts:
        if isinstance(value, int):
            data += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            data += varint(number << 3 | 2) + varint(len(value)) + value
    return data


def external(name, shape, file, offset, length):
    """A TensorProto of floats in another file."""
    entries = [(13, message((1, key), (2, str(value)))) for key, value in (("location", file), ("offset", offset), ("length", length))]
    return message(*((1, size) for size in shape), (2, 1), (8, name), *entries, (14, 1))


def value_info(name, shape):
    dims = message(*((1, message((1, size))) for size in shape))
    return message((1, name), (2, message((1, message((1, 1), (2, dims))))))


def model(nodes, initializers, inputs, outputs):
    graph = message(*((1, n) for n in nodes), (2, "g"), *((5, t) for t in initializers), *((11, i) for i in inputs), *((12, o) for o in outputs))
    return message((1, 10), (7, graph), (8, message((1, ""), (2, 21))))


def node(op, inputs, output):
    return message(*((1, name) for name in inputs), (2, output), (3, output), (4, op))


def expect_floats(path, expected):
    data = path.read_bytes()
    found = array.array("f", data[10 + struct.unpack_from("<H", data, 8)[0] :])
    if list(found) != list(expected):
        raise Failure(f"{path.name} holds {list(found)[:8]}, expected {list(expected)[:8]}")


def npy_constants(work):
    """An input fixed by a .npy file gives the same as the value in the model."""
    text, artifact, out = work / "reshape.onnxtxt", work / "reshape.partita", work / "npy-out"
    text.write_text('<ir_version: 10, opset_import: ["" : 21]>\ng (float[4] x, int64[2] s, float[4] w) => (float[a,b] z) { y = Add(x, w)  z = Reshape(y, s) }\n')
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }"
    (work / "s.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<qq", 2, 2))
    write_npy(work / "w.npy", (4,), seed=1)
    write_npy(work / "x.npy", (4,), seed=2)
    compile_model(text, artifact, "--constant", f"s={work / 's.npy'}", "--constant", f"w={work / 'w.npy'}")
    run_artifact(artifact, "--input", f"x={work / 'x.npy'}", "--output", f"{out}/")
    x, w = (array.array("f", (work / name).read_bytes()[-16:]) for name in ("x.npy", "w.npy"))
    expect_floats(out / "z.npy", [array.array("f", [a + b])[0] for a, b in zip(x, w)])
    wrong = work / "wrong.npy"
    wrong.write_bytes((work / "w.npy").read_bytes()[:-4])
    message = run([BIN / "partita-compile", text, "-o", artifact, "--constant", f"s={wrong}"], expect=1)
    if "wrong.npy" not in message or "12 bytes" not in message:
        raise Failure(f"a cut .npy file is not named:\n{message}")


def repeated_names(work):
    """A name that initializers and a Constant node define with the same bytes, small ones and such as stay in the model's file; other bytes are an error."""
    file, artifact = work / "repeated.onnx", work / "repeated.partita"
    write_npy(work / "x.npy", (1024,), seed=5)
    for count in (1024, 4):
        values = array.array("f", [i % 5 - 2 for i in range(count)])

        def tensor(change=0):
            data = bytearray(values.tobytes())
            data[-1] ^= change
            return message((1, count), (2, 1), (8, "w"), (9, bytes(data)))

        def write(first, second, third):
            constant = message((2, "w"), (3, "c"), (4, "Constant"), (5, message((1, "value"), (5, third), (20, 4))))
            shape = message((1, 2), (2, 7), (8, "s"), (9, struct.pack("<qq", 1024 // count, count)))
            nodes = [constant, node("Reshape", ["x", "s"], "m"), node("Mul", ["m", "w"], "y")]
            file.write_bytes(model(nodes, [first, second, shape], [value_info("x", (1024,))], [value_info("y", (1024 // count, count))]))

        write(tensor(), tensor(), tensor())
        said = compile_model(file, artifact)
        if said.count("remark: the name 'w' is defined twice") != 2:
            raise Failure(f"the compiler does not say which names it found twice:\n{said}")
        run_artifact(artifact, "--input", work / "x.npy", "--output", f"{work / 'repeated-out'}/")
        x = array.array("f", (work / "x.npy").read_bytes()[-4096:])
        expect_floats(work / "repeated-out" / "y.npy", [array.array("f", [v * values[i % count]])[0] for i, v in enumerate(x)])
        for arguments, who in [((tensor(), tensor(1), tensor()), "initializer 1"), ((tensor(), tensor(), tensor(1)), "node 'c'")]:
            write(*arguments)
            text = run([BIN / "partita-compile", file, "-o", artifact], expect=1)
            if f"the name 'w' is defined twice, by initializer 0 and by {who}, with different values" not in text:
                raise Failure(f"two values of one name get another message:\n{text}")


def external_model(work):
    """Weights in two other files, one below a folder: copied into the artifact, or left beside it; a cut into two stages changes nothing."""
    folder = work / "external"
    (folder / "more").mkdir(parents=True)
    a, b = array.array("f", range(4096)), array.array("f", [i % 7 for i in range(1024)])
    (folder / "a.bin").write_bytes(bytes(64) + a.tobytes())
    (folder / "more" / "b.bin").write_bytes(b.tobytes())
    weights = [external("a", (4, 1024), "a.bin", 64, 16384), external("b", (1024,), "more/b.bin", 0, 4096)]
    nodes = [node("Add", ["x", "a"], "s"), node("Neg", ["s"], "t"), node("Mul", ["t", "b"], "y")]
    file = folder / "model.onnx"
    file.write_bytes(model(nodes, weights, [value_info("x", (4, 1024))], [value_info("y", (4, 1024))]))
    write_npy(work / "x.npy", (4, 1024), seed=3)
    x = array.array("f", (work / "x.npy").read_bytes()[-16384:])
    single = lambda v: array.array("f", [v])[0]
    expected = [single(-single(u + v) * b[i % 1024]) for i, (u, v) in enumerate(zip(x, a))]
    for devices in ("1", "2"):
        for place in ("inside", "beside"):
            artifact, out = folder / f"{place}{devices}.partita", work / f"{place}{devices}"
            compile_model(file, artifact, "--devices", devices, "--weights", place)
            run_artifact(artifact, "--input", work / "x.npy", "--output", f"{out}/")
            expect_floats(out / "y.npy", expected)
    (folder / "a.bin").write_bytes(bytes(100))
    message = run([BIN / "partita-compile", file, "-o", folder / "short.partita"], expect=1)
    if "a.bin" not in message:
        raise Failure(f"a weight file that is too short is not named:\n{message}")


def big_model(work):
    """More than 2 GiB of weights, in a file with holes: what is read of them is one row at the end."""
    if shutil.disk_usage(work).free < 6 << 30:
        print("the model of more than 2 GiB is left out: less than 6 GiB are free")
        return
    rows, columns = BIG_ROWS, BIG_COLUMNS
    row = array.array("f", [1.5] * columns)
    with open(work / "big.bin", "wb") as data:
        data.truncate(rows * columns * 4 + 4096)
        data.seek(4096 + (rows - 1) * columns * 4)
        data.write(row.tobytes())
    file, artifact = work / "big.onnx", work / "big.partita"
    nodes = [node("Gather", ["w", "i"], "r"), node("Add", ["r", "x"], "y")]
    index = message((1, 1), (2, 7), (8, "i"), (9, struct.pack("<q", rows - 1)))
    weight = external("w", (rows, columns), "big.bin", 4096, rows * columns * 4)
    file.write_bytes(model(nodes, [weight, index], [value_info("x", (1, columns))], [value_info("y", (1, columns))]))
    compile_model(file, artifact, "--weights", "beside")
    if os.stat(artifact).st_size > 1 << 26:
        raise Failure("weights beside the artifact were copied into it")
    write_npy(work / "x.npy", (1, columns), seed=4)
    run_artifact(artifact, "--input", work / "x.npy", "--output", f"{work / 'big-out'}/")
    x = array.array("f", (work / "x.npy").read_bytes()[-4 * columns :])
    expect_floats(work / "big-out" / "y.npy", [array.array("f", [v + 1.5])[0] for v in x])
    # All of it was read to be checked; none of that stays.
    peak = json.loads(run_artifact(artifact, "--benchmark", "--runs", 1, "--warmup", 0, "--json"))["peak_resident_bytes"]
    if peak > 256 << 20:
        raise Failure(f"{peak} bytes are resident where one row of the weights is read")
    # The last bit of it counts.
    with open(work / "big.bin", "r+b") as data:
        data.seek(4096 + rows * columns * 4 - 1)
        data.write(bytes([row.tobytes()[-1] ^ 0x80]))
    text = run_artifact(artifact, "--input", work / "x.npy", "--output", work / "big.npz", expect=1)
    if "the bytes of weight 'w'" not in text or "big.bin" not in text:
        raise Failure(f"a flipped bit of a large weight gets another message:\n{text}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: (npy_constants(pathlib.Path(folder)), repeated_names(pathlib.Path(folder)), external_model(pathlib.Path(folder)), big_model(pathlib.Path(folder))))
    print(".npy constants, repeated names, external data and a model of more than 2 GiB give the numbers they should")
