#!/usr/bin/env python3
"""Wrong input: each gets one clear error and exit status 1, and leaves no output file behind. Needs only the repository's example model."""

import pathlib
import random
import tempfile

from harness import BIN, REPOSITORY, Failure, main, run, write_npy

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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        main(lambda: (compile_errors(work), partition_errors(work), run_errors(work)))
    print("every wrong input got its error")
