#!/usr/bin/env python3
"""Training for GPUs, on test/gpu-emulator, and compared with the CPU.

    trained.py                  all
    trained.py curves pipelines these parts:

curves     20 steps of the networks of examples/mnist and examples/shakespeare (smaller), of one with batch normalizations and of an LSTM: each parameter is that of
           the CPU within TOLERANCE, and so is each loss
pipelines  two devices, with streams in several orders, with graphs of units and without: the bits of one device; and the same after a break
replicas   two replicas of two stages that share what the optimizer keeps, and parameters too: those of one GPU within TOLERANCE, with the same bits in one process
           and in four; with `reproducible`, two replicas have the bits of one
on_host    what an optimizer keeps in the memory of the host: the bits are the same, and the GPU holds as much less as the plan says
kinds      GPUs and CPUs in one pipeline, which compute things again, too: the losses of the CPU within TOLERANCE
mixed      products of bf16 in models of f32: the parameters of a network are those of NumPy with the same roundings; pipelines have the bits of one device, replicas
           and cut tensors train nearly as one; a model infers nearly as in f32
updates    an optimizer's updates of many parameters are few launches
dropped    waits of streams that are left out in each step: with many of them a training goes wrong
waits      a plan for two devices from which a step is taken that waits, sends or receives: it is refused

PARTITA_GPU_EMULATOR is the folder with the emulator's libcuda.so.1. Skipped where it is missing.
"""

import dataclasses
import json
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "executed"))
from execute import EMULATOR, TARGET, compile_for_gpus, need_emulator
from harness import BIN, REPOSITORY, Failure, compile_model, main, run, some
from mixed_precision import LAYERS_FLAGS, PLANS, compare_plans, compare_with_numpy, write_layers
from mixed_precision import STEPS as MIXED_STEPS
from training import case_named, parameters_of, train, write_data, write_model

import numpy as np
import onnx

from training_cases import Graph

sys.path.append(str(REPOSITORY / "examples"))
from mnist import make_model as mnist
from shakespeare import make_model as shakespeare

TOLERANCE = 1e-5  # of a parameter's norm, and of a loss
STEPS = 20
DROPPED_STEPS = 8
FOUND = 0.4  # of the waits of streams. Many guard what others guard, too, or what comes early in any order (see CudaDevice.EveryWaitIsNeeded).
PARAMETERS = 150
# Parameters that a launch updates.
AT_ONCE = 64
OPTIMIZERS = ("sgd,learning_rate=0.1", "adagrad", "adamw")


def environment(devices=1, seed=1, **more):
    return {"LD_LIBRARY_PATH": str(EMULATOR), "CUDA_EMU_QUIET": "1", "CUDA_EMU_DEVICES": str(devices), "CUDA_EMU_SEED": str(seed), **more}


@dataclasses.dataclass
class Learner:
    """A model with its samples, and how it is trained."""

    name: str
    model: pathlib.Path
    flags: list
    data: list


def example_learners(work):
    """The networks of the examples."""
    noise = np.random.default_rng(4)
    image = noise.standard_normal((10, 1, 28, 28))
    labels = noise.integers(0, 10, 2 * 4 * STEPS)
    tokens = [noise.integers(0, 65, 2 * 2 * STEPS)]
    for _ in range(16):
        tokens.append((5 * tokens[-1] + 3 + (noise.random(tokens[-1].shape) < 0.1)) % 65)
    tokens = np.stack(tokens, 1)
    for name, array in (("image", (image[labels] + noise.standard_normal((len(labels), 1, 28, 28))).astype(np.float32)), ("label", labels),
                        ("tokens", tokens[:, :-1]), ("next", tokens[:, 1:])):
        np.save(work / f"{name}.npy", array)
    onnx.save(mnist.make_model(batch=4), work / "mnist.onnx")
    onnx.save(shakespeare.make_model(batch=2, block=16, layers=2, heads=2, width=32), work / "shakespeare.onnx")
    flags = ["--micro-batches", 2, "--clip-norm", 1, "--optimizer"]
    yield Learner("mnist", work / "mnist.onnx", ["--loss", "cross_entropy:logits:label", *flags, "adamw,learning_rate=0.001,eps=1e-6"],
                  ["--data", f"image={work}/image.npy", "--data", f"label={work}/label.npy"])
    yield Learner("shakespeare", work / "shakespeare.onnx", ["--loss", "cross_entropy:logits:next", *flags, "adamw,learning_rate=0.001,betas=0.9:0.99,eps=1e-6,weight_decay=0.1"],
                  ["--data", f"tokens={work}/tokens.npy", "--data", f"next={work}/next.npy"])


