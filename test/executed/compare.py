#!/usr/bin/env python3
"""Finding the first node that differs: inner tensors agree with ONNX Runtime's, fused and unfused; exposing them changes no bit of the outputs; of
wrong references the first in the model's order is named. The same of the derivatives of a loss to inner tensors, beside those of --reference."""

import pathlib
import sys
import tempfile

from harness import REPOSITORY, SKIPPED, Failure, compile_model, main, run, run_artifact, BIN

try:
    import numpy as np

    from reference import make_reference
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(SKIPPED)

MODEL = REPOSITORY / "examples" / "digits" / "digits.onnx"
CLOSE = ("--rtol", "1e-3", "--atol", "1e-4")


def check(work):
    image = np.load(REPOSITORY / "examples" / "digits" / "digits.npy")
    dim = ("--dim", f"batch={image.shape[0]}")
    inputs, reference = work / "in.npz", work / "reference.npz"
    np.savez(inputs, image=image)
    tensors = make_reference(MODEL, {"image": image})
    np.savez(reference, **tensors)

    plain, fused, unfused = work / "plain.partita", work / "fused.partita", work / "unfused.partita"
    compile_model(MODEL, plain, *dim)
    said = compile_model(MODEL, fused, *dim, "--expose")
    if "inner values are outputs" not in said:
        raise Failure(f"the compiler does not say what it exposed:\n{said}")
    compile_model(MODEL, unfused, *dim, "--expose-unfused")
    counts = []
    for artifact in (fused, unfused):
        text = run_artifact(artifact, "--input", inputs, "--compare", reference, *CLOSE)
        if "PASS" not in text:
            raise Failure(f"inner tensors differ:\n{text}")
        counts.append(int(text.split("PASS: ")[1].split()[0]))
    if not 1 < counts[0] < counts[1]:
        raise Failure(f"{counts} tensors were compared, fused and unfused")

    for artifact in (plain, fused):
        run_artifact(artifact, "--input", inputs, "--output", work / f"{artifact.stem}.npz", "--threads", "1")
    one, other = np.load(work / "plain.npz"), np.load(work / "fused.npz")
    for name in one.files:
        if one[name].tobytes() != other[name].tobytes():
            raise Failure(f"exposing inner values changes '{name}'")

    # Two are wrong; the first is found, with its place and both values.
    order = [name for name in tensors if name in other.files]
    inner = [name for name in other.files if name not in one.files]
    late, early = inner[-1], inner[len(inner) // 2]
    for name in (late, early):
        tensors[name] = tensors[name].copy()
        tensors[name].flat[5] += 3
    np.savez(reference, **tensors)
    text = run_artifact(fused, "--input", inputs, "--compare", reference, *CLOSE, expect=1)
    if f"'{early}'" not in text or "1 of " not in text or f"'{late}'" in text or not order:
        raise Failure(f"'{early}' is the first that is wrong, but:\n{text}")

    np.savez(reference, other=np.zeros(1))
    status, text = run([BIN / "partita-run", fused, "--input", inputs, "--compare", reference], expect=None)
    if status != 1 or "names none of" not in text:
        raise Failure(f"a reference of another model: {status}\n{text}")


def check_gradients(work):
    image, noise = np.load(REPOSITORY / "examples" / "digits" / "digits.npy"), np.random.default_rng(0)
    flags = ("--dim", f"batch={image.shape[0]}", "--gradients", "--loss", "mse:probabilities")
    inputs, reference = work / "in.npz", work / "reference.npz"
    np.savez(inputs, image=image, target=noise.random((image.shape[0], 10), np.float32))
    tensors = {}
    for name, more in {"plain": (), "fused": ("--expose",), "unfused": ("--expose-unfused",), "reference": ("--reference", "--expose")}.items():
        compile_model(MODEL, work / f"{name}.partita", *flags, *more)
        run_artifact(work / f"{name}.partita", "--input", inputs, "--output", work / f"{name}.npz", "--threads", "1")
        with np.load(work / f"{name}.npz") as archive:
            tensors[name] = {n: archive[n] for n in archive.files}
    inner = {name: [t for t in found if t.endswith(".grad") and t not in tensors["plain"]] for name, found in tensors.items()}
    if not 5 < len(inner["fused"]) < len(inner["unfused"]) == len(inner["reference"]) or not {"c1.grad", "logits.grad"} <= set(inner["fused"]):
        raise Failure(f"cotangents of inner tensors: {inner}")
    for name, array in tensors["plain"].items():
        if array.tobytes() != tensors["fused"][name].tobytes():
            raise Failure(f"exposing inner values changes '{name}'")
    for name in ("fused", "unfused"):
        text = run_artifact(work / f"{name}.partita", "--input", inputs, "--compare", reference, *CLOSE)
        if "PASS" not in text:
            raise Failure(f"cotangents of inner tensors differ:\n{text}")
    # A wrong derivative spoils what is computed after it: that of the later convolution's result comes before that of the first's.
    for name in ("c1.grad", "c3.grad", "conv1.weight.grad"):
        tensors["reference"][name] = tensors["reference"][name] + 3
    np.savez(reference, **tensors["reference"])
    text = run_artifact(work / "fused.partita", "--input", inputs, "--compare", reference, *CLOSE, expect=1)
    if "'c3.grad'" not in text or "'c1.grad'" in text:
        raise Failure(f"'c3.grad' is the first that is wrong, but:\n{text}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: (check(pathlib.Path(folder)), check_gradients(pathlib.Path(folder))), use_workers=True)
