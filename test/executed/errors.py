#!/usr/bin/env python3
"""Wrong input: each gets one clear error and exit status 1, and leaves no output file behind. Needs only the repository's example model."""

import os
import pathlib
import random
import re
import struct
import tempfile

from harness import BIN, BUG, REPOSITORY, Failure, main, run, write_npy

MODEL = REPOSITORY / "examples" / "digits" / "digits.onnx"
IMAGES = REPOSITORY / "examples" / "digits" / "digits.npy"
BATCH = ("--dim", "batch=2")


def expect_error(command, *needles, absent=None, **options):
    """The command must exit 1 with one error that says every needle."""
    text = run(command, expect=1, **options)
    for needle in ("error:", *needles):
        if needle not in text:
            raise Failure(f"$ {' '.join(map(str, command))}\nthe error does not say {needle!r}:\n{text}")
    if text.count("error:") != 1:
        raise Failure(f"$ {' '.join(map(str, command))}\nsays more than one error:\n{text}")
    if absent is not None and absent.exists():
        raise Failure(f"$ {' '.join(map(str, command))}\nleft {absent} behind")


def compile_errors(work):
    out = work / "out.partita"

    def bad(model, *words, flags=BATCH):
        expect_error([BIN / "partita-compile", model, "-o", out, *flags], *words, absent=out)

    bad(work / "absent.onnx", "absent.onnx")
    bad(work, str(work))
    text = work / "text.onnx"
    text.write_text("this is not a model\n" * 50)
    bad(text, "text.onnx", "not an ONNX model")
    empty = work / "empty.onnx"
    empty.write_bytes(b"")
    bad(empty, "empty.onnx")

    data = MODEL.read_bytes()
    cut = work / "cut.onnx"
    generator = random.Random(0)
    for length in [1, 2, 3, 10, 100, len(data) - 1, *(generator.randrange(len(data)) for _ in range(26))]:
        cut.write_bytes(data[:length])
        expect_error([BIN / "partita-compile", cut, "-o", out, *BATCH], absent=out)
    for _ in range(32):
        mutated = bytearray(data)
        for _ in range(4):
            mutated[generator.randrange(600)] = generator.randrange(256)
        cut.write_bytes(mutated)
        status, text = run([BIN / "partita-compile", cut, "-o", out, *BATCH], expect=None)
        if status not in (0, 1):
            raise Failure(f"a mutated model ends with status {status}:\n{text[-2000:]}")
        out.unlink(missing_ok=True)

    unknown = work / "unknown.onnx"
    unknown.write_bytes(data.replace(b"Softmax", b"Sofdmax"))
    bad(unknown, "Sofdmax", "/Sof")
    bad(MODEL, "batch", "--dim", flags=())
    bad(MODEL, "batsh", "batch", flags=("--dim", "batsh=2"))
    bad(MODEL, "image", flags=("--shape", "image=2x1x8"))
    bad(MODEL, "image", flags=("--shape", "image=2x1x8x9"))
    bad(MODEL, "imago", "image", flags=("--shape", "imago=2x1x8x8"))
    bad(MODEL, "--dim", flags=("--dim", "batch=two"))
    expect_error([BIN / "partita-compile", MODEL, *BATCH, "-o", work / "no" / "such" / "folder.partita"], "folder")
    # What is no file stays what it is, as /dev/null should.
    pipe = work / "pipe"
    os.mkfifo(pipe)
    for flag in ("-o", "--emit-onnx"):
        expect_error([BIN / "partita-compile", MODEL, *BATCH, "-o", work / "a.partita", flag, pipe] if flag != "-o" else
                     [BIN / "partita-compile", MODEL, *BATCH, "-o", pipe], "cannot write", str(pipe))
        if not pipe.is_fifo():
            raise Failure(f"{flag} put a file in the place of a pipe")


