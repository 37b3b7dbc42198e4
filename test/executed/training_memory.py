#!/usr/bin/env python3
"""The memory plan of a training is a promise, too: what a process holds while it trains is what was planned, within 1 % (of convolutions it may be less), and
4,000 more steps take no more.

A process has more than the plan: the program, its libraries, samples that are read ahead. So a large and a small network of the same kind are trained, and
the difference of what the two hold is compared with the difference of what was planned. What counts is memory that the system gave, without code and files.
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from harness import BIN, REPOSITORY, SKIPPED, Failure, compile_model, cpu_level, main

sys.path.append(str(REPOSITORY / "examples"))
try:
    import numpy as np
    import onnx

    from training_cases import Graph
    from shakespeare import make_model as shakespeare
except ImportError as error:
    print(f"skipped: no {error.name} (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

MIB = 1 << 20
TOLERANCE = 0.01
SCRATCH = 0.05  # of the plan: scratch of the library's convolutions, which is planned for what any processor chooses
EARLY, LATE = 1_000, 5_000  # steps
NOISE = 256 << 10  # bytes that a process may hold more after LATE steps than after EARLY
CLASSES, SIDE = 10, 24
# What is freed goes back to the system at once, so that what loading needed for a while is not counted.
FREED = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}


def images(samples):
    return {"image": np.random.default_rng(1).integers(0, 256, (samples, SIDE, SIDE)).astype(np.uint8), "label": np.arange(samples) % CLASSES}


def network(batch, channels):
    """Two convolutions that are normalised by the micro-batch; activations are far larger than the images."""
    g, noise, parameters = Graph(np.float32), np.random.default_rng(2), {}

    def parameter(name, *shape, around=0):
        parameters[name] = around + 0.1 * noise.standard_normal(shape)
        return name

    x, before = "image", 1
    for i in range(2):
        x = g.node("Conv", x, parameter(f"conv{i}", channels, before, 3, 3), pads=[1, 1, 1, 1])
        running = [g.tensor(f"{name}{i}", np.full(channels, value, np.float32)) for name, value in (("mean", 0), ("variance", 1))]
        x = g.node("BatchNormalization", x, parameter(f"scale{i}", channels, around=1), parameter(f"shift{i}", channels), *running)
        x, before = g.node("MaxPool", g.node("Relu", x), kernel_shape=[2, 2], strides=[2, 2]), channels
    g.node("Gemm", g.node("Flatten", x), parameter("fc", channels * (SIDE // 4) ** 2, CLASSES), outputs=["logits"])
    return g.model(("image", g.kind, [batch, 1, SIDE, SIDE]), ("logits", g.kind, [batch, CLASSES]), parameters)


def tokens(samples, block, words):
    noise = np.random.default_rng(1)
    return {name: noise.integers(0, words, (samples, block)) for name in ("tokens", "next")}


def count(process):
    """Bytes of a process that the system gave, without files and without code (the library makes some as it is called)."""
    held, counts = 0, False
    for line in pathlib.Path(f"/proc/{process}/smaps").read_text().splitlines():
        if mapping := re.match(r"[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \S+ *(.*)", line):
            counts = "w" in mapping.group(1) and "x" not in mapping.group(1) and mapping.group(2) in ("", "[heap]")
        elif counts and line.startswith("Anonymous:"):
            held += int(line.split()[1]) * 1024
    return held


class Training:
    """A network that is compiled to learn, and samples of two steps."""

    def __init__(self, work, name, model, data, *flags):
        self.folder, self.artifact, self.data = work / f"{name}-run", work / f"{name}.partita", []
        onnx.save(model, work / f"{name}.onnx")
        for input, array in data.items():
            np.save(work / f"{name}.{input}.npy", array)
            self.data += ["--data", f"{input}={work / name}.{input}.npy"]
        text = compile_model(work / f"{name}.onnx", self.artifact, *flags, "--cpu-level", cpu_level(), "--json")
        plans = json.JSONDecoder().raw_decode(text, text.index("["))[0]
        learning = next(plan for plan in plans if plan["entry"] == "train")
        self.planned = max(stage["peak_bytes"] for stage in learning["stages"])

    def held(self, at, every, *flags):
        """Bytes that the process holds after each of the steps `at`, or soon after it. `every`: steps between the lines that it writes."""
        command = [BIN / "partita-run", self.artifact, "--train", *self.data, "--threads", 1, "--no-pin", "--json", "--steps", 10**9, "--report-every", every, *flags]
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, **FREED)) as process:
            found, said = {}, ""
            for line in process.stdout:
                said = said[-2000:] + line
                step = json.loads(line).get("step", 0) if line.startswith("{") else 0
                if step in at:
                    found[step] = count(process.pid)
                if step == max(at):
                    process.terminate()
        if process.returncode != 0 or set(found) != set(at):
            raise Failure(f"$ {' '.join(map(str, command))}\nexit status {process.returncode}\n{said}")
        return [found[step] for step in at]

    @functools.cached_property
    def held_at_once(self):
        return self.held([2], 1)[0]


ADAMW = ("--loss", "cross_entropy:logits:next", "--optimizer", "adamw")
MOMENTUM = ("--loss", "cross_entropy:logits:label", "--optimizer", "sgd,learning_rate=0.01,momentum=0.9")


def transformer(work, name, flags, **sizes):
    return Training(work, name, shakespeare.make_model(**sizes), tokens(6 * sizes["batch"], sizes["block"], sizes["vocabulary"]), *ADAMW, *flags)


def convolutions(work, name, flags, batch, channels=96):
    return Training(work, name, network(batch, channels), images(6 * batch), *MOMENTUM, *flags)


def compare(what, little, much, scratch=TOLERANCE, beside=0):
    """`beside`: bytes that are held and in no difference of plans."""
    planned = much.planned - little.planned
    used = much.held_at_once - little.held_at_once
    print(f"{what}: {planned / MIB:.2f} MiB more are planned, and {used / MIB:.2f} MiB more are held", flush=True)
    if not -TOLERANCE * planned - beside <= planned - used <= scratch * planned:
        raise Failure(f"{what}: {planned} bytes more are planned, and {used} are held")


def check_planned(work):
    """States and moments of a transformer, activations of convolutions, and sums of gradients over micro-batches."""
    small = {"batch": 1, "block": 8, "layers": 1, "heads": 2, "width": 16, "vocabulary": 11}
    large = {"batch": 8, "block": 64, "layers": 4, "heads": 4, "width": 512, "vocabulary": 256}
    for what, flags in (("a transformer", ()), ("a transformer, 3 micro-batches, clipped", ("--micro-batches", 3, "--clip-norm", 1))):
        compare(what, *(transformer(work, name, flags, **sizes) for name, sizes in (("small", small), ("large", large))))
    for what, micro in (("convolutions", 1), ("convolutions, 3 micro-batches", 3)):
        # Images of two steps are read ahead, as floats; and the small network leaves most of the workspace alone that each call has.
        beside = 2 * micro * 100 * SIDE * SIDE * 4 + MIB
        compare(what, *(convolutions(work, name, ("--micro-batches", micro), batch) for name, batch in (("small", 2), ("large", 100))), SCRATCH, beside)


def check_recomputed(work):
    """What is computed again takes no memory: less is planned, and as much less is held."""
    sizes = {"batch": 24, "block": 64, "layers": 4, "heads": 4, "width": 256, "vocabulary": 65}
    none, *others = (transformer(work, word, ("--micro-batches", 2, "--recompute", word), **sizes) for word in ("none", "standard", "full"))
    for word, training in zip(("standard", "full"), others):
        compare(f"a transformer, none instead of --recompute {word}", training, none)
        if not training.planned < 0.8 * none.planned:
            raise Failure(f"{none.planned} bytes are planned, and {training.planned} with --recompute {word}")


def check_growth(work):
    """With everything that a loop does: epochs, evaluations, checkpoints, logs."""
    sizes = {"batch": 2, "block": 8, "layers": 1, "heads": 2, "width": 16, "vocabulary": 11}
    for what, training in (("a transformer", transformer(work, "long", ("--micro-batches", 2, "--clip-norm", 1), **sizes)), ("convolutions", convolutions(work, "long-images", (), 2, channels=8))):
        held = [word.replace("--data", "--eval-data") for word in training.data]
        early, late = training.held([EARLY, LATE], 250, *held, "--eval-every", 500, "--checkpoint", training.folder, "--checkpoint-every", 500)
        print(f"{what}: {early / MIB:.2f} MiB after {EARLY} steps, {late / MIB:.2f} MiB after {LATE}", flush=True)
        if late > early + NOISE:
            raise Failure(f"{what}: {LATE - EARLY} steps take {late - early} bytes")


def check():
    if "--sanitized" in sys.argv:
        print("skipped: a sanitizer has memory of its own")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        check_planned(work)
        check_recomputed(work)
        check_growth(work)


if __name__ == "__main__":
    main(check)
