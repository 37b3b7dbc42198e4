#!/usr/bin/env python3
"""Training on replicas: losses and parameters of 20 steps against PyTorch's (training_reference.json), where the micro-batches of a step are dealt out to
2, 4 and 8 replicas, of one device or of a pipeline, and where replicas share what the optimizer keeps. What each device sends and keeps is what the
formulas say, checkpoints of any plan are loaded by any other, and what cannot be is an error.

    training_replicas.py         all
    training_replicas.py cnn     the cases of these models, or whose name holds one of these words
    training_replicas.py cut     this part
"""

import dataclasses
import itertools
import json
import pathlib
import shutil
import sys
import tempfile
from collections import Counter

import onnx
from onnx import TensorProto, helper, numpy_helper

from harness import BIN, Failure, compile_model, main, run, some

import training
from training import np
from training_cases import CASES, STEPS, weights


def check_curves(work, words):
    """Cases with several micro-batches on meshes of all kinds; in a run of all tests each with some of them."""
    plans = (("--data-parallel", 2), ("--data-parallel", 8), ("--data-parallel", 2, "--devices", 4, "--schedule", "zb_v", "--zero", 1), ("--data-parallel", 4, "--zero", 2),
             ("--data-parallel", 2, "--devices", 4, "--schedule", "1f1b", "--zero", 2), ("--data-parallel", 4, "--devices", 8, "--schedule", "zb_h1", "--zero", 3), ("--tensor-parallel", 2),
             ("--tensor-parallel", 2, "--data-parallel", 2, "--zero", 3, "--devices", 8, "--schedule", "gpipe"), ("--data-parallel", 4, "--zero", 3))
    worst, count = {"f64": (0, 0), "f32": (0, 0)}, 0
    for turn, case in enumerate(CASES):
        if case.micro == 1 or (words and not any(word in case.name or word == case.model for word in words)):
            continue
        # Each mesh with each model in one of the two types.
        for number, flags in some(enumerate(plans), 1 if words else 9, turn):
            dtype = case.dtypes[number % len(case.dtypes)]
            artifact = work / "replicas.partita"
            compile_model(training.write_model(work, case.model, dtype), artifact, *case.flags(), *flags)
            found = training.compare_case(work, case, dtype, artifact, f" {' '.join(map(str, flags))}")
            worst[dtype] = tuple(map(max, worst[dtype], found))
            count += 1
    print(f"{count} trainings on replicas are PyTorch's; at most {', '.join(f'{dtype} differs by {loss:.1e} in losses and {p:.1e} in parameters' for dtype, (loss, p) in worst.items())}")


def combinations():
    """Meshes of up to 8 devices: data x stages x tensor x ZeRO, and a schedule for each with stages, so that all of them come."""
    schedules = itertools.cycle(("gpipe", "1f1b", "interleaved", "zb_h1", "zb_v", "looped", "sequential", "fill_drain"))
    for data, stages, tensor in itertools.product((1, 2, 4, 8), repeat=3):
        if data * stages * tensor > 8:
            continue
        for zero in (0, 1, 2, 3) if data > 1 else (0,):
            flags = ["--data-parallel", data, "--tensor-parallel", tensor, "--zero", zero, "--devices", data * stages * tensor]
            yield [*flags, *(("--schedule", next(schedules)) if stages > 1 else ())]


def check_combinations(work):
    """Each combination with three models; in a run of all tests some of them."""
    worst, count = (0, 0), 0
    for name, flags in some(itertools.product(("mnist-adamw", "cnn-adam", "transformer-adamw"), combinations()), 11):
        case = training.case_named(name)
        compile_model(training.write_model(work, case.model, "f64"), work / "mesh.partita", *case.flags(), *flags)
        worst = tuple(map(max, worst, training.compare_case(work, case, "f64", work / "mesh.partita", f" {' '.join(map(str, flags))}")))
        count += 1
    print(f"{count} combinations of data, stages, tensor and ZeRO are PyTorch's; at most {worst[0]:.1e} apart in losses and {worst[1]:.1e} in parameters")


