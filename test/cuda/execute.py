#!/usr/bin/env python3
"""Runs kernels for GPUs on test/gpu-emulator, and compares what they compute with the CPU.

    execute.py examples             an example of every op: bit by bit what the CPU computes, except where LOOSE says otherwise
    execute.py suite [--every N]    each Nth case of the ONNX backend suite that passes on the CPU and compiles for GPUs, against its test data
    execute.py models               small models, against their reference vectors
    execute.py cuts                 the same on 2 and 4 devices of one GPU, as pipelines and with tensors cut, with streams in four orders
    execute.py mixed                the same on GPUs and CPUs together, in four orders; partition files say it again; work goes where it is fast

PARTITA_GPU_EMULATOR is the folder with the emulator's libcuda.so.1. Skipped where it is missing.
"""

import argparse
import array
import concurrent.futures
import json
import os
import pathlib
import random
import re
import struct
import sys
import tempfile

from examples import examples

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "executed"))
from harness import BIN, REPOSITORY, SKIPPED, Failure, data_folder, input_names, main, run
from vectors import shape_text
import backend
import models as executed

EMULATOR = pathlib.Path(os.environ.get("PARTITA_GPU_EMULATOR", REPOSITORY / "build" / "test" / "gpu-emulator" / "lib"))
TARGET = ("--target", "cuda:sm_90")
# On CPUs these call the C library; on GPUs they are arithmetic of f64.
LIBRARY = {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "pow", "rem", "sin", "sinh", "tan"}
# Sums are added in another order.
REDUCING = {"attention", "conv", "dot", "recurrent", "reduce", "scan", "scatter", "softmax", "window_reduce"}
LOOSE = LIBRARY | REDUCING
TOLERANCE = ("--rtol", "1e-5", "--atol", "1e-6")
MODELS = ("cnn/mnist-burn", "cnn/mnist-cntk-8", "cnn/mnist-pytorch-java", "cnn/conv-bn-fusion", "encoder/bert-tiny-mlm-vespa", "encoder/bert-toy-ort",
          "encoder/bert-dummy-vespa", "decoder/gpt2-nopast-pt1.3", "encdec/t5-random-encoder-vespa", "encdec/t5-random-decoder-vespa", "rnn/byte-bilstm-tract", "rnn/dtln-1", "rnn/gtcrn-stream-simple")
SPLITS = (("--devices", "2"), ("--tensor-parallel", "2"), ("--devices", "4", "--tensor-parallel", "2"))
# Stages of both kinds, in either order; with tensors and micro-batches cut, too.
MIXTURES = (("--devices", "cuda:1,cpu:1"), ("--devices", "cpu:1,cuda:1,cpu:1"), ("--devices", "cpu:2,cuda:2", "--tensor-parallel", "2"))
LONG = {"cnn/conv-bn-fusion", "rnn/gtcrn-stream-simple"}  # seconds a run: one split, one order of the streams
NO_KERNEL = re.compile(r"has no kernel for CUDA devices|has no code for CUDA devices")
LETTERS = {"f32": ("f", "<f4"), "f64": ("d", "<f8"), "i32": ("i", "<i4"), "i64": ("q", "<i8"), "i8": ("b", "|i1"), "ui8": ("B", "|u1"), "i1": ("B", "|b1")}


def emulated(*command, seed=1, **options):
    """`seed`: which order of the streams."""
    return run(list(command), env={"LD_LIBRARY_PATH": str(EMULATOR), "CUDA_EMU_SEED": str(seed)}, **options)


def write_input(path, shape, kind, noise):
    """Floats in [-2, 2), integers in [-3, 4), and numbers that are not negative where there is no sign."""
    count = 1
    for size in shape:
        count *= size
    letter, name = LETTERS[kind]
    if letter in "fd":
        values = [noise.randrange(-512, 512) / 256 for _ in range(count)]
    else:
        low, high = {"i1": (0, 2), "ui8": (0, 8)}.get(kind, (-3, 4))
        values = [noise.randrange(low, high) for _ in range(count)]
    header = f"{{'descr': '{name}', 'fortran_order': False, 'shape': ({''.join(f'{s}, ' for s in shape)}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.array(letter, values).tobytes())


