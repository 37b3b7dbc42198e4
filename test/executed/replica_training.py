#!/usr/bin/env python3
"""Models whose replicas share a batch learn as one device with the whole batch does: batch statistics over replicas, a mixture of experts, dropout. Losses of ten
steps and all parameters after them, over meshes of replicas, stages, cut tensors, and replicas that take micro-batches in turn with ZeRO; by threads and by
processes; on from each other's checkpoints. So do random plans, by random schedules and options. What each replica would measure by itself is refused.

    replica_training.py                           all, and the bounded run of random plans
    replica_training.py --plans 1000 --first 500  only random plans, others
"""

import argparse
import json
import pathlib
import random
import shutil
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
except ImportError as error:
    print(f"skipped: no {error.name} (tools/setup.sh installs it)")
    sys.exit(77)

from harness import Failure, compile_model, main, run_artifact
from replica_gradients import doubles
from replicas import MIXTURE, MIXTURE_NODES, NORM, WIDTH, graph, norm_nodes

BATCH, MICRO_BATCHES, STEPS, NEAR = 12, 4, 10, 1e-9
OPTIMIZER = ("--optimizer", "adamw,learning_rate=0.01", "--clip-norm", 1, "--micro-batches", MICRO_BATCHES)
noise = np.random.default_rng(21)


class Model:
    def __init__(self, work, name, text, loss, data, cuts=""):
        """`cuts`: how a partition file cuts weights along the axis `tensor`."""
        self.cuts = cuts
        self.work, self.name, self.loss = work, name, loss
        self.path, self.artifact = work / f"{name}.onnx", work / f"{name}.partita"
        (work / f"{name}.onnxtxt").write_text(text)
        onnx.save(onnx.parser.parse_model(text), self.path)
        self.data = []
        for key, array in data.items():
            np.save(work / f"{name}.{key}.npy", array)
            self.data += ["--data", f"{key}={work / name}.{key}.npy"]

    def compile(self, replicas, *flags, **options):
        return compile_model(self.path, self.artifact, "--dim", f"b={BATCH // replicas}", "--loss", self.loss, *OPTIMIZER, *flags, **options)

    def train(self, *flags, ranks=0, folder=None, steps=STEPS):
        """The losses of the steps, and the parameters after them."""
        folder, exported = folder or self.work / "run", self.work / "trained.onnx"
        if "--resume" not in flags:
            shutil.rmtree(folder, ignore_errors=True)
        run_artifact(self.artifact, "--train", *self.data, "--order", "in-order", "--seed", 3, "--steps", steps, "--report-every", 1, "--checkpoint", folder, "--export", exported,
                     "-t", 1, *flags, ranks=ranks)
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        return np.array([line["loss"] for line in lines]), {t.name: numpy_helper.to_array(t) for t in onnx.load(exported).graph.initializer}


def describe(found, losses, wanted):
    """How a training, its losses and its parameters, differs from that on one device; nothing if it does not."""
    if not np.allclose(found[0], losses[-len(found[0]):], rtol=NEAR, atol=0):
        return f"losses {found[0]} instead of {losses}"
    for name, value in wanted.items():
        if not np.linalg.norm(found[1][name] - value) <= NEAR * np.linalg.norm(value):
            return f"{name} is\n{found[1][name]}\ninstead of\n{value}"
    return ""