def case_learner(work, name, **changes):
    """A model of training.py."""
    case = dataclasses.replace(case_named(name), **changes)
    return Learner(name, write_model(work, case.model, "f32"), case.flags(), write_data(work, case, "f32"))


def learn(work, learner, name, *flags, env=None, steps=STEPS, artifact=None, fresh=True, ranks=0):
    """Trains; the lines of the log and the trained file."""
    if artifact is None:
        artifact = work / f"{name}.partita"
        compile_model(learner.model, artifact, *learner.flags, *(TARGET if env else ()), *flags)
    folder = work / f"{name}.run"
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    lines = train(artifact, *learner.data, *([] if fresh else ["--resume"]), "-t", 1, "--export", work / f"{name}.onnx", folder=folder, steps=steps, env=env, ranks=ranks)
    return lines, work / f"{name}.onnx"


def check_curves(work):
    worst = (0, 0)
    for learner in (*example_learners(work), *(case_learner(work, name) for name in ("mnist-momentum", "cnn-adam", "transformer-adagrad", "lstm-momentum"))):
        lines, wanted = learn(work, learner, "cpu")
        others, found = learn(work, learner, "gpu", env=environment())
        losses = max(abs(line["loss"] - other["loss"]) / abs(line["loss"]) for line, other in zip(lines, others, strict=True))
        if not losses <= TOLERANCE or len(lines) != STEPS:
            raise Failure(f"{learner.name}: losses of the CPU\n{[line['loss'] for line in lines]}\nand of the GPU\n{[line['loss'] for line in others]}")
        before, wanted, found = (parameters_of(path) for path in (learner.model, wanted, found))
        apart = {name: np.linalg.norm(found[name].astype(np.float64) - value) / np.linalg.norm(value) for name, value in wanted.items()
                 if value.dtype == np.float32 and value.tobytes() != before[name].tobytes()}
        if not apart or not max(apart.values()) <= TOLERANCE:
            raise Failure(f"{learner.name}: parameters differ from those of the CPU by {apart}")
        worst = max(worst[0], losses), max(worst[1], *apart.values())
    print(f"{STEPS} steps on GPUs are those on the CPU: at most {worst[0]:.1e} apart in losses, {worst[1]:.1e} in parameters")


def check_pipelines(work):
    count = 0
    guarded = case_learner(work, "mnist-momentum", micro=3)
    guarded.flags += ["--on-nonfinite", "skip"]
    for learner, schedules in ((guarded, ("1f1b", "zb_h1")), (case_learner(work, "sgd-decay", micro=4), ("gpipe", "interleaved"))):
        _, exported = learn(work, learner, "whole", env=environment(), steps=6)
        wanted = exported.read_bytes()
        for schedule in schedules:
            artifact = work / "piped.partita"
            compile_model(learner.model, artifact, *learner.flags, *TARGET, "--devices", 2, "--schedule", schedule)
            for seed in some(range(5), 2, count):
                _, exported = learn(work, learner, "piped", env=environment(2, seed), steps=6, artifact=artifact)
                if exported.read_bytes() != wanted:
                    raise Failure(f"{learner.name} on two GPUs by {schedule}, streams in order {seed}: other bits than on one")
                count += 1
        learn(work, learner, "piped", env=environment(2), steps=3, artifact=artifact)
        _, exported = learn(work, learner, "piped", env=environment(2), steps=6, artifact=artifact, fresh=False)
        if exported.read_bytes() != wanted:
            raise Failure(f"{learner.name} on two GPUs: other bits after a break")
    print(f"{count} trainings on two GPUs have the bits of one, and go on from a checkpoint")