def run_example(folder, name, op, text):
    """None, or why an example is not computed as on the CPU."""
    source, reference = folder / f"{name}.mlir", folder / f"{name}.npz"
    source.write_text(text)
    feeds, noise = [], random.Random(name)
    for number, (port, dims, kind) in enumerate(re.findall(r"%(\w+): tensor<((?:\d+x)*)(\w+)>", text[text.index("@main") : text.index("->")])):
        path = folder / f"{name}.{number}.npy"
        write_input(path, [int(size) for size in dims.split("x")[:-1]], kind, noise)
        feeds += ["--input", f"{port}={path}"]
    cpu, gpu = folder / f"{name}.cpu", folder / f"{name}.gpu"
    run([BIN / "partita-compile", source, "--quiet", "-o", cpu])
    status, said = run([BIN / "partita-compile", source, "--quiet", "-o", gpu, *TARGET], expect=None)
    if status:
        if NO_KERNEL.search(said):
            return "no kernel"
        raise Failure(said)
    run([BIN / "partita-run", cpu, *feeds, "--output", reference])
    tolerance = TOLERANCE if op in LOOSE else ("--rtol", "0", "--atol", "0")
    status, said = emulated(BIN / "partita-run", gpu, *feeds, "--compare", reference, *tolerance, expect=None)
    return f"{name}: {said.strip()}" if status else None


def in_threads(function, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))


def summarise(results, what):
    wrong = [text for text in results if text not in (None, "no kernel")]
    print(f"{results.count(None)} of {len(results)} {what} agree, {results.count('no kernel')} have no kernel")
    if wrong:
        raise Failure("\n".join(wrong))


def check_examples(folder):
    summarise(in_threads(lambda each: run_example(folder, *each[1:]), list(examples())), "examples")


def run_case(folder, name):
    case, artifact = data_folder() / "onnx-backend" / "node" / name, folder / f"{name}.partita"
    flags = backend.binding_flags(backend.input_ports(case / "model.onnx"), case / "test_data_set_0")
    text = backend.compiled(case, artifact, 1, [*flags, *TARGET, "--no-optimize"], False)
    if text is not None:
        return "no kernel" if NO_KERNEL.search(text) else f"{name}: {text}"
    for data in sorted(case.glob("test_data_set_*")):
        status, said = emulated(BIN / "partita-run", artifact, "--test-data", data, *backend.TOLERANCE, expect=None)
        if status:
            return f"{name}: {backend.reason_of(said)}"
    artifact.unlink()
    return None


def check_suite(folder, every):
    names = [name for name, result in backend.read_list().items() if result == "pass"][::every]
    summarise(in_threads(lambda name: run_case(folder, name), names), "cases")


def compile_for_gpus(folder, name, *split, more=()):
    """The artifact of a shared model, and the folder with its reference vectors."""
    case, artifact = data_folder() / "models" / name, folder / (name.replace("/", "-") + "".join(split) + ".partita")
    vectors = case / "refeval_data_set_0"
    names = input_names(case / "model.onnx")
    flags = [word for k, port in enumerate(names) for word in ("--shape", f"{port}={shape_text((vectors / f'input_{k}.pb').read_bytes())}")]
    run([BIN / "partita-compile", case / "model.onnx", "--quiet", "-o", artifact, *TARGET, *flags, *split, *more])
    return artifact, vectors


def run_on_gpus(name, artifact, vectors, *flags, seed=1):
    status, said = emulated(
        BIN / "partita-run", artifact, "--test-data", vectors, "--timeout", "600", *executed.TOLERANCES.get(name, executed.TOLERANCE), *flags,
        seed=seed, expect=None, timeout=900)
    return f"{name}: {said.strip()}" if status else None


def run_model(folder, name):
    artifact, vectors = compile_for_gpus(folder, name)
    return run_on_gpus(name, artifact, vectors) or (None if name in LONG else check_memory(name, artifact))


def check_memory(name, artifact):
    """None, or why a device has more memory than the plan says."""
    said = emulated(BIN / "partita-run", artifact, "--benchmark", "--runs", "1", "--warmup", "0", "--json")
    memory = json.loads(said[said.index("{"):])["memory"]
    over = [device for device in memory if device["used_bytes"] > device["planned_bytes"]]
    return f"{name}: more memory than planned: {over}" if over else None


def run_cut(folder, name, split):
    """A pipeline must also have the bits of one device, whatever the order of the streams."""
    devices = split[1] if split[0] == "--devices" else "2"
    artifact, vectors = compile_for_gpus(folder, name, *split)
    for seed in (1,) if name in LONG else (1, 2, 3, 4):
        if wrong := run_on_gpus(name, artifact, vectors, "--devices", f"cuda:0*{devices}", seed=seed):
            return f"{' '.join(split)}, seed {seed}: {wrong}"
    if "--tensor-parallel" in split:
        return None
    inputs = [word for k, port in enumerate(input_names(data_folder() / "models" / name / "model.onnx")) for word in ("--input", f"{port}={vectors / f'input_{k}.pb'}")]
    one, outputs = compile_for_gpus(folder, name)[0], folder / (artifact.name + ".npz")
    emulated(BIN / "partita-run", one, *inputs, "--output", outputs)
    status, said = emulated(
        BIN / "partita-run", artifact, *inputs, "--devices", f"cuda:0*{devices}", "--compare", outputs, "--rtol", "0", "--atol", "0", expect=None)
    return f"{name}: {' '.join(split)}: other bits than on one device: {said.strip()}" if status else None


