#!/usr/bin/env python3
"""Partita beside ONNX Runtime and OpenVINO: the same model, f32, batch 1, the same number of threads, in turns, in one run.

    bench.py MODELS [--threads 2] [--rounds 9] [--pairs 3] [--machine FILE] [--plot FILE.svg] [--json FILE] [NAME ...]

MODELS is a folder of NAME/model.onnx (export_models.py writes some, run.sh brings them all). Outputs are compared before anything is timed. Each
runtime has a process of its own and measures for about a second before it is another's turn, again and again: what else a machine does then
happens to all of them. Times are medians over the rounds of each runtime's own median. "x better peer" compares the two of each round, and gives the
median of that and, in brackets, its quartiles: where they are on both sides of 1, the run does not tell which one is faster.

With --machine, times are predicted twice: by the rates of the machine alone, as they would be for a model that was never run ("by rates"); and after
`partita-run ART --calibrate FILE` has measured the model's own work once ("predicted"), which is what is measured then. The file itself stays as it is.

Memory is what a process took at its peak, libraries included; what Python, numpy and the inputs held before is not counted for the peers.

Two devices of one core, pipelined, stand beside one device of one core; beside two processes of such a device at the same time ("of two copies": what
the machine could give, with all weights twice); and beside two ONNX Runtime sessions of one thread each, as samples a second. Needs onnxruntime,
openvino and numpy, for --plot matplotlib.
"""

import argparse
import copy
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))
DIMS = {"batch": 1, "tokens": 128, "batch_size": 1, "seq_len": 128}
PIPELINE = 64  # micro-batches a step of the two devices
TURN = 1.0  # seconds
CALIBRATION = 5.0  # seconds, of a model's own work


def describe(model):
    return json.loads(subprocess.run([BIN / "partita-compile", model, "--describe", "--json"], check=True, capture_output=True).stdout)


def random_inputs(description):
    generator, inputs = np.random.default_rng(0), {}
    for port in description["inputs"]:
        shape = [int(d) if d.isdigit() else DIMS[d] for d in port["shape"]]
        if port["type"].startswith("int"):
            high = 2 if "mask" in port["name"] or "type" in port["name"] else 100
            inputs[port["name"]] = generator.integers(0, high, shape).astype(port["type"])
        else:
            inputs[port["name"]] = generator.standard_normal(shape).astype(np.float32)
    return inputs


class Peer:
    def __init__(self, kind, model, work, threads):
        self.outputs = work / f"{kind}.npz"
        command = [sys.executable, REPOSITORY / "test" / "bench" / "peers.py", kind, model, work / "in.npz", str(threads), self.outputs]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        memory = json.loads(self.process.stdout.readline())
        self.memory = memory["peak"] - memory["before"]

    def start(self):
        self.process.stdin.write(f"{TURN}\n")
        self.process.stdin.flush()

    def finish(self):
        return float(self.process.stdout.readline())

    def measure(self):
        self.start()
        return self.finish()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Partita:
    def __init__(self, model, description, work, threads, machine, devices=1):
        self.artifact, self.threads, self.work = work / f"{devices}.partita", threads, work
        flags = [f for name in description["dims"] for f in ("--dim", f"{name}={DIMS[name]}")]
        flags += ["--machine", machine, "--threads", str(threads)] if machine else []
        flags += ["--devices", str(devices), "--micro-batches", str(PIPELINE)] if devices > 1 else []
        command = [BIN / "partita-compile", model, "--quiet", "-o", self.artifact, *flags]
        start = time.perf_counter()
        subprocess.run(command, check=True)
        self.compile_seconds = time.perf_counter() - start
        self.by_rates_ms = self.predict()
        if machine:
            self.start("--calibrate", machine, "--runs", "1", "--warmup", "1", "--seconds", str(CALIBRATION))
            self.output()
            subprocess.run(command, check=True)

    def predict(self):
        plan = subprocess.run([BIN / "partita-run", self.artifact, "--plan", "--json"], check=True, capture_output=True).stdout
        return json.loads(plan)["predicted_ms"]

    def start(self, *flags):
        command = [BIN / "partita-run", self.artifact, "--threads", str(self.threads), *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)

    def finish(self):
        """What a benchmark says, in samples a second."""
        self.last = json.loads(self.output())
        return self.last["samples_per_s"]

    def output(self):
        text = self.process.communicate()[0]
        if self.process.returncode:
            sys.exit(f"bench.py: {self.artifact} does not run")
        return text

    def outputs(self):
        self.start("--input", self.work / "in.npz", "--output", self.work / "out.npz")
        self.output()
        return dict(np.load(self.work / "out.npz"))

    def start_measuring(self, *flags):
        self.start("--benchmark", "--json", "--warmup", "3", "--runs", "5", "--seconds", str(TURN), "--input", self.work / "in.npz", *flags)

    def measure(self):
        self.start_measuring()
        self.finish()
        return self.last["median_ms"]

    def measure_pipeline(self):
        self.start("--benchmark", "--json", "--warmup", "1", "--runs", "1", "--seconds", str(TURN))
        return self.finish()