def compare(model, meshes):
    model.compile(1)
    losses, wanted = model.train()
    start = {t.name: numpy_helper.to_array(t) for t in onnx.load(model.path).graph.initializer}
    learned = [name for name in wanted if wanted[name].tobytes() != start[name].tobytes()]
    if not learned or len(losses) != STEPS:
        raise Failure(f"{model.name}: nothing was learned on one device")

    def check(found, what):
        if wrong := describe(found, losses, wanted):
            raise Failure(f"{model.name}, {what}: {wrong}")

    split, kept = model.work / "split.yaml", model.work / "kept"
    for mesh, more, processes in meshes:
        replicas = int(mesh.partition("replica: ")[2][:1])
        split.write_text(f"mesh: {{{mesh}}}\n{more}\n")
        model.compile(replicas, "--partition", split)
        for ranks in processes:
            check(model.train(ranks=ranks), f"{mesh} {more}, {ranks} processes")
    # On from a checkpoint of replicas, on one device, and the other way round.
    model.train(folder=kept, steps=4)
    model.compile(1)
    check(model.train("--resume", folder=kept), "on from a checkpoint of replicas")
    model.train(folder=kept, steps=4)
    model.compile(replicas, "--partition", split)
    check(model.train("--resume", folder=kept), "on from a checkpoint of one device")
    print(f"{model.name} over {len(meshes)} meshes with replicas trains as on one device")


def make_norm(work):
    nodes = ["[fc1] h1 = MatMul(x, w1)", *norm_nodes("h1", "n1", 1), "[relu] a1 = Relu(n1)", "[fc2] h2 = MatMul(a1, w2)", *norm_nodes("h2", "y", 2)]
    text = graph({"x": "double[b,6]"}, {"y": "double[b,8]"}, doubles({**NORM, "eps": np.array([0.1])}), nodes)
    rows = BATCH * MICRO_BATCHES * STEPS
    return Model(work, "batch statistics", text, "mse:y", {"x": noise.standard_normal((rows, 6)), "target": noise.standard_normal((rows, 8))},
                 "shard: {w1: [null, tensor], w2: [tensor, null]}")


def check_norm(work):
    model = make_norm(work)
    compare(model, [("replica: 2", "", (0, 2)), ("replica: 3", "", (0,)), ("replica: 4", "", (0, 4)), ("replica: 2, stage: 2", "", (0, 4)), ("replica: 2, stage: 2", "schedule: zb_v", (0,)),
                    ("data: 2, replica: 2", "", (0, 2)), ("data: 2, replica: 2", "zero: 1", (0,)), ("data: 2, replica: 2", "zero: 3", (0,)), ("replica: 2, tensor: 2", model.cuts, (0,)),
                    ("replica: 2, stage: 2, tensor: 2", model.cuts, (0,))])


def make_mixture(work):
    nodes = [node.replace("Cast<to = 1>", "Cast<to = 11>") for node in MIXTURE_NODES]
    text = graph({"x": f"double[b,{WIDTH}]"}, {"y": f"double[b,{WIDTH}]"}, doubles(MIXTURE), nodes)
    rows = BATCH * MICRO_BATCHES * STEPS
    labels = noise.integers(0, WIDTH, rows)
    labels[noise.random(rows) < 0.2] = -100
    return Model(work, "a mixture of experts", text, "cross_entropy:y", {"x": noise.standard_normal((rows, WIDTH)), "target": labels},
                 "shard: {w1: [null, null, tensor], w2: [null, tensor, null]}")


def check_mixture(work):
    model = make_mixture(work)
    compare(model, [("replica: 2", "", (0, 2)), ("replica: 3", "", (0,)), ("replica: 4", "", (0,)), ("replica: 2, stage: 2", "", (0,)), ("data: 2, replica: 2", "zero: 1", (0,)),
                    ("data: 4, replica: 2", "", (0,)),
                    ("replica: 2, tensor: 2", model.cuts, (0,))])


def make_dropout(work):
    """Each sample has the zeros that it has on one device."""
    text = graph({"x": "double[b,6]"}, {"y": "double[b,3]"}, {"w": noise.standard_normal((6, 8)), "v": noise.standard_normal((8, 3))},
                 ["half = Constant<value_float = 0.5>()", "on = Constant<value = bool {1}>()", "[fc1] h = MatMul(x, w)", "[drop] d = Dropout(h, half, on)", "[fc2] y = MatMul(d, v)"])
    rows = BATCH * MICRO_BATCHES * STEPS
    return Model(work, "dropout", text, "mse:y", {"x": noise.standard_normal((rows, 6)), "target": noise.standard_normal((rows, 3))},
                 "shard: {w: [null, tensor], v: [tensor, null]}")


