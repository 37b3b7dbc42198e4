#!/usr/bin/env python3
"""Training: the losses of 20 steps and the parameters after them against those of PyTorch (training_reference.json, written by training_reference.py),
for the optimizers, groups, schedules and models of training_cases.py, in f64 and f32. Then bits that do not depend on threads and on breaks, published
numbers, the trained model in ONNX Runtime, and what is wrong: an error that says so, and nothing half-written.

    training.py                  all
    training.py mlp adam         the cases of these models, or whose name holds one of these words, with a table of differences
    training.py bits exported    these parts
"""

import dataclasses
import gzip
import io
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal as signals
import struct
import subprocess
import sys
import tempfile

from harness import ALL, BIN, REPOSITORY, SKIPPED, TARGET, Failure, compile_model, main, run, run_artifact, some

sys.path.append(str(REPOSITORY / "examples"))

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"skipped: no {error.name} (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

from onnx import helper, numpy_helper

from shakespeare import make_model as shakespeare
from training_cases import BATCH, CASES, INPUTS, MICRO_BATCHES, STEPS, build

# Relative, of losses, norms and parameters. In f32, PyTorch itself differs by up to 6e-7 from f64.
TOLERANCE = {"f64": 1e-9, "f32": 1e-5}
REFERENCE = json.loads(pathlib.Path(__file__).with_suffix("").with_name("training_reference.json").read_text())["cases"]


def write_model(work, name, dtype):
    path = work / f"{name}.{dtype}.onnx"
    if not path.exists():
        onnx.save(build(name, {"f64": np.float64, "f32": np.float32}[dtype]), path)
    return path


def write_data(work, case, dtype):
    """The flags of partita-run that give a case its samples."""
    flags = []
    for name, array in case.files(dtype).items():
        path = work / f"{case.model}.{dtype}.{case.loss}.{case.ragged}.{case.micro}.{name}.npy"
        if not path.exists():
            np.save(path, array)
        flags += ["--data", f"{name}={path}"]
    return flags


