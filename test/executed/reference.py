#!/usr/bin/env python3
"""All inner tensors of a model, computed by ONNX Runtime: the reference for `partita-run --compare`.

    reference.py model.onnx inputs.npz reference.npz

Keys of both archives are names of ONNX tensors. Needs onnx, onnxruntime and numpy."""

import sys

import numpy as np
import onnx
import onnxruntime


def make_reference(model_path, inputs):
    """Every node's results, by name, of the model on `inputs`."""
    model = onnx.load(str(model_path))
    known = {output.name for output in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in known:
                known.add(name)
                model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    values = session.run(names, dict(inputs))
    return {name: value for name, value in zip(names, values) if isinstance(value, np.ndarray)}


if __name__ == "__main__":
    model_path, inputs_path, reference_path = sys.argv[1:]
    np.savez(reference_path, **make_reference(model_path, np.load(inputs_path)))
