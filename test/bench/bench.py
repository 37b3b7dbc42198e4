#!/usr/bin/env python3
"""Partita beside ONNX Runtime and OpenVINO: the same model, f32, batch 1, the same number of threads, in turns, in one run.

    bench.py MODELS [--threads 2] [--rounds 5] [--machine FILE] [--plot FILE.svg] [--json FILE] [NAME ...]

MODELS is a folder of NAME/model.onnx (export_models.py writes some, run.sh brings them all). Outputs are compared before anything is timed. Times
are medians over rounds of each runtime's own median. Each runtime has a process of its own; memory is what that process took at its peak, libraries
included; what Python, numpy and the inputs held before is not counted for the peers. Two devices of one core, pipelined, stand beside one device of
one core and beside two ONNX Runtime sessions of one thread each, as samples a second. Needs onnxruntime, openvino and numpy, for --plot matplotlib.
"""

import argparse
import json
import os
import pathlib
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
        self.process.stdin.write("\n")
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
        flags += ["--machine", machine] if machine else []
        flags += ["--devices", str(devices), "--micro-batches", str(PIPELINE)] if devices > 1 else []
        start = time.perf_counter()
        subprocess.run([BIN / "partita-compile", model, "--quiet", "-o", self.artifact, *flags], check=True)
        self.compile_seconds = time.perf_counter() - start

    def run(self, *flags):
        command = [BIN / "partita-run", self.artifact, "--threads", str(self.threads), *flags]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    def outputs(self):
        self.run("--input", self.work / "in.npz", "--output", self.work / "out.npz")
        return dict(np.load(self.work / "out.npz"))

    def benchmark(self, *flags):
        return json.loads(self.run("--benchmark", "--json", *flags))

    def measure(self):
        self.last = self.benchmark("--input", self.work / "in.npz")
        return self.last["median_ms"]


def measure_together(sessions):
    """Samples a second of all, at the same time."""
    for session in sessions:
        session.start()
    return sum(1e3 / session.finish() for session in sessions)


def bench(folder, name, options):
    model = str(folder / name / "model.onnx")
    description = describe(model)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        np.savez(work / "in.npz", **random_inputs(description))
        ours = Partita(model, description, work, options.threads, options.machine)
        peers = [Peer(kind, model, work, options.threads) for kind in ("onnxruntime", "openvino")]
        found = ours.outputs()
        for output, expected in np.load(peers[0].outputs).items():
            np.testing.assert_allclose(found[output], expected, rtol=1e-2, atol=1e-3 * max(1.0, float(np.abs(expected).max())))
        rounds = [(peers[0].measure(), peers[1].measure(), ours.measure()) for _ in range(options.rounds)]
        for peer in peers:
            peer.close()
        one = Partita(model, description, work, 1, options.machine)
        two = Partita(model, description, work, 1, options.machine, devices=2)
        sessions = [Peer("onnxruntime", model, work, 1) for _ in range(2)]
        pairs = [
            (one.benchmark(), two.benchmark("--runs", "2", "--warmup", "1"), measure_together(sessions)) for _ in range(options.rounds)
        ]
        for session in sessions:
            session.close()
        ort, openvino, partita = (statistics.median(column) for column in zip(*rounds))
        memory = ours.last["memory"][0]
        return {
            "model": name,
            "onnxruntime_ms": ort,
            "openvino_ms": openvino,
            "partita_ms": partita,
            "times_better_peer": min(ort, openvino) / partita,
            "times_onnxruntime": ort / partita,
            "predicted_ms": ours.last["predicted_ms"],
            "two_devices": statistics.median(b["samples_per_s"] / a["samples_per_s"] for a, b, _ in pairs),
            "two_devices_samples_per_s": statistics.median(b["samples_per_s"] for _, b, _ in pairs),
            "two_sessions_samples_per_s": statistics.median(c for _, _, c in pairs),
            "two_devices_ms": statistics.median(b["median_ms"] for _, b, _ in pairs),
            "two_devices_predicted_ms": pairs[0][1]["predicted_ms"],
            "onnxruntime_bytes": peers[0].memory,
            "openvino_bytes": peers[1].memory,
            "partita_bytes": ours.last["peak_resident_bytes"],
            "planned_bytes": memory["planned_bytes"] + ours.last["io_bytes"],
            "two_devices_bytes": pairs[0][1]["peak_resident_bytes"],
            "two_sessions_bytes": sum(session.memory for session in sessions),
            "compile_s": ours.compile_seconds,
        }


COLUMNS = [  # heading, how a row shows it
    ("model", lambda r: r["model"]),
    ("ONNX Runtime ms", lambda r: f"{r['onnxruntime_ms']:.2f}"),
    ("OpenVINO ms", lambda r: f"{r['openvino_ms']:.2f}"),
    ("Partita ms", lambda r: f"{r['partita_ms']:.2f}"),
    ("predicted", lambda r: f"{r['predicted_ms']:.2f}"),
    ("x better peer", lambda r: f"{r['times_better_peer']:.2f}"),
    ("x ONNX Runtime", lambda r: f"{r['times_onnxruntime']:.2f}"),
    ("2 devices x 1", lambda r: f"{r['two_devices']:.2f}"),
    ("samples/s", lambda r: f"{r['two_devices_samples_per_s']:.1f}"),
    ("2 sessions", lambda r: f"{r['two_sessions_samples_per_s']:.1f}"),
    ("step ms", lambda r: f"{r['two_devices_ms']:.2f}"),
    ("predicted ", lambda r: f"{r['two_devices_predicted_ms']:.2f}"),
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
    kinds = (("onnxruntime_ms", "ONNX Runtime"), ("openvino_ms", "OpenVINO"), ("partita_ms", "Partita"))
    for i, (key, label) in enumerate(kinds):
        axes.bar([x + (i - 1) * 0.27 for x in range(len(rows))], [r["onnxruntime_ms"] / r[key] for r in rows], 0.25, label=label)
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
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--machine", help="what partita-run --calibrate wrote; the predicted times come from it")
    parser.add_argument("--plot", help="draw the speeds into this file")
    parser.add_argument("--json", help="write the rows into this file")
    options = parser.parse_intermixed_args()
    print("| " + " | ".join(heading for heading, _ in COLUMNS) + " |\n|" + " --- |" * len(COLUMNS), flush=True)
    rows = []
    for name in options.names or sorted(p.parent.name for p in options.models.glob("*/model.onnx")):
        rows.append(bench(options.models, name, options))
        print("| " + " | ".join(show(rows[-1]) for _, show in COLUMNS) + " |", flush=True)
    mean = statistics.geometric_mean(r["times_onnxruntime"] for r in rows)
    print(f"\ngeometric mean: {mean:.2f} times as fast as ONNX Runtime", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
