#!/usr/bin/env python3
"""Runs kernels for GPUs on test/gpu-emulator, and compares what they compute with the CPU.

    execute.py examples             an example of every op: bit by bit what the CPU computes, except where LOOSE says otherwise; on one architecture, a third of
                                    them on each other
    execute.py types                half of the same with other element types in the place of f32 and i32
    execute.py sizes                the same of large tensors, for some ops
    execute.py shapes               the models of test/cuda/shapes in the same way: of shapes that kernels treat in ways of their own
    execute.py suite                each third case of the ONNX backend suite that passes on the CPU and compiles for GPUs, against its test data
    execute.py models               models, against their reference vectors, each with streams in two of four orders

With PARTITA_TEST_ALL=1 nothing is left out. PARTITA_GPU_EMULATOR is the folder with the emulator's libcuda.so.1. Skipped where it is missing. A folder with
(links to) a real driver and NVIDIA's libraries does as well: then PARTITA_GPU_ARCHITECTURES=90, say, is what its GPU runs.
"""

import argparse
import concurrent.futures
import itertools
import json
import math
import os
import pathlib
import random
import re
import struct
import sys
import tempfile
import zlib

from examples import SHAPES, examples, large, of_type

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "executed"))
from harness import ALL, BIN, REPOSITORY, SKIPPED, Failure, cpu_level, data_folder, input_names, main, run, some, write_npy
from vectors import shape_text
import backend
import models as executed

EMULATOR = pathlib.Path(os.environ.get("PARTITA_GPU_EMULATOR", REPOSITORY / "build" / "test" / "gpu-emulator" / "lib"))
ARCHITECTURES = os.environ.get("PARTITA_GPU_ARCHITECTURES", "90 80 100 120").split()
TARGET = ("--target", f"cuda:sm_{ARCHITECTURES[0]}")
# On CPUs these call the C library; on GPUs they are arithmetic of f64.
LIBRARY = {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "pow", "rem", "sin", "sinh", "tan"}
# Sums are added in another order.
REDUCING = {"attention", "conv", "dot", "recurrent", "reduce", "scan", "scatter", "softmax", "window_reduce"}
LOOSE = LIBRARY | REDUCING
TOLERANCE = ("--rtol", "1e-5", "--atol", "1e-6")
TYPES = (("f32", "f16"), ("f32", "bf16"), ("f32", "f64"), ("i32", "i64"), ("i32", "i8"), ("i32", "ui8"))
TYPE_TOLERANCES = {"f16": ("--rtol", "2e-3", "--atol", "2e-3"), "bf16": ("--rtol", "2e-2", "--atol", "2e-2")}
LONG_TOLERANCE = ("--rtol", "1e-4", "--atol", "1e-4")  # of sums of many elements
OPTIMIZED = 5  # each such case of the suite is compiled as a user has it
PERIOD = 4093  # of inputs; no size of a tensor
MODELS = ("cnn/mnist-burn", "cnn/mnist-cntk-8", "cnn/mnist-pytorch-java", "cnn/conv-bn-fusion", "encoder/bert-tiny-mlm-vespa", "encoder/bert-toy-ort",
          "encoder/bert-dummy-vespa", "encoder/tfbert-qa-keras2onnx", "decoder/gpt2-nopast-pt1.3", "encdec/t5-random-encoder-vespa", "encdec/t5-random-decoder-vespa",
          "rnn/byte-bilstm-tract", "rnn/dtln-1", "rnn/gtcrn-stream-simple", "training/ort-pipeline-split", "detection/yunet-n-dynamic", "detection/yunet-n-640",
          "detection/ultraface-slim-320", "audio/dnsmos-model-v8", "cnn/mobilenetv2-qdq-int8")
LONG = {"rnn/gtcrn-stream-simple", "detection/yunet-n-640", "cnn/mobilenetv2-qdq-int8"}  # seconds a run: one order of the streams
TOO_LONG = {"cnn/mobilenetv2-qdq-int8"}  # half a minute a run
WITHOUT_VECTORS = "cnn/super-resolution"
NO_SUCH_OP = "no such op"
WRONG_TYPE = re.compile(r"op operand #\d+ must be|'nn.bitcast' op needs element types of one width|'nn.recurrent' cannot be computed by a kernel's loops")
NO_KERNEL = re.compile(r"has no kernel for CUDA devices|has no code for CUDA devices")
LETTERS = {"f32": ("f", "<f4"), "f64": ("d", "<f8"), "f16": ("e", "<f2"), "bf16": ("H", "|V2"), "i32": ("i", "<i4"), "i64": ("q", "<i8"), "i8": ("b", "|i1"), "ui8": ("B", "|u1"), "i1": ("B", "|b1")}


def need_emulator():
    """Ends the test as skipped, where there is none."""
    if not (EMULATOR / "libcuda.so.1").exists():
        print(f"skipped: no emulator at {EMULATOR} (set PARTITA_GPU_EMULATOR)")
        sys.exit(SKIPPED)