def check_idle(work):
    """A stage that computes nothing where the model is evaluated hands on the parameters that its device keeps."""
    case = training.case_named("bce")
    model, data = training.write_model(work, case.model, "f32"), training.write_data(work, case, "f32")
    data += [word if word != "--data" else "--eval-data" for word in data]
    losses = []
    for flags in ((), ("--data-parallel", 2, "--zero", 3, "--devices", 6, "--schedule", "gpipe")):
        plan = compile_model(model, work / "idle.partita", *case.flags(), *flags)
        folder = work / "idle"
        shutil.rmtree(folder, ignore_errors=True)
        losses.append([line["eval"]["eval_loss"] for line in training.train(work / "idle.partita", *data, "--eval-every", 2, folder=folder, steps=6)[1::2]])
    if "(empty)" not in plan.partition("to evaluate")[2]:
        raise Failure(f"no stage is idle where the model is evaluated:\n{plan}")
    if not np.allclose(*losses, rtol=1e-6, atol=0):
        raise Failure(f"evaluations with an idle stage: {losses[1]}, and on one device {losses[0]}")
    print(f"an idle stage hands on its parameters: evaluations are {losses[1]}")


def check_untrained(work):
    """A large weight that gradients do not reach is no parameter of either plan, so both find the same small ones."""
    rng = np.random.default_rng(2)
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>\ng (float[4,8] x) => (float[4,8] y) {\n f = Floor (v)\n axes = Constant <value = int64[1] {0}> ()\n s = ReduceSum <keepdims = 0> (f, axes)\n a = Mul (x, w)\n b = Add (a, s)\n y = Add (b, c)\n}\n')
    for name, shape in (("w", (4, 8)), ("v", (1000, 8)), ("c", (8,))):
        model.graph.initializer.append(numpy_helper.from_array((0.1 * rng.standard_normal(shape)).astype(np.float32), name))
    onnx.save(model, work / "untrained.onnx")
    data = []
    for name in ("x", "target"):
        np.save(work / f"untrained.{name}.npy", rng.standard_normal((64, 8)).astype(np.float32))
        data += [word for flag in ("--data", "--eval-data") for word in (flag, f"{name}={work}/untrained.{name}.npy")]
    losses = []
    for flags in ((), ("--data-parallel", 2, "--zero", 3), ("--data-parallel", 2, "--zero", 3, "--devices", 4)):
        compile_model(work / "untrained.onnx", work / "untrained.partita", "--loss", "mse:y", "--optimizer", "adamw", "--micro-batches", 4, *flags)
        folder = work / f"untrained{len(losses)}"
        losses.append([line["eval"]["eval_loss"] for line in training.train(work / "untrained.partita", *data, "--eval-every", 2, folder=folder, steps=4)[1::2]])
        if not np.allclose(losses[-1], losses[0], rtol=1e-6):
            raise Failure(f"a weight that gradients do not reach, {' '.join(map(str, flags))}: evaluations are {losses[-1]}, and on one device {losses[0]}")
    print(f"a weight that gradients do not reach stays as it is: evaluations are {losses[0]}")


def check_placed(work):
    """What follows a node is on its stage, where everything is so small that it could be elsewhere: a gathered bias, running statistics that only updates
    read, also if replicas share them, and the updates of parameters of which each replica has one number."""
    for name, flags in (
        ("transformer-adamw", ("--data-parallel", 8, "--zero", 3, "--devices", 32, "--schedule", "looped", "--stages", 8, "--recompute", "standard")),
        ("cnn-adam", ("--devices", 3, "--reference")),
        ("cnn-adam", ("--data-parallel", 2, "--zero", 1, "--devices", 4, "--reference", "--on-nonfinite", "stop")),
        ("transformer-nesterov", ("--data-parallel", 8, "--zero", 3, "--devices", 16, "--on-nonfinite", "skip"))):
        case = training.case_named(name)
        compile_model(training.write_model(work, case.model, "f32"), work / "placed.partita", *case.flags(), *flags)
        training.compare_case(work, case, "f32", work / "placed.partita", f" {' '.join(map(str, flags))}")
    print("what follows a node is on its stage")


def part_of(shape, replicas):
    """Elements of a tensor that each replica keeps: the first dimension that divides is cut, or else the longest, rounded up; None: the tensor stays whole."""
    long = [size for size in shape if size > replicas]
    cut = next((size for size in shape if size % replicas == 0), max(long, default=0))
    return int(np.prod(shape)) // cut * -(-cut // replicas) if cut else None


