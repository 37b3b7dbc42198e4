#!/usr/bin/env python3
"""Layers that compute otherwise while a model learns: running statistics of batch normalizations (their values are PyTorch's in training.py), what
--eval-mode leaves as at inference, and dropouts and random numbers, which are read out of gradients.

    training_mode.py                     all
    training_mode.py statistics dropout  these parts
"""

import json
import pathlib
import sys
import tempfile

from harness import BIN, SKIPPED, Failure, compile_model, main, run

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"skipped: no {error.name} (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

from onnx import numpy_helper

from training import case_named, check_message, files_in, parameters_of, train, write_data, write_model
from training_cases import BATCH, EPSILON, KEPT, build, statistics

DTYPES = {"f64": np.float64, "f32": np.float32}


def write_inference_model(work, dtype, normalize=None):
    """The network with batch norms as most exporters write it: for inference. normalize makes the nodes of a normalization otherwise."""
    path = work / f"inference.{dtype}.onnx"
    onnx.save(build("cnn", DTYPES[dtype], training=False), path)
    return path


def check_statistics(work):
    """How a node is written does not matter; evaluation has the running statistics, as ONNX Runtime has them from the exported file."""
    for name, dtype in (("cnn-sgd", "f32"), ("cnn-adam", "f32")):
        case = case_named(name)
        data, exported = write_data(work, case, dtype), []
        held = ["--eval-data" if word == "--data" else word for word in data]
        for model in (write_model(work, "cnn", dtype), write_inference_model(work, dtype)):
            artifact, to = work / "statistics.partita", work / f"trained.{model.name}"
            compile_model(model, artifact, *case.flags())
            folder = work / f"{name}.{model.stem}"
            lines = train(artifact, *data, *held, "--export", to, folder=folder)
            exported.append((lines, parameters_of(to)))
        (one, first), (two, second) = exported
        if [line["loss"] for line in one] != [line["loss"] for line in two] or any(first[key].tobytes() != second[key].tobytes() for key in second):
            raise Failure(f"{name}: written in training mode and for inference, it trains to other bits")
        session = onnxruntime.InferenceSession(work / f"trained.inference.{dtype}.onnx", providers=["CPUExecutionProvider"])
        arrays = case.files(dtype)
        count = len(arrays["image"])
        logits = np.concatenate([session.run(None, {"image": arrays["image"][at:at + BATCH]})[0] for at in range(0, count, BATCH)]).astype(np.float64)
        logits -= logits.max(1, keepdims=True)
        wanted = (np.log(np.exp(logits).sum(1)) - logits[np.arange(count), arrays["label"]]).mean()
        for lines in (one, two):
            said = lines[-1]["eval"]["eval_loss"]
            if not abs(said - wanted) < 2e-6 * abs(wanted):
                raise Failure(f"{name}: evaluated as {said}, and by ONNX Runtime as {wanted}")
        if not abs(wanted - two[-1]["loss"]) > 1e-3:
            raise Failure(f"{name}: the statistics of the batch evaluate as the running ones do: this shows nothing")
    print("running statistics evaluate as in ONNX Runtime")


def write_affine_model(work):
    """The network with its normalizations written out: (x - mean) * scale / sqrt(variance + eps) + bias, where the statistics are constants."""
    model = build("cnn", np.float64, training=False)
    nodes, running = list(model.graph.node), {name: array.astype(np.float64) for name, array in statistics("cnn").items()}
    del model.graph.node[:]
    for node in nodes:
        if node.op_type != "BatchNormalization":
            model.graph.node.append(node)
            continue
        x, scale, bias, mean, variance = node.input
        shape = (-1, 1, 1)
        for name, array in ((f"{mean}.c", running[mean].reshape(shape)), (f"{variance}.c", 1 / np.sqrt(running[variance].reshape(shape) + EPSILON)), (f"{scale}.s", np.array(shape, np.int64))):
            model.graph.node.append(onnx.helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name)))
        out = node.output[0]
        for op, inputs, output in (("Sub", [x, f"{mean}.c"], "centered"), ("Mul", [f"{out}/centered", f"{variance}.c"], "normal"), ("Reshape", [scale, f"{scale}.s"], "scale"),
                                   ("Reshape", [bias, f"{scale}.s"], "bias"), ("Mul", [f"{out}/normal", f"{out}/scale"], "scaled"), ("Add", [f"{out}/scaled", f"{out}/bias"], None)):
            model.graph.node.append(onnx.helper.make_node(op, inputs, [f"{out}/{output}" if output else out], name=f"/{out}/{op}{output}"))
    onnx.checker.check_model(model)
    onnx.save(model, work / "affine.onnx")
    return work / "affine.onnx"