def hold_last(data):
    """The flags of partita-run that evaluate before the last step what that step learns from: its loss is what the reference has of that step."""
    flags = []
    for word in data[1::2]:
        name, path = word.split("=", 1)
        held = pathlib.Path(path).with_suffix(".last.npy")
        if not held.exists():
            samples = np.load(path)
            np.save(held, samples[-(len(samples) // STEPS):])
        flags += ["--eval-data", f"{name}={held}"]
    return [*flags, "--eval-every", STEPS - 1]


def compile_case(work, case, dtype):
    """The artifact of a case, compiled once."""
    artifact = work / f"{case.name}.{dtype}.partita"
    if not artifact.exists():
        compile_model(write_model(work, case.model, dtype), artifact, *case.flags())
    return artifact


def train(artifact, *flags, folder=None, steps=STEPS, order="in-order", **options):
    """Runs steps; what log.jsonl says of them, if there is a folder."""
    folder_flags = ["--checkpoint", folder, "--report-every", 1] if folder else []
    run_artifact(artifact, "--train", "--order", order, "--steps", steps, *folder_flags, *flags, **options)
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()] if folder else []


def parameters_of(path):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


def check_model_file(original, exported, trained):
    """Everything but the trained initializers is, byte for byte, what it was."""
    old, new = original.read_bytes(), exported.read_bytes()
    if len(old) != len(new):
        raise Failure(f"{exported.name} has {len(new)} bytes, and {original.name} {len(old)}")
    changed = bytearray(old)
    for tensor in onnx.load(original).graph.initializer:
        if tensor.name in trained:
            at = old.find(tensor.raw_data)
            if old.find(tensor.raw_data, at + 1) >= 0:
                raise Failure(f"{tensor.name}: its bytes are not alone in the file")
            changed[at:at + len(tensor.raw_data)] = new[at:at + len(tensor.raw_data)]
    if bytes(changed) != new:
        raise Failure(f"{exported.name} differs from {original.name} beside the trained parameters")


def compare_case(work, case, dtype, artifact, note="", begun=None, more=()):
    """Trains a case; the largest relative differences of losses and parameters. `begun`: an artifact that trains it first, and for how many steps."""
    model, exported, folder = write_model(work, case.model, dtype), work / "case.onnx", work / "case"
    shutil.rmtree(folder, ignore_errors=True)
    data = write_data(work, case, dtype)
    if begun:
        train(begun[0], *data, folder=folder, steps=begun[1])
        more = [*more, "--resume"]
    lines = train(artifact, *data, *hold_last(data), "--export", exported, *more, folder=folder)
    wanted, what = REFERENCE[case.name], f"{case.name} {dtype}{note}"
    if [line["step"] for line in lines] != list(range(1, STEPS + 1)):
        raise Failure(f"{what}: log.jsonl has the steps {[line['step'] for line in lines]}")
    apart = [abs(line["loss"] - loss) / abs(loss) for line, loss in zip(lines, wanted["losses"])]
    allowed = TOLERANCE[dtype]
    if not max(apart) <= allowed:
        step = next(i for i, a in enumerate(apart) if not a <= allowed)
        raise Failure(f"{what}: the loss of step {step + 1} is {lines[step]['loss']}, and PyTorch's {wanted['losses'][step]}; differences: {[f'{a:.1e}' for a in apart]}")
    # The network with batch normalization evaluates with other statistics than it learns with; and another plan may have come to this step.
    if case.model != "cnn" and (not begun or "eval" in lines[-2]):
        said = lines[-2]["eval"]["eval_loss"]
        if not abs(said - wanted["losses"][-1]) <= allowed * abs(said):
            raise Failure(f"{what}: evaluated before the last step the loss is {said}, and PyTorch's of this step {wanted['losses'][-1]}")
    for step, line in enumerate(lines):
        scheduled = case.rate(case.settings["learning_rate"], step)
        if not abs(line["learning_rate"] - scheduled) <= 1e-12 * scheduled:
            raise Failure(f"{what}: the learning rate of step {step + 1} is {line['learning_rate']} instead of {scheduled}")
    for step, norm in enumerate(wanted.get("norms", [])):
        said = lines[step]["gradient_norm"]
        if not abs(said - norm) <= allowed * norm:
            raise Failure(f"{what}: the norm of the gradients of step {step + 1} is {said}, and PyTorch's {norm}")
    found, worst = parameters_of(exported), 0
    for name, (total, norm) in wanted["parameters"].items():
        value = found[name].astype(np.float64)
        off = max(abs(value.sum() - total) / np.sqrt(value.size), abs(np.linalg.norm(value) - norm)) / norm
        worst = max(worst, off)
        if not off <= allowed:
            raise Failure(f"{what}: {name} has the sum {value.sum()} and the norm {np.linalg.norm(value)} instead of {total} and {norm}")
    check_model_file(model, exported, {name for name in wanted["parameters"] if not (case.freeze and name.startswith("fc1."))})
    return max(apart), worst


# What the host does in the same way for all devices is left out there.
ON_GPU = TARGET and TARGET[1].startswith("cuda") and not ALL


def check_curves(work, words):
    wrong, worst, count = [], {"f64": (0, 0), "f32": (0, 0)}, 0
    for case in CASES:
        if words and not any(word in case.name or word == case.model for word in words):
            continue
        if ON_GPU and case.schedule and case.dtypes == ("f64",):
            continue  # the host makes the rates, and the kernels are those of `sgd`
        # On other devices each in one of its types.
        for dtype in some(case.dtypes, len(case.dtypes) if TARGET else 1, count):
            count += 1
            try:
                found = compare_case(work, case, dtype, compile_case(work, case, dtype))
                worst[dtype] = tuple(map(max, worst[dtype], found))
                if words:
                    print(f"{case.name:24} {dtype}  losses {found[0]:.1e}  parameters {found[1]:.1e}  (f32 of PyTorch: {REFERENCE[case.name]['f32_loss']:.1e}, {REFERENCE[case.name]['f32_parameters']:.1e})")
            except Failure as failure:
                wrong.append(str(failure))
    if wrong:
        raise Failure("\n\n".join(wrong) + f"\n\n{len(wrong)} of {count} trainings are wrong")
    print(f"{count} trainings are PyTorch's; at most {', '.join(f'{dtype} differs by {loss:.1e} in losses and {p:.1e} in parameters' for dtype, (loss, p) in worst.items())}")


def case_named(name):
    return next(case for case in CASES if case.name == name)


def check_reference(work):
    """By the plainest loops, and by everything that is rewritten, fused and called: the same curves."""
    for name, dtype in (("cnn-adam", "f32"), ("transformer-nesterov", "f64"), ("groups", "f32")):
        case, artifact = case_named(name), work / "reference.partita"
        compile_model(write_model(work, case.model, dtype), artifact, *case.flags(), "--reference")
        compare_case(work, case, dtype, artifact, " --reference")
    print("the same by reference loops")


def same_run(work, artifact, data, breaks, threads, order, note):
    """A run without a break, and one that is broken off: the same files, and the same losses. Returns the trained model."""
    whole, parts, models = work / "whole", work / "parts", (work / "whole.onnx", work / "parts.onnx")
    for folder in (whole, parts):
        shutil.rmtree(folder, ignore_errors=True)
    lines = train(artifact, *data, "--seed", 5, "-t", 1, "--export", models[0], folder=whole, order=order)
    for at, end in enumerate([*breaks, STEPS]):
        others = train(artifact, *data, "--seed", 5, "-t", threads, *(["--resume"] if at else []), "--export", models[1], folder=parts, order=order, steps=end)
    if [line["loss"] for line in lines] != [line["loss"] for line in others]:
        raise Failure(f"{note}: other losses after a break: {lines} and {others}")
    last = f"step-{STEPS:08}"
    pairs = [models, *((whole / last / name, parts / last / name) for name in ("model.safetensors", "optimizer.safetensors", "trainer.json"))]
    for one, other in pairs:
        if one.read_bytes() != other.read_bytes():
            raise Failure(f"{note}: {one.name} has other bytes after breaks at {breaks} and with {threads} threads")
    return models[0].read_bytes()


def check_bits(work):
    """What does not depend on breaks and on threads."""
    for name, dtype in (("transformer-adamw", "f32"), ("groups", "f64")):
        case = case_named(name)
        data, artifact = write_data(work, case, dtype), compile_case(work, case, dtype)
        same_run(work, artifact, data, (7, 13), 2, "in-order", name)
        if ON_GPU:
            continue  # the host deals out samples and epochs, in the same way for all devices
        # Epochs of six steps, of which a sample is left over.
        short, taken = [], 6 * case.micro * BATCH + 1
        for i in range(1, len(data), 2):
            input, path = data[i].split("=")
            np.save(work / f"short.{input}.npy", np.load(path)[:taken])
            short += ["--data", f"{input}={work}/short.{input}.npy"]
        found = {same_run(work, artifact, short, (7, 12, 13), 2, order, f"{name} {order}") for order in ("shuffled", "drawn", "in-order")}
        if len(found) != 3:
            raise Failure(f"{name}: two orders of samples give the same bits")
        # Epochs instead of steps, with the same breaks as there are epochs.
        folder, models = work / "epochs", [work / "whole.onnx", work / "parts.onnx"]
        shutil.rmtree(folder, ignore_errors=True)
        run_artifact(artifact, "--train", *short, "--epochs", 4, "--export", models[0])
        for epochs in (1, 2, 4):
            run_artifact(artifact, "--train", *short, "--epochs", epochs, "--export", models[1], "--checkpoint", folder, *(["--resume"] if epochs > 1 else []))
        kept = sorted(path.name for path in folder.glob("step-*"))
        if models[0].read_bytes() != models[1].read_bytes() or kept != [f"step-{step:08}" for step in (12, 18, 24)]:
            raise Failure(f"{name}: other bits after a break between epochs, or other checkpoints than one an epoch: {kept}")
    if ON_GPU:
        print("breaks change no bit")
        return
    case = case_named("cnn-adam")
    models = [work / f"{threads}.onnx" for threads in (1, 2)]
    for threads, path in zip((1, 2), models):
        train(compile_case(work, case, "f32"), *write_data(work, case, "f32"), "-t", threads, "--export", path)
    if models[0].read_bytes() != models[1].read_bytes():
        raise Failure("two threads train a network to other bits than one")
    # One micro-batch, said and not said.
    case, one = case_named("sgd"), work / "one.partita"
    compile_model(write_model(work, case.model, "f32"), one, *case.flags(), "--micro-batches", 1)
    for artifact, path in zip((one, compile_case(work, case, "f32")), models):
        train(artifact, *write_data(work, case, "f32"), "--export", path)
    if models[0].read_bytes() != models[1].read_bytes():
        raise Failure("--micro-batches 1 trains to other bits")
    print("breaks and threads change no bit")


def draw_orders(ranks, micro, split, noise, ascend=True):
    """A file of orders in which nothing deadlocks: units in any order in which they can be computed. `ranks`: of the stages. `ascend`: the micro-batches
    of a stage, in each of its kinds of units."""
    stages, rows, done = len(ranks), [[] for _ in range(max(ranks) + 1)], set()
    kinds = "FIW" if split else "FB"

    def is_ready(stage, kind, m):
        needed = {"F": [(stage - 1, "F")], "W": [(stage, "I")]}.get(kind, [(stage, "F"), (stage + 1, kind)])
        return all((other, what, m) in done for other, what in needed if 0 <= other < stages)

    while True:
        left = [[(stage, kind, m) for m in range(micro) if (stage, kind, m) not in done] for stage in range(stages) for kind in kinds]
        ready = [unit for units in left for unit in units[:1 if ascend else micro] if is_ready(*unit)]
        if not ready:
            break
        stage, kind, m = noise.choice(ready)
        done.add((stage, kind, m))
        rows[ranks[stage]] += [""] * noise.choice((0, 0, 1)) + [f"{stage}{kind}{m}"]
    assert len(done) == stages * micro * len(kinds)
    return "".join(",".join(row) + "\n" for row in rows)


def check_orders(work):
    """Schedules that are files: the bits of one device, whatever the order."""
    noise, count = random.Random(3), 0
    for name, micro, ranks in (("sgd-decay", 4, (0, 1, 1, 0)), ("mnist-momentum", 3, (0, 1, 2)), ("mnist-momentum", 2, (1, 0, 1)), ("lstm-adam", 2, (0, 1)), ("sgd-decay", 4, (0,))):
        case = dataclasses.replace(case_named(name), micro=micro)
        model, data = write_model(work, case.model, "f32"), write_data(work, case, "f32")
        compile_model(model, work / "whole.partita", *case.flags())
        train(work / "whole.partita", *data, "-t", 1, "--export", work / "whole.onnx", steps=4)
        for split in (False, True):
            text = draw_orders(ranks, micro, split, noise)
            (work / "orders.csv").write_text(text)
            flags = dataclasses.replace(case, micro=1).flags() if split else case.flags()  # the file says micro-batches
            compile_model(model, work / "ordered.partita", *flags, "--schedule", work / "orders.csv")
            train(work / "ordered.partita", *data, "-t", 1, "--export", work / "ordered.onnx", steps=4)
            if (work / "ordered.onnx").read_bytes() != (work / "whole.onnx").read_bytes():
                raise Failure(f"{name}, {micro} micro-batches: other bits than on one device in the order\n{text}")
            count += 1
    # Other orders of micro-batches: sums round otherwise, and no more.
    for name, micro, ranks in (("sgd-decay", 8, (0, 1, 1, 0)), ("mnist-momentum", 4, (0, 1, 2)), ("transformer-nesterov", 6, (0, 1)), ("lstm-adam", 5, (0, 1))):
        case = dataclasses.replace(case_named(name), micro=micro)
        model, data = write_model(work, case.model, "f32"), write_data(work, case, "f32")
        compile_model(model, work / "whole.partita", *case.flags())
        shutil.rmtree(work / "ordered", ignore_errors=True)
        wanted = [line["loss"] for line in train(work / "whole.partita", *data, "-t", 1, folder=work / "ordered", steps=4)]
        for split in (False, True):
            text = draw_orders(ranks, micro, split, noise, ascend=False)
            (work / "orders.csv").write_text(text)
            flags = dataclasses.replace(case, micro=1).flags() if split else case.flags()
            said = compile_model(model, work / "ordered.partita", *flags, "--schedule", work / "orders.csv")
            shutil.rmtree(work / "ordered", ignore_errors=True)
            found = [line["loss"] for line in train(work / "ordered.partita", *data, "-t", 1, folder=work / "ordered", steps=4)]
            if "does not take all micro-batches in ascending order" not in said or not np.allclose(found, wanted, rtol=1e-5):
                raise Failure(f"{name}, {micro} micro-batches: losses {found} instead of {wanted}, in the order\n{text}\n{said}")
            count += 1
    # A unit that is forgotten, and units that wait for one another.
    for text, said in (("0F0,0F1,0B0\n1F0,1F1,1B0,1B1\n", "orders.csv:1:1: 0B1 is in no cell of rank 0"),
                       ("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "0B0 (rank 0, cell 2) waits for 1B0 (rank 1, cell 3), which comes after 1F1 (rank 1, cell 2)")):
        case = dataclasses.replace(case_named("sgd"), micro=2)
        model = write_model(work, case.model, "f32")
        (work / "orders.csv").write_text(text)
        before = files_in(work)
        check_message(work, "orders", run([BIN / "partita-compile", model, *case.flags(), "--schedule", work / "orders.csv", "-o", work / "wrong.partita"], expect=1), said, before)
    # A model that is not trained, backwards, and with fewer micro-batches than the file has.
    digits = REPOSITORY / "examples" / "digits"
    image = np.load(digits / "digits.npy")
    (work / "orders.csv").write_text("0F2,0F0,0F3,0F1\n1F3,1F2,1F1,1F0\n")
    for rows in (1, 2, 3, 4, 7, 10):
        np.save(work / "rows.npy", image[:rows])
        found = []
        for flags in (("--micro-batches", 4), ("--schedule", work / "orders.csv")):
            compile_model(digits / "digits.onnx", work / "digits.partita", "--dim", "batch=1", *flags)
            run_artifact(work / "digits.partita", "--input", f"image={work}/rows.npy", "-t", 1, "--output", work / "digits.npz")
            found.append((work / "digits.npz").read_bytes())
        if found[0] != found[1]:
            raise Failure(f"digits, {rows} rows: other outputs by a file of orders")
    print(f"{count} orders of files train to the bits of one device, or to its numbers where they do not ascend")


def check_pipelines(work):
    """Stages on several devices, by every schedule: the bits of one device."""
    def export(artifact, data, path):
        train(artifact, *data, "-t", 1, "--export", path, steps=6)
        return path.read_bytes()

    count = 0
    for name, micro, plans in (("sgd-decay", 8, ((2, "1f1b"), (3, "gpipe"), (4, "fill_drain"), (2, "sequential"), (2, "interleaved"), (2, "looped"), (2, "zb_h1"), (3, "zb_h1"), (2, "zb_v"))),
                               # Many micro-batches in flight, whose values share frames.
                               ("sgd", 80, ((3, "gpipe"), (4, "1f1b"), (2, "looped"), (2, "zb_v"))),
                               ("transformer-nesterov", 12, ((3, "gpipe"), (2, "zb_h1"), (2, "interleaved"))),
                               ("groups", 1, ((2, "1f1b"), (3, "1f1b"))),
                               ("mnist-momentum", 3, ((4, "1f1b"), (2, "looped"), (8, "gpipe"), (3, "interleaved"), (8, "interleaved"), (4, "zb_h1"), (4, "zb_v"), (8, "zb_v"))),
                               ("cnn-sgd", 2, ((3, "1f1b"), (2, "gpipe"), (2, "zb_h1"), (2, "zb_v"))),
                               ("lstm-adam", 2, ((2, "1f1b"), (2, "zb_h1"), (2, "zb_v"))),
                               # The norm of all gradients, and a table that the first and the last node read.
                               ("nesterov-clip", 1, ((2, "1f1b"),)),
                               ("mnist-adamw", 3, ((4, "1f1b"), (3, "sequential"), (2, "zb_v"))),
                               ("transformer-nesterov", 3, ((2, "1f1b"), (4, "gpipe"))),
                               ("transformer-adagrad", 1, ((4, "1f1b"), (2, "looped"))),
                               ("transformer-adamw", 3, ((2, "1f1b"), (3, "zb_h1"), (4, "gpipe"), (3, "fill_drain"), (2, "interleaved"), (2, "zb_v"), (4, "sequential")))):
        case = dataclasses.replace(case_named(name), micro=micro)
        model, flags, data = write_model(work, case.model, "f32"), case.flags(), write_data(work, case, "f32")
        compile_model(model, work / "whole.partita", *flags)
        wanted = export(work / "whole.partita", data, work / "whole.onnx")
        for devices, schedule in plans:
            compile_model(model, work / "piped.partita", *flags, "--devices", devices, "--schedule", schedule)
            if export(work / "piped.partita", data, work / "piped.onnx") != wanted:
                raise Failure(f"{name} on {devices} devices by {schedule}, {micro} micro-batches: other bits than on one device")
            count += 1
    # Blocks that a person names, and what stages cannot do.
    case = case_named("sgd")
    model = write_model(work, case.model, "f32")
    names = [node.name for node in onnx.load(model).graph.node]
    blocks = work / "split.yaml"
    blocks.write_text(f"blocks: {{A: {json.dumps(names[:2])}, B: {json.dumps(names[2:])}}}\nstages: [[A], [B]]\n")
    data = write_data(work, case, "f32")
    compile_model(model, work / "whole.partita", *case.flags())
    compile_model(model, work / "piped.partita", *case.flags(), "--partition", blocks)
    if export(work / "piped.partita", data, work / "piped.onnx") != export(work / "whole.partita", data, work / "whole.onnx"):
        raise Failure("two stages of a partition file: other bits than one device")
    # A parameter of one element, as large as the rates that all updates read.
    digits = REPOSITORY / "examples" / "digits"
    np.save(work / "digits.labels.npy", np.arange(10))
    flags = ["--dim", "batch=2", "--micro-batches", 5, "--loss", "cross_entropy:probabilities:label", "--optimizer", "adamw"]
    found = []
    for devices in (1, 2, 3):
        compile_model(digits / "digits.onnx", work / "digits.partita", *flags, "--devices", devices)
        train(work / "digits.partita", "--data", f"image={digits / 'digits.npy'}", "--data", f"label={work}/digits.labels.npy", "-t", 1, "--export", work / "digits.onnx", steps=3)
        found.append((work / "digits.onnx").read_bytes())
    if len(set(found)) != 1 or found[0] == (digits / "digits.onnx").read_bytes():
        raise Failure("digits: other bits on several devices, or none that were trained")
    count += 2
    print(f"{count + 1} pipelines train to the bits of one device")


def build_shared(noise):
    """A model whose weights several nodes read: a matrix and its transpose, a bias, and a number."""
    nodes, width = [], 8
    initializers = [numpy_helper.from_array((0.4 * noise.standard_normal(shape)).astype(np.float32), name) for name, shape in (("w", (width, width)), ("v", (width, width)), ("b", (width,)), ("scale", (1,)))]

    def node(op, *inputs, out=None, **attributes):
        nodes.append(helper.make_node(op, list(inputs), [out or f"n{len(nodes)}"], name=f"/{op}_{len(nodes)}", **attributes))
        return nodes[-1].output[0]

    layer = lambda x, weight: node("Tanh", node("Add", node("MatMul", x, weight), "b"))
    turned = node("Transpose", "w", perm=[1, 0])
    x = node("Mul", layer(layer("x", "w"), "v"), "scale")
    x = node("Mul", layer(node("Tanh", node("MatMul", x, turned)), "w"), "scale")
    node("MatMul", node("Tanh", node("MatMul", x, turned)), "v", out="y")
    port = lambda name: helper.make_tensor_value_info(name, 1, [BATCH, width])
    model = helper.make_model(helper.make_graph(nodes, "g", [port("x")], [port("y")], initializers), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def check_shared(work):
    """Weights that nodes of several stages read, cut and placed at random: the checkpoints and evaluations of one device."""
    noise, chosen, count = np.random.default_rng(7), random.Random(7), 0
    model, folder = build_shared(noise), work / "shared"
    onnx.save(model, work / "shared.onnx")
    names = [node.name for node in model.graph.node]
    x = noise.standard_normal((3 * 3 * BATCH, 8)).astype(np.float32)
    np.save(work / "shared.x.npy", x)
    np.save(work / "shared.target.npy", np.tanh(x[:, ::-1].copy()))
    data = [word for name in ("x", "target") for flag in ("--data", "--eval-data") for word in (flag, f"{name}={work}/shared.{name}.npy")]
    schedules = ["1f1b", "gpipe", "fill_drain", "interleaved", "looped", "zb_h1", "zb_v", "sequential"]

    def trained(*flags):
        compile_model(work / "shared.onnx", work / "shared.partita", "--loss", "mse:y", "--optimizer", "adam,learning_rate=0.01", *flags)
        shutil.rmtree(folder, ignore_errors=True)
        for resumed in ([], ["--resume"]):
            lines = train(work / "shared.partita", *data, "-t", 1, "--export", work / "shared.trained.onnx", *resumed, folder=folder, steps=3 if resumed else 2)
        last = folder / "step-00000003"
        return lines[-1]["eval"], *(path.read_bytes() for path in (work / "shared.trained.onnx", last / "model.safetensors", last / "optimizer.safetensors"))

    for flags in (["--micro-batches", 3], ["--micro-batches", 3, "--clip-norm", 0.2], ["--clip-norm", 0.2], ["--micro-batches", 2, "--clip-norm", 0.2, "--reference"]):
        wanted = trained(*flags)
        for schedule in chosen.sample(schedules, 4):
            cuts = [0, *sorted(chosen.sample(range(1, len(names)), chosen.randint(1, 4))), len(names)]
            blocks = {f"B{i}": names[begin:end] for i, (begin, end) in enumerate(zip(cuts, cuts[1:]))}
            devices = [chosen.randrange(3) for _ in blocks]
            devices = [sorted(set(devices)).index(device) for device in devices]
            (work / "shared.yaml").write_text(json.dumps({"blocks": blocks, "stages": [[block] for block in blocks], "devices": devices}))
            if trained(*flags, "--partition", work / "shared.yaml", "--schedule", schedule) != wanted:
                raise Failure(f"{flags} by {schedule}, nodes cut at {cuts[1:-1]}, on the devices {devices}: other bits than on one device")
            count += 1
    print(f"{count} pipelines whose stages share weights train to the bits of one device")


def check_recomputed(work):
    """What is computed again for gradients changes no bit: statistics of batch norms, dropouts, softmax, recurrent layers, on one device and several."""
    dropping = write_dropping_model(work)
    count = 0
    for name, micro, plans in (("sgd-decay", 4, ((1, None), (3, "gpipe"), (2, "zb_h1"))),
                               ("cnn-sgd", 2, ((1, None), (2, "1f1b"), (3, "zb_h1"))),
                               ("mnist-momentum", 3, ((3, "1f1b"), (2, "zb_v"))),
                               ("transformer-nesterov", 2, ((1, None), (2, "1f1b"))),
                               ("lstm-adam", 2, ((1, None), (2, "1f1b")))):
        case = dataclasses.replace(case_named(name), micro=micro)
        model = {"cnn": dropping, "transformer": write_untied_model(work)}.get(case.model) or write_model(work, case.model, "f32")
        data = write_data(work, case, "f32")
        for devices, schedule in plans:
            found = {}
            for recompute in ((), ("--recompute", "standard"), ("--recompute", "full"), ("--recompute-nodes", "*[13579]*")):
                artifact, exported, folder = work / "again.partita", work / "again.onnx", work / "again"
                shutil.rmtree(folder, ignore_errors=True)
                said = compile_model(model, artifact, *case.flags(), "--devices", devices, *(["--schedule", schedule] if schedule else []), *recompute)
                if ("recompute: " in said) != bool(recompute):
                    raise Failure(f"the table of {name} {recompute}: {said}")
                lines = train(artifact, *data, "-t", 1, "--export", exported, folder=folder, steps=3)
                found[recompute] = (exported.read_bytes(), [line["loss"] for line in lines])
                count += "recompute: " in said and "nothing" not in said
            for recompute, result in found.items():
                if result != found[()]:
                    raise Failure(f"{model.name} by {name} on {devices} devices by {schedule}: {' '.join(recompute)} gives other bits")
    # A checkpoint goes on with another choice.
    case = dataclasses.replace(case_named("cnn-sgd"), micro=2)
    data, ends = write_data(work, case, "f32"), []
    for first, second in ((), ()), (("--recompute", "full"), ("--recompute", "standard")):
        shutil.rmtree(work / "again")
        for flags, steps in (first, 2), (second, 4):
            compile_model(dropping, work / "again.partita", *case.flags(), *flags)
            train(work / "again.partita", *data, *(["--resume"] if steps > 2 else []), "--export", work / "again.onnx", folder=work / "again", steps=steps)
        ends.append((work / "again.onnx").read_bytes())
    if ends[0] != ends[1]:
        raise Failure("a training that goes on with another choice of what is computed again gives other bits")
    for flags, text in ((("--recompute-nodes", "zip*"), "--recompute-nodes zip* names no node"), (("--recompute-nodes", "a["), "--recompute-nodes a[: ")):
        before = files_in(work)
        check_message(work, "recompute", run([BIN / "partita-compile", dropping, *case.flags(), *flags, "-o", work / "wrong.partita"], expect=1), text, before)
    print(f"{count} plans compute something again, and train to the same bits")


def write_dropping_model(work):
    """The network with batch norms, whose dropouts drop."""
    model, path = build("cnn", np.float32), work / "dropping.onnx"
    for tensor in model.graph.initializer:
        if tensor.name == "ratio":
            tensor.CopyFrom(numpy_helper.from_array(np.array(0.3, np.float32), "ratio"))
    onnx.save(model, path)
    return path


def write_untied_model(work):
    """The transformer, whose first and last layer have weights of their own."""
    model, path = build("transformer", np.float32), work / "untied.onnx"
    head = next(tensor for tensor in model.graph.initializer if tensor.name == "wte")
    model.graph.initializer.append(numpy_helper.from_array(numpy_helper.to_array(head)[::-1].copy(), "head"))
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            if name == "wte" and node.op_type != "Gather":
                node.input[i] = "head"
    onnx.save(model, path)
    return path


def check_killed(work):
    """A training that is killed again and again ends with the bits of one that is not. So do some that are asked to stop."""
    case = case_named("mnist-adamw")
    artifact, data = compile_case(work, case, "f32"), write_data(work, case, "f32")
    flags = ["--train", *data, "--steps", 10 * STEPS, "--checkpoint-every", 3, "-t", 1, "--export", work / "killed.onnx", "--checkpoint"]
    run_artifact(artifact, *flags, work / "unharmed")
    wanted = (work / "killed.onnx").read_bytes()
    for signal in ("SIGKILL", "SIGTERM"):
        folder, noise = work / signal, random.Random(1)
        for attempt in range(9):
            resumed = ["--resume"] if list(folder.glob("step-*")) else []
            (work / "killed.onnx").unlink(missing_ok=True)
            process = subprocess.Popen([str(word) for word in (BIN / "partita-run", artifact, *flags, folder, *resumed)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            try:
                said, _ = process.communicate(timeout=noise.uniform(0.03, 0.25) if attempt < 8 else 120)
            except subprocess.TimeoutExpired:
                process.send_signal(getattr(signals, signal))
                said, _ = process.communicate(timeout=120)
            if process.returncode not in (0, -getattr(signals, signal)):
                raise Failure(f"{signal}, attempt {attempt}: exit status {process.returncode}\n{said.decode(errors='replace')}")
        if (work / "killed.onnx").read_bytes() != wanted:
            raise Failure(f"{signal}: a training that was broken off gives other bits")
    print("killed and stopped trainings end with the same bits")


def check_signals(work):
    """Signals in the midst of a step do its numbers no harm. (Products of the library keep their stack pointer in a buffer: a handler would write there.)"""
    sizes = {"batch": 24, "block": 64, "layers": 2, "heads": 4, "width": 256, "vocabulary": 65}
    onnx.save(shakespeare.make_model(**sizes), work / "signals.onnx")
    artifact, noise = work / "signals.partita", np.random.default_rng(1)
    compile_model(work / "signals.onnx", artifact, "--loss", "cross_entropy:logits:next", "--optimizer", "adamw", "--recompute", "full")
    data = []
    for input in ("tokens", "next"):
        np.save(work / f"signals.{input}.npy", noise.integers(0, 65, (48, 64)))
        data += ["--data", f"{input}={work}/signals.{input}.npy"]
    command = [BIN / "partita-run", artifact, "--train", *data, "-t", 1, "--json", "--report-every", 1, "--steps"]
    _, calm = (run([*command, 2]).splitlines()[i] for i in range(2))
    deep = dict(os.environ, LD_BIND_NOT="1")  # a handler that takes more of the stack
    with subprocess.Popen([str(word) for word in (*command, 3)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=deep) as process:
        process.stdout.readline()  # the second step is under way
        sent = 0
        while not select.select([process.stdout], [], [], 0.002)[0]:
            process.send_signal(signals.SIGTERM)
            sent += 1
        said = process.stdout.read()
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    if process.returncode or not lines or lines[0].get("loss") != json.loads(calm)["loss"] or sent < 10:
        raise Failure(f"{sent} signals: exit status {process.returncode}\n{said}")
    if lines[-1].get("step", 2) != 2:
        raise Failure(f"{sent} signals do not stop a training after its step\n{said}")
    print(f"{sent} signals in a step do no harm")


def check_scale(work):
    """Images of bytes, scaled by the settings of training, by those of the data, and by NumPy."""
    case, noise = case_named("mnist-momentum"), np.random.default_rng(9)
    images, labels = noise.integers(0, 256, (40, 12, 12)).astype(np.uint8), noise.integers(0, 10, 40).astype(np.int32)
    np.save(work / "bytes.npy", images)
    np.save(work / "bytes.labels.npy", labels)
    np.save(work / "floats.npy", (images.astype(np.float32) / np.float32(255) - np.float32(0.1307)) / np.float32(0.3081))
    settings = work / "scale.yaml"
    settings.write_text("loss: {kind: cross_entropy, output: logits, labels: label}\noptimizer: {kind: sgd, learning_rate: 0.02, momentum: 0.9}\n"
                        "scale: {image: {divide: 255, mean: 0.1307, std: 0.3081}}\n")
    compile_model(write_model(work, "mnist", "f32"), work / "scale.partita", "--train", settings)
    plain, found = compile_case(work, case, "f32"), []
    for artifact, data in ((work / "scale.partita", "bytes.npy"), (plain, "bytes.npy,divide=255,mean=0.1307,std=0.3081"), (plain, "floats.npy")):
        train(artifact, "--data", f"image={work}/{data}", "--data", f"label={work}/bytes.labels.npy", "--export", work / "scaled.onnx", steps=10)
        found.append((work / "scaled.onnx").read_bytes())
    if len(set(found)) != 1:
        raise Failure("images that are scaled in other places give other bits")
    print("scaled bytes give the bits of floats")


def check_published(work):
    """A step of a network, as ONNX Runtime's authors published it: the losses before and after."""
    data = pathlib.Path(os.environ.get("PARTITA_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    folder = data / "models" / "training" / "ort-mlp-training"
    if not folder.is_dir():
        print("skipped: no test data")
        return
    golden = json.loads((folder / "GOLDEN.json").read_text())
    stored = (folder / "checkpoint.ckpt").read_bytes()
    places = {"fc1.weight": (20268, (500, 784)), "fc1.bias": (1588348, (500,)), "fc2.weight": (108, (10, 500)), "fc2.bias": (20172, (10,))}
    model = onnx.load(folder / "eval_model.onnx")
    for name, (offset, shape) in places.items():
        model.graph.initializer.append(numpy_helper.from_array(np.frombuffer(stored, "<f4", int(np.prod(shape)), offset).reshape(shape), name))
    inputs = [port for port in model.graph.input if port.name not in places]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    onnx.save(model, work / "published.onnx")
    image = np.array(json.loads((folder / "input-0.in").read_text().split("\n", 1)[1]), np.float32).reshape(2, 784)
    np.save(work / "image.npy", np.concatenate([image, image]))
    np.save(work / "labels.npy", np.array(golden["labels"] * 2, np.int32))
    # ONNX Runtime adds eps before the correction for the first steps, and PyTorch after it.
    compile_model(work / "published.onnx", work / "published.partita", "--loss", "output:onnx::loss::21273", "--optimizer", f"adamw,learning_rate=0.001,betas=0.9:0.999,eps={1e-6 / (1 - 0.999) ** 0.5!r},weight_decay=0",
                  "--shape", "input-0=2x784", "--dim", "output-0_dim0=2")
    lines = train(work / "published.partita", "--data", f"input-0={work}/image.npy", "--data", f"labels={work}/labels.npy", folder=work / "published", steps=2)
    for line, key in zip(lines, ("loss_before", "loss_after_one_adamw_step")):
        if not abs(line["loss"] - golden[key]) < 1e-6:
            raise Failure(f"the loss is {line['loss']}, and was published as {golden[key]}")
    print(f"published losses: {lines[0]['loss']:.8g} and {lines[1]['loss']:.8g}")


def softmax_loss(logits, labels):
    """Mean cross entropy, shares of labels that are the largest and among the five largest."""
    rows, labels = logits.astype(np.float64).reshape(-1, logits.shape[-1]), labels.reshape(-1)
    rows, labels = rows[labels >= 0], labels[labels >= 0]
    logs = rows - rows.max(1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    own = rows[np.arange(len(rows)), labels][:, None]
    larger = (rows > own).sum(1)
    return -logs[np.arange(len(rows)), labels].mean(), (larger == 0).mean(), (larger < 5).mean()


def check_load(work, artifact, data, held, folder, loss):
    """--load gives the parameters of a checkpoint: with a step of rate 0, their evaluation."""
    still = work / "still.partita"
    compile_model(work / "mlp.f32.onnx", still, "--loss", "mse:y:target", "--optimizer", "sgd,learning_rate=0")
    lines = train(still, *data, *held, "--load", folder / f"step-{STEPS:08}" / "model.safetensors", folder=work / "loaded", steps=1)
    if lines[-1]["eval"]["eval_loss"] != loss:
        raise Failure(f"--load: evaluated as {lines[-1]['eval']}, and before it was saved as {loss}")


def check_changed(work):
    """A training goes on with another set-up, if it is allowed to: as PyTorch's, whose rate is changed in the midst of it, would. Parameters that one of the two
    does not train are an error, and --load says which it leaves out."""
    case, folder, exported = case_named("sgd-decay"), work / "changed", work / "changed.onnx"
    data, first, flags = write_data(work, case, "f64"), compile_case(work, case, "f64"), case.flags()
    at = flags.index("--optimizer") + 1

    def compiled(name, *more, optimizer=flags[at]):
        compile_model(work / f"{case.model}.f64.onnx", work / f"{name}.partita", *flags[:at], optimizer, *flags[at + 1:], *more)
        return work / f"{name}.partita"

    train(first, *data, folder=folder, steps=3)
    shutil.copytree(folder, work / "changed-begun")
    # A rate that is halved after three steps is that of a schedule that does so.
    whole = compiled("scheduled", "--schedule-rate", "step,every=3,factor=0.5")
    wanted = train(whole, *data, "--export", exported, folder=work / "changed-whole", steps=5)
    bytes_wanted, halved = exported.read_bytes(), re.sub(r"learning_rate=([\d.]+)", lambda rate: f"learning_rate={float(rate[1]) / 2}", flags[at])
    artifact = compiled("halved", optimizer=halved)
    go_on = ["--train", *data, "--order", "in-order", "--steps", 5, "--report-every", 1, "--export", exported, "--checkpoint", folder, "--resume"]
    said = run_artifact(artifact, *go_on, expect=1)
    if "learning_rate.0 is " not in said or "--allow-changes" not in said:
        raise Failure(f"another rate: {said}")
    said = run_artifact(artifact, *go_on, "--allow-changes")
    if not re.search(r"remark: goes on with changes: learning_rate.0 is [\d.]+ there and [\d.]+ here\n", said):
        raise Failure(f"another rate that is allowed: {said}")
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    if [line["loss"] for line in lines] != [line["loss"] for line in wanted] or exported.read_bytes() != bytes_wanted:
        raise Failure("a training with half the rate after three steps has other bits than one whose schedule halves it")
    # From here on nothing changes.
    said = run_artifact(artifact, *["--train", *data, "--order", "in-order", "--steps", 6, "--checkpoint", folder, "--resume", "--allow-changes"])
    if "remark" in said:
        raise Failure(f"nothing has changed: {said}")

    def goes_on(artifact, text, *more, expect=0):
        shutil.rmtree(folder)
        shutil.copytree(work / "changed-begun", folder)
        said = run_artifact(artifact, *go_on[:-1], "--resume", "--allow-changes", *more, expect=expect)
        if text not in said:
            raise Failure(f"allowed changes: {text!r} is not said:\n{said}")

    goes_on(first, "goes on with changes: the seed is 0 there and 3 here", "--seed", 3)
    goes_on(compiled("skips", "--on-nonfinite", "skip"), 'goes on with changes: on_nonfinite is "" there and "skip" here')
    flags[flags.index("--micro-batches") + 1] = 1
    goes_on(compiled("micro"), "micro_batches is 8 there and 1 here")
    name = next(tensor.name for tensor in onnx.load(work / f"{case.model}.f64.onnx").graph.initializer)
    frozen, weights = compiled("frozen", "--freeze", name), folder / "step-00000003" / "model.safetensors"
    goes_on(frozen, f"has trained '{name}', which the artifact does not train; --load {weights} begins anew", expect=1)
    goes_on(compiled("adam", optimizer="adam"), "it is a checkpoint of another optimizer; --load", expect=1)
    said = run_artifact(frozen, "--train", *data, "--steps", 1, "--load", weights)
    if f"has 1 tensor that the artifact does not train, and which are not loaded: {name}" not in said:
        raise Failure(f"--load of a frozen parameter: {said}")
    train(frozen, *data, folder=work / "changed-frozen", steps=1)
    said = run_artifact(first, "--train", *data, "--steps", 2, "--order", "in-order", "--checkpoint", work / "changed-frozen", "--resume", "--allow-changes", expect=1)
    if f"has no '{name}' of the artifact's type and shape: it is a checkpoint of another model, or froze it" not in said:
        raise Failure(f"a parameter that was frozen: {said}")
    print("a training goes on with what was allowed to change, as a schedule would have it")


def check_exported(work):
    """The trained model in ONNX Runtime, compiled again, and as --eval-data sees it."""
    for name in ("mnist-momentum", "transformer-adamw", "lstm-adam", "sgd-decay"):
        case, folder, exported, held = case_named(name), work / "exported", work / "exported.onnx", []
        shutil.rmtree(folder, ignore_errors=True)
        artifact = compile_case(work, case, "f32")
        arrays = {input: array[:6 * BATCH] for input, array in case.files("f32").items()}
        for input, array in arrays.items():
            np.save(work / f"held.{input}.npy", array)
            held += ["--eval-data", f"{input}={work}/held.{input}.npy"]
        lines = train(artifact, *write_data(work, case, "f32"), *held, "--eval-every", 10, "--export", exported, folder=folder)
        train(artifact, *write_data(work, case, "f32"), "--export", work / "unseen.onnx")
        if exported.read_bytes() != (work / "unseen.onnx").read_bytes():
            raise Failure(f"{name}: training that is evaluated meanwhile gives other bits")
        evaluated = [line["step"] for line in lines if "eval" in line and "eval_loss" in line["eval"]]
        if evaluated != [10, 20]:
            raise Failure(f"{name}: evaluated after the steps {evaluated}")
        session = onnxruntime.InferenceSession(exported, providers=["CPUExecutionProvider"])
        input, labels = INPUTS[case.model]
        outputs = np.concatenate([session.run(None, {input: arrays[input][at:at + BATCH]})[0] for at in range(0, 6 * BATCH, BATCH)])
        said = lines[-1]["eval"]
        if case.loss == "mse":
            wanted = {"eval_loss": np.square(outputs.astype(np.float64) - arrays[labels]).mean()}
        else:
            wanted = dict(zip(("eval_loss", "accuracy", "top5"), softmax_loss(outputs, arrays[labels])))
            wanted["perplexity"] = np.exp(wanted["eval_loss"])
        said = {key: value for key, value in said.items() if key != "gradient_norm"}
        if set(said) != set(wanted) or any(abs(said[key] - value) > 2e-6 * abs(value) for key, value in wanted.items()):
            raise Failure(f"{name}: evaluated as {said}, and by ONNX Runtime {wanted}")
        compile_model(exported, work / "again.partita")
        np.save(work / "one.npy", arrays[input][:BATCH])
        run_artifact(work / "again.partita", "--input", work / "one.npy", "--output", work / "out.npz")
        with np.load(work / "out.npz") as found:
            apart = max(np.abs(found[case.output()].astype(np.float64) - outputs[:BATCH]).max(), 0) / np.abs(outputs).max()
        if not apart < 1e-5:
            raise Failure(f"{name}: the trained model compiled again gives outputs that differ by {apart} of the largest")
        # From the checkpoint's parameters on: what an optimizer without moments does next.
        if name == "sgd-decay":
            check_load(work, artifact, write_data(work, case, "f32"), held, folder, said["eval_loss"])
    print("trained models give ONNX Runtime's outputs")



LINEAR = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[4,6] x%s) => (float[4,3] y%s) {\n y = MatMul (x, w)\n %s\n}\n'

# What else there is in a model, and in its inputs and outputs.
ODD = {
    "a plain model": ("", "", ""),
    "a parameter that is an output, too": ("", ", float[6,3] w", ""),
    "outputs of a parameter": ("", ", float[6,3] v", "v = Neg (w)"),
    "an input that the loss does not use": (", float[4,2] z", ", float[4,2] v", "v = Neg (z)"),
    "outputs that are no floats": ("", ", int64[4,1] i, bool[4,3] b", "i = ArgMax <axis = 1> (y)\n b = Greater (y, y)"),
    "an output that is called loss": ("", ", float[4,3] loss", "loss = Neg (y)"),
}


def regress(w, x, target, steps, rate, whole, batch=BATCH):
    """Linear regression by gradient descent, in f64; whole: the loss is the sum of the squares, not their mean."""
    w, losses, count = w.astype(np.float64), [], 1 if whole else target[:batch].size
    for step in range(steps):
        part = slice(step * batch, (step + 1) * batch)
        apart = x[part] @ w - target[part]
        losses.append((apart * apart).sum() / count)
        w = w - rate * 2 * x[part].T @ apart / count
    return losses, w


def check_odd(work):
    """Models that are built otherwise than networks are, against linear regression in f64."""
    noise = np.random.default_rng(7)
    w, x, z, target = (noise.standard_normal(shape).astype(np.float32) for shape in ((6, 3), (20, 6), (20, 2), (20, 3)))
    for name, array in (("x", x), ("z", z), ("target", target)):
        np.save(work / f"odd.{name}.npy", array)
    artifact, moved = work / "odd.partita", work / "moved"

    def check_one(what, path, weights=("w",), input="x", names=("x", "target"), flags=(), whole=False):
        shutil.rmtree(work / "odd", ignore_errors=True)
        compile_model(path, artifact, "--loss", "mse:y" + (",reduction=sum" if whole else ""), "--optimizer", "sgd,learning_rate=0.01", *flags)
        data = [word for name in names for word in ("--data", f"{name}={work}/odd.{name}.npy", "--eval-data", f"{name}={work}/odd.{name}.npy")]
        batch, steps = (2 * BATCH, 2) if "--micro-batches" in flags else (BATCH, 5)
        lines = train(artifact, *data, "--export", moved / path.name, folder=work / "odd", steps=steps)
        losses, wanted = regress(w, x, target, steps, 0.01, whole, batch)
        trained = onnx.load(moved / path.name)
        found = {tensor.name: numpy_helper.to_array(tensor) for tensor in trained.graph.initializer}
        found |= {node.output[0]: numpy_helper.to_array(node.attribute[0].t) for node in trained.graph.node if node.op_type == "Constant"}
        if not np.allclose([line["loss"] for line in lines], losses, rtol=1e-5) or not np.allclose(found["w"], wanted, rtol=1e-5, atol=1e-6):
            raise Failure(f"{what}: losses {[line['loss'] for line in lines]} instead of {losses}; w is\n{found['w']}\ninstead of\n{wanted}")
        evaluated = np.square(x @ wanted - target)
        evaluated = evaluated.sum() if whole else evaluated.mean()
        if not np.isclose(lines[-1]["eval"]["eval_loss"], evaluated, rtol=1e-5):
            raise Failure(f"{what}: evaluated as {lines[-1]['eval']} instead of {evaluated}")

    for what, (inputs, outputs, body) in ODD.items():
        model = onnx.parser.parse_model(LINEAR % (inputs, outputs, body))
        model.graph.initializer.append(numpy_helper.from_array(w, "w"))
        onnx.save(model, work / "odd.onnx")
        check_one(what, work / "odd.onnx", names=("x", "z", "target") if inputs else ("x", "target"))
    model = onnx.parser.parse_model(LINEAR % ("", "", ""))
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    onnx.save(model, work / "odd.onnx")
    check_one("a sum, not a mean", work / "odd.onnx", whole=True)
    check_one("a sum of micro-batches", work / "odd.onnx", flags=("--micro-batches", 2), whole=True)
    check_one("weights beside the artifact", work / "odd.onnx", flags=("--weights", "beside"))
    onnx.save(model, work / "outside.onnx", save_as_external_data=True, location="outside.bin", size_threshold=0)
    check_one("weights in a file of their own", work / "outside.onnx")
    model.graph.initializer[0].ClearField("raw_data")
    model.graph.initializer[0].ClearField("data_location")
    model.graph.initializer[0].ClearField("external_data")
    model.graph.initializer[0].float_data.extend(w.ravel())
    onnx.save(model, work / "numbers.onnx")
    check_one("weights as a list of numbers", work / "numbers.onnx")
    model = onnx.parser.parse_model(LINEAR.replace("[4,6]", "[N,6]") % ("", "", ""))
    model.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(w, "v")))
    onnx.save(model, work / "constant.onnx")
    check_one("a constant, and a batch that is bound", work / "constant.onnx", flags=("--dim", "N=4"))
    print(f"{len(ODD) + 5} models that are built otherwise train")


SAME = """<ir_version: 10, opset_import: ["" : 21]>
g (float[4,6] x) => (float[4,3] z) {
 h = MatMul (x, w)
 t = Tanh (h)
 y = Add (t, b)
 q = Mul (s, s)
 n = ReduceSum <keepdims = 0> (q)
 z = Add (y, n)
}
"""


def check_same(work):
    """Gradients that are the same in all micro-batches: of a bias whose adjoint is known, and of a term that no input has a part in."""
    noise = np.random.default_rng(11)
    start = {name: noise.standard_normal(shape).astype(np.float32) for name, shape in (("w", (6, 3)), ("b", 3), ("s", 5))}
    x = noise.standard_normal((60, 6)).astype(np.float32)
    np.save(work / "same.x.npy", x)
    model = onnx.parser.parse_model(SAME)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in start.items())
    onnx.save(model, work / "same.onnx")
    count, rate, steps = 6, 0.001, 2
    w, b, s = (start[name].astype(np.float64) for name in "wbs")
    losses = []
    for step in range(steps):
        rows = x[step * count * 4:(step + 1) * count * 4].astype(np.float64)
        t = np.tanh(rows @ w)
        losses.append((t + b + (s * s).sum()).sum())
        w, b, s = w - rate * rows.T @ (1 - t * t), b - rate * len(rows), s - rate * 2 * s * t.size
    wanted, artifact, plans = {"w": w, "b": b, "s": s}, work / "same.partita", ((), ("--devices", 2), ("--devices", 3, "--schedule", "zb_h1"), ("--data-parallel", 2),
        ("--data-parallel", 3, "--zero", 1), ("--data-parallel", 2, "--zero", 2), ("--data-parallel", 2, "--zero", 3), ("--data-parallel", 2, "--devices", 4))
    for flags in plans:
        shutil.rmtree(work / "same", ignore_errors=True)
        compile_model(work / "same.onnx", artifact, "--loss", "sum:z", "--optimizer", f"sgd,learning_rate={rate}", "--micro-batches", count, *flags)
        lines = train(artifact, "--data", f"x={work}/same.x.npy", "--export", work / "same.trained.onnx", folder=work / "same", steps=steps)
        found = parameters_of(work / "same.trained.onnx")
        if not np.allclose([line["loss"] for line in lines], losses, rtol=1e-5):
            raise Failure(f"{flags}: losses {[line['loss'] for line in lines]} instead of {losses}")
        for name, value in wanted.items():
            if not np.allclose(found[name], value, rtol=1e-5, atol=1e-6):
                raise Failure(f"{flags}: {name} is\n{found[name]}\ninstead of\n{value}")
    print(f"{len(plans)} plans add up gradients that are the same in all micro-batches")


GIVEN = ("--loss", "mse:y:target", "--optimizer", "sgd,learning_rate=0.05,momentum=0.9")
# (flags of partita-compile, what the message must hold)
COMPILE_ERRORS = [
    ((*GIVEN, "--emit-onnx", "split.onnx"), "a training and --emit-onnx: the model's file has no nodes for its derivatives"),
    ((*GIVEN, "--dim", "batch=1,2"), "a training: a loss mixes samples"),
    (("--loss", "mse:y", "--optimizer", "rmsprop"), "'rmsprop' is no optimizer; there are sgd, adam, adamw, adagrad"),
    (("--loss", "mse:y", "--optimizer", "sgd,lr=0.1"), "'lr=0.1' is no setting of sgd; its settings are learning_rate"),
    (("--loss", "mse:y", "--optimizer", "sgd,betas=0.1:0.2"), "is no setting of sgd"),
    (("--loss", "mse:y", "--optimizer", "adam,betas=0.9"), "the second of betas is ''"),
    (("--loss", "mse:y", "--optimizer", "adam,betas=0.9:1.0"), "the second of betas is '1.0'; it is a number of at least 0 and below 1"),
    (("--loss", "mse:y", "--optimizer", "sgd,nesterov=true"), "nesterov needs a momentum"),
    (("--loss", "mse:y", "--optimizer", "sgd,learning_rate=nan"), "learning_rate is 'nan'; it is a number of at least 0"),
    (("--loss", "mse:y", "--optimizer", "sgd,learning_rate=inf"), "learning_rate is 'inf'"),
    ((*GIVEN, "--learning-rate", "nan"), "learning_rate is 'nan'"),
    ((*GIVEN, "--learning-rate", "-1"), "it is a number of at least 0"),
    ((*GIVEN, "--clip-norm", "nan"), "clip-norm"),
    ((*GIVEN, "--clip-norm", "-1"), "clip-norm"),
    ((*GIVEN, "--schedule-rate", "linear,steps=5,every=3"), "every"),
    ((*GIVEN, "--group", "nothing*,weight_decay=0"), "--group nothing* names no parameter"),
    ((*GIVEN, "--group", "fc1*,betas=0.1:0.2"), "--group: 'betas=0.1:0.2' is no setting of sgd"),
    ((*GIVEN, "--group", ",weight_decay=0"), "names no parameters"),
    ((*GIVEN, "--schedule-rate", "bump"), "'bump' is no schedule; there are constant, step, linear, cosine, wsd"),
    ((*GIVEN, "--schedule-rate", "cosine"), "needs more `steps`"),
    ((*GIVEN, "--schedule-rate", "cosine,warmup=5,steps=5"), "needs more `steps` than those of its warm-up"),
    ((*GIVEN, "--schedule-rate", "cosine,steps=10,final=nan"), "'final=nan' is no setting of "),
    ((*GIVEN, "--schedule-rate", "step"), "needs `every`"),
    ((*GIVEN, "--schedule-rate", "wsd,steps=10,decay=11"), "needs `decay`"),
    (("--optimizer", "sgd"), "of which loss?"),
    (("--loss", "mse:y", "--clip-norm", 1), "give --train FILE or --optimizer, too"),
    ((*GIVEN, "--gradients"), "--gradients and --train"),
    ((*GIVEN, "--recompute", "most"), "--recompute: most not in {none,standard,full}"),
    (("--loss", "mse:y", "--recompute", "full"), "give --train FILE or --optimizer, too"),
    ((*GIVEN, "--freeze", "*"), "the loss depends on no parameter that is trained"),
    ((*GIVEN, "--freeze", "zip"), "--freeze zip names no parameter"),
    ((*GIVEN, "--micro-batches", 0), "--micro-batches: Value 0 not in range"),
    (("--loss", "mse:z", "--optimizer", "sgd"), "the model has no output 'z'"),
]

LOSS = "loss: {kind: mse, output: y, labels: target}\n"
# (train.yaml after the loss, line, column if it is not that of a mapping in braces, what the message must hold)
FILE_ERRORS = [
    ("optimizer: adamw\nclipnorm: 1.0\n", 3, 1, "'clipnorm' is no key of the file"),
    ("optimizer:\n  kind: adamw\n  lr: 3\n", 3, 3, "'lr=3' is no setting of adamw"),
    ("optimizer: adamw\nclip_norm: nan\n", 3, 12, "clip_norm is 'nan', and not a number of at least 0"),
    ("optimizer: adamw\nmicro_batches: 2.5\n", 3, 16, "micro_batches is '2.5', and not a whole number of at least 1"),
    ("optimizer: adamw\ngroups:\n  - weight_decay: 0\n", 4, 5, "a group has parameters"),
    ("optimizer: adamw\nschedule: {kind: cosine, step: 3}\n", 3, 11, "'step=3' is no setting of "),
    ("optimizer: adamw\nscale: {x: {divide: 0}}\n", 3, 12, "divide and std are not 0"),
    ("optimizer: adamw\nscale: {x: {times: 2}}\n", 3, 13, "'times' is no key of a scale"),
    ("optimizer: adamw\nrecompute: most\n", 3, 12, "recompute is 'most', and not none or standard or full"),
    ("optimizer: adamw\nfreeze: {a: b}\n", 3, 9, "expected a list"),
    ("optimizer: adamw\ngroups:\n  - parameters: [fc1*]\n    wd: 0\n", 5, 9, "'wd=0' is no setting of adamw"),
    ("optimizer: adamw\noptimizer: sgd\n", 3, 1, "'optimizer' stands here twice"),
]


def files_in(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} | {path: None for path in folder.rglob("*") if path.is_dir()}


def check_message(work, what, said, text, before, allowed=()):
    """One line says what is wrong, and nothing is there that was not."""
    lines = [line for line in said.splitlines() if ": error: " in line]
    if len(lines) != 1 or text not in lines[0] or said.splitlines()[-1:] != lines and not what.startswith("resume"):
        raise Failure(f"{what}: the message is\n{said}\nand not: {text}")
    after = files_in(work)
    changed = [str(path) for path in {*before, *after} if before.get(path, 0) != after.get(path, 0) and not any(path.match(glob) for glob in allowed)]
    if changed:
        raise Failure(f"{what}: the error left {changed}")


def check_wrong_compiles(work):
    model, artifact = write_model(work, "mlp", "f32"), work / "wrong.partita"
    (work / "scatter.onnxtxt").write_text('<ir_version: 10, opset_import: ["" : 21]>\ng (float[2,3] x) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {\n'
                                          ' v = MatMul (x, w)\n i = Constant <value = int64[2,3] {0,0,0,1,1,1}> ()\n y = ScatterElements <axis = 0, reduction = "mul"> (x, i, v)\n}\n')
    (work / "step.onnxtxt").write_text('<ir_version: 10, opset_import: ["" : 21]>\ng (float[2,3] step) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {\n y = MatMul (step, w)\n}\n')
    before = files_in(work)
    wrong = [(model, *case) for case in COMPILE_ERRORS]
    wrong += [(work / "scatter.onnxtxt", GIVEN, "has no derivative, and the loss depends on 'w' through it"), (work / "step.onnxtxt", GIVEN, "has an input 'step', which is a name of an input of training")]
    for path, flags, text in wrong:
        check_message(work, f"{path.name} {flags}", run([BIN / "partita-compile", path, "-o", artifact, *flags], expect=1), text, before)
    settings = work / "train.yaml"
    settings.write_text(LOSS + "scale: {z: {divide: 2}}\n")
    before = files_in(work)
    check_message(work, "scale", run([BIN / "partita-compile", model, "-o", artifact, "--train", settings], expect=1), "`scale` names 'z', which is no input of the model", before)
    for body, line, column, text in FILE_ERRORS:
        settings.write_text(LOSS + body)
        before = files_in(work)
        said = run([BIN / "partita-compile", model, "-o", artifact, "--train", settings], expect=1)
        for part in (f"{settings}:{line}:" + (f"{column}: " if column else ""), text):
            check_message(work, body, said, part, before)
    # What a file and what flags say is the same.
    case = case_named("groups")
    settings.write_text(LOSS + "optimizer: {kind: adamw, learning_rate: 0.01, weight_decay: 0.1}\ngroups:\n  - {parameters: ['*.bias'], weight_decay: 0}\n"
                        "  - {parameters: [fc2.weight, fc2*], learning_rate: 0.05, betas: [0.7, 0.9]}\nschedule: {kind: cosine, warmup: 3, steps: 18, final: 5.0e-4}\n")
    compile_model(model, artifact, "--train", settings)
    compare_case(work, case, "f32", artifact, " train.yaml")
    artifact.unlink()
    return len(wrong) + len(FILE_ERRORS)


def check_wrong_runs(work):
    case = case_named("sgd-decay")
    artifact, plain, model = compile_case(work, case, "f32"), work / "plain.partita", write_model(work, "mlp", "f32")
    compile_model(model, plain)
    x, target = case.files("f32").values()
    arrays = {"x": x, "target": target, "short": x[:-1], "few": x[:7], "few_targets": target[:7], "wide": np.zeros((len(x), 7), np.float32), "double": x.astype(np.float64),
              "number": np.float32(3), "complex": x.astype(np.complex64)}
    path = {name: work / f"wrong.{name}.npy" for name in arrays}
    for name, array in arrays.items():
        np.save(path[name], array)
    label_case = case_named("mnist-momentum")
    labels = label_case.files("f32")
    labels["label"] = labels["label"].copy()
    labels["label"][2 * BATCH + 3] = 10
    for name, array in labels.items():
        np.save(work / f"wrong.{name}.npy", array)
    label_artifact = compile_case(work, label_case, "f32")
    exported = work / "wrong.onnx"
    begin, data = ["--train", "--order", "in-order", "--steps", STEPS, "--export", exported, "--checkpoint", work / "wrong"], lambda x="x", y="target": ["--data", f"x={path[x]}", "--data", f"target={path[y]}"]
    cases = [
        (artifact, [*begin, "--data", f"x={path['x']}"], "the samples of 'target' are not given; write --data target=FILE"),
        (artifact, [*begin, *data(), "--data", f"z={path['x']}"], "there is no input 'z'; the inputs are 'x', 'target'"),
        (artifact, [*begin, *data(), "--data", f"x={path['x']}"], "the samples of 'x' are given twice"),
        (artifact, [*begin, *data("short")], "the numbers of samples differ"),
        (artifact, [*begin, *data("few", "few_targets")], "a step takes 32 samples, but"),
        (artifact, [*begin, *data("wide")], "both must have the same number of elements"),
        (artifact, [*begin, *data("double")], "float64 cannot become float32"),
        (artifact, [*begin, *data("number")], "it is one number, and has no dimension of samples"),
        (artifact, [*begin, *data("complex")], "it holds complex numbers"),
        (artifact, [*begin, "--data", "x=/nowhere.npy", "--data", f"target={path['target']}"], "cannot open '/nowhere.npy'"),
        (artifact, [*begin, *data(), "--order", "random"], "--order: random not in"),
        *((artifact, [*begin, *data(), "--outputs", outputs], f"'{outputs}' is none of mean, final, sum, all and every:N") for outputs in ("every", "every:0", "every:1x", "first")),
        (artifact, [*begin, *data(), "--keep", 0], "--keep: Value 0 not in range"),
        (artifact, [*begin, *data(), "--keep-best", "eval_loss"], "--keep-best needs checkpoints and evaluations"),
        (artifact, [*begin, *data(), "--eval-data", f"x={path['x']}", "--eval-data", f"target={path['target']}", "--keep-best", "accuracy"], "--keep-best accuracy: this loss predicts no labels"),
        (artifact, ["--train", *data(), "--steps", 0], "--steps: Value 0 not in range"),
        (artifact, [*begin, *data(), "--eval-data", f"x={path['x']}"], "--eval-data: the samples of 'target' are not given"),
        (artifact, [*begin, *data(), "--load", path["x"]], "it is no safetensors file"),
        (artifact, [*begin, *data(), "--load", "/nowhere.safetensors"], "cannot open '/nowhere.safetensors'"),
        (artifact, ["--train", *data(), "--steps", 1, "--export", model], "is the model itself"),
        (artifact, ["--train", *data(), "--steps", 1, "--resume"], "--checkpoint"),
        (artifact, [*data(), "--steps", 1], "--train"),
        (artifact, [*begin, *data(), "--eval-data", f"x={path['double']}", "--eval-data", f"target={path['target']}", "--eval-every", 5], "float64 cannot become float32"),
        (plain, [*begin, *data()], "is of a model that is not trained: compile it with --train or --optimizer"),
        (label_artifact, ["--train", "--order", "in-order", "--steps", 5, "--data", f"image={work}/wrong.image.npy", "--data", f"label={work}/wrong.label.npy"], "10 at [3] of its labels 'label' is out of range: 0 to 9 are allowed"),
    ]
    for binary, flags, text in cases:
        before = files_in(work)
        check_message(work, " ".join(map(str, flags)), run_artifact(binary, *flags, expect=1), text, before)
    return len(cases) + check_wrong_files(work, artifact, x, [*begin, "--data", f"target={path['target']}"]) + check_wrong_resumes(work, case, artifact, data())


def check_wrong_files(work, artifact, x, flags):
    """Files of samples that are cut off, or hold something else: each is found before the first step."""
    npz = io.BytesIO()
    np.savez(npz, a=x, b=x)
    npy, idx = (work / "wrong.x.npy").read_bytes(), struct.pack(">4BII", 0, 0, 13, 2, *x.shape) + x.astype(">f4").tobytes()
    table = "a,b,c,d,e,f\n" + "1,2,3,4,5,6\n" * 3
    cases = [
        ("cut.npy", "", npy[:-100], f"its header says float32 [{len(x)}, 6], that is {x.nbytes} bytes, but {x.nbytes - 100} bytes follow"),
        ("header.npy", "", npy[:40], "it ends within its header"),
        ("cut.idx", "", idx[:-4], f"its header says float32 [{len(x)}, 6], that is {x.nbytes} bytes, but {x.nbytes - 4} bytes follow"),
        ("cut.idx.gz", "", gzip.compress(idx)[:-20], "it ends early"),
        ("large.idx", "", struct.pack(">4BII", 0, 0, 13, 2, 2**32 - 1, 2**32 - 1) + b"1234", "which is too large for any file"),
        ("cut.npz", ":a", npz.getvalue()[:-300], "it is not a .npz file"),
        ("two.npz", "", npz.getvalue(), "it has 2 arrays; name one, e.g. "),
        ("names.npz", ":c", npz.getvalue(), "there is no array 'c'; known: 'a', 'b'"),
        ("word.csv", "", f"{table}1,2,x,4,5,6\n".encode(), "line 5, column 'c': 'x' is not a number"),
        ("cut.csv", "", f"{table}1,2".encode(), "line 5: it has 2 of 6 columns; 'c' is missing"),
        ("names.csv", ":z", table.encode(), "there is no column 'z'; known: 'a'"),
        ("cut.bin", ",window=6", b"123", "its 3 bytes are not a whole number of tokens of 2 bytes"),
        ("window.bin", "", bytes(64), "say how many make a sample, e.g. window=256"),
        ("empty", "", b"", "it is empty"),
        ("x.npy", ",std=0", npy, f"error: --data x={work}/wrong.x.npy,std=0: 'std': it divides, and may not be 0"),
        ("x.npy", ",mean=nan", npy, f"error: --data x={work}/wrong.x.npy,mean=nan: 'mean': 'nan' is not a number"),
    ]
    for name, part, content, text in cases:
        path = work / f"wrong.{name}"
        path.write_bytes(content)
        before = files_in(work)
        check_message(work, f"{name}{part}", run_artifact(artifact, *flags, "--data", f"x={path}{part}", expect=1), text, before)
    return len(cases)


def check_wrong_resumes(work, case, artifact, data):
    """Folders of other trainings, and damaged ones."""
    folder, count = work / "resumed", 0
    before = files_in(work)
    (work / "nothing").mkdir()
    go_on = ["--train", *data, "--order", "in-order", "--steps", 6, "--resume", "--export", work / "resumed.onnx", "--checkpoint"]

    def fail(what, binary, text, *flags, place=folder, order="in-order"):
        nonlocal count
        count += 1
        before = files_in(work)
        check_message(work, f"resume: {what}", run_artifact(binary, *(order if word == "in-order" else word for word in go_on), place, *flags, expect=1), text, before)

    fail("an empty folder", artifact, "there is no checkpoint in", place=work / "nothing")
    fail("no folder", artifact, "there is no checkpoint in", place=work / "nowhere")
    train(artifact, *data, "--checkpoint-every", 2, folder=folder, steps=4)
    fail("another seed", artifact, "was made with the seed 0", "--seed", 3)
    model = onnx.load(write_model(work, "mlp", "f32"))
    other = numpy_helper.to_array(model.graph.initializer[0]).copy()
    other[0, 0] += 1
    model.graph.initializer[0].raw_data = other.tobytes()
    onnx.save(model, work / "other.onnx")
    compile_model(work / "other.onnx", work / "other.partita", *case.flags())
    fail("another model", work / "other.partita", "is a checkpoint of another model")
    others = [("--clip-norm", 1), ("--freeze", "fc1*"), *(("--optimizer", f"sgd,learning_rate=0.05,weight_decay=0.02,{words}") for words in ("momentum=0.8,dampening=0.5", "momentum=0.9", "momentum=0.9,nesterov=true"))]
    for flags in others:
        given = [word for word in case.flags()]
        if flags[0] == "--optimizer":
            given[given.index("--optimizer") + 1] = flags[1]
            flags = ()
        compile_model(work / "mlp.f32.onnx", work / "other.partita", *given, *flags)
        fail("another set-up", work / "other.partita", "is a checkpoint of another set-up (")
    # What differs is named.
    for given, text in ((("clip-norm", 1), "set-up (clip_norm is 0 there and 1 here)"), (("on-nonfinite", "skip"), 'set-up (on_nonfinite is "" there and "skip" here)')):
        compile_model(work / "mlp.f32.onnx", work / "other.partita", *case.flags(), f"--{given[0]}", given[1])
        fail("another set-up", work / "other.partita", text)
    fail("another order", artifact, "order is in-order there and shuffled here", order="shuffled")
    before = files_in(folder)
    if "has checkpoints after step 0" not in run_artifact(artifact, "--train", *data, "--steps", 6, "--checkpoint", folder, expect=1) or files_in(folder) != before:
        raise Failure("a training that begins anew in a folder of checkpoints")
    for name in ("model.safetensors", "optimizer.safetensors", "trainer.json"):
        path = folder / "step-00000004" / name
        whole = path.read_bytes()
        for damaged in (whole[:-5], whole[:len(whole) // 2], b"", whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:]):
            if name == "trainer.json" and len(damaged) == len(whole):
                continue
            path.write_bytes(damaged)
            # Both are there no more: nothing is left to go on from.
            older = folder / "step-00000002" / name
            kept = older.read_bytes()
            older.write_bytes(kept[:-7])
            fail(f"{name} of {len(damaged)} bytes", artifact, f"no checkpoint in '{folder}' is whole. The newest: '{path}'")
            older.write_bytes(kept)
            # The one before is whole.
            shutil.copytree(folder, work / "older")
            said = run_artifact(artifact, *go_on, work / "older")
            if "goes on after step 2" not in said or f"step-00000004/{name}" not in said:
                raise Failure(f"{name} is damaged, and the checkpoint before it is not: {said}")
            shutil.rmtree(work / "older")
            (work / "resumed.onnx").unlink()
        path.write_bytes(whole)
    run_artifact(artifact, *go_on, folder)
    return count


def count_labels(scores, labels, axis, ignored):
    """The shares of labels whose score is the largest, and one of the five largest: the first of equal ones is larger, and NaN predicts nothing."""
    rows = np.moveaxis(scores, axis, -1).reshape(-1, scores.shape[axis])
    pairs = [(row, label) for row, label in zip(rows, labels.reshape(-1)) if label != ignored]
    places = [[at for at, _ in sorted(enumerate(row), key=lambda pair: (np.isnan(pair[1]), -pair[1], pair[0]))].index(label) if row[label] == row[label] else 99 for row, label in pairs]
    return [sum(place < most for place in places) / len(places) for most in (1, 5)]


def check_labels(work):
    """Labels that are predicted: equal scores, NaN, infinities, labels that are ignored, classes along any axis, on devices that share the micro-batches. The last of these fill no step."""
    noise = np.random.default_rng(4)
    plans = ((), ("--devices", 2), ("--data-parallel", 2), ("--data-parallel", 2, "--zero", 3, "--devices", 4), ("--data-parallel", 4, "--zero", 3), ("--tensor-parallel", 2))
    cases = (("f32", (4, 7), -1), ("f64", (4, 7), 1), ("f32", (4, 7, 3), 1), ("f32", (4, 2, 9), -1), ("f32", (4, 6, 2, 3), 1))
    for number, (dtype, shape, axis) in enumerate(cases):
        float_type, element = (np.float32, "float") if dtype == "f32" else (np.float64, "double")
        path = work / f"labels{number}.onnx"
        sizes = ",".join(map(str, shape))
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\ng ({element}[{sizes}] x) => ({element}[{sizes}] y) {{\n v = Mul (x, w)\n y = Mul (v, u)\n}}\n')
        for name in "wu":
            model.graph.initializer.append(numpy_helper.from_array(np.ones(shape[1:], float_type), name))
        onnx.save(model, path)
        # Seven micro-batches, where a step has four, and three samples that are left out.
        count, values = 7 * shape[0] + 3, np.array([-np.inf, -1, -0.0, 0, 1, 2, 3, np.inf, np.nan], float_type)
        held = values[noise.choice(len(values), (count, *shape[1:]), p=(0.05, 0.15, 0.15, 0.15, 0.15, 0.15, 0.15, 0.02, 0.03))]
        labels = noise.integers(0, shape[axis], [size for dim, size in enumerate(held.shape) if dim != axis % len(shape)])
        labels[noise.random(labels.shape) < 0.2] = -7
        learned = noise.standard_normal((16, *shape[1:])).astype(float_type)
        arrays = {"--data": {"x": learned, "target": np.zeros((16, *labels.shape[1:]), np.int64)}, "--eval-data": {"x": held, "target": labels}}
        data = []
        for flag, of in arrays.items():
            for name, array in of.items():
                np.save(work / f"labels{flag}.{name}.npy", array)
                data += [flag, f"{name}={work}/labels{flag}.{name}.npy"]
        wanted = count_labels(held[:-3], labels[:-3], axis, -7)
        for flags in plans:
            artifact = work / "labels.partita"
            compile_model(path, artifact, "--loss", f"cross_entropy:y,axis={axis},ignore_index=-7", "--optimizer", "sgd,learning_rate=0", "--micro-batches", 4, *flags)
            shutil.rmtree(work / "labels", ignore_errors=True)
            said = train(artifact, *data, "--eval-every", 1, folder=work / "labels", steps=1)[-1]["eval"]
            if [said["accuracy"], said["top5"]] != wanted:
                raise Failure(f"{dtype} {shape} along {axis}, {' '.join(map(str, flags))}: labels are predicted as {said}, and by hand {wanted}")
    print(f"labels are counted as by hand: {len(cases)} networks, {len(plans)} plans")


def check_keep_best(work):
    """The best checkpoint stays beside the newest, and each evaluation makes one."""
    case, folder = case_named("mnist-momentum"), work / "best"
    data, artifact = write_data(work, case, "f32"), compile_case(work, case, "f32")
    held = ["--eval-data" if word == "--data" else word for word in data]
    for metric, sign in (("eval_loss", 1), ("accuracy", -1)):
        shutil.rmtree(folder, ignore_errors=True)
        lines = train(artifact, *data, *held, "--eval-every", 2, "--keep", 1, "--keep-best", metric, folder=folder)
        best = min((line for line in lines if "eval" in line), key=lambda line: sign * line["eval"][metric])["step"]
        kept = {int(path.name.removeprefix("step-")) for path in folder.glob("step-*")}
        if kept != {best, STEPS}:
            raise Failure(f"--keep-best {metric}: the best is of step {best}, and those of {sorted(kept)} were kept")


def check_not_finite(work):
    """A loss that is not finite ends training: what was saved before it stays, nothing is exported, and with samples that are numbers it goes on to the same bits."""
    case, folder, models = case_named("sgd-decay"), work / "finite", [work / "finite.onnx", work / "whole.onnx"]
    artifact, data = compile_case(work, case, "f32"), write_data(work, case, "f32")
    x = case.files("f32")["x"].copy()
    x[6 * BATCH * MICRO_BATCHES + 1, 2] = np.nan
    np.save(work / "poisoned.npy", x)
    flags = ["--train", "--order", "in-order", "--steps", STEPS, "--checkpoint", folder, "--checkpoint-every", 2, "--export", models[0]]
    poisoned = [f"x={work}/poisoned.npy" if word.startswith("x=") else word for word in data]
    said = run_artifact(artifact, *flags, *poisoned, expect=1)
    kept = sorted(path.name for path in folder.glob("step-*"))
    if "the loss of step 7 is not finite" not in said or kept != [f"step-{step:08}" for step in (2, 4, 6)] or models[0].exists():
        raise Failure(f"a sample that is NaN: {said}, and the checkpoints {kept}")
    run_artifact(artifact, *flags, *data, "--resume")
    train(artifact, *data, "--export", models[1])
    if models[0].read_bytes() != models[1].read_bytes():
        raise Failure("a training that goes on after a loss that was not finite gives other bits")
    print("a loss that is not finite ends training, and leaves checkpoints that are whole")


def check_json(work):
    """A line of JSON for each report; the plan, which does not say that a run takes its samples once."""
    case = case_named("sgd")
    if "to evaluate" not in (said := run_artifact(compile_case(work, case, "f32"), "--plan")) or "samples:" in said:
        raise Failure(f"the plan of a training: {said}")
    said = run_artifact(compile_case(work, case, "f32"), "--train", *write_data(work, case, "f32"), "--order", "in-order", "--steps", 3, "--report-every", 1, "--json")
    losses = [json.loads(line)["loss"] for line in said.splitlines()]
    if not np.allclose(losses, REFERENCE["sgd"]["losses"][:3], rtol=1e-5):
        raise Failure(f"--json: {said}")


def check_outputs(work):
    """Which losses the lines have, printed and in the log."""
    case = case_named("sgd")
    artifact, data = compile_case(work, case, "f32"), write_data(work, case, "f32")
    flags = ["--train", *data, "--order", "in-order", "--steps", 7, "--json", "--device-iterations", 3]
    losses = [json.loads(line)["loss"] for line in run_artifact(artifact, *flags, "--outputs", "all").splitlines()]
    if not np.allclose(losses, REFERENCE["sgd"]["losses"][:7], rtol=1e-5):
        raise Failure(f"--outputs all: {losses}")
    # By the last step of each line: the steps that its loss is of.
    whole = {3: (0, 1, 2), 6: (3, 4, 5), 7: (6,)}
    expected = {
        "mean": {step: np.mean([losses[i] for i in steps]) for step, steps in whole.items()},
        "sum": {step: np.sum([losses[i] for i in steps]) for step, steps in whole.items()},
        "final": {step: losses[step - 1] for step in whole},
        "all": {step: losses[step - 1] for step in range(1, 8)},
        "every:2": {step: losses[step - 1] for step in (2, 3, 4, 6, 7)},
    }
    for outputs, wanted in expected.items():
        folder = work / f"outputs-{outputs.replace(':', '-')}"
        lines = [json.loads(line) for line in run_artifact(artifact, *flags, "--outputs", outputs, "--checkpoint", folder).splitlines()]
        logged = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        for found in lines, logged:
            if [line["step"] for line in found] != list(wanted) or not np.allclose([line["loss"] for line in found], list(wanted.values()), rtol=1e-12):
                raise Failure(f"--outputs {outputs}: {found}")
            if [line["step"] for line in found if "samples_per_second" in line] != list(whole):
                raise Failure(f"--outputs {outputs}: reports at other steps: {found}")
    print("lines have the losses that --outputs says")


def check_errors(work):
    print(f"{check_wrong_compiles(work) + check_wrong_runs(work)} errors say what is wrong, and leave nothing behind")



def check():
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        parts = {part.__name__.removeprefix("check_"): part for part in (check_reference, check_bits, check_pipelines, check_shared, check_orders, check_recomputed, check_killed, check_signals, check_scale, check_published, check_changed, check_exported, check_odd, check_same, check_labels, check_keep_best, check_not_finite, check_json, check_outputs, check_errors)}
        if not words or not set(words) <= set(parts):
            check_curves(work, words)
        for name, part in parts.items():
            if not words or name in words:
                part(work)


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
