#!/usr/bin/env python3
"""A real model against its reference vectors, and ways to split it against the unsplit run, bit by bit.

    models.py NAME         e.g. cnn/mnist-burn

One device must agree with the reference vectors, and where a model has none, or for other sizes of its symbolic dimensions, with ONNX Runtime, if
this Python has it. 2 and 3 devices must give the very bytes of one. The models of MODELS are also split over 2, 4 and 8 devices, by every schedule,
as threads, and by one schedule for each number of devices as MPI processes, too (with PARTITA_TEST_ALL=1 by all); where samples can be counted, seven of
them go through as well, as three micro-batches of two and one of one.
"""

import itertools
import pathlib
import sys
import tempfile

from harness import SCHEDULES, Failure, compile_model, cpu_level, data_folder, input_names, main, run_artifact, some, write_npy
from vectors import shape_text

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
    # Its attention is over dimension 0, so that no samples of it go through as micro-batches.
    "encoder/bert-tiny-mlm-vespa": (("--dim", "batch=2", "--dim", "tokens=7"), None),
    "decoder/gpt2-nopast-pt1.3": (
        ("--dim", "batch_size=2", "--dim", "seq_len=5"),
        (("--dim", "batch_size=2", "--dim", "seq_len=7"), [("input_ids", (7,), "i8", 10)]),
    ),
    "training/ort-pipeline-split": ((), None),
}


# Further models, with tolerances: [(flags, [(input, shape, kind, low, high)])] are sizes to run besides those of the reference vectors.
FLOAT = ("f4", -1.0, 1.0)
IMAGE = ("f4", 0.0, 255.0)


def tokens(names, shape, kind="i8", high=10):
    """Inputs of a transformer: token numbers, a mask that lets all through, and the first type for all."""
    of = {"ids": (kind, 2, high), "mask": (kind, 1, 2), "type": (kind, 0, 1)}
    return [(name, shape, *of[what]) for name, what in names]


BERT = [("input_ids", "ids"), ("attention_mask", "mask"), ("token_type_ids", "type")]
TOY = [("input_ids", "ids"), ("token_type_ids", "type"), ("input_mask", "mask")]


def decoder(batch, target, source):
    return [("input_ids", (batch, target), "i8", 2, 9), ("encoder_attention_mask", (batch, source), "f4", 1.0, 1.0),
            ("encoder_hidden_states", (batch, source, 8), *FLOAT)]


WIDE = {
    "audio/dnsmos-model-v8": [[("input_1", (2, 900, 120), *FLOAT)]],
    "cnn/fns-candy": [[("inputImage", (1, 3, 720, 720), *IMAGE)]],
    "cnn/mobilenetv2-qdq-int8": [[("image", (1, 3, 244, 244), *FLOAT)], [("image", (3, 3, 244, 244), *FLOAT)]],
    "cnn/super-resolution": [[("1", (1, 1, 224, 224), "f4", 0.0, 1.0)]],
    "decoder/gpt2-nopast-pt1.3": [[("input_ids", (1, 1), "i8", 0, 10)], [("input_ids", (3, 8), "i8", 0, 10)]],
    "detection/ultraface-slim-320": [[("input", (1, 3, 240, 320), *FLOAT)]],
    "detection/yunet-n-dynamic": [[("input", (1, 3, 96, 64), *IMAGE)], [("input", (2, 3, 64, 128), *IMAGE)]],
    "encdec/t5-random-decoder-vespa": [decoder(1, 3, 6), decoder(1, 9, 4)],
    "encdec/t5-random-encoder-vespa": [tokens(BERT[:2], (1, 12)), tokens(BERT[:2], (3, 4))],
    "encoder/bert-dummy-vespa": [tokens(BERT, (1, 12)), tokens(BERT, (3, 5))],
    "encoder/bert-toy-ort": [tokens(TOY, (1, 5)), tokens(TOY, (3, 16))],
    "encoder/tfbert-qa-keras2onnx": [tokens(BERT, (1, 7), "i4"), tokens(BERT, (5, 7), "i4")],
    "rnn/byte-bilstm-tract": [[("input", (1, 1), "u1", 0, 200)], [("input", (3, 40), "u1", 0, 200)]],
    "rnn/dtln-1": [[("input_2", (1, 1, 257), "f4", 0.0, 2.0), ("input_3", (1, 2, 128, 2), *FLOAT)]],
    "rnn/gtcrn-stream-simple": [[("mix", (1, 257, 1, 2), *FLOAT), ("conv_cache", (2, 1, 16, 16, 33), *FLOAT),
                                 ("tra_cache", (2, 3, 1, 1, 16), *FLOAT), ("inter_cache", (2, 1, 33, 16), *FLOAT)]],
}
# Without AVX-512 the library has no code that pads more than three columns in its little scratch: partita-run says how much it needs.
ROOM = {"cnn/fns-candy": ("--workspace", "40")}
# Rounding before a quantisation moves a few values by whole steps, of 0.153 in the outputs of mobilenetv2: ONNX Runtime, too, is up to five from
# the reference vectors.
TOLERANCES = {
    "cnn/mobilenetv2-qdq-int8": ("--rtol", "1e-3", "--atol", "0.93"),
    "cnn/fns-candy": ("--rtol", "1e-3", "--atol", "0.05"),
    "audio/dnsmos-model-v8": ("--rtol", "1e-3", "--atol", "1e-4"),
    "detection/ultraface-slim-320": ("--rtol", "1e-3", "--atol", "1e-4"),
    "detection/yunet-n-dynamic": ("--rtol", "1e-3", "--atol", "1e-4"),
}