SEQUENCES = """<ir_version: 10, opset_import: ["" : 21]>
g (seq(float[2]) x, optional(float[3]) o, float[4] t) => (seq(float[2]) y, optional(float[3]) p, float[4] u) {
  y = Identity(x)  p = Identity(o)  u = Abs(t)
}
"""


def message(*parts):
    """A protobuf message of fields (number, bytes or a small integer)."""
    return b"".join(bytes([n << 3 | 2, len(v)]) + v if isinstance(v, bytes) else bytes([n << 3, v]) for n, v in parts)


def sequence_errors(work):
    """Sequences and optionals: what does not fit the model, and test data that does not fit what was compiled."""
    model, artifact, out = work / "sequences.onnxtxt", work / "sequences.partita", work / "out.partita"
    model.write_text(SEQUENCES)

    def bad(*flags, words):
        expect_error([BIN / "partita-compile", model, "-o", out, *flags], *words, absent=out)

    bad(words=("--length x=COUNT",))
    bad("--length", "x=two", words=("--length x=two", "sequence=3"))
    bad("--length", "x=70000", words=("--length x=70000", "65536"))
    bad("--length", "t=1", words=("'t' is not a sequence",))
    bad("--length", "x=1", "--absent", "x", words=("'x' is not an optional",))
    bad("--length", "x=1", "--shape", "x.1=2", words=("x.1", "did you mean", "x.0"))
    bad("--length", "x=1", "--shape", "x.0=3", words=("--shape x.0", "2"))

    run([BIN / "partita-compile", model, "--length", "x=2", "-o", artifact])
    data = work / "data"
    data.mkdir()

    def tensor(count):
        return message((1, count), (2, 1), (9, bytes(4 * count)))

    def write(kind, sequence=(2, 2), optional=True, plain=4):
        (data / f"{kind}_0.pb").write_bytes(message((2, 1), *((3, tensor(n)) for n in sequence)))
        (data / f"{kind}_1.pb").write_bytes(message((2, 1), (3, tensor(3))) if optional else message((2, 0)))
        (data / f"{kind}_2.pb").write_bytes(tensor(plain))

    def bad_data(*words):
        expect_error([BIN / "partita-run", artifact, "--test-data", data], *words)

    def differs(*words):
        text = run([BIN / "partita-run", artifact, "--test-data", data], expect=1)
        for word in ("DIFFERENT", "FAIL", *words):
            if word not in text:
                raise Failure(f"the comparison does not say {word!r}:\n{text}")

    write("output")
    write("input", sequence=(2, 2, 2))
    bad_data("'x'", "a sequence of 3 tensors", "--length x=3")
    write("input", optional=False)
    bad_data("'o'", "without a value", "--absent o")
    write("input", sequence=(2, 3))
    bad_data("x.1", "3")
    write("input")
    (data / "input_0.pb").write_bytes(tensor(2))
    bad_data("input_0.pb", "SequenceProto")
    write("input")
    run([BIN / "partita-run", artifact, "--test-data", data])
    write("output", sequence=(2,))
    differs("'y'", "a sequence of 2 tensors, not a sequence of 1 tensor", "1 of 4")
    write("output", optional=False)
    differs("'p'", "an optional tensor, not an optional without a value")

    def bad_input(*inputs, words):
        flags = [word for pair in inputs for word in ("--input", pair)]
        expect_error([BIN / "partita-run", artifact, *flags], *words)

    whole = ["x=" + str(data / "input_0.pb"), "o=" + str(work / "o.npy"), "t=" + str(data / "input_2.pb")]
    write_npy(work / "o.npy", (3,))
    run([BIN / "partita-run", artifact, *(word for pair in whole for word in ("--input", pair))])
    bad_input(*whole[1:], words=("x.0=FILE", "x.1=FILE"))
    bad_input("x=" + str(work / "o.npy"), *whole[1:], words=("a sequence of 2 tensors", "x.0=FILE"))
    bad_input(whole[0], "x.1=" + str(data / "input_2.pb"), *whole[1:], words=("'x.1' is given twice",))


