#!/usr/bin/env python3
"""Trains a GPT-2 on two devices of one core each, by several schedules in turns, beside one device and beside two trainings that know nothing of each other.

    pipelines.py [--turns 5] [--seconds 4] [--micro-batches 8] [--layers 8] [--width 256] [--tokens 64] [--machine FILE] [SCHEDULE ...]

Two trainings at once are what two cores can do together. A schedule has holes: of m micro-batches over p devices, `1f1b` and `gpipe` leave a part of
(p-1)/(m+p-1) of the time idle, `interleaved` and `looped` half as much, `zb_h1` (p-1)/(3m+p-1), `zb_v` less still (0 here). "of the ideal" is what a schedule reaches of two
trainings times the rest. "predicted" is the compiler's time of a step beside the measured one: with --machine (a file of partita-run --calibrate, which stays as it is)
by this machine's rates, and by the times of this model's work on one device.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

import numpy as np
import onnx

from language_models import Gpt2

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))
WORDS, BATCH = 512, 1
SCHEDULES = ["1f1b", "gpipe", "interleaved", "zb_h1", "zb_v"]


def idle(schedule, m, p=2):
    if schedule == "zb_v":
        return 0.0
    if schedule == "zb_h1":
        return (p - 1) / (3 * m + p - 1)
    laps = 2 if schedule in ("interleaved", "looped") else 1
    return (p - 1) / (laps * m + p - 1)


class Training:
    def __init__(self, name, model, data, folder, options, *flags):
        self.artifact, self.samples, self.data = folder / f"{name}.partita", options.micro_batches * BATCH, data
        machine = ["--machine", options.machine] if options.machine else []
        said = subprocess.run([str(word) for word in (BIN / "partita-compile", model, "--dim", f"batch={BATCH}", "--loss", "cross_entropy:logits", "--optimizer", "adamw",
                              "--micro-batches", options.micro_batches, "--threads", 1, *machine, *flags, "--json", "-o", self.artifact)],
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        plan = json.loads(said)[0]
        self.predicted_ms, self.steps, self.speeds = plan["predicted_ms"], 1, []
        ms = 1e3 * self.samples / self.wait(self.start())
        self.steps = max(1, round(options.seconds * 1e3 / 5 / ms))

    def start(self, core=None):
        pin = ["taskset", "-c", core] if core is not None else []
        words = [*pin, BIN / "partita-run", self.artifact, "--train", "--json", "--threads", 1, *(["--no-pin"] if pin else []), *self.data,
                 "--steps", 6 * self.steps, "--report-every", self.steps]
        return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def wait(self, process):
        """Samples a second: the median of lines, without the first, which is of steps that warm up."""
        lines = process.communicate()[0].splitlines()[1:]
        if process.returncode:
            raise SystemExit(f"{self.artifact.name} does not train")
        return statistics.median(json.loads(line)["samples_per_second"] for line in lines)


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{middle:7.2f} ({low:.2f} to {high:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("schedules", nargs="*", default=SCHEDULES)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of a measurement")
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--machine")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model, noise = folder / "gpt2.onnx", np.random.default_rng(1)
        onnx.save(Gpt2(options.layers, options.width, options.tokens, WORDS, seed=2).model, model)
        data = []
        for name in ("ids", "target"):
            np.save(folder / f"{name}.npy", noise.integers(0, WORDS, (64 * options.micro_batches, options.tokens)))
            data += ["--data", f"{name}={folder}/{name}.npy"]
        if options.machine:
            options.machine = shutil.copy(options.machine, folder / "machine.json")
            first = Training("first", model, data, folder, options)
            subprocess.run([str(word) for word in (BIN / "partita-run", first.artifact, "--train", *data, "--steps", 60, "--threads", 1, "--calibrate", options.machine)],
                           check=True, stdout=subprocess.DEVNULL)
        one = Training("one", model, data, folder, options)
        piped = {schedule: Training(schedule, model, data, folder, options, "--devices", 2, "--schedule", schedule) for schedule in options.schedules}
        single, both = [], []
        for _ in range(options.turns):
            single.append(one.wait(one.start("0")))
            pair = [one.start(core) for core in ("0", "1")]
            both.append(sum(one.wait(process) for process in pair))
            for training in piped.values():
                training.speeds.append(training.wait(training.start()))
    print(f"{'':<12} {'samples/s':<26} {'times one device':<26} {'of the ideal':<26} {'predicted':<10}")
    step = one.samples * 1e3 / statistics.median(single)
    print(f"{'one device':<12} {quartiles(single):<26} {'':<26} {'':<26} {one.predicted_ms / step:.2f}")
    print(f"{'two at once':<12} {quartiles(both):<26} {quartiles([b / a for a, b in zip(single, both)])}")
    for schedule, training in piped.items():
        ideal = [speed / (pair * (1 - idle(schedule, options.micro_batches))) for speed, pair in zip(training.speeds, both)]
        step = training.samples * 1e3 / statistics.median(training.speeds)
        print(f"{schedule:<12} {quartiles(training.speeds):<26} {quartiles([b / a for a, b in zip(single, training.speeds)]):<26} {quartiles(ideal):<26} {training.predicted_ms / step:.2f}")


if __name__ == "__main__":
    main()