def emulated(*command, seed=1, architecture="90", **options):
    """`seed`: which order of the streams."""
    return run(list(command), env={"LD_LIBRARY_PATH": str(EMULATOR), "CUDA_EMU_SEED": str(seed), "CUDA_EMU_SM": architecture}, **options)


def bf16(value):
    """The bits of a number that bf16 has, or of the next one below."""
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def write_input(path, shape, kind, noise):
    """Floats in [-2, 2), integers in [-3, 4), and numbers that are not negative where there is no sign. Behind the first PERIOD of them they repeat."""
    count = math.prod(shape)
    drawn = range(min(count, PERIOD))
    letter, name = LETTERS[kind]
    if letter in "fde" or kind == "bf16":
        values = [noise.randrange(-512, 512) / 256 for _ in drawn]
    else:
        low, high = {"i1": (0, 2), "ui8": (0, 8)}.get(kind, (-3, 4))
        values = [noise.randrange(low, high) for _ in drawn]
    if kind == "bf16":
        values = [bf16(value) for value in values]
    data = struct.pack(f"<{len(values)}{letter}", *values)
    size = struct.calcsize(letter) * count
    header = f"{{'descr': '{name}', 'fortran_order': False, 'shape': ({''.join(f'{s}, ' for s in shape)}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + (data * (size // max(len(data), 1) + 1))[:size])


def run_example(folder, name, op, text, tolerance=TOLERANCE, architecture=ARCHITECTURES[0]):
    """None, or why an example is not computed as on the CPU. NO_SUCH_OP: there is none of its types."""
    source, reference = folder / f"{name}.mlir", folder / f"{name}.npz"
    source.write_text(text)
    feeds, noise = [], random.Random(name)
    for number, (port, dims, kind) in enumerate(re.findall(r"%(\w+): tensor<((?:\d+x)*)(\w+)>", text[text.index("@main") : text.index("->")])):
        path = folder / f"{name}.{number}.npy"
        write_input(path, [int(size) for size in dims.split("x")[:-1]], kind, noise)
        feeds += ["--input", f"{port}={path}"]
    cpu, gpu = folder / f"{name}.cpu", folder / f"{name}.gpu"
    status, said = run([BIN / "partita-compile", source, "--quiet", "-o", cpu, "--cpu-level", cpu_level(), "--no-optimize"], expect=None)
    if status:
        return NO_SUCH_OP if WRONG_TYPE.search(said) else said
    status, said = run([BIN / "partita-compile", source, "--quiet", "-o", gpu, "--target", f"cuda:sm_{architecture}"], expect=None)
    if status:
        if NO_KERNEL.search(said):
            return "no kernel"
        raise Failure(said)
    run([BIN / "partita-run", cpu, *feeds, "--output", reference])
    tolerance = tolerance if op in LOOSE else ("--rtol", "0", "--atol", "0")
    status, said = emulated(BIN / "partita-run", gpu, *feeds, "--compare", reference, *tolerance, architecture=architecture, expect=None)
    for path in folder.glob(f"{name}.*"):
        path.unlink()
    return f"{name}: {said.strip()}" if status else None


def in_threads(function, items):
    # A real driver makes contexts for few processes at once.
    with concurrent.futures.ThreadPoolExecutor(min(os.cpu_count(), 6)) as pool:
        return list(pool.map(function, items))


def summarise(results, what):
    results = [text for text in results if text != NO_SUCH_OP]
    wrong = [text for text in results if text not in (None, "no kernel")]
    print(f"{results.count(None)} of {len(results)} {what} agree, {results.count('no kernel')} have no kernel")
    if wrong:
        raise Failure("\n".join(wrong))


def check_examples(folder):
    for number, architecture in enumerate(ARCHITECTURES):
        summarise(in_threads(lambda each: run_example(folder, *each[1:], architecture=architecture), some(examples(), 3 if number else 1, number)), f"examples on sm_{architecture}")


def check_shapes(folder):
    summarise(in_threads(lambda each: run_example(folder, *each[1:]), list(examples(SHAPES))), "shapes")


def check_types(folder):
    """The examples once more, of other types."""
    cases = []
    for (file, name, op, text), (old, new) in itertools.product(examples(), TYPES):
        if old in text and (old == "f32" or file == "pointwise"):
            cases.append((f"{name}-{new}", op, of_type(text, old, new), TYPE_TOLERANCES.get(new, TOLERANCE)))
    summarise(in_threads(lambda each: run_example(folder, *each), some(cases, 2)), "examples of other types")


def check_sizes(folder):
    """Examples of large tensors."""
    cases = []
    for (name, op, text), kind in itertools.product(large(), ("f32", "f16")):
        if kind == "f32" or "f32" in text:
            cases.append((f"{name}{kind}", op, of_type(text, "f32", kind), TYPE_TOLERANCES.get(kind, LONG_TOLERANCE)))
    summarise(in_threads(lambda each: run_example(folder, *each), cases), "large examples")


