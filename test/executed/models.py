#!/usr/bin/env python3
"""A real model against its reference vectors, and every way to split it against the unsplit run, bit by bit.

    models.py NAME         e.g. cnn/mnist-burn

One device must agree with the reference; 2, 4 and 8 devices, pipelined and sharded, as threads and as MPI processes, must give the very bytes
of one device. Where samples can be counted, seven of them go through as well, as three micro-batches of two and one of one.
"""

import itertools
import pathlib
import sys
import tempfile

from harness import Failure, compile_model, data_folder, input_names, main, run_artifact, write_npy

THREADS = ("--threads", "1")  # the same number of cores a device, whatever the number of devices
TOLERANCE = ("--rtol", "1e-3", "--atol", "1e-5")
# Flags that bind the symbolic dimensions of the reference vectors, and feeds for runs of more samples than one micro-batch has:
# (flags of the compiler, [(input, sample shape, kind, high)]).
MODELS = {
    "cnn/mnist-burn": ((), None),
    "cnn/mnist-cntk-8": ((), None),
    "cnn/mnist-pytorch-java": ((), None),
    "cnn/conv-bn-fusion": ((), None),
    "detection/yunet-n-640": ((), None),
    "encoder/bert-tiny-mlm-vespa": (
        ("--dim", "batch=2", "--dim", "tokens=7"),
        (("--dim", "batch=2", "--dim", "tokens=12"), [("input_ids", (12,), "i8", 250), ("attention_mask", (12,), "i8", 2), ("token_type_ids", (12,), "i8", 2)]),
    ),
    "decoder/gpt2-nopast-pt1.3": (
        ("--dim", "batch_size=2", "--dim", "seq_len=5"),
        (("--dim", "batch_size=2", "--dim", "seq_len=7"), [("input_ids", (7,), "i8", 10)]),
    ),
    "training/ort-pipeline-split": ((), None),
}


def same_bytes(expected, found, what):
    if expected.read_bytes() != found.read_bytes():
        raise Failure(f"{what}: outputs differ in some bit from those of one device")


def every_split(model, flags, inputs, reference, work):
    for devices, strategy in itertools.product((2, 4, 8), ("pipelined", "sharded")):
        artifact = work / f"{devices}-{strategy}.partita"
        compile_model(model, artifact, "--devices", devices, "--strategy", strategy, *flags)
        for ranks in (0, devices):
            out = work / "out.npz"
            run_artifact(artifact, *THREADS, *inputs, "--output", out, ranks=ranks)
            same_bytes(reference, out, f"{devices} devices, {strategy}, {'MPI' if ranks else 'threads'}")
            out.unlink()
        artifact.unlink()
        print(f"{devices} devices, {strategy}: threads and MPI give the bytes of one device")


def check(name, work):
    folder = data_folder() / "models" / name
    vectors, model = folder / "refeval_data_set_0", folder / "model.onnx"
    flags, more = MODELS[name]
    one = work / "one.partita"
    compile_model(model, one, *flags)
    print(run_artifact(one, "--test-data", vectors, *TOLERANCE))
    inputs = [word for k, port in enumerate(input_names(model)) for word in ("--input", f"{port}={vectors}/input_{k}.pb")]
    reference = work / "one.npz"
    run_artifact(one, *THREADS, *inputs, "--output", reference)
    every_split(model, flags, inputs, reference, work)
    if more:
        flags, feeds = more
        inputs = []
        for seed, (port, shape, kind, high) in enumerate(feeds):
            path = work / f"{port}.npy"
            write_npy(path, (7, *shape), kind, seed, high)
            inputs += ["--input", f"{port}={path}"]
        compile_model(model, one, *flags)
        run_artifact(one, *THREADS, *inputs, "--output", reference)
        every_split(model, (*flags, "--micro-batches", "3"), inputs, reference, work)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(sys.argv[1], pathlib.Path(folder)))