def run_mixture(folder, name, split):
    """Also, a partition file that says the whole decision makes the same artifact."""
    if name in LONG and split != MIXTURES[0]:
        return None
    case, partition = data_folder() / "models" / name, folder / (name.replace("/", "-") + "".join(split) + ".yaml")
    artifact, vectors = compile_for_gpus(folder, name, *split, more=("--emit-partition", partition))
    shapes = [word for k, port in enumerate(input_names(case / "model.onnx")) for word in ("--shape", f"{port}={shape_text((vectors / f'input_{k}.pb').read_bytes())}")]
    again = artifact.with_suffix(".again")
    run([BIN / "partita-compile", case / "model.onnx", "--quiet", "-o", again, "--partition", partition, *shapes])
    if again.read_bytes() != artifact.read_bytes():
        return f"{name}: {' '.join(split)}: the partition file makes another artifact"
    again.unlink()
    gpus = ",".join(f"cuda:0*{kind[5:]}" for kind in split[1].split(",") if kind.startswith("cuda:"))
    for seed in (1,) if name in LONG else (1, 2, 3, 4):
        if wrong := run_on_gpus(name, artifact, vectors, "--devices", gpus, "--threads", "1", "--no-pin", seed=seed):
            return f"{' '.join(split)}, seed {seed}: {wrong}"
    return None


def check_uneven(folder):
    """The faster device gets most of equal layers, so that both take about as long: the GPU, or, with its figures turned round, the CPU."""
    layers, model = 16, folder / "layers.mlir"
    wide = "tensor<512x512xf32>"
    dots = "".join(f"  %d{i} = nn.dot %r{i}, %w batch [] x [] contract [1] x [0] : {wide}, {wide} -> {wide}\n  %r{i + 1} = nn.relu %d{i} : {wide}\n" for i in range(layers))
    model.write_text(f"""nn.weight @w "w" : {wide} = dense<0.001> : {wide}
func.func @main(%r0: {wide}) -> {wide} {{
  %w = nn.parameter @w : {wide}
{dots}  return %r{layers} : {wide}
}}
""")
    tools = REPOSITORY / "test" / "tools" / "partita-compile" / "Inputs"
    # Of a GPU that computes as such; four times as fast as the CPU; a fiftieth as fast.
    for clock, least, most in ((1.83, 0.9, 1), (2e-4, 0.75, 0.9), (1e-6, 0, 0.1)):
        machine = folder / f"{clock}.json"
        machine.write_text(run([sys.executable, tools / "with_device.py", tools / "machine.json", f"clock={clock}"]))
        for kinds in ("cuda:1,cpu:1", "cpu:1,cuda:1"):
            plan = json.loads(run([BIN / "partita-compile", model, "--json", "-o", folder / "uneven.partita", *TARGET, "--devices", kinds, "--machine", machine]))
            stages = {stage["device"].split(":")[0]: stage for stage in plan["stages"]}
            share = stages["cuda"]["flops"] / sum(stage["flops"] for stage in plan["stages"])
            ns = {kind: stage["predicted_ms"] for kind, stage in stages.items()}
            print(f"{kinds}, a GPU at {clock} GHz: it gets {share:.0%} of the work; predicted ms: {ns}")
            if not least < share < most:
                raise Failure(f"the GPU gets {share}, not {least} to {most}")
            if clock == 2e-4 and max(ns.values()) > 1.5 * min(ns.values()):
                raise Failure("one device waits for the other")


def check_mixed(folder):
    mixtures = [(name, split) for name in MODELS for split in MIXTURES]
    summarise(in_threads(lambda each: run_mixture(folder, *each), mixtures), "models on GPUs and CPUs")
    check_uneven(folder)


def check_models(folder):
    summarise(in_threads(lambda name: run_model(folder, name), MODELS), "models")


def check_cuts(folder):
    cuts = [(name, split) for name in MODELS for split in SPLITS if name not in LONG or split == SPLITS[-1]]
    summarise(in_threads(lambda each: run_cut(folder, *each), cuts), "models on several devices")


def check():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("examples", "suite", "models", "cuts", "mixed"))
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    if not (EMULATOR / "libcuda.so.1").exists():
        print(f"skipped: no emulator at {EMULATOR} (set PARTITA_GPU_EMULATOR)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        if options.what == "examples":
            check_examples(folder)
        elif options.what == "suite":
            check_suite(folder, options.every)
        elif options.what == "models":
            check_models(folder)
        elif options.what == "mixed":
            check_mixed(folder)
        else:
            check_cuts(folder)


if __name__ == "__main__":
    main(check, use_workers=True)