class Copies:
    """Processes of one device each, at the same time."""

    def __init__(self, first, count):
        self.all = [first] + [copy.copy(first) for _ in range(count - 1)]

    def measure(self):
        for each in self.all:
            each.start_measuring("--no-pin")  # or all would be on the first core
        return sum(each.finish() for each in self.all)


def measure_together(sessions):
    """Samples a second of all, at the same time."""
    for session in sessions:
        session.start()
    return sum(1e3 / session.finish() for session in sessions)


def spread(values):
    """Median and quartiles."""
    return [float(np.percentile(values, part)) for part in (50, 25, 75)]


def bench(folder, name, options):
    model = str(folder / name / "model.onnx")
    description = describe(model)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        np.savez(work / "in.npz", **random_inputs(description))
        machine = options.machine and shutil.copy(options.machine, work / "machine.json")
        ours = Partita(model, description, work, options.threads, machine)
        peers = [Peer(kind, model, work, options.threads) for kind in ("onnxruntime", "openvino")]
        found = ours.outputs()
        for output, expected in np.load(peers[0].outputs).items():
            np.testing.assert_allclose(found[output], expected, rtol=1e-2, atol=1e-3 * max(1.0, float(np.abs(expected).max())))
        rounds = [(peers[0].measure(), peers[1].measure(), ours.measure()) for _ in range(options.rounds)]
        for peer in peers:
            peer.close()
        one = Partita(model, description, work, 1, machine)
        copies = Copies(one, 2)
        two = Partita(model, description, work, 1, machine, devices=2)
        sessions = [Peer("onnxruntime", model, work, 1) for _ in range(2)]
        pairs = []
        for _ in range(options.pairs):
            before = one.measure()
            pairs.append((two.measure_pipeline(), copies.measure(), measure_together(sessions), (before + one.measure()) / 2))
        for session in sessions:
            session.close()
        ort, openvino, partita = (statistics.median(column) for column in zip(*rounds))
        better = 0 if ort < openvino else 1
        memory = ours.last["memory"][0]
        return {
            "model": name,
            "onnxruntime_ms": ort,
            "openvino_ms": openvino,
            "partita_ms": partita,
            "times_better_peer": spread([r[better] / r[2] for r in rounds]),
            "times_onnxruntime": spread([r[0] / r[2] for r in rounds]),
            "predicted_ms": ours.last["predicted_ms"],
            "by_rates_ms": ours.by_rates_ms,
            "one_core_ms": statistics.median(ms for *_, ms in pairs),
            "one_core_predicted_ms": one.last["predicted_ms"],
            "one_core_by_rates_ms": one.by_rates_ms,
            "two_devices": spread([pipeline * ms / 1e3 for pipeline, _, _, ms in pairs]),
            "two_devices_of_copies": spread([pipeline / both for pipeline, both, _, _ in pairs]),
            "two_devices_of_sessions": spread([pipeline / both for pipeline, _, both, _ in pairs]),
            "two_devices_samples_per_s": statistics.median(p[0] for p in pairs),
            "two_copies_samples_per_s": statistics.median(p[1] for p in pairs),
            "two_sessions_samples_per_s": statistics.median(p[2] for p in pairs),
            "two_devices_ms": PIPELINE * 1e3 / statistics.median(p[0] for p in pairs),
            "two_devices_predicted_ms": two.last["predicted_ms"],
            "two_devices_by_rates_ms": two.by_rates_ms,
            "onnxruntime_bytes": peers[0].memory,
            "openvino_bytes": peers[1].memory,
            "partita_bytes": ours.last["peak_resident_bytes"],
            "planned_bytes": memory["planned_bytes"] + ours.last["io_bytes"],
            "two_devices_bytes": two.last["peak_resident_bytes"],
            "two_sessions_bytes": sum(session.memory for session in sessions),
            "compile_s": ours.compile_seconds,
        }


