#!/usr/bin/env python3
"""Wrong input: each gets one clear error and exit status 1, and leaves no output file behind. Needs only the repository's example model. What fuzzing and
unit tests have in great numbers is here a few times, for the command line's share."""

import os
import pathlib
import random
import re
import struct
import tempfile
import time

from harness import ALL, BIN, BUG, REPOSITORY, Failure, main, run, some, write_npy

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
    for length in [1, 2, 3, 10, 100, len(data) - 1, *(generator.randrange(len(data)) for _ in range(26 if ALL else 0))]:
        cut.write_bytes(data[:length])
        expect_error([BIN / "partita-compile", cut, "-o", out, *BATCH], absent=out)
    for _ in range(32 if ALL else 4):
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
    several = work / "open.onnxtxt"
    several.write_text('<ir_version: 10, opset_import: ["" : 21]>\ng (float[batch, length] x) => (float[batch, length] y) { y = Relu(x) }\n')
    bad(several, "'batch'", "'length'", "--dim", flags=())
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
    bad(blocks + "stages: [[B1], [B2]]\ndevices: [0]\n", "there is 1 device for 2 stages")
    bad(blocks + "stages: [[B1], [B2]]\ndevices: [0, -1]\n", "split.yaml:3:14", "-1")
    bad('blocks: {B1: ["/convolution1/*"]}\nstages: [[B1]]\n', "/convolution1/*", "/conv1")
    bad("blocks: {B1: [\n", "split.yaml:1:14", "a `]` is missing")
    bad("# two blocks\nblocks: {B1: [a, b], B2: 'c}'\nstages: [[B1], [B2]]\n", "split.yaml:2:9", "a `}` is missing: nothing closes this `{`")
    bad("blocks: {B1: [a, b}\nstages: [[B1]]\n", "split.yaml:1:14", "a `]` is missing: nothing closes this `[` before the `}` in line 1")
    bad("blocks:\n  B1: a[0-3\n  B1: b\n", "split.yaml:3:3", "stands here twice")  # a glob is no list
    split.write_text(blocks + "stages: [[B1], [B2]]\ndevices: [0, 1]\n")
    expect_error([BIN / "partita-compile", MODEL, *BATCH, "--partition", split, "--devices", "1", "-o", out], "there is 1 device; the nearest is 0")
    expect_error([BIN / "partita-compile", MODEL, *BATCH, "--partition", work / "absent.yaml", "-o", out], "absent.yaml", absent=out)