def run_case(folder, name, flags_of_code):
    case, artifact = backend.find_cases()[name], folder / f"{name}.partita"
    flags = backend.binding_flags(backend.input_ports(case / "model.onnx"), case / "test_data_set_0")
    text = backend.compiled(case, artifact, 1, [*flags, *TARGET, *flags_of_code], False)
    if text is not None:
        return "no kernel" if NO_KERNEL.search(text) else f"{name}: {text}"
    for data in sorted(case.glob("test_data_set_*")):
        status, said = emulated(BIN / "partita-run", artifact, "--test-data", data, *backend.TOLERANCE, expect=None)
        if status:
            return f"{name}: {backend.reason_of(said)}"
    artifact.unlink()
    return None


def check_suite(folder):
    names = some((name for name, result in backend.read_list().items() if result == "pass"), 3)
    # Optimized code takes several times as long to compile.
    cases = [(name, () if number % OPTIMIZED == 0 else ("--no-optimize",)) for number, name in enumerate(names)]
    summarise(in_threads(lambda case: run_case(folder, *case), cases), "cases")


def shape_flags(name):
    """Flags of the compiler for inputs as large as those of a shared model's reference vectors."""
    case = data_folder() / "models" / name
    names = input_names(case / "model.onnx")
    return [word for k, port in enumerate(names) for word in ("--shape", f"{port}={shape_text((case / 'refeval_data_set_0' / f'input_{k}.pb').read_bytes())}")]


def compile_for_gpus(folder, name, *split, more=()):
    """The artifact of a shared model, and the folder with its reference vectors."""
    case, artifact = data_folder() / "models" / name, folder / (name.replace("/", "-") + "".join(split) + ".partita")
    run([BIN / "partita-compile", case / "model.onnx", "--quiet", "-o", artifact, *TARGET, *shape_flags(name), *split, *more])
    return artifact, case / "refeval_data_set_0"


def run_on_gpus(name, artifact, vectors, *flags, seed=1):
    status, said = emulated(
        BIN / "partita-run", artifact, "--test-data", vectors, "--timeout", "600", *executed.TOLERANCES.get(name, executed.TOLERANCE), *flags,
        seed=seed, expect=None, timeout=900)
    return f"{name}: {said.strip()}" if status else None


def seeds_for(name, what=""):
    """Which orders of the streams, of four: two that `what` draws, the artifact of the model."""
    first = zlib.crc32(f"{name} {what}".encode()) % 4
    return (1,) if name in LONG else (first + 1, (first + 2) % 4 + 1)


def longest_first(names):
    return sorted(names, key=lambda name: name not in LONG)


def run_model(folder, name):
    artifact, vectors = compile_for_gpus(folder, name)
    for seed in seeds_for(name):
        if wrong := run_on_gpus(name, artifact, vectors, seed=seed):
            return f"seed {seed}: {wrong}"
    return None if name in LONG else check_memory(name, artifact)


def run_without_vectors(folder, name):
    """Against the CPU's output."""
    case, cpu, gpu = data_folder() / "models" / name / "model.onnx", folder / "cpu.partita", folder / "gpu.partita"
    (port, shape, kind, low, high), = executed.WIDE[name][0]
    write_npy(folder / "input.npy", shape, kind, low=low, high=high)
    feed = ("--input", f"{port}={folder / 'input.npy'}")
    for artifact, target in ((cpu, ()), (gpu, TARGET)):
        run([BIN / "partita-compile", case, "--quiet", "-o", artifact, "--shape", f"{port}={'x'.join(map(str, shape))}", *target])
    run([BIN / "partita-run", cpu, *feed, "--output", folder / "cpu.npz"])
    status, said = emulated(BIN / "partita-run", gpu, *feed, "--compare", folder / "cpu.npz", *executed.TOLERANCE, expect=None)
    return f"{name}: {said.strip()}" if status else None


def check_memory(name, artifact):
    """None, or why a device has more memory than the plan says."""
    said = emulated(BIN / "partita-run", artifact, "--benchmark", "--runs", "1", "--warmup", "0", "--json")
    memory = json.loads(said[said.index("{"):])["memory"]
    over = [device for device in memory if device["used_bytes"] > device["planned_bytes"]]
    return f"{name}: more memory than planned: {over}" if over else None


def check_models(folder):
    names = [name for name in longest_first(MODELS) if ALL or name not in TOO_LONG]
    results = in_threads(lambda name: run_model(folder, name), names)
    summarise([*results, run_without_vectors(folder, WITHOUT_VECTORS)], "models")


def check():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("examples", "types", "sizes", "shapes", "suite", "models"))
    options = parser.parse_args()
    need_emulator()
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        if options.what == "examples":
            check_examples(folder)
        elif options.what == "types":
            check_types(folder)
        elif options.what == "sizes":
            check_sizes(folder)
        elif options.what == "shapes":
            check_shapes(folder)
        elif options.what == "suite":
            check_suite(folder)
        else:
            check_models(folder)


if __name__ == "__main__":
    main(check, use_workers=True)