def cut_shapes(shapes):
    """All but the smallest parameters, which have a hundredth of all elements together and stay whole."""
    shapes = sorted(shapes, key=lambda shape: np.prod(shape))
    room = 0.01 * sum(np.prod(shape) for shape in shapes)
    while np.prod(shapes[0]) <= room:
        room -= np.prod(shapes.pop(0))
    return shapes


def sent_in_step(plan):
    """Bytes that each device sends in a step along "data", by kind."""
    sent = Counter()
    for collective in plan["collectives"]:
        if collective["axes"] != "data":
            raise Failure(f"a collective of a training on replicas alone: {collective}")
        sent[collective["kind"]] += collective["sent_bytes"] * (1 if collective["per_step"] else plan["micro_batches"])
    return sent


def check_sent(work):
    """What each device sends in a step is 2 (n - 1) / n of the gradients and of the sums of losses, or of padded parts; what it keeps of the optimizer is a part."""
    case = training.case_named("mnist-adamw")
    model = training.write_model(work, case.model, "f32")
    shapes = [array.shape for name, array in training.parameters_of(model).items() if name in weights(case.model)]
    for replicas in (4, 8):
        sent = {}
        for zero in (0, 1, 2, 3):
            plans = json.loads(compile_model(model, work / "sent.partita", *case.flags(), "--data-parallel", replicas, "--zero", zero, "--json"))
            sent[zero] = sent_in_step(next(plan for plan in plans if plan["entry"] == "train"))
        whole = sum(4 * int(np.prod(shape)) for shape in shapes)
        parts = (replicas - 1) * sum(4 * (part_of(shape, replicas) or 0) for shape in cut_shapes(shapes))
        share, turns = 2 * (replicas - 1) / replicas, case.micro // replicas
        # Losses, and their parts, are a few numbers. What is sent in parts is rounded up.
        apart = json.loads(compile_model(model, work / "sent.partita", *case.flags(), "--data-parallel", replicas, "--fusion-bytes", 0, "--json"))
        for plan in (sent_in_step(apart[0]), sent[0]):
            if set(plan) != {"all_reduce"} or not share * whole <= plan["all_reduce"] <= share * (whole + 64) + 64:
                raise Failure(f"{replicas} replicas send {dict(plan)}, and gradients are {whole} bytes")
        # Gradients of each micro-batch, and parameters forward and once more for gradients. With one there is nothing to add up.
        for zero, (scattered, least, most) in {1: (1, 1, 1), 2: (turns, 1, 1), 3: (turns, turns, 2 * turns)}.items():
            if sent[zero]["reduce_scatter"] != scattered * parts or not least * parts <= sent[zero]["all_gather"] <= most * parts:
                raise Failure(f"{replicas} replicas with zero {zero} send {dict(sent[zero])}, and all but one's parts are {parts} bytes of {whole}")
    print("replicas send what a ring needs for gradients, or for parts of them")