CONSTANTS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
  y = Add(x, w)
  [again] w = Constant<value_floats = [3.0, 4.0]>()
}
"""
# A shape that only the data tell.
DATA = """<ir_version: 10, opset_import: ["" : 21]>
g (%s) => (float[n] y) { to = Cast<to = 7>(x)  [r] y = Reshape(x, to) }
"""


def hint_errors(work):
    """What an error tells people to do can be done, and helps."""
    model, out = work / "hints.onnxtxt", work / "out.partita"

    def bad(text, *words):
        model.write_text(text)
        expect_error([BIN / "partita-compile", model, "-o", out], *words, absent=out)

    bad(CONSTANTS, "'w' is defined twice, by initializer 0 and by node 'again'", "ONNX Runtime warns, and computes with the last of them")
    bad(DATA % "float[1] x", "'x', on whose values the model computes; change the model so that a constant gives it")
    bad(DATA % "float[1] x, int64 axis", "'x', on whose values the model computes")
    bad(DATA % "float[1] x, float[2] other", "--constant x=FILE")
    bad(DATA.replace("Cast<to = 7>(x)", "Identity(size)") % "float[1] x, int64[1] size", "--constant size=FILE")
    for asked, runs in [("sm_86", "sm_80"), ("sm_90a", "sm_90"), ("sm_121", "sm_120")]:
        expect_error([BIN / "partita-compile", MODEL, *BATCH, "--target", f"cuda:{asked}", "-o", out],
                     f"not for '{asked}'; those for {runs} run on it: give cuda:{runs}")
        run([BIN / "partita-compile", MODEL, *BATCH, "--target", f"cuda:{runs}", "-o", out])
        out.unlink()
    expect_error([BIN / "partita-compile", MODEL, *BATCH, "--target", "cuda:sm_75", "-o", out], "GPUs before sm_80 run none of these")


def endless(work):
    """Devices, pipes, and texts that are too long or too deep: refused at once."""
    out = work / "out.partita"
    zero = {ending: work / f"zero.{ending}" for ending in ("npy", "pb", "mlir", "onnx", "onnxtxt")}
    for path in zero.values():
        path.symlink_to("/dev/zero")
    pipe = work / "endless"
    os.mkfifo(pipe)
    compile_model = [BIN / "partita-compile", MODEL, *BATCH, "-o", out]

    def bad(command, *words, seconds=10):
        begin = time.monotonic()
        expect_error(["sh", "-c", 'ulimit -v 8388608; exec "$@"', "sh", *command], *words, absent=out)
        if time.monotonic() - begin > seconds:
            raise Failure(f"$ {' '.join(map(str, command))}\ntakes {time.monotonic() - begin:.1f} s")

    for path in ("/dev/zero", pipe):
        for flag in ("--partition", "--machine"):
            bad([*compile_model, flag, path], str(path), "not a regular file")
    for ending in ("npy", "pb"):
        bad([*compile_model, "--constant", f"image={zero[ending]}"], "'image'", "not a regular file")
    for ending in ("mlir", "onnx", "onnxtxt"):
        bad([BIN / "partita-compile", zero[ending], "-o", out], f"zero.{ending}", "not a regular file")

    def written(name, text):
        path = work / name
        path.write_text(text)
        return path

    large = written("large.yaml", "#" * (17 << 20))
    bad([*compile_model, "--partition", large], "large.yaml", "at most 16777216")
    bad([*compile_model, "--machine", large], "large.yaml", "at most 16777216")
    nested = "[" * 50000 + "]" * 50000
    machine = written("machine.json", '{"a": ' + nested + "}")
    bad([*compile_model, "--machine", machine], "machine.json", "line 1, column 106: brackets are nested more than 100 deep", "--calibrate")
    header = '<ir_version: 10, opset_import: ["" : 21]>\n'
    for name, text in [("a.mlir", f"func.func @main() attributes {{a = {nested}}} {{ return }}"),
                       ("b.mlir", "#m = affine_map<(d) -> (" + "-" * 50000 + "d)>\nfunc.func @main() attributes {a = #m} { return }"),
                       ("sum.mlir", "#m = affine_map<(d) -> (" + " + ".join(["d mod 7"] * 200000) + ")>\nfunc.func @main() attributes {a = #m} { return }"),
                       ("alias.mlir", "#a0 = [1]\n" + "".join(f"#a{i} = [#a{i - 1}]\n" for i in range(1, 60000)) +
                        "func.func @main() attributes {a = #a59999} { return }"),
                       ("c.mlir", "func.func @main(%x: " + "tuple<" * 50000 + "i1" + ">" * 50000 + ") { return }"),
                       ("a.onnxtxt", header + "g (" + "seq(" * 50000 + "float" + ")" * 50000 + " x) => (float y) { y = Neg(x) }"),
                       ("b.onnxtxt", header + "g (float x) => (float y) { y = If <then_branch = " * 20000)]:
        bad([BIN / "partita-compile", written(name, text), "-o", out], name,
            "an expression has more than 1000 operators" if "affine" in text else "brackets are nested more than 100 deep")
    for number, key in enumerate(("", "stages: ", "blocks: {B1: ", "shard: {x: [", "targets: ")):
        for many in some(("[" * 50000, "{a: " * 50000, "- " * 50000, "? " * 50000, nested), 5, number):
            bad([*compile_model, "--partition", written("nested.yaml", key + many)], "nested.yaml:1:")

    def repeat(text, count=40000):
        return ", ".join(text.replace("#", str(i)) for i in range(count))

    for name, text, words in [("devices", f"devices: [{repeat('0')}]", "40000 devices"), ("million", f"devices: [{repeat('0', 10**6)}]", "more than 65536 entries"),
                              ("targets", f"targets: [{repeat('cpu')}]", "more than 4096 entries"), ("stages", f"stages: [{repeat('[]')}]", "more than 4096 entries"),
                              ("mesh", f"mesh: {{{repeat('a#: 1')}}}", "at most 64 axes"), ("blocks", f"blocks: {{{repeat('B#: x')}}}", "'x'"),
                              ("begins", f"begin_blocks: {{{repeat('B#: x')}}}", "'x'"), ("shards", f"shard: {{{repeat('x#: [null]')}}}", "'x0'"),
                              ("known", f"blocks: {{{repeat('B#: x')}}}\nstages: [[{repeat('B#')}]]", "'x'")]:
        bad([*compile_model, "--partition", written(f"{name}.yaml", text)], f"{name}.yaml:", words)

    # What partita-run reads of a machine file that it updates.
    artifact = work / "digits.partita"
    run([BIN / "partita-compile", MODEL, *BATCH, "-o", artifact])
    for path, words in [("/dev/zero", "not a regular file"), (pipe, "not a regular file"), (large, "17825792 bytes"), (machine, "--calibrate"),
                        (written("names.json", "{" + repeat('"#": 0', 10**6) + "}"), "more than 32768 names"),
                        (written("maps.json", '{"partita_machine": 4, "teams": [' + repeat("{}", 10**6) + "]}"), "--calibrate")]:
        bad([BIN / "partita-run", artifact, "--calibrate", path], str(path), words)


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
    bad(artifact, "--input", f"image={IMAGES}", "--devices", "cuda:0",
        words=("'cuda:0' is no number of devices", "cuda:0*1", "was compiled for cpu:2; for cuda, compile the model again with --devices cuda:1"))
    bad(artifact, "--input", f"image={IMAGES}", "--devices", "cpu:0", words=("'cpu:0' is no number of devices", "was compiled for cpu:2"))
    expect_error([BIN / "partita-run", "--calibrate", out, "--devices", "cuda:x"], "'cuda:x' is no number of devices", absent=out)
    bad(artifact, "--input", f"image={IMAGES}", "--timeout", "-1")
    newer = work / "newer.partita"
    run([BIN / "partita-compile", MODEL, *BATCH, "--cpu-level", "v4", "-o", newer])
    bad(newer, "--input", f"image={IMAGES}", "--cpu-level", "v3", words=("newer.partita", "x86-64-v4", "compile the model"))

    data = artifact.read_bytes()
    broken = work / "broken.partita"
    generator = random.Random(0)
    for length in [0, 1, 63, 64, 100, 4095, 4096, len(data) - 1, *(generator.randrange(len(data)) for _ in range(8 if ALL else 0))]:
        broken.write_bytes(data[:length])
        bad(broken, "--input", f"image={IMAGES}", words=("broken.partita",))
    for byte in some([*range(64), *range(64, 64 + 5 * 64, 7)], 8):
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
    for _ in range(100 if ALL else 20):
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
    places = [("nn-fold-scale", "in nn-fold-scale"), ("compiling kernels", "in compiling kernels"), ("generating machine code", "in generating machine code"),
              ("writing the artifact", "in writing the artifact"), ("/conv2/Conv", "at node '/conv2/Conv'")]
    # A thread of the pool has a stack of its own, and nodes are no passes.
    always = {"stack": places[2], "segmentation": places[4]}
    for number, (kind, words) in enumerate(kinds.items()):
        for place, where in dict.fromkeys([*some(places, len(places), number), always.get(kind, places[number % 5])]):
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
        main(lambda: (compile_errors(work), sequence_errors(work), partition_errors(work), hint_errors(work), endless(work), run_errors(work), weight_errors(work), crash_reports(work)))
    print("every wrong input got its error")