def check_replicas(work):
    learner = case_learner(work, "transformer-adamw")
    one, exported = learn(work, learner, "alone", env=environment(), steps=6)
    wanted, count = parameters_of(exported), 0
    for zero in (1, 3):
        artifact = work / "replicas.partita"
        compile_model(learner.model, artifact, *learner.flags, *TARGET, "--data-parallel", 2, "--devices", 4, "--schedule", "1f1b", "--zero", zero)
        kept = set()
        for ranks in (0, 4) if shutil.which("mpirun") else (0,):
            lines, exported = learn(work, learner, "replicas", env=environment(4), steps=6, artifact=artifact, ranks=ranks)
            apart = max(abs(line["loss"] - other["loss"]) / abs(line["loss"]) for line, other in zip(one, lines, strict=True))
            found = parameters_of(exported)
            apart = max(apart, *(np.linalg.norm(found[name] - value) / np.linalg.norm(value) for name, value in wanted.items() if value.dtype == np.float32))
            if not apart <= TOLERANCE:
                raise Failure(f"four GPUs with zero {zero}, {ranks} processes: {apart:.1e} apart from one")
            kept.add(exported.read_bytes())
            count += 1
        if len(kept) != 1:
            raise Failure(f"four GPUs with zero {zero}: other bits in four processes than in one")
    kept = {learn(work, learner, "reproducible", "--reproducible", "--data-parallel", replicas, env=environment(replicas), steps=6)[1].read_bytes() for replicas in (1, 2)}
    if len(kept) != 1:
        raise Failure("two GPUs train to other bits than one, although `reproducible` is set")
    print(f"{count} trainings of replicas are those of one GPU, in one process and in four")


def check_on_host(work):
    """Moments in the memory of the host: on one GPU, on two, and on replicas that share them; after a break, too."""
    learner = case_learner(work, "mnist-adamw", micro=4)
    plans = ((), ("--devices", 2), ("--data-parallel", 2, "--zero", 1))
    for flags in plans:
        artifacts, memory, env = {}, {}, environment(2)
        for where in ("device", "host"):
            artifacts[where] = work / f"{where}.partita"
            compile_model(learner.model, artifacts[where], *learner.flags, *TARGET, *flags, "--optimizer-state", where)
            memory[where] = json.loads(run([BIN / "partita-run", artifacts[where], "--plan", "--json"]))["training"]["memory"]
        for row, other in zip(memory["device"], memory["host"], strict=True):
            moved = other["host_bytes"]
            if not moved or row["host_bytes"] or row["state_bytes"] - other["state_bytes"] != moved or row["peak_bytes"] - other["peak_bytes"] < moved:
                raise Failure(f"{flags}: moments on the host make {row} {other}")
        _, wanted = learn(work, learner, "device", env=env, steps=6, artifact=artifacts["device"])
        learn(work, learner, "host", env=env, steps=3, artifact=artifacts["host"])
        _, found = learn(work, learner, "host", env=env, steps=6, artifact=artifacts["host"], fresh=False)
        if found.read_bytes() != wanted.read_bytes():
            raise Failure(f"{flags}: moments on the host train to other bits")
    # 2^21 parameters: 8 MiB, with moments 24; a GPU of 56 MiB has room for the library's 32, parameters, gradients, and not for moments.
    g, wide = Graph(np.float32), {"w": np.zeros((256, 4096)), "v": np.zeros((4096, 256))}
    g.node("MatMul", g.node("Relu", g.node("MatMul", "x", "w")), "v", outputs=["y"])
    onnx.save(g.model(("x", g.kind, [1, 256]), ("y", g.kind, [1, 256]), wide), work / "wide.onnx")
    np.save(work / "wide.npy", np.ones((2, 256), np.float32))
    for where, status, said in (("device", 1, r"the plan needs 6\d\.\d MiB on .*states 24\.0 MiB.* and 56\.0 MiB of its 56\.0 MiB are free"), ("host", 0, "step 2 ")):
        artifact = work / "wide.partita"
        compile_model(work / "wide.onnx", artifact, "--loss", "mse:y:t", "--optimizer", "adamw", *TARGET, "--optimizer-state", where)
        text = run([BIN / "partita-run", artifact, "--train", "--data", f"x={work}/wide.npy", "--data", f"t={work}/wide.npy", "--steps", 2, "--report-every", 1, "-t", 1],
                   env=environment(CUDA_EMU_MEMORY_MB="56"), expect=status)
        if not re.search(said, text):
            raise Failure(f"a GPU of 56 MiB, moments on the {where}: {said!r} is not said:\n{text}")
    print(f"{len(plans)} plans with moments on the host have the bits of those without, and a model trains on a GPU that is too small for its moments")