def show_spread(values):
    return "{:.2f} ({:.2f} to {:.2f})".format(*values)


COLUMNS = [  # heading, how a row shows it
    ("model", lambda r: r["model"]),
    ("ONNX Runtime ms", lambda r: f"{r['onnxruntime_ms']:.2f}"),
    ("OpenVINO ms", lambda r: f"{r['openvino_ms']:.2f}"),
    ("Partita ms", lambda r: f"{r['partita_ms']:.2f}"),
    ("predicted (by rates)", lambda r: f"{r['predicted_ms']:.2f} ({r['by_rates_ms']:.2f})"),
    ("x better peer", lambda r: show_spread(r["times_better_peer"])),
    ("x ONNX Runtime", lambda r: f"{r['times_onnxruntime'][0]:.2f}"),
    ("1 core ms", lambda r: f"{r['one_core_ms']:.2f}"),
    ("predicted (by rates) ", lambda r: f"{r['one_core_predicted_ms']:.2f} ({r['one_core_by_rates_ms']:.2f})"),
    ("2 devices x 1", lambda r: show_spread(r["two_devices"])),
    ("of two copies", lambda r: f"{r['two_devices_of_copies'][0]:.2f}"),
    ("samples/s", lambda r: f"{r['two_devices_samples_per_s']:.1f}"),
    ("2 sessions", lambda r: f"{r['two_sessions_samples_per_s']:.1f}"),
    ("step ms", lambda r: f"{r['two_devices_ms']:.2f}"),
    ("predicted (by rates)  ", lambda r: f"{r['two_devices_predicted_ms']:.2f} ({r['two_devices_by_rates_ms']:.2f})"),
    ("ONNX Runtime MiB", lambda r: f"{r['onnxruntime_bytes'] / 2**20:.0f}"),
    ("OpenVINO MiB", lambda r: f"{r['openvino_bytes'] / 2**20:.0f}"),
    ("Partita MiB", lambda r: f"{r['partita_bytes'] / 2**20:.0f}"),
    ("planned MiB", lambda r: f"{r['planned_bytes'] / 2**20:.0f}"),
    ("compile s", lambda r: f"{r['compile_s']:.1f}"),
]


def plot(rows, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 4.5))
    ours = [r["times_onnxruntime"] for r in rows]
    speeds = {
        "ONNX Runtime": [1.0 for _ in rows],
        "OpenVINO": [r["onnxruntime_ms"] / r["openvino_ms"] for r in rows],
        "Partita": [median for median, _, _ in ours],
    }
    quartiles = [[median - low for median, low, _ in ours], [high - median for median, _, high in ours]]
    for i, (label, heights) in enumerate(speeds.items()):
        places = [x + (i - 1) * 0.27 for x in range(len(rows))]
        axes.bar(places, heights, 0.25, label=label, yerr=quartiles if label == "Partita" else None)
    axes.set_xticks(range(len(rows)), [r["model"] for r in rows], rotation=15)
    axes.set_ylabel("times as fast as ONNX Runtime")
    axes.axhline(1, color="grey", linewidth=0.5)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9, help="turns of each runtime")
    parser.add_argument("--pairs", type=int, default=3, help="turns of two devices and what stands beside them")
    parser.add_argument("--machine", help="what partita-run --calibrate wrote; the predicted times come from it")
    parser.add_argument("--plot", help="draw the speeds into this file")
    parser.add_argument("--json", help="write the rows into this file")
    options = parser.parse_intermixed_args()
    print("| " + " | ".join(heading for heading, _ in COLUMNS) + " |\n|" + " --- |" * len(COLUMNS), flush=True)
    rows = []
    for name in options.names or sorted(p.parent.name for p in options.models.glob("*/model.onnx")):
        rows.append(bench(options.models, name, options))
        print("| " + " | ".join(show(rows[-1]) for _, show in COLUMNS) + " |", flush=True)
    mean = statistics.geometric_mean(r["times_onnxruntime"][0] for r in rows)
    print(f"\ngeometric mean: {mean:.2f} times as fast as ONNX Runtime", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