def partition_errors(work):
    out, split = work / "out.partita", work / "split.yaml"

    def bad(text, *words):
        split.write_text(text)
        expect_error([BIN / "partita-compile", MODEL, *BATCH, "--partition", split, "-o", out], "split.yaml", *words, absent=out)

    blocks = 'blocks: {B1: ["/scale", "/conv1/*"], B2: ["/conv2/*", "/conv3/*", "/Flatten", "/fc*", "/Softmax"]}\n'
    bad(blocks + "stages: [[B1], [B3]]\n", "B3", "did you mean")
    bad(blocks + "stage: [[B1], [B2]]\n", "stage", "stages")
    bad(blocks + "stages: [[B1], [B2]]\nstrategy: pipelind\n", "pipelind", "pipelined")
    bad(blocks + "stages: [[B1], [B2]]\ndevices: [0]\n", "devices")
    bad(blocks + "stages: [[B1], [B2]]\ndevices: [0, -1]\n", "split.yaml:3:14", "-1")
    bad('blocks: {B1: ["/convolution1/*"]}\nstages: [[B1]]\n', "/convolution1/*", "/conv1")
    bad("blocks: {B1: [\n")
    expect_error([BIN / "partita-compile", MODEL, *BATCH, "--partition", work / "absent.yaml", "-o", out], "absent.yaml", absent=out)


def run_errors(work):
    artifact, out = work / "digits.partita", work / "out.npz"
    run([BIN / "partita-compile", MODEL, *BATCH, "--devices", "2", "-o", artifact])

    def bad(path, *flags, words=(), **options):
        expect_error([BIN / "partita-run", path, *flags, "--output", out], *words, absent=out, **options)

    bad(work / "absent.partita", words=("absent.partita",))
    bad(MODEL, words=("digits.onnx",))
    bad(artifact, "--input", f"image={work / 'absent.npy'}", words=("absent.npy",))
    bad(artifact, "--input", f"imago={IMAGES}", words=("imago", "image"))
    wrong = work / "wrong.npy"
    write_npy(wrong, (2, 1, 8, 9))
    bad(artifact, "--input", f"image={wrong}", words=("image", "8", "9"))
    write_npy(wrong, (2, 1, 8, 8), "i8")
    bad(artifact, "--input", f"image={wrong}", words=("image", "int64"))
    wrong.write_bytes(IMAGES.read_bytes()[:200])
    bad(artifact, "--input", f"image={wrong}", words=("wrong.npy",))
    bad(artifact, "--input", f"image={IMAGES}", "--devices", "cpu:3", words=("3", "2"))
    bad(artifact, "--input", f"image={IMAGES}", "--timeout", "-1")
    newer = work / "newer.partita"
    run([BIN / "partita-compile", MODEL, *BATCH, "--cpu-level", "v4", "-o", newer])
    bad(newer, "--input", f"image={IMAGES}", "--cpu-level", "v3", words=("newer.partita", "x86-64-v4", "compile the model"))

    data = artifact.read_bytes()
    broken = work / "broken.partita"
    generator = random.Random(0)
    for length in [0, 1, 63, 64, 100, 4095, 4096, len(data) - 1, *(generator.randrange(len(data)) for _ in range(8))]:
        broken.write_bytes(data[:length])
        bad(broken, "--input", f"image={IMAGES}", words=("broken.partita",))
    for byte in [*range(64), *range(64, 64 + 5 * 64, 7)]:
        flipped = bytearray(data)
        flipped[byte] ^= 0x10
        broken.write_bytes(flipped)
        bad(broken, "--input", f"image={IMAGES}", words=("broken.partita",))


def weights_section(data):
    """Offset and size of the weights in an artifact (runtime/abi/artifact.h)."""
    for i in range(struct.unpack_from("<I", data, 12)[0]):
        kind, _, offset, size = struct.unpack_from("<IIQQ", data, 64 + 64 * i)
        if kind == 3:
            return offset, size
    raise Failure("the artifact has no weights")