def check_eval_mode(work):
    """A normalization that --eval-mode names uses its statistics, and leaves them."""
    case = case_named("cnn-sgd")
    data, model = write_data(work, case, "f64"), write_model(work, "cnn", "f64")
    settings = work / "eval.yaml"
    settings.write_text("eval_mode: ['/BatchNormalization_*']\n")
    runs = {"flag": (model, ["--eval-mode", "/Batch*"]), "file": (model, ["--train", settings]), "written out": (write_affine_model(work), ["--freeze", "*.c"])}
    found = {}
    for what, (path, flags) in runs.items():
        compile_model(path, work / "eval.partita", *case.flags(), *flags)
        lines = train(work / "eval.partita", *data, "--export", work / f"eval.{path.name}", folder=work / f"eval {what}")
        found[what] = [line["loss"] for line in lines], parameters_of(work / f"eval.{path.name}")
    for what in ("flag", "file"):
        for name, array in statistics("cnn").items():
            if found[what][1][name].tobytes() != array.astype(np.float64).tobytes():
                raise Failure(f"--eval-mode by {what}: {name} has changed")
    losses, parameters = found["written out"]
    for what in ("flag", "file"):
        apart = max(abs(a - b) / abs(b) for a, b in zip(found[what][0], losses))
        if not apart < 1e-9 or any(not np.allclose(found[what][1][name], value, rtol=1e-9, atol=1e-12) for name, value in parameters.items() if name in found[what][1]):
            raise Failure(f"--eval-mode by {what}: losses differ by {apart} from a network that is written out")
    # One of the two is named: the other one learns.
    compile_model(model, work / "eval.partita", *case.flags(), "--eval-mode", "/BatchNormalization_1")
    train(work / "eval.partita", *data, "--export", work / "one.onnx", steps=2)
    one = parameters_of(work / "one.onnx")
    changed = {name for name, array in statistics("cnn").items() if one[name].tobytes() != array.astype(np.float64).tobytes()}
    if changed != {"bn2.running_mean", "bn2.running_var"}:
        raise Failure(f"--eval-mode names the first of two normalizations, and these statistics have changed: {changed}")
    print("--eval-mode leaves statistics as they are")


MEASURED = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[4,3,2] x) => (float[4,3,2] y) <float[3,1] w = {1,2,3}, float[3] s = {1,2,3}, float[3] b = {0,1,0.5}> {\n' \
           ' p = Mul (x, w)\n axes = Constant <value = int64[2] {0, 2}> ()\n m = ReduceMean <keepdims = 0> (p, axes)\n k = ReduceMean (p, axes)\n d = Sub (p, k)\n e = Mul (d, d)\n' \
           ' v = ReduceMean <keepdims = 0> (e, axes)\n %s\n}\n'
WRITTEN_OUT = 'shape = Constant <value = int64[3] {1, 3, 1}> ()\n eps = Constant <value = float {0.00001}> ()\n u = ReduceMean (e, axes)\n f = Add (u, eps)\n r = Sqrt (f)\n n = Div (d, r)\n' \
              ' t = Reshape (s, shape)\n c = Reshape (b, shape)\n z = Mul (n, t)\n y = Add (z, c)'