def same_bytes(expected, found, what):
    if expected.read_bytes() != found.read_bytes():
        raise Failure(f"{what}: outputs differ in some bit from those of one device")


def every_split(number, model, flags, inputs, reference, work):
    """Models take turns, by their `number`, at the schedule that processes have, too, for each number of devices."""
    by_processes = [(devices, schedule) for turn, devices in enumerate((2, 4, 8)) for schedule in some(SCHEDULES, len(SCHEDULES), number + turn)]
    for devices, schedule in itertools.product((2, 4, 8), SCHEDULES):
        artifact = work / f"{devices}-{schedule}.partita"
        compile_model(model, artifact, "--devices", devices, "--schedule", schedule, "--cpu-level", cpu_level(), *flags)
        # As threads, as processes of one device, and of several (8 devices: 3, 3 and 2).
        for ranks in (0, devices, {2: 1, 4: 2, 8: 3}[devices]) if (devices, schedule) in by_processes else (0,):
            out = work / "out.npz"
            run_artifact(artifact, *THREADS, *inputs, "--output", out, ranks=ranks)
            same_bytes(reference, out, f"{devices} devices, {schedule}, {f'{ranks} processes' if ranks else 'threads'}")
            out.unlink()
        artifact.unlink()
        print(f"{devices} devices, {schedule}: threads{' and MPI' if (devices, schedule) in by_processes else ''} give the bytes of one device")


def modernise(onnx, proto):
    """Gives a model of IR version 1 what ONNX Runtime wants: types of attributes, an opset, and broadcasts and shapes as they are written since."""
    initializers = {tensor.name: tensor for tensor in proto.graph.initializer}
    for number, node in enumerate(proto.graph.node):
        given = {attribute.name: attribute for attribute in node.attribute}
        for attribute in node.attribute:
            attribute.type = onnx.AttributeProto.INTS if attribute.ints else onnx.AttributeProto.INT
        if "broadcast" in given:
            initializers[node.input[1]].dims.extend([1, 1])
            del node.attribute[:]
        elif node.op_type == "Reshape":
            proto.graph.initializer.append(onnx.helper.make_tensor(f"shape_{number}", 7, [len(given["shape"].ints)], given["shape"].ints))
            node.input.append(f"shape_{number}")
            del node.attribute[:]
    proto.ir_version = 4
    del proto.opset_import[:]
    proto.opset_import.add(version=8)
    inputs = [port for port in proto.graph.input if port.name not in initializers]
    del proto.graph.input[:]
    proto.graph.input.extend(inputs)