def weight_errors(work):
    """A flipped bit of a weight is found when it is loaded, unless somebody says that weights are to be trusted."""
    artifact, broken, out = work / "digits.partita", work / "broken.partita", work / "out.npz"
    run([BIN / "partita-compile", MODEL, *BATCH, "--devices", "2", "-o", artifact])
    flags = ["--input", f"image={IMAGES}", "--output", out]
    run([BIN / "partita-run", artifact, *flags])
    right = out.read_bytes()
    out.unlink()
    data, generator, named = artifact.read_bytes(), random.Random(0), set()
    begin, size = weights_section(data)
    for _ in range(100):
        at, flipped = begin + generator.randrange(size), bytearray(data)
        flipped[at] ^= 1 << generator.randrange(8)
        broken.write_bytes(flipped)
        status, text = run([BIN / "partita-run", broken, *flags], expect=None)
        if status == 0:  # between two weights
            if data[at] != 0 or out.read_bytes() != right:
                raise Failure(f"a flipped bit of byte {at} is not found")
            out.unlink()
            continue
        found = re.search(r"broken.partita': the bytes of weight '([^']+)' .* are not those the model was compiled with", text)
        if not found or out.exists():
            raise Failure(f"a flipped bit of byte {at} gets another message:\n{text}")
        named.add(found.group(1))
        run([BIN / "partita-run", broken, "--trust-weights", *flags])
        out.unlink()
    if len(named) < 4:
        raise Failure(f"flipped bits were found in these weights only: {named}")

    beside = work / "beside.partita"
    model = work / "copy.onnx"
    model.write_bytes(MODEL.read_bytes())
    run([BIN / "partita-compile", model, *BATCH, "--weights", "beside", "-o", beside])
    changed = bytearray(model.read_bytes())
    changed[len(changed) // 2] ^= 2
    model.write_bytes(changed)
    expect_error([BIN / "partita-run", beside, *flags], "copy.onnx", "weight", absent=out)
    run([BIN / "partita-run", beside, "--trust-weights", *flags])


def crash_reports(work):
    """What is a bug of Partita's ends in one line that says where, with its own exit status, and leaves nothing behind."""
    folder = work / "crash"
    folder.mkdir()
    out = folder / "out.partita"
    command = [BIN / "partita-compile", MODEL, *BATCH, "-o", out]
    kinds = {"abort": "abort", "assertion": 'assertion \'kind != "assertion"\' failed', "bus": "bus error", "exception": "as PARTITA_CRASH wants it",
             "fatal": "as PARTITA_CRASH wants it", "floating-point": "arithmetic exception", "illegal": "illegal instruction",
             "segmentation": "segmentation fault", "stack": "the stack is full"}
    for kind, words in kinds.items():
        for place, where in [("nn-fold-scale", "in nn-fold-scale"), ("compiling kernels", "in compiling kernels"), ("generating machine code", "in generating machine code"),
                             ("writing the artifact", "in writing the artifact"),
                             ("/conv2/Conv", "at node '/conv2/Conv'")]:
            if kind == "exception" and place == "/conv2/Conv":
                continue  # while reading the model: ONNX's library throws, too, and not because of a bug
            text = run(command, expect=BUG, env={"PARTITA_CRASH": f"{kind}@{place}"})
            if text.count("\n") != 1 or not text.startswith("partita-compile: error: a bug of Partita's: ") or words not in text or where not in text:
                raise Failure(f"{kind} in {place} ends with\n{text}")
            if list(folder.iterdir()):
                raise Failure(f"{kind} in {place} leaves {list(folder.iterdir())} behind")
    run(command, env={"PARTITA_CRASH": "abort@no-such-pass"})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        main(lambda: (compile_errors(work), sequence_errors(work), partition_errors(work), run_errors(work), weight_errors(work), crash_reports(work)))
    print("every wrong input got its error")
