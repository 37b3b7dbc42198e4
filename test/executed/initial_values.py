#!/usr/bin/env python3
"""--init: what parameters are drawn from when training begins. Layers have the bounds of PyTorch's, other kinds those of their definitions.

    initial_values.py                  all
    initial_values.py default errors   these parts
"""

import json
import pathlib
import sys
import tempfile

from harness import BIN, SKIPPED, Failure, compile_model, main, run

try:
    import numpy as np
    import onnx
except ImportError as error:
    print(f"skipped: no {error.name} (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

from onnx import helper, numpy_helper

from training import check_message, files_in, parameters_of, train

# name: shape, what PyTorch's layer draws it from: ("uniform", bound), ("normal", deviation) or ("constant", value). Their manual has the bounds.
PARAMETERS = {
    "embedding.weight": ((60, 40), ("normal", 1)),
    "conv.weight": ((32, 1, 3, 3), ("uniform", 9**-0.5)), "conv.bias": ((32,), ("uniform", 9**-0.5)),
    "groups.weight": ((32, 8, 3, 3), ("uniform", 72**-0.5)),
    "transposed.weight": ((32, 16, 2, 2), ("uniform", 64**-0.5)), "transposed.bias": ((16,), ("uniform", 64**-0.5)),
    "bn.weight": ((16,), ("constant", 1)), "bn.bias": ((16,), ("constant", 0)), "bn.running_mean": ((16,), ("constant", 0)), "bn.running_var": ((16,), ("constant", 1)),
    "prelu": ((16, 1, 1), ("constant", 0.25)),
    "gemm.weight": ((50, 256), ("uniform", 256**-0.5)), "gemm.bias": ((50,), ("uniform", 256**-0.5)),
    "matmul.weight": ((50, 70), ("uniform", 50**-0.5)), "matmul.bias": ((70,), ("uniform", 50**-0.5)),
    "ln.weight": ((70,), ("constant", 1)), "ln.bias": ((70,), ("constant", 0)),
    "plain.input": ((1, 32, 20), ("uniform", 8**-0.5)), "plain.recurrent": ((1, 32, 8), ("uniform", 8**-0.5)),
    "lstm.input": ((1, 80, 70), ("uniform", 20**-0.5)), "lstm.recurrent": ((1, 80, 20), ("uniform", 20**-0.5)), "lstm.bias": ((1, 160), ("uniform", 20**-0.5)),
}
BATCH = 2


def write_model(work, dtype=np.float32):
    """All kinds of layers one behind the other. Every parameter is 7 in the file."""
    kind, nodes = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), []

    def node(op, *inputs, count=1, **attributes):
        outputs = [f"{op}_{len(nodes)}.{i}" for i in range(count)]
        nodes.append(helper.make_node(op, inputs, outputs, name=f"/{op}_{len(nodes)}", **attributes))
        return outputs[-1]

    x = node("Gather", "embedding.weight", "tokens")  # 2 x 40
    x = node("Reshape", x, "image")  # 2 x 1 x 5 x 8
    x = node("Conv", x, "conv.weight", "conv.bias", pads=[1, 1, 1, 1])
    x = node("Conv", x, "groups.weight", pads=[1, 1, 1, 1], strides=[2, 2], group=4)  # 2 x 32 x 3 x 4
    x = node("ConvTranspose", x, "transposed.weight", "transposed.bias")  # 2 x 16 x 4 x 5
    x = node("BatchNormalization", x, "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var", momentum=1.0)  # keeps what its statistics begin with
    x = node("PRelu", x, "prelu")
    x = node("MaxPool", x, kernel_shape=[1, 2])
    x = node("Gemm", node("Flatten", x), "gemm.weight", "gemm.bias", transB=1)
    x = node("Add", node("MatMul", x, "matmul.weight"), "matmul.bias")
    x = node("LayerNormalization", x, "ln.weight", "ln.bias")
    x = node("LSTM", node("Reshape", x, "sequence"), "lstm.input", "lstm.recurrent", "lstm.bias", count=2, hidden_size=20)
    x = node("LSTM", x, "plain.input", "plain.recurrent", count=2, hidden_size=8)  # without a bias
    nodes.append(helper.make_node("Add", [x, "shift"], ["y"], name="/Add_y"))
    tensors = [numpy_helper.from_array(np.full(shape, 7, dtype), name) for name, (shape, _) in PARAMETERS.items()]
    tensors.append(numpy_helper.from_array(np.full((1, BATCH, 8), 7, dtype), "shift"))
    tensors += [numpy_helper.from_array(np.array(values, np.int64), name) for name, values in (("image", (BATCH, 1, 5, 8)), ("sequence", (1, BATCH, 70)))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("tokens", onnx.TensorProto.INT64, [BATCH])], [helper.make_tensor_value_info("y", kind, [1, BATCH, 8])], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    path = work / "layers.onnx"
    onnx.save(model, path)
    return path