def write_layers(work, width, layers):
    rng = np.random.default_rng(0)
    nodes = [node for i in range(layers) for node in (helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"h{i}"]), helper.make_node("Tanh", [f"h{i}"], [f"x{i + 1}"]))]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, width]) for name in ("x0", f"x{layers}")]
    tables = [numpy_helper.from_array((rng.standard_normal((width, width)) * width**-0.5).astype(np.float32), f"w{i}") for i in range(layers)]
    path = work / "layers.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "layers", values[:1], values[1:], tables), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def check_overlap(work):
    """Replicas add sums up while they compute others, where they lie or, if they share moments, into parts that need room, and update parameters meanwhile: with the results of one device."""
    width, layers = 256, 6
    path = write_layers(work, width, layers)
    rng = np.random.default_rng(1)
    for name in ("x0", "y"):
        np.save(work / f"{name}.npy", rng.standard_normal((4 * 4 * 3, width)).astype(np.float32))
    data = [word for name in ("x0", "y") for word in ("--data", f"{name}={work / name}.npy")]
    flags = ("--loss", f"mse:x{layers}:y", "--optimizer", "sgd,learning_rate=10,momentum=0.9", "--micro-batches", 4)

    def losses(name, *more, ranks=0):
        compile_model(path, work / f"{name}.partita", *flags, *more)
        folder = work / name
        shutil.rmtree(folder, ignore_errors=True)
        return [line["loss"] for line in training.train(work / f"{name}.partita", *data, "-t", 1, folder=folder, steps=3, ranks=ranks)], (folder / "step-00000003" / "model.safetensors").read_bytes()

    wanted, _ = losses("alone")
    for zero in (0, 1):
        more = ("--data-parallel", 2, "--zero", zero)
        plan = run([BIN / "partita-compile", path, *flags, *more, "--emit", "plan"])
        steps = [line.split()[0] + " " + line.split()[1] for line in plan[:plan.index("// -----")].splitlines() if line.strip().startswith(("plan.run", "plan.start", "plan.finish"))]
        first = next(i for i, step in enumerate(steps) if step.startswith("plan.start"))
        if not any(step.startswith("plan.run @F0") for step in steps[first:]):
            raise Failure(f"zero {zero}: nothing starts in the last micro-batch: {steps}")
        most = flying = 0
        for step in steps:
            flying += {"plan.start": 1, "plan.finish": -1}.get(step.split()[0], 0)
            most = max(most, flying)
        if not layers - 1 <= most <= layers + 1 if zero == 0 else most != 2:
            raise Failure(f"zero {zero}: {most} collectives at a time: {steps}")
        found = [losses("replicas", *more, ranks=ranks) for ranks in (0, 2)]
        if found[0] != found[1] or not np.allclose(found[0][0], wanted, rtol=1e-5) or len(set(wanted)) != 3:
            raise Failure(f"zero {zero}: losses {[losses for losses, _ in found]} instead of {wanted}")
    print("replicas add sums up meanwhile, and train as one device does")


def check_memory(work):
    """A device has 16, 8 + 8 / n, 4 + 12 / n, 16 / n bytes of each parameter, what four layers need at most, and scratch of the library."""
    width, layers = 512, 8
    path = write_layers(work, width, layers)
    layer, peaks = width * width, {}
    for replicas in (2, 4):
        for zero in (0, 1, 2, 3):
            flags = ("--loss", f"mse:x{layers}:y", "--optimizer", "adamw", "--micro-batches", 2 * replicas, "--data-parallel", replicas, "--zero", zero)
            plans = json.loads(compile_model(path, work / "layers.partita", *flags, "--json"))
            peaks[zero] = max(stage["peak_bytes"] for stage in plans[0]["stages"])
            formula = layers * layer * (16, 8 + 8 / replicas, 4 + 12 / replicas, 16 / replicas)[zero]
            print(f"{replicas} replicas, zero {zero}: {peaks[zero] / layer:.2f} bytes, by the formula {formula / layer:.2f}")
            if not formula < peaks[zero] < formula + 4 * 4 * layer:
                raise Failure(f"{replicas} replicas with zero {zero} need {peaks[zero]} bytes, and by the formula {formula:.0f}")
    print("replicas have the memory that the formulas say")


def write_cuts(work, model, axis="tensor"):
    """A partition file that cuts each weight in its longest dimension, if that has as many elements as the axis has devices."""
    cuts = {}
    for name, array in training.parameters_of(model).items():
        if array.ndim and array.dtype.kind == "f" and max(array.shape) >= 2:
            longest = int(np.argmax(array.shape))
            cuts[name] = [axis if dim == longest else None for dim in range(array.ndim)]
    path = work / "cuts.yaml"
    path.write_text(json.dumps({"shard": cuts}))
    return path


def check_cut(work):
    """Every weight is cut, also those that the cost model would leave whole."""
    worst, count, exchanged = (0, 0), 0, set()
    for number, name in enumerate(("mnist-adamw", "cnn-adam", "transformer-adamw", "transformer-nesterov", "sgd-decay")):
        case = training.case_named(name)
        model = training.write_model(work, case.model, "f64")
        meshes = (("--tensor-parallel", 2), ("--tensor-parallel", 2, "--data-parallel", 2, "--zero", 3), ("--tensor-parallel", 2, "--devices", 4, "--schedule", "1f1b"))
        for flags in some(meshes, 2, number):
            artifact = work / "cut.partita"
            said = compile_model(model, artifact, *case.flags(), "--partition", write_cuts(work, model), *flags, "--json")
            exchanged |= {(collective["kind"], collective["axes"]) for plan in json.JSONDecoder().raw_decode(said[said.index("["):])[0] for collective in plan["collectives"]}
            found = training.compare_case(work, case, "f64", artifact, f" cut {' '.join(map(str, flags))}")
            worst = tuple(map(max, worst, found))
            count += 1
    if not {("all_reduce", "tensor"), ("all_gather", "tensor"), ("all_reduce", "data")} <= exchanged:
        raise Failure(f"weights that are cut need other collectives than {exchanged}")
    print(f"{count} trainings with cut weights are PyTorch's; at most {worst[0]:.1e} apart in losses and {worst[1]:.1e} in parameters")


