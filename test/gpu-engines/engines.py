#!/usr/bin/env python3
"""Kernels for GPUs on two engines, bit by bit: the shipped PTX on the interpreter of test/gpu-emulator, and LLVM's IR that it is written from, compiled for
this processor (Engines.cpp). Kernels are those of an example of every op, of some examples of other types, and of models.

    engines.py [PLAN.mlir...]       plans as partita-compile --emit plan writes them; without any, the above (PARTITA_TEST_ALL=1: the slowest model, too)

PARTITA_GPU_EMULATOR is the folder with the emulator's libcuda.so.1. Skipped where it is missing.
"""

import os
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cuda"))
import execute
from examples import examples, large, of_type
from harness import ALL, BIN, data_folder, main, run

MODELS = ("encoder/bert-tiny-mlm-vespa", "encoder/tfbert-qa-keras2onnx", "decoder/gpt2-nopast-pt1.3", "encdec/t5-random-decoder-vespa", "cnn/mnist-pytorch-java",
          "rnn/byte-bilstm-tract", "rnn/dtln-1", "detection/yunet-n-dynamic", "audio/dnsmos-model-v8",
          *(("rnn/gtcrn-stream-simple",) if ALL else ()))  # longer than all others together
NO_CODE = {("erf", "f64")}
KERNELS = "--no-library-calls"  # there is a kernel also of what a library computes
TYPES = ("f32", "f16", "bf16", "f64")
TARGET, OLDER = "sm_90", "sm_80"  # the latter has fewer instructions for 16 bits


def plans(folder):
    """Compiles what is compared."""
    commands, texts = [], []
    for number, (_, name, op, text) in enumerate(examples()):
        for turn, kind in enumerate(TYPES):
            wanted = kind == "f32" or ALL or turn == 1 + number % 3  # examples take turns at the other types
            if kind == "f32" or (wanted and "f32" in text and (op, kind) not in NO_CODE):
                texts.append((f"{name}-{kind}", of_type(text, "f32", kind), OLDER if "16" in kind and (number + turn) % 2 else TARGET))
    texts += [(name, text, TARGET) for name, _, text in large()]
    for name, text, target in texts:
        source = folder / f"{name}.mlir"
        source.write_text(text)
        commands.append((source, folder / f"{name}-{target}.plan.mlir", [KERNELS, "--target", f"cuda:{target}"]))
    for name in MODELS:
        model = data_folder() / "models" / name / "model.onnx"
        commands.append((model, folder / f"{name.replace('/', '-')}.plan.mlir", [*execute.shape_flags(name), *execute.TARGET]))

    def compiled(command):
        source, plan, flags = command
        status, said = run([BIN / "partita-compile", source, *flags, "--emit", "plan", "-o", plan], expect=None)
        if status == 0:
            return plan
        return None if execute.NO_KERNEL.search(said) or execute.WRONG_TYPE.search(said) else execute.Failure(said)

    found = [plan for plan in execute.in_threads(compiled, commands) if plan]
    for failure in found:
        if isinstance(failure, execute.Failure):
            raise failure
    return found


def check():
    execute.need_emulator()
    with tempfile.TemporaryDirectory() as work:
        compared = sys.argv[1:] or plans(pathlib.Path(work))
        jobs = [compared[first :: os.cpu_count()] for first in range(os.cpu_count())]
        for said in execute.in_threads(lambda job: run([BIN / "partita-gpu-engines", *job], timeout=900) if job else "", jobs):
            print(said.strip())


if __name__ == "__main__":
    main(check, use_workers=True)
