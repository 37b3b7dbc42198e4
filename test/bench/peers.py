"""ONNX Runtime and OpenVINO, each in a process of its own that waits to be told to measure.

    python peers.py onnxruntime|openvino MODEL INPUTS.npz THREADS OUTPUTS.npz

Loads the model, runs it once, writes the outputs, and prints one JSON line: the process's resident memory before the library and the model are
loaded (Python, numpy, inputs) and its peak, in bytes.
Then every line that it reads makes it measure for so many seconds: it prints the median of the runs, in ms.
"""

import json
import statistics
import sys
import time

import numpy as np


def median_ms(step, seconds):
    step()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def resident(key):
    """VmRSS, or VmHWM for the peak; unlike getrusage's figure it begins with this program and not with the one that started it."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key + ":"))


def load_onnxruntime(model, inputs, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return lambda: dict(zip(names, session.run(None, inputs)))


def load_openvino(model, inputs, threads):
    import openvino

    core = openvino.Core()
    network = core.read_model(model)
    network.reshape({name: value.shape for name, value in inputs.items()})
    config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(network, "CPU", config).create_infer_request()
    request.infer(inputs)
    return lambda: request.infer()  # the inputs stay set


def main():
    kind, model, inputs, threads, outputs = sys.argv[1:]
    inputs = dict(np.load(inputs))
    before = resident("VmRSS")
    step = {"onnxruntime": load_onnxruntime, "openvino": load_openvino}[kind](model, inputs, int(threads))
    result = step()
    if kind == "onnxruntime":
        np.savez(outputs, **result)
    print(json.dumps({"before": before, "peak": resident("VmHWM")}), flush=True)
    for line in sys.stdin:
        print(median_ms(step, float(line)), flush=True)


if __name__ == "__main__":
    main()