def check_checkpoints(work):
    """A checkpoint does not say on how many devices it was written: each plan goes on from each other's."""
    case = training.case_named("cnn-adam")
    model, data = training.write_model(work, case.model, "f64"), training.write_data(work, case, "f64")
    plans = {"one": (), "two": ("--data-parallel", 2), "shared": ("--data-parallel", 4, "--zero", 3)}
    for name, flags in plans.items():
        compile_model(model, work / f"{name}.partita", *case.flags(), *flags)
    wanted = training.train(work / "one.partita", *data, folder=work / "whole")
    for first in plans:
        for second in plans:
            folder = work / f"{first}-{second}"
            training.train(work / f"{first}.partita", *data, folder=folder, steps=7)
            lines = training.train(work / f"{second}.partita", *data, "--resume", folder=folder)
            apart = max(abs(line["loss"] - other["loss"]) / abs(other["loss"]) for line, other in zip(lines, wanted))
            if len(lines) != STEPS or not apart < 1e-9:
                raise Failure(f"begun by '{first}', gone on with by '{second}': losses differ by {apart:.1e}")
    print(f"{len(plans) ** 2} pairs of plans go on from each other's checkpoints")


def check_processes(work):
    """Replicas, stages and parts of states in several processes: the bits of threads, and checkpoints that the other goes on from."""
    case = training.case_named("transformer-adamw")
    model, data = training.write_model(work, case.model, "f32"), training.write_data(work, case, "f32")
    artifact = work / "processes.partita"
    compile_model(model, artifact, *case.flags(), "--data-parallel", 2, "--zero", 3, "--devices", 4, "--schedule", "1f1b")

    def files(name, *flags, ranks=0, steps):
        training.train(artifact, *data, "-t", 1, "--export", work / f"{name}.onnx", *flags, folder=work / name, steps=steps, ranks=ranks)
        last = work / name / f"step-{steps:08}"
        return [path.read_bytes() for path in (work / f"{name}.onnx", last / "model.safetensors", last / "optimizer.safetensors")]

    wanted = files("threads", steps=3)
    for ranks in (2, 4):
        if files(f"processes{ranks}", ranks=ranks, steps=3) != wanted:
            raise Failure(f"{ranks} processes train to other bits than threads")
    # Replicas of a stage in different processes, and stages of a replica.
    resumed = files("processes2", "--resume", "--device-map", "0,3/1,2", ranks=2, steps=5)
    if files("threads", "--resume", steps=5) != resumed:
        raise Failure("processes go on from a checkpoint to other bits than threads")
    print("processes train to the bits of threads")


