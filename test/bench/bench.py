#!/usr/bin/env python3
"""Partita beside ONNX Runtime and OpenVINO: the same model, f32, batch 1, the same number of threads, in turns, in one run.

    bench.py MODELS [--threads 2] [--rounds 5] [NAME ...]

MODELS is a folder of NAME/model.onnx (export_models.py writes one). Outputs are compared before anything is timed. A row a model: the median over
rounds of each runtime's median, in ms, and how many times as fast as the better peer Partita is. Needs onnxruntime, openvino and numpy.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))
DIMS = {"batch": 1, "tokens": 128, "batch_size": 1, "seq_len": 128}


def median_ms(step, seconds=2.0):
    step()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def random_inputs(session):
    generator, inputs = np.random.default_rng(0), {}
    for port in session.get_inputs():
        shape = [d if isinstance(d, int) else DIMS[d] for d in port.shape]
        if "int" in port.type:
            inputs[port.name] = generator.integers(0, 2 if "mask" in port.name or "type" in port.name else 100, shape).astype(np.int64)
        else:
            inputs[port.name] = generator.standard_normal(shape).astype(np.float32)
    return inputs


class OnnxRuntime:
    def __init__(self, model, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.inputs = random_inputs(self.session)

    def outputs(self):
        return dict(zip([o.name for o in self.session.get_outputs()], self.session.run(None, self.inputs)))

    def measure(self):
        return median_ms(lambda: self.session.run(None, self.inputs))


class OpenVino:
    def __init__(self, model, threads, inputs):
        import openvino

        core = openvino.Core()
        loaded = core.read_model(model)
        loaded.reshape({name: value.shape for name, value in inputs.items()})
        config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        self.request = core.compile_model(loaded, "CPU", config).create_infer_request()
        self.inputs = inputs

    def measure(self):
        self.request.infer(self.inputs)
        return median_ms(lambda: self.request.infer())


class Partita:
    def __init__(self, model, threads, inputs, work):
        self.artifact, self.threads = work / "model.partita", threads
        flags = [f for name in self.symbolic(model) for f in ("--dim", f"{name}={DIMS[name]}")]
        start = time.perf_counter()
        subprocess.run([BIN / "partita-compile", model, "--quiet", "-o", self.artifact, *flags], check=True)
        self.compile_seconds = time.perf_counter() - start
        self.work, self.inputs = work, inputs
        np.savez(work / "in.npz", **inputs)

    @staticmethod
    def symbolic(model):
        described = subprocess.run([BIN / "partita-compile", model, "--describe", "--json"], check=True, capture_output=True).stdout
        return json.loads(described)["dims"]

    def outputs(self):
        subprocess.run([BIN / "partita-run", self.artifact, "--threads", str(self.threads), "--input", self.work / "in.npz", "--output", self.work / "out.npz"], check=True)
        return dict(np.load(self.work / "out.npz"))

    def measure(self):
        command = [BIN / "partita-run", self.artifact, "--threads", str(self.threads), "--input", self.work / "in.npz", "--benchmark", "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["median_ms"]


def bench(folder, name, options):
    model = str(folder / name / "model.onnx")
    with tempfile.TemporaryDirectory() as work:
        ort = OnnxRuntime(model, options.threads)
        openvino = OpenVino(model, options.threads, ort.inputs)
        ours = Partita(model, options.threads, ort.inputs, pathlib.Path(work))
        for output, expected in ort.outputs().items():
            np.testing.assert_allclose(ours.outputs()[output], expected, rtol=1e-2, atol=1e-3 * max(1.0, float(np.abs(expected).max())))
        runs = [(ort.measure(), openvino.measure(), ours.measure()) for _ in range(options.rounds)]
        a, b, c = (statistics.median(column) for column in zip(*runs))
        print(f"| {name} | {a:.2f} | {b:.2f} | {c:.2f} | {min(a, b) / c:.2f} | {a / c:.2f} | {ours.compile_seconds:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| model | ONNX Runtime ms | OpenVINO ms | Partita ms | x better peer | x ONNX Runtime | compile s |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in options.names or sorted(p.parent.name for p in options.models.glob("*/model.onnx")):
        bench(options.models, name, options)


if __name__ == "__main__":
    main()
