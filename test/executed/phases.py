#!/usr/bin/env python3
"""The compiler's phases, repeated: partita-compile --dump-phases writes the IR behind each phase and the command of partita-opt that makes it of the
file before. Such a command must give that text (those of training, and one in three of the others, in turns); and all phases in one command, on what was
imported, must give the plan.

    phases.py                all cases
    phases.py split heads    those whose name holds one of these words
"""

import difflib
import pathlib
import shlex
import sys
import tempfile

from harness import BIN, REPOSITORY, Failure, data_folder, main, run, some

DIGITS = REPOSITORY / "examples/digits/digits.onnx"
LOSS = ("--loss", "mse:probabilities")
TRAINED = (*LOSS, "--optimizer", "adamw,learning_rate=0.01,weight_decay=0.1", "--group", "*bias*,weight_decay=0", "--init", "*=normal,std=0.02", "--clip-norm", "0.1")


def models():
    """Name: (model, flags)."""
    data = data_folder() / "models"

    def find(name):
        return next(path for path in sorted((data / name).rglob("*.onnx*")) if path.suffix in (".onnx", ".onnxtxt"))

    digits, gpt, bert, mnist = DIGITS, find("decoder/gpt2-nopast-pt1.3"), find("encoder/bert-toy-ort"), find("cnn/mnist-burn")
    batch = ("--dim", "batch=4")
    sentence = ("--dim", "batch=2", "--dim", "max_seq_len_in_batch=8")
    tokens = ("--dim", "batch_size=1", "--dim", "seq_len=8")
    return {
        "plain": (digits, batch),
        "split": (digits, (*batch, "--devices", "2")),
        "looped": (digits, (*batch, "--devices", "2", "--schedule", "looped", "--micro-batches", "4", "--threads", "1", "--workspace", "2")),
        "memory": (digits, (*batch, "--devices", "3", "--memory", "1200KiB")),
        "sizes": (digits, ("--dim", "batch=1,4")),
        "exposed": (digits, (*batch, "--expose")),
        "unfused": (digits, (*batch, "--expose-unfused", "--expose", "*[!x y]*")),
        "reference": (digits, (*batch, "--reference", "--devices", "2")),
        "calls": (digits, (*batch, "--no-library-calls", "--no-winograd")),
        "tensors": (bert, (*sentence, "--tensor-parallel", "2", "--explain")),
        "reproducible": (bert, (*sentence, "--tensor-parallel", "2", "--devices", "4", "--reproducible")),
        "heads": (gpt, tokens),
        "gpu": (gpt, (*tokens, "--target", "cuda:sm_90")),
        "gpu-attention": (bert, (*sentence, "--target", "cuda:sm_90", "--attention-calls")),
        "gpu-mixed-precision": (bert, (*sentence, "--target", "cuda:sm_90", "--mixed-precision", "bf16")),
        "kinds": (bert, (*sentence, "--devices", "cuda:1,cpu:1", "--target", "cuda:sm_90")),
        "convolutions": (mnist, ("--devices", "2", "--data-parallel", "2")),
        "gradients": (digits, (*batch, "--gradients", "inputs", *LOSS, "--freeze", "*bias*")),
        "cotangents": (digits, (*batch, "--gradients", *LOSS, "--expose")),
        "cotangents-unfused": (digits, (*batch, "--gradients", *LOSS, "--expose-unfused")),
        "summed": (digits, (*batch, "--gradients", *LOSS, "--devices", "2", "--micro-batches", "3", "--schedule", "1f1b")),
        "trained": (digits, (*batch, *TRAINED)),
        "trained-split": (digits, (*batch, *TRAINED[:-2], "--devices", "2", "--micro-batches", "4", "--schedule", "zb_h1")),
        "replicas": (REPOSITORY / "examples/replicas/norm.onnxtxt", ("--replicas", "2", "--dim", "samples=4")),
    }


def difference(expected, found):
    lines = [line[:300] for line in difflib.unified_diff(expected.splitlines(), found.splitlines(), "partita-compile", "partita-opt", lineterm="", n=0)]
    return "\n".join(lines[:12])


def repeat(folder, number):
    """The phases of training and one in three of all, from `number` on, each for itself, and all together; returns how many were tried by themselves."""
    files = sorted(folder.glob("*.mlir"))
    flags = []
    alone = {*some(files[1:], 3, number), *(path for path in files[1:] if path.stem.endswith(("-train", "-differentiate")))}
    for path in files[1:]:
        command, _, expected = path.read_text().partition("\n")
        words = shlex.split(command.removeprefix("// "))
        flags += words[2:-1]
        if path not in alone:
            continue
        found = run([BIN / words[0], *words[1:]], cwd=folder, timeout=120)
        # Remarks come first.
        if not found.endswith(expected):
            raise Failure(f"{path}: {command}\ngives another text:\n{difference(expected, found)}")
    found = run([BIN / "partita-opt", "--mlir-print-debuginfo", *flags, files[0].name], cwd=folder, timeout=120)
    if not found.endswith(expected):
        raise Failure(f"{folder}: all phases in one command give another text:\n{difference(expected, found)}")
    return len(alone)


def check():
    words = sys.argv[1:]
    count = 0
    with tempfile.TemporaryDirectory() as work:
        for number, (name, (model, flags)) in enumerate(models().items()):
            if words and not any(word in name for word in words):
                continue
            folder = pathlib.Path(work) / name / "a folder"
            run([BIN / "partita-compile", model, *flags, "--emit", "plan", "--dump-phases", folder])
            folders = sorted({path.parent for path in folder.rglob("*.mlir")})
            done = [repeat(each, number + turn) for turn, each in enumerate(folders)]
            print(f"{name}: {len(done)} plans, {sum(done)} phases")
            count += sum(done)
    print(f"{count} phases give the same text in partita-opt")


if __name__ == "__main__":
    main(check)