def check_reproducible(work):
    """With `reproducible` the number of replicas does not change a bit, of losses, parameters or what the optimizer keeps."""
    plans = (("--data-parallel", 2), ("--data-parallel", 4), ("--data-parallel", 8), ("--data-parallel", 2, "--zero", 1), ("--data-parallel", 8, "--zero", 1),
             ("--devices", 2, "--schedule", "zb_h1"), ("--data-parallel", 2, "--devices", 4, "--schedule", "1f1b"), ("--data-parallel", 2, "--devices", 6, "--schedule", "zb_v", "--zero", 1),
             ("--data-parallel", 4, "--devices", 8, "--schedule", "gpipe"))
    count = 0
    models = ("mnist-adamw", 8), ("cnn-adam", 16), ("transformer-adamw", 8), ("sgd-decay", 12), ("mnist-adamw", 24), ("transformer-nesterov", 4)
    for number, (name, micro) in enumerate(models):
        case = dataclasses.replace(training.case_named(name), micro=micro)
        model, data, wanted = training.write_model(work, case.model, "f32"), training.write_data(work, case, "f32"), None
        for flags in ((), *some(plans, 2, number)):
            replicas = flags[1] if flags[:1] == ("--data-parallel",) else 1
            if micro % replicas:
                continue
            text = f"{name}, {micro} micro-batches {' '.join(map(str, flags))}"
            compile_model(model, work / "reproducible.partita", *case.flags(), "--reproducible", *flags)
            for ranks in (0, 2) if flags in plans[1:4] and micro == 8 else (0,):
                folder = work / "reproducible"
                shutil.rmtree(folder, ignore_errors=True)
                lines = training.train(work / "reproducible.partita", *data, "-t", 1, folder=folder, steps=6, ranks=ranks)
                last = folder / "step-00000006"
                found = [[line["loss"] for line in lines], *((last / f"{part}.safetensors").read_bytes() for part in ("model", "optimizer"))]
                wanted = wanted or found
                if found != wanted:
                    what = [part for part, a, b in zip(("losses", "parameters", "moments"), found, wanted) if a != b]
                    raise Failure(f"{text}, {ranks} processes: other {', '.join(what)} than on one device:\n{found[0]}\n{wanted[0]}")
                count += 1
    for replicas in (2, 4):
        said = run([BIN / "partita-compile", model, *case.flags(), "--reproducible", "--data-parallel", replicas, "--target", "cuda:sm_90", "-o", work / "gpu.partita"])
        if ("remark: NCCL decides in which order it adds up the gradients of 4 replicas" in said) != (replicas == 4):
            raise Failure(f"{replicas} GPUs: {said}")
    # Any of these goes on from any other.
    case = training.case_named("cnn-adam")
    model, data, found = training.write_model(work, case.model, "f32"), training.write_data(work, case, "f32"), {}
    for number, flags in enumerate((("--data-parallel", 4, "--zero", 1), (), ("--data-parallel", 2, "--devices", 4, "--schedule", "zb_h1"))):
        compile_model(model, work / f"of{number}.partita", *case.flags(), "--reproducible", *flags)
    for order in ((0, 0), (0, 1), (1, 2), (2, 0)):
        folder = work / f"of{order}"
        for part, number in enumerate(order):
            training.train(work / f"of{number}.partita", *data, "-t", 1, *(["--resume"] if part else []), folder=folder, steps=3 * part + 3)
        found[order] = (folder / "step-00000006" / "model.safetensors").read_bytes()
    if len(set(found.values())) != 1:
        raise Failure("plans do not go on from each other's checkpoints to the same bits")
    print(f"{count} trainings on 1 to 8 replicas have the bits of one device, and go on from each other's checkpoints")


def check_errors(work):
    case = training.case_named("mnist-adamw")
    model = training.write_model(work, case.model, "f32")
    wrong = ((("--data-parallel", 3), "the micro-batches of a step (--micro-batches 8) cannot be dealt out to 3 replicas (--data-parallel) in equal parts: give a multiple of 3, e.g. 9"),
             (("--data-parallel", 3, "--reproducible"), "`reproducible` adds gradients up in a tree that 1, 2, 4 and 8 replicas have in common, not 3 (--data-parallel): take one of these, or leave `reproducible` out"),
             (("--zero", 1), "zero 1: replicas share what an optimizer keeps, and there is one replica"),
             (("--data-parallel", 2, "--zero", 4), "--zero: expected 0 to 3 or auto, found '4'"),
             (("--data-parallel", 2, "--zero", 3, "--reproducible"), "zero 3: replicas share in each micro-batch what `reproducible` computes together: take zero 1, or leave `reproducible` out"))
    for flags, text in wrong:
        before = training.files_in(work)
        said = run([BIN / "partita-compile", model, *case.flags(), *flags, "-o", work / "wrong.partita"], expect=1)
        training.check_message(work, " ".join(map(str, flags)), said, text, before)
    print(f"{len(wrong)} errors say what is wrong")


def check():
    words = sys.argv[1:]
    parts = {part.__name__.removeprefix("check_"): part for part in (check_combinations, check_idle, check_untrained, check_placed, check_cut, check_sent, check_overlap, check_memory, check_checkpoints, check_processes, check_reproducible, check_errors)}
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if not words or not set(words) <= set(parts):
            check_curves(work, words)
        for name, part in parts.items():
            if not words or name in words:
                part(work)


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