def reference_of(model, inputs, folder):
    """A folder of test data that ONNX Runtime makes, or None if this Python does not have it."""
    try:
        import numpy
        import onnx
        import onnxruntime
        from onnx import numpy_helper
    except ImportError:
        return None
    folder.mkdir()
    feeds = {name: numpy.load(path) for name, path in inputs}
    proto = onnx.load(str(model))
    if proto.ir_version < 3:
        modernise(onnx, proto)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for kind, names, values in (("input", list(feeds), list(feeds.values())),
                                ("output", [o.name for o in session.get_outputs()], session.run(None, feeds))):
        for k, (name, value) in enumerate(zip(names, values)):
            (folder / f"{kind}_{k}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    return folder


def few_splits(model, flags, inputs, tolerance, vectors, work, alone):
    """One device against vectors, 2 and 3 devices against one device. `alone`: one device by the programs, and for all processors, as a user has it."""
    one, level = work / "one.partita", ("--cpu-level", cpu_level())
    flags = [*flags, *ROOM.get(f"{model.parent.parent.name}/{model.parent.name}", ())]
    compile_model(model, one, *flags, *(() if alone else level), alone=alone)
    if vectors:
        print(run_artifact(one, "--test-data", vectors, *tolerance, alone=alone).strip())
    feeds = [word for port, path in inputs for word in ("--input", f"{port}={path}")]
    reference = work / "one.npz"
    run_artifact(one, *THREADS, *feeds, "--output", reference)
    for devices in (2, 3):
        split, out = work / "split.partita", work / "out.npz"
        compile_model(model, split, *flags, *level, "--devices", devices)
        run_artifact(split, *THREADS, *feeds, "--output", out)
        same_bytes(reference, out, f"{devices} devices")
        out.unlink()
    reference.unlink()
    print(f"{' '.join(map(str, flags)) or 'as it is'}: 2 and 3 devices give the bytes of one")


def check_wide(name, work):
    folder = data_folder() / "models" / name
    vectors, model = folder / "refeval_data_set_0", folder / "model.onnx"
    tolerance = TOLERANCES.get(name, TOLERANCE)
    names = input_names(model)
    if vectors.is_dir():
        files = [vectors / f"input_{k}.pb" for k in range(len(names))]
        flags = [word for port, path in zip(names, files) for word in ("--shape", f"{port}={shape_text(path.read_bytes())}")]
        few_splits(model, flags, list(zip(names, files)), tolerance, vectors, work, alone=True)
    for number, feeds in enumerate(WIDE[name]):
        inputs, flags = [], []
        for port, shape, kind, low, high in feeds:
            inputs.append((port, work / f"{names.index(port)}.npy"))
            write_npy(inputs[-1][1], shape, kind, seed=number, low=low, high=high)
            flags += ["--shape", f"{port}={'x'.join(map(str, shape))}"]
        inputs.sort(key=lambda pair: names.index(pair[0]))  # as the files of test data are numbered
        few_splits(model, flags, inputs, tolerance, reference_of(model, inputs, work / f"reference_{number}"), work,
                   alone=number == 0 and not vectors.is_dir())


def check(name, work):
    folder = data_folder() / "models" / name
    vectors, model = folder / "refeval_data_set_0", folder / "model.onnx"
    flags, more = MODELS[name]
    one = work / "one.partita"
    compile_model(model, one, *flags, alone=True)
    print(run_artifact(one, "--test-data", vectors, alone=True))  # by the tolerance that users have
    inputs = [word for k, port in enumerate(input_names(model)) for word in ("--input", f"{port}={vectors}/input_{k}.pb")]
    reference = work / "one.npz"
    run_artifact(one, *THREADS, *inputs, "--output", reference)
    number = list(MODELS).index(name)
    every_split(number, model, flags, inputs, reference, work)
    if more:
        flags, feeds = more
        inputs = []
        for seed, (port, shape, kind, high) in enumerate(feeds):
            path = work / f"{port}.npy"
            write_npy(path, (7, *shape), kind, seed, high)
            inputs += ["--input", f"{port}={path}"]
        compile_model(model, one, *flags)
        run_artifact(one, *THREADS, *inputs, "--output", reference)
        every_split(number, model, (*flags, "--micro-batches", "3"), inputs, reference, work)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        name = sys.argv[1]
        if name not in MODELS and name not in WIDE:
            sys.exit(f"no model '{name}'; there are: {' '.join(sorted({*MODELS, *WIDE}))}")
        if name in MODELS:
            main(lambda: check(name, pathlib.Path(folder)), use_workers=True, optimize=4)
        if name in WIDE:
            main(lambda: check_wide(name, pathlib.Path(folder)), use_workers=True, optimize=4)