def check_measured(work):
    """A normalization that has no running statistics, as PyTorch writes one of `track_running_stats=False`: by the samples' own ones, when it evaluates, too."""
    noise, found = np.random.default_rng(5), []
    for name in ("x", "target"):
        np.save(work / f"{name}.npy", noise.standard_normal((16, 3, 2)).astype(np.float32))
    data = [word for flag in ("--data", "--eval-data") for name in ("x", "target") for word in (flag, f"{name}={work}/{name}.npy")]
    for number, layer in enumerate((WRITTEN_OUT, *(f"y = BatchNormalization {mode} (p, s, b, m, v)" for mode in ("", "<training_mode = 1>")))):
        onnx.save(onnx.parser.parse_model(MEASURED % layer), work / "measured.onnx")
        compile_model(work / "measured.onnx", work / "measured.partita", "--loss", "mse:y", "--optimizer", "sgd,learning_rate=0.1", "--micro-batches", 2)
        lines = train(work / "measured.partita", *data, "--export", work / "measured.trained.onnx", folder=work / f"measured {number}", steps=2)
        found.append(([line["loss"] for line in lines] + [lines[-1]["eval"]["eval_loss"]], parameters_of(work / "measured.trained.onnx")))
    wanted, written = found[0]
    for losses, parameters in found[1:]:
        if not np.allclose(losses, wanted, rtol=1e-5) or not all(np.allclose(parameters[name], written[name], rtol=1e-5, atol=1e-6) for name in ("w", "s", "b")):
            raise Failure(f"statistics of the samples: losses {losses} and parameters {parameters}, and written out {wanted} and {written}")
    if np.allclose(written["s"], [1, 2, 3], atol=1e-3):
        raise Failure("nothing is learned")
    print("a normalization without running statistics has those of its samples")


WIDE = 4096
# The gradient of w is the sum of the masks of the samples, times 1 / (1 - ratio), for x = 1.
DROPOUT = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[%d,4096] x) => (float[%d,4096] y) <float ratio = {%s}, bool t = {1}> {\n d = Dropout (%s, ratio, t)\n y = %s\n}\n'


def write_dropout(work, batch, ratio, after=False, twice=False, length=WIDE):
    path = work / "dropout.onnx"
    text = DROPOUT % (batch, batch, ratio, "s" if after else "x", "Identity (d)" if after else "Mul (d, w)")
    text = text.replace("4096", str(length))
    if after:
        text = text.replace(" d = ", " s = Mul (x, w)\n d = ")
    if twice:
        text = text.replace(" y = ", " e = Dropout (x, ratio, t)\n f = Mul (e, v)\n g = Mul (d, w)\n y = Add (f, g)\n z = ").replace("=> (", f"=> (float[{batch},{length}] z, ")
    model = onnx.parser.parse_model(text)
    for name in ("w", "v") if twice else ("w",):
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(length, np.float32), name))
    for i, node in enumerate(model.graph.node):
        node.name = f"/{node.op_type}_{i}"
    onnx.save(model, path)
    return path


def masks(work, batch=1, ratio="0.25", micro=1, steps=1, seed=0, flags=(), run_flags=(), x=None, **shape):
    """The sum of the factors by which the samples of some steps are multiplied, by parameter: minus what a rate of 1 learns."""
    model, artifact, length = write_dropout(work, batch, ratio, **shape), work / "dropout.partita", shape.get("length", WIDE)
    compile_model(model, artifact, "--loss", "sum:y", "--optimizer", "sgd,learning_rate=1", *(["--micro-batches", micro] if micro > 1 else []), *flags)
    np.save(work / "ones.npy", np.ones((batch * micro * steps, length), np.float32) if x is None else x)
    train(artifact, "--data", f"x={work}/ones.npy", "--seed", seed, "--export", work / "mask.onnx", *run_flags, steps=steps)
    found = parameters_of(work / "mask.onnx")
    return {name: -found[name] for name in ("w", "v") if name in found}


def near(what, share, wanted, count, variance=None):
    """A share of independent draws, within five deviations."""
    deviation = np.sqrt((wanted * (1 - wanted) if variance is None else variance) / count)
    if not abs(share - wanted) <= 5 * deviation:
        raise Failure(f"{what}: {share} instead of {wanted}, which is {abs(share - wanted) / deviation:.1f} deviations")