def begin(work, *flags, run_flags=(), model=None, steps=1):
    """The parameters that training begins with: a rate of 0 leaves them as they are."""
    artifact = work / "layers.partita"
    compile_model(model or write_model(work), artifact, "--loss", "sum:y", "--optimizer", "sgd,learning_rate=0", *flags)
    np.save(work / "tokens.npy", np.arange(BATCH * steps))
    train(artifact, "--data", f"tokens={work}/tokens.npy", "--export", work / "begun.onnx", *run_flags, steps=steps)
    return parameters_of(work / "begun.onnx")


def check_values(name, value, kind, number, mean=0.0):
    """The bounds, and mean and deviation within five of their own deviations."""
    value = value.astype(np.float64).ravel()
    if kind == "constant":
        if (value != np.float32(number)).any():
            raise Failure(f"{name} has {np.unique(value)} and not {number}")
        return
    if kind == "uniform" and (abs(value - mean).max() > number * (1 + 1e-6) or abs(value - mean).max() < number * (1 - 12 / value.size)):
        raise Failure(f"{name} has numbers up to {abs(value - mean).max()} instead of {number}")
    deviation = number if kind == "normal" else number / 3**0.5
    fourth = 3 if kind == "normal" else 1.8  # moment, by the square of the variance
    if not abs(value.mean() - mean) <= 5 * deviation / value.size**0.5:
        raise Failure(f"{name} has the mean {value.mean()} of {value.size} numbers with a deviation of {deviation}")
    share = ((value - mean) ** 2).mean() / deviation**2
    if not abs(share - 1) <= 5 * ((fourth - 1) / value.size) ** 0.5:
        raise Failure(f"{name}: its variance is {share} of that of {kind} {number}")
    if mean == 0 and len(np.unique(value)) < 0.999 * value.size:
        raise Failure(f"{name} has {len(np.unique(value))} different numbers of {value.size}")


def check_default(work):
    found = begin(work, "--init", "*.*=default", "--init", "prelu=default")
    for name, (_, values) in PARAMETERS.items():
        check_values(name, found[name], *values)
    if (found["shift"] != 7).any():
        raise Failure("a parameter that --init does not name has changed")
    different = {value.ravel()[:16].tobytes() for name, value in found.items() if PARAMETERS.get(name, ((), ("",)))[1][0] == "uniform"}
    if len(different) != sum(values[0] == "uniform" for _, values in PARAMETERS.values()):
        raise Failure("two parameters begin with the same numbers")
    print("layers begin as PyTorch's do")


KINDS = {
    "zeros": ("constant", 0), "ones": ("constant", 1), "constant,value=0.5": ("constant", 0.5), "uniform": ("uniform", 0.5, 0.5), "uniform,low=-3,high=1": ("uniform", 2, -1),
    "normal": ("normal", 1), "normal,mean=2,std=0.02": ("normal", 0.02, 2), "normal,std=0.02": ("normal", 0.02),
    "xavier_uniform": ("uniform", (6 / 120) ** 0.5), "xavier_uniform,gain=2": ("uniform", 2 * (6 / 120) ** 0.5), "xavier_normal": ("normal", (2 / 120) ** 0.5),
    "kaiming_uniform": ("uniform", (6 / 50) ** 0.5), "kaiming_normal": ("normal", (2 / 50) ** 0.5), "kaiming_normal,gain=1": ("normal", (1 / 50) ** 0.5),
}


def check_kinds(work):
    model = write_model(work)
    for kind, values in KINDS.items():
        found = begin(work, "--init", f"matmul.weight={kind}", model=model)
        check_values(f"matmul.weight as {kind}", found["matmul.weight"], *values)
        if any((value != 7).any() for name, value in found.items() if name in PARAMETERS and name != "matmul.weight"):
            raise Failure(f"--init of matmul.weight draws others, too")
    # A convolution sums over its window.
    check_values("conv.weight", begin(work, "--init", "groups.weight=kaiming_normal")["groups.weight"], "normal", (2 / 72) ** 0.5)
    # The last that matches holds, and a file says what flags do.
    flags = ["--init", "*.weight=normal,std=0.5", "--init", "gemm.*=zeros"]
    said = begin(work, *flags)
    check_values("ln.weight", said["ln.weight"], "normal", 0.5)
    check_values("gemm.weight", said["gemm.weight"], "constant", 0)
    settings = work / "init.yaml"
    settings.write_text("init: {'*.weight': {kind: normal, std: 0.5}, 'gemm.*': zeros}\n")
    if any(value.tobytes() != said[name].tobytes() for name, value in begin(work, "--train", settings).items()):
        raise Failure("a file gives other values than flags that say the same")
    # Numbers of f64 have more digits.
    wide = begin(work, "--init", "gemm.weight=normal", model=write_plain(work, np.float64))["gemm.weight"]
    if (wide.astype(np.float32).astype(np.float64) == wide).any():
        raise Failure("parameters of f64 are drawn as f32")
    print(f"{len(KINDS)} kinds are drawn as they are defined")