def check_kinds(work):
    learner, count = case_learner(work, "transformer-adagrad"), 0
    lines, _ = learn(work, learner, "cpu", steps=6)
    for flags in (("--devices", "cuda:1,cpu:1", "--recompute", "full"), ("--devices", "cpu:1,cuda:1", "--recompute", "standard"), ("--devices", "cuda:2,cpu:1", "--schedule", "zb_h1")):
        others, _ = learn(work, learner, "kinds", *flags, env=environment(2), steps=6)
        apart = max(abs(line["loss"] - other["loss"]) / abs(line["loss"]) for line, other in zip(lines, others, strict=True))
        if not apart <= TOLERANCE:
            raise Failure(f"{learner.name}, {flags}: losses differ from those of the CPU by {apart:.1e}")
        count += 1
    # In processes, too, which wait for one another while nobody asks a GPU.
    flags, found = ("--devices", "cpu:1,cuda:3", "--schedule", "zb_v"), []
    for ranks, more in ((0, {}), (3, {"CUDA_EMU_IDLE": "20"})):
        _, exported = learn(work, learner, "kinds", *flags, env=environment(3, **more), steps=3, ranks=ranks)
        found.append(exported.read_bytes())
    if found[0] != found[1]:
        raise Failure(f"{learner.name}, {flags}: three processes learn other bits than one")
    print(f"{count} pipelines of GPUs and CPUs learn as the CPU does, and one in processes as in one")


def check_mixed(work):
    model, arrays, data = write_layers(work)
    layers = Learner("layers", model, LAYERS_FLAGS, data)
    _, exported = learn(work, layers, "mixed", env=environment(), steps=MIXED_STEPS)
    compared = compare_with_numpy(model, arrays, exported, fused=True)

    tokens = case_learner(work, "transformer-adamw")
    compare_plans(lambda name, *flags: learn(work, tokens, name, *flags, env=environment(4), steps=MIXED_STEPS))

    for kind in ("bf16", "f16"):
        artifact, vectors = compile_for_gpus(work, "encoder/bert-toy-ort", more=("--mixed-precision", kind))
        run([BIN / "partita-run", artifact, "--test-data", vectors, "--rtol", "0.02", "--atol", "0.02"], env=environment())
        status, _ = run([BIN / "partita-run", artifact, "--test-data", vectors, "--rtol", "1e-7", "--atol", "1e-7"], env=environment(), expect=None)
        if status != 1:
            raise Failure(f"--mixed-precision {kind} rounds nothing")
    print(f"products of bf16: {compared}; {len(PLANS)} plans; a model infers")


def first_module(text):
    """A training is printed as a module that learns and one that evaluates."""
    starts = [match.start() for match in re.finditer(r"^module", text, re.MULTILINE)]
    return text[: text.rindex("\n}\n", 0, starts[1]) + 3]