def check_dropout(work):
    compare(make_dropout(work), [("replica: 2", "", (0,)), ("replica: 3, stage: 2", "", (0,)), ("data: 2, replica: 2", "", (0,))])


def draw_plan(draw, model):
    """The replicas that share a batch, the partition file, and flags."""
    choose = draw.choice
    sizes = {"replica": choose((1, 2, 2, 3, 4, 6)), "data": choose((1, 1, 2, 4)), "stage": choose((1, 1, 2, 3)), "tensor": choose((1, 1, 2))}
    axes = [f"{name}: {size}" for name, size in sizes.items() if size > 1]
    draw.shuffle(axes)
    lines, flags = [f"mesh: {{{', '.join(axes)}}}"] if axes else [], []
    if sizes["tensor"] > 1 and draw.random() < 0.8:
        lines.append(model.cuts)
    if sizes["stage"] > 1 and draw.random() < 0.8:
        lines.append(f"schedule: {choose(('gpipe', '1f1b', 'interleaved', 'zb_h1', 'zb_v', 'sequential', 'fill_drain', 'looped'))}")
    if sizes["data"] > 1 and draw.random() < 0.8:
        lines.append(f"zero: {draw.randrange(4)}")
    for share, option in ((0.3, ("--recompute", choose(("standard", "full")))), (0.3, ("--fusion-bytes", choose(("0", "64", "1KiB")))), (0.15, ("--no-library-calls",)),
                          (0.15, ("--reference",)), (0.2, ("--on-nonfinite", choose(("stop", "skip")))), (0.1, ("--optimizer-state", "host"))):
        if draw.random() < share:
            flags += option
    return sizes["replica"], "\n".join(lines) or "{}", flags


def check_random(work, count=20, first=0):
    models, alone, steps, wrong = [make(work) for make in (make_norm, make_mixture, make_dropout)], {}, 5, []
    for model in models:
        model.compile(1)
        alone[model.name] = model.train(steps=steps)
    split = work / "random.yaml"
    for seed in range(first, first + count):
        draw = random.Random(seed)
        model = draw.choice(models)
        replicas, text, flags = draw_plan(draw, model)
        split.write_text(text + "\n")
        try:
            model.compile(replicas, "--partition", split, *flags)
            difference = describe(model.train(steps=steps), *alone[model.name])
        except Failure as failure:
            difference = failure
        if difference:
            wrong.append(f"seed {seed}: {model.name}, {text!r} {' '.join(flags)}: {difference}")
            print(wrong[-1], flush=True)
    if wrong:
        raise Failure(f"{len(wrong)} of {count} random plans are wrong")
    print(f"{count} random plans of replicas that share a batch train as one device")


def check_errors(work):
    text = graph({"x": "double[b,6,4]"}, {"y": "double[b,6,4]"}, {"s": np.ones(6), "o": np.zeros(6), "m": np.zeros(6), "v": np.ones(6)},
                 ["[bn] y = BatchNormalization<training_mode = 0>(x, s, o, m, v)"])
    model = Model(work, "running", text, "mse:y", {})
    said = model.compile(2, "--replicas", 2, expect=1)
    if "bn" not in said or "--eval-mode" not in said or model.artifact.exists():
        raise Failure(f"a running statistic of each replica's samples: {said}")
    model.compile(2, "--replicas", 2, "--eval-mode", "bn")
    print("what each replica would measure by itself is refused")


def check():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, help="how many random plans, and nothing else")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        if options.plans:
            return check_random(work, options.plans, options.first)
        for part in (check_norm, check_mixture, check_dropout, check_random, check_errors):
            part(work)


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