def check_dropout(work):
    for ratio in (0.25, 0.5, 0.9):
        mask = masks(work, ratio=str(ratio))["w"]
        kept = mask != 0
        if not np.allclose(mask[kept], 1 / (1 - ratio), rtol=1e-6):
            raise Failure(f"ratio {ratio}: what stays is multiplied by {np.unique(mask)}")
        near(f"ratio {ratio}: the share that stays", kept.mean(), 1 - ratio, WIDE)
        # Neighbours, and elements of the same place in other samples, other nodes and other seeds.
        stays = (1 - ratio) ** 2
        near("neighbours that both stay", (kept[1:] & kept[:-1]).mean(), stays, WIDE, variance=stays * (1 - stays) + 2 * (stays * (1 - ratio) - stays**2))
        near("two seeds", (kept & (masks(work, ratio=str(ratio), seed=1)["w"] != 0)).mean(), stays, WIDE)
        both = masks(work, ratio=str(ratio), twice=True)
        near("two nodes", ((both["w"] != 0) & (both["v"] != 0)).mean(), stays, WIDE)
        second = masks(work, ratio=str(ratio), steps=2)["w"] - mask
        near("two samples", (kept & (abs(second) > 0.5)).mean(), stays, WIDE)
    if not all((masks(work, ratio=ratio)["w"] == wanted).all() for ratio, wanted in (("0", 1), ("1", 0))):
        raise Failure("a ratio of 0 drops something, or one of 1 leaves something")
    print("dropouts drop the share that they should, and each element by itself")


def check_cuts(work):
    """The same elements are dropped for every cut into micro-batches, devices and threads. With a ratio of 1/2 all sums are exact."""
    wanted = masks(work, batch=8, ratio="0.5")["w"]
    if set(np.unique(wanted)) <= {0.0, 2.0}:
        raise Failure("all samples drop the same elements")
    for batch, micro in ((4, 2), (2, 4), (1, 8)):
        for run_flags in (("-t", 1), ("-t", 2)):
            if (masks(work, batch=batch, micro=micro, ratio="0.5", run_flags=run_flags)["w"] != wanted).any():
                raise Failure(f"{micro} micro-batches of {batch} samples, {run_flags}: other elements are dropped than in one of 8")
    for shape in ({"after": True}, {"twice": True}):
        wanted = masks(work, batch=4, micro=2, ratio="0.5", **shape)
        for flags in (("--devices", 2), ("--devices", 2, "--schedule", "gpipe"), ("--reference",)):
            found = masks(work, batch=4, micro=2, ratio="0.5", flags=flags, **shape)
            if any((found[name] != value).any() for name, value in wanted.items()):
                raise Failure(f"{flags}: other elements are dropped")
    # Behind the parameter: the gradient is 0 just where the loss has nothing.
    noise = np.random.default_rng(3).integers(1, 9, (1, WIDE)).astype(np.float32)
    gradient = masks(work, ratio="0.5", after=True, x=noise)["w"]
    if set(np.unique(gradient / noise)) != {0.0, 2.0}:
        raise Failure("the gradient before a dropout is not the input, doubled or 0")
    # A training that is broken off, too; steps are counted on.
    model, artifact = write_dropout(work, 2, "0.5", after=True), work / "broken.partita"
    compile_model(model, artifact, "--loss", "sum:y", "--optimizer", "sgd,learning_rate=1,momentum=0.5")
    np.save(work / "many.npy", np.ones((6, WIDE), np.float32))
    data = ["--data", f"x={work}/many.npy", "--seed", 4, "--export", work / "broken.onnx"]
    train(artifact, *data, steps=6)
    whole = (work / "broken.onnx").read_bytes()
    for steps, resumed in ((2, []), (6, ["--resume"])):
        train(artifact, *data, *resumed, folder=work / "broken", steps=steps)
    if (work / "broken.onnx").read_bytes() != whole:
        raise Failure("a training that goes on drops other elements")
    # An evaluation drops nothing.
    lines = train(artifact, *data, "--eval-data", f"x={work}/many.npy", folder=work / "evaluated", steps=3)
    w = parameters_of(work / "broken.onnx")["w"].astype(np.float64)
    said = lines[-1]["eval"]["eval_loss"]
    if not abs(said - 6 * w.sum()) <= 1e-6 * abs(said):
        raise Failure(f"evaluated as {said}, and without dropouts it is {6 * w.sum()}, a sum {w.sum()} for each of 6 samples")
    print("cuts, devices, threads and breaks drop the same elements")