def write_plain(work, dtype):
    nodes = [helper.make_node("Gather", ["embedding.weight", "tokens"], ["e"], name="/Gather"), helper.make_node("MatMul", ["e", "gemm.weight"], ["p"], name="/MatMul"), helper.make_node("Mul", ["p", "p"], ["y"], name="/Mul")]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    tensors = [numpy_helper.from_array(np.full(shape, 7, dtype), name) for name, shape in (("embedding.weight", (9, 6)), ("gemm.weight", (6, 300)))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("tokens", onnx.TensorProto.INT64, [BATCH])], [helper.make_tensor_value_info("y", kind, [BATCH, 300])], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), work / "plain.onnx")
    return work / "plain.onnx"


def check_seeds(work):
    """Values depend on the seed and the name alone; a checkpoint and --load stand above them."""
    flags = ["--init", "*.*=default"]
    begin(work, *flags)
    said = run([BIN / "partita-run", work / "layers.partita", "--train", "--data", f"tokens={work}/tokens.npy", "--steps", 1, "--seed", 8])
    if f"begins with --init for {len(PARAMETERS) - 1} states, by --seed 8\n" not in said:
        raise Failure(f"partita-run does not say what it has drawn: {said}")
    first, again, other = (begin(work, *flags, run_flags=["--seed", seed]) for seed in (0, 0, 1))
    same = lambda a, b, name: a[name].tobytes() == b[name].tobytes()
    if not all(same(first, again, name) for name in PARAMETERS) or any(same(first, other, name) for name, (_, values) in PARAMETERS.items() if values[0] != "constant"):
        raise Failure("the same seed gives other values, or another seed the same")
    whole, halves = (begin(work, "--init", "*=default", *devices, model=write_plain(work, np.float32)) for devices in ((), ("--devices", 2)))
    if not all(same(whole, halves, name) for name in whole):
        raise Failure("two devices begin with other values than one")
    folder = work / "kept"
    begin(work, *flags, run_flags=["--checkpoint", folder, "--seed", 3])
    third = parameters_of(work / "begun.onnx")
    begin(work, *flags, run_flags=["--checkpoint", folder, "--seed", 3, "--resume"], steps=2)
    if not all(same(third, parameters_of(work / "begun.onnx"), name) for name in PARAMETERS):
        raise Failure("a training that goes on begins anew")
    loaded = begin(work, *flags, run_flags=["--load", folder / "step-00000001" / "model.safetensors", "--seed", 9])
    if not all(same(third, loaded, name) for name in PARAMETERS if "running" not in name):
        raise Failure("--load does not stand above --init")
    print("values depend on the seed and the name alone")


ERRORS = [
    (["--init", "gemm"], "--init: 'gemm' is no GLOB=KIND"),
    (["--init", "*=magic"], "--init: 'magic' is no way to draw parameters; there are default, zeros, ones"),
    (["--init", "*=normal,low=1"], "'low=1' is no setting of 'normal'; its settings are mean and std"),
    (["--init", "*=normal,std=nan"], "std is 'nan', and not a number"),
    (["--init", "*=normal,std=-1"], "std is below 0"),
    (["--init", "*=uniform,low=2"], "low is above high"),
    (["--init", "nothing*=zeros"], "--init nothing* names no"),
    (["--init", "*=default"], "'shift': no layer reads it, so it has no default: name a kind"),
    (["--init", "shift=kaiming_normal"], "'shift': 'kaiming_normal' needs to know how many numbers a layer sums"),
]
FILE_ERRORS = [
    ("init: {'gemm.*': magic}\n", "1:18: ", "'magic' is no way to draw parameters"),
    ("init:\n  gemm.*: {kind: normal, low: 3}\n", "2:11: ", "'low=3' is no setting of 'normal'"),
    ("init: [a]\n", "1:7: ", ""),
]


def check_errors(work):
    model = write_model(work)
    command = [BIN / "partita-compile", model, "--loss", "sum:y", "-o", work / "wrong.partita"]
    for flags, text in ERRORS:
        check_message(work, " ".join(flags), run([*command, "--optimizer", "sgd", *flags], expect=1), text, files_in(work))
    for body, place, text in FILE_ERRORS:
        (work / "wrong.yaml").write_text(body)
        said = run([*command, "--train", work / "wrong.yaml"], expect=1)
        for part in (f"wrong.yaml:{place}", text):
            check_message(work, body, said, part, files_in(work))
    check_message(work, "without training", run([*command, "--init", "*=zeros"], expect=1), "are for training: give --train FILE or --optimizer, too", files_in(work))
    print(f"{len(ERRORS) + len(FILE_ERRORS) + 1} errors say what is wrong")


def check():
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for part in (check_default, check_kinds, check_seeds, check_errors):
            if not words or part.__name__.removeprefix("check_") in words:
                part(pathlib.Path(folder))


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
