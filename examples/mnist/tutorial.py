#!/usr/bin/env python3
"""Trains the network of split.yaml as a pipeline of four stages on four devices, and tests what it has learned.

    tutorial.py MNIST [options]

MNIST is the folder of the four .gz files. The script makes the network, and runs partita-compile and partita-run, which must be in PATH; it
shows each command. Python needs numpy and onnx.
"""

import argparse
import gzip
import pathlib
import subprocess
import sys

import numpy as np
import onnx

import make_model

HERE = pathlib.Path(__file__).resolve().parent
MEAN, DEVIATION = 0.1307, 0.3081  # of train.yaml


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("mnist", type=pathlib.Path, help="the folder of train-images-idx3-ubyte.gz and the other three files")
    add("--batch-size", type=int, default=40, help="images of a micro-batch; ten of them are a step")
    add("--device-iterations", type=int, default=10, help="steps from a report to the next")
    add("--test-batch-size", type=int, default=8, help="images of a micro-batch of the test")
    add("--epochs", type=int, default=3, help="times that all images are learned")
    add("--learning-rate", type=float, default=0.001, help="of AdamW")
    add("--strategy", choices=("pipelined", "sharded"), default="pipelined", help="all devices at the same time, or one after another")
    add("--offload-optimiser", action="store_true", help="keep the optimizer's state in the memory of the host")
    add("--profile", action="store_true", help="record when each device did what, for https://ui.perfetto.dev")
    add("--profile-dir", type=pathlib.Path, default=pathlib.Path("profile"), help="where to")
    add("--debug", action="store_true", help="say where each node went, and the order of a step")
    add("--seed", type=int, default=0, help="of the weights and of the order of the images")
    add("--folder", type=pathlib.Path, default=pathlib.Path("tutorial"), help="where models and checkpoints go")
    return parser.parse_args()


def run(*words):
    words = [str(word) for word in words]
    print("$", *words, flush=True)
    if subprocess.run(words).returncode:
        sys.exit(f"{words[0]} failed")


def data(flag, mnist, name):
    return [f"{flag}=image={mnist / name}-images-idx3-ubyte.gz", f"{flag}=label={mnist / name}-labels-idx1-ubyte.gz"]


def train(arguments):
    """Returns the file of the trained model."""
    folder = arguments.folder
    if (folder / "run").exists():
        sys.exit(f"tutorial.py: there is a training in {folder / 'run'}: remove it, or name another folder (--folder)")
    folder.mkdir(parents=True, exist_ok=True)
    model, artifact, trained = (folder / name for name in ("mnist.onnx", "learning.partita", "trained.onnx"))
    onnx.save(make_model.make_model(arguments.batch_size, arguments.seed), model)
    schedule = "1f1b" if arguments.strategy == "pipelined" else "sequential"
    words = ["partita-compile", model, "--train", HERE / "train.yaml", "--partition", HERE / "split.yaml", "--schedule", schedule,
             "--learning-rate", arguments.learning_rate, "-o", artifact]
    if arguments.offload_optimiser:
        words += ["--optimizer-state", "host"]
    run(*words)
    if arguments.debug:
        run(*words[:-2], "--list-nodes")
        run("partita-run", artifact, "--plan")
    words = ["partita-run", artifact, "--train", "--threads", 1, "--epochs", arguments.epochs, "--seed", arguments.seed,
             "--device-iterations", arguments.device_iterations, "--checkpoint", folder / "run", "--export", trained,
             *data("--data", arguments.mnist, "train"), *data("--eval-data", arguments.mnist, "t10k")]
    if arguments.profile:
        arguments.profile_dir.mkdir(parents=True, exist_ok=True)
        words += ["--profile", arguments.profile_dir / "trace.json"]
    run(*words)
    return trained


def test(arguments, trained):
    """The share of the test images that the trained model recognises, as the same pipeline with other micro-batches."""

    def read(kind):
        return gzip.decompress((arguments.mnist / f"t10k-{kind}-ubyte.gz").read_bytes())

    images = np.frombuffer(read("images-idx3")[16:], np.uint8).reshape(-1, 1, 28, 28)
    labels = np.frombuffer(read("labels-idx1")[8:], np.uint8)
    folder, size = arguments.folder, arguments.test_batch_size
    model, artifact, pixels, logits = (folder / name for name in ("tested.onnx", "tested.partita", "images.npy", "logits.npz"))
    resized = onnx.load(trained)
    for value in (*resized.graph.input, *resized.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = size
    onnx.save(resized, model)
    np.save(pixels, (images.astype(np.float32) / np.float32(255) - np.float32(MEAN)) / np.float32(DEVIATION))
    run("partita-compile", model, "--partition", HERE / "split.yaml", "--micro-batches", 100, "-o", artifact)
    run("partita-run", artifact, "--threads", 1, "--input", f"image={pixels}", "--output", logits)
    return float((np.load(logits)["logits"].argmax(axis=1) == labels).mean())


def main():
    arguments = read_arguments()
    accuracy = test(arguments, train(arguments))
    print(f"accuracy on the test images: {accuracy:.2%}")


if __name__ == "__main__":
    main()