def write_draws(work, batch, ops, name="draws.onnx"):
    """The gradient of each parameter is the sum of what one of the ops draws, over the samples."""
    nodes, terms = "", []
    for i, op in enumerate(ops):
        nodes += f" [n{i}] r{i} = {op}\n s{i} = Mul (x, w{i})\n t{i} = Mul (s{i}, r{i})\n"
        terms.append(f"t{i}")
    text = f'<ir_version: 10, opset_import: ["" : 21]>\ng (float[{batch},{WIDE}] x) => (float[{batch},{WIDE}] y) <float p = {{0.3}}> {{\n{nodes} y = Sum ({", ".join(terms)})\n}}\n'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(np.zeros(WIDE, np.float32), f"w{i}") for i in range(len(ops)))
    onnx.save(model, work / name)
    return work / name


def draws(work, *ops, batch=1, micro=1, seed=0, flags=(), run_flags=()):
    artifact = work / "draws.partita"
    compile_model(write_draws(work, batch, ops), artifact, "--loss", "sum:y", "--optimizer", "sgd,learning_rate=1", *(["--micro-batches", micro] if micro > 1 else []), *flags)
    np.save(work / "ones.npy", np.ones((batch * micro, WIDE), np.float32))
    train(artifact, "--data", f"x={work}/ones.npy", "--seed", seed, "--export", work / "drawn.onnx", *run_flags, steps=1)
    found = parameters_of(work / "drawn.onnx")
    return [-found[f"w{i}"].astype(np.float64) for i in range(len(ops))]


def check_random(work):
    """Random numbers have their distribution, each by itself; they do not depend on how a step is cut."""
    normal, uniform = "RandomNormalLike <mean = 1.5, scale = 2.0> (x)", "RandomUniformLike <low = -1.0, high = 3.0> (x)"
    shaped = f"RandomNormal <shape = [1, {WIDE}]> ()"
    (one, other, flat, own), (again, *_) = draws(work, normal, normal, uniform, shaped), draws(work, normal, seed=1)
    units = {"normal": (one - 1.5) / 2, "of another node": (other - 1.5) / 2, "of another seed": (again - 1.5) / 2, "of a shape": own}
    for name, unit in units.items():
        for what, share, wanted in (("below -1", unit < -1, 0.158655), ("within a half", abs(unit) < 0.5, 0.382925), ("above 2", unit > 2, 0.022750), ("above 0", unit > 0, 0.5)):
            near(f"{name}: the share {what}", share.mean(), wanted, WIDE)
        if len(np.unique(unit)) < WIDE - 8:
            raise Failure(f"{name}: there are only {len(np.unique(unit))} numbers")
    first = units["normal"]
    for what, second in (("neighbours", np.roll(first, 1)), *((name, unit) for name, unit in units.items() if name != "normal"), ("uniform", flat - 1)):
        near(f"signs of normal numbers and {what}", ((first > 0) == (second > 0)).mean(), 0.5, WIDE)
    if flat.min() < -1 or flat.max() >= 3:
        raise Failure(f"uniform numbers are from {flat.min()} to {flat.max()}")
    for least in (-0.5, 0, 1, 2.5):
        near(f"uniform numbers above {least}", (flat > least).mean(), (3 - least) / 4, WIDE)
    # With the probability of the input, which is 1 here; or 0.3.
    always, seldom = draws(work, "Bernoulli (x)", "Bernoulli (q)\n q = Mul (x, p)")
    if not (always == 1).all() or set(np.unique(seldom)) != {0.0, 1.0}:
        raise Failure(f"tosses of probability 1 give {np.unique(always)}, and of 0.3 {np.unique(seldom)}")
    near("tosses of probability 0.3", seldom.mean(), 0.3, WIDE)
    wanted = draws(work, normal, uniform, batch=8)
    for batch, micro, flags in ((4, 2, ()), (1, 8, ()), (2, 4, ("--devices", 2)), (2, 4, ("--data-parallel", 2)), (4, 2, ("--reference",))):
        found = draws(work, normal, uniform, batch=batch, micro=micro, flags=flags)
        if any(not np.allclose(a, b, rtol=1e-5, atol=1e-4) for a, b in zip(found, wanted)):
            raise Failure(f"{micro} micro-batches of {batch} samples, {flags}: other numbers are drawn than in one of 8")
    # An evaluation draws the same numbers each time.
    artifact = work / "draws.partita"
    compile_model(write_draws(work, 2, [normal]), artifact, "--loss", "sum:y", "--optimizer", "sgd,learning_rate=1")
    np.save(work / "ones.npy", np.ones((4, WIDE), np.float32))
    data = [word for flag in ("--data", "--eval-data") for word in (flag, f"x={work}/ones.npy")]
    said = {train(artifact, *data, "--seed", 3, folder=work / f"evaluated {i}", steps=1)[-1]["eval"]["eval_loss"] for i in range(2)}
    if len(said) != 1 or not np.isfinite([*said]).all():
        raise Failure(f"evaluations give {said}")
    said = run([BIN / "partita-compile", work / "draws.onnx", "-o", work / "inference.partita"], expect=1)
    if "RandomNormalLike: random numbers are drawn in training only" not in said:
        raise Failure(f"inference with random numbers says\n{said}")
    print("random numbers have their distribution, and do not depend on cuts")