def check_updates(work):
    """One launch updates 64 parameters."""
    g, noise, parameters, x = Graph(np.float32), np.random.default_rng(2), {}, "x"
    for i in range(PARAMETERS // 2):
        parameters |= {f"w{i}": 0.3 * noise.standard_normal((4, 4)), f"b{i}": 0.3 * noise.standard_normal(4)}
        x = g.node("Tanh", g.node("Gemm", x, f"w{i}", f"b{i}", transB=1))
    g.node("Identity", x, outputs=["y"])
    onnx.save(g.model(("x", g.kind, [2, 4]), ("y", g.kind, [2, 4]), parameters), work / "many.onnx")
    for optimizer in OPTIMIZERS:
        text = run([BIN / "partita-compile", work / "many.onnx", *TARGET, "--loss", "mse:y:t", "--optimizer", optimizer, "--micro-batches", 2, "--emit", "plan"])
        update = re.search(r"plan\.unit @U0 .*?\n    }", first_module(text), re.DOTALL)[0]
        labels = re.findall(r'plan\.\w+ .*? label "([^"]*)"', update)
        launches = sum(".update+" in label for label in labels)  # not that which makes their rates f32
        if not 0 < launches <= -(-PARAMETERS // AT_ONCE) or len(labels) > launches + 3:
            raise Failure(f"{optimizer}: {PARAMETERS} parameters are updated by {launches} launches of {len(labels)}\n{labels}")
    print(f"a launch updates {AT_ONCE} parameters by {', '.join(OPTIMIZERS)}")


def check_waits(work):
    """Each wait, send and receive of a plan that learns is needed: without one, it is refused."""
    count = 0
    for name, flags in (("sgd-decay", ("--schedule", "1f1b")), ("mnist-momentum", ("--schedule", "zb_h1"))):
        learner = case_learner(work, name, micro=3)
        lines = first_module(run([BIN / "partita-compile", learner.model, *learner.flags, *TARGET, "--devices", 2, *flags, "--emit", "plan"])).splitlines(keepends=True)
        changed, verify = work / "changed.mlir", [BIN / "partita-opt", "--plan-verify-schedule", work / "changed.mlir", "-o", "/dev/null"]
        changed.write_text("".join(lines))
        run(verify)
        for number, line in enumerate(lines):
            step = re.match(r" +plan\.(wait|recv|send) ", line)
            if not step:
                continue
            changed.write_text("".join(lines[:number] + lines[number + 1:]))
            status, said = run(verify, expect=None)
            if status == 0:
                raise Failure(f"{learner.name}: without line {number + 1}, '{line.strip()}', nobody sees that anything is wrong")
            count += 1
    print(f"two plans that learn are refused without any of their {count} waits, sends and receives")


def check_dropped(work):
    """Where streams do not wait for one another as they are told to, a step goes wrong."""
    learner, artifact, exported = case_learner(work, "sgd-decay", micro=4), work / "piped.partita", work / "dropped.onnx"
    compile_model(learner.model, artifact, *learner.flags, *TARGET, "--devices", 2)

    def trained_by(steps, expect=0, **more):
        exported.unlink(missing_ok=True)
        run([BIN / "partita-run", artifact, "--train", *learner.data, "--order", "in-order", "--steps", steps, "-t", 1, "--export", exported], env=environment(2, **more), expect=expect)
        return exported.read_bytes() if exported.exists() else None

    def waits(steps):
        trained_by(steps, CUDA_EMU_COUNTS=str(work / "counts"))
        counts = dict(line.split() for line in (work / "counts").read_text().splitlines())
        return [int(counts[f"waits-{device}"]) for device in range(2)]

    of_step = [(after - before) // 2 for before, after in zip(waits(2), waits(4))]
    wanted, harmless, tried = trained_by(DROPPED_STEPS), [], 0
    for device, count in enumerate(of_step):
        for number in some(range(count), 2, first=device):
            tried += 1
            if all(trained_by(DROPPED_STEPS, expect=None, seed=seed, CUDA_EMU_DROP_WAITS=f"{device}:{number}:{count}") == wanted for seed in range(1, 7)):
                harmless.append((device, number))
    found = tried - len(harmless)
    if found < FOUND * tried:
        raise Failure(f"of {tried} waits of two GPUs in each step, a training goes wrong only without {found}; harmless are {harmless}")
    print(f"without {found} of {tried} waits of two GPUs in each step (they are {sum(of_step)}), a training goes wrong")


def main_parts():
    need_emulator()
    parts = {"curves": check_curves, "pipelines": check_pipelines, "replicas": check_replicas, "on_host": check_on_host, "kinds": check_kinds, "mixed": check_mixed, "updates": check_updates, "waits": check_waits, "dropped": check_dropped}
    wanted = sys.argv[1:] or list(parts)
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            parts[name](pathlib.Path(folder))


if __name__ == "__main__":
    main(main_parts, optimize=8)