SHARED = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[4,3,2] x) => (float[4,3,2] y) <float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] m = {0,0,0}, float[3] v = {1,1,1}> {\n' \
         ' a = BatchNormalization (x, s, b, m, v)\n y = BatchNormalization (a, s, b, m, v)\n}\n'
COMPUTED = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[4,3,2] x) => (float[4,3,2] y) <float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] m = {0,0,0}, float[3] v = {1,1,1}> {\n' \
           ' n = Neg (m)\n y = BatchNormalization (x, s, b, n, v)\n}\n'
SINGLE = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[1,3] x) => (float[1,3] y) <float[3] s = {1,1,1}, float[3] b = {0,0,0}, float[3] m = {0,0,0}, float[3] v = {1,1,1}> {\n y = BatchNormalization (x, s, b, m, v)\n}\n'
DROPS = '<ir_version: 10, opset_import: ["" : 21]>\ng (float[4,3] x) => (float[4,3] y) <float r = {0.5}, bool t = {1}, float[3] s = {1,1,1}> {\n d = Dropout (x, r, t)\n y = Mul (d, s)\n}\n'
WRONG = [
    (SHARED, (), "another node has the running statistic 'm', too"),
    (COMPUTED, (), "the model computes the running statistics that it should learn"),
    (SINGLE, (), "a micro-batch has one element a channel, which has no variance"),
    (DROPS.replace(" x", " seed").replace("(x", "(seed"), (), "the model has an input 'seed', which is a name of an input of training"),
    (DROPS.replace("0.5", "1.5"), (), "ratio must be a number from 0 to 1"),
    (DROPS, ("--eval-mode", "nothing*"), "--eval-mode nothing* names no batch normalization and no dropout"),
    (SHARED, ("--eval-mode", "a["), "--eval-mode a[: "),
]


def check_errors(work):
    for i, (text, flags, wanted) in enumerate(WRONG):
        model = onnx.parser.parse_model(text)
        for k, node in enumerate(model.graph.node):
            node.name = f"/{node.op_type}_{k}"
        onnx.save(model, work / "wrong.onnx")
        before = files_in(work)
        command = [BIN / "partita-compile", work / "wrong.onnx", "--loss", "sum:y", "--optimizer", "sgd", *flags, "-o", work / "wrong.partita"]
        check_message(work, f"wrong model {i}", run(command, expect=1), wanted, before)
    said = run([BIN / "partita-compile", work / "wrong.onnx", "--eval-mode", "*", "-o", work / "wrong.partita"], expect=1)
    check_message(work, "--eval-mode without training", said, "are for training: give --train FILE or --optimizer, too", files_in(work))
    # What is wrong with statistics that two nodes share is not, where they only use them.
    onnx.save(onnx.parser.parse_model(SHARED), work / "shared.onnx")
    compile_model(work / "shared.onnx", work / "shared.partita", "--loss", "sum:y", "--optimizer", "sgd", "--eval-mode", "*")
    print(f"{len(WRONG) + 1} errors say what is wrong")


def check():
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for part in (check_statistics, check_eval_mode, check_measured, check_dropout, check_cuts, check_random, check_errors):
            if not words or part.__name__.removeprefix("check_") in words:
                part(pathlib.Path(folder))


if __name__ == "__main__":
    main(check, use_workers=True, optimize=8)
