#!/usr/bin/env python3
"""Examples that train: the commands of their READMEs, from nothing, with fewer steps. The loss must fall, and ONNX Runtime must find in the trained model
what Partita found.

    training.py mnist|shakespeare BIN      exit status 77 where the data, onnx or onnxruntime are missing
"""

import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("PARTITA_TEST_DATA", ROOT.parent / "shared" / "data")) / "datasets"


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


def commands(page):
    """The commands that a README shows, each on one line."""
    text = page.read_text().replace("\\\n", " ")
    return [re.sub(" +", " ", line) for line in re.findall(r"(?m)^    ((?:examples/|partita-)\S+ .*)$", text)]


class Sandbox:
    """A folder with the examples and their data, in which commands are run."""

    def __init__(self, folder, binaries, data):
        self.folder = folder
        (folder / "examples").symlink_to(ROOT / "examples")
        for name, path in data.items():
            (folder / name).symlink_to(path)
        path = f"{binaries}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path}

    def run(self, command):
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300)
        expect(done.returncode == 0, f"$ {command}\nends with status {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def run_page(self, example, shorter, leave_out=()):
        """All commands of an example's README. What stands in `shorter` replaces what takes long; what begins as `leave_out` says is not run."""
        found = commands(ROOT / "examples" / example / "README.md")
        expect(len(found) >= 5, f"{example}/README.md shows only {found}")
        printed = {}
        for command in found:
            if command.startswith(leave_out):
                continue
            for pattern, replacement in shorter:
                command = re.sub(pattern, replacement, command)
            printed[command.split()[0]] = self.run(command)
        return printed

    def log(self):
        return [json.loads(line) for line in (self.folder / "run" / "log.jsonl").read_text().splitlines()]

    def session(self):
        import onnxruntime

        return onnxruntime.InferenceSession(str(self.folder / "trained.onnx"), providers=["CPUExecutionProvider"])


def check_falls(log, first, last):
    expect(log[0]["loss"] > first and log[-1]["loss"] < last, f"the loss goes from {log[0]['loss']} to {log[-1]['loss']}")


def write_few_images(folder):
    """The first images of MNIST, as files of their own."""
    folder.mkdir()
    for path in sorted((DATA / "mnist").glob("*.gz")):
        count, (head, size) = 800, (16, 784) if "images" in path.name else (8, 1)
        content = gzip.decompress(path.read_bytes())
        (folder / path.name).write_bytes(gzip.compress(content[:4] + count.to_bytes(4, "big") + content[8 : head + count * size]))


def check_mnist(sandbox):
    import numpy as np

    write_few_images(sandbox.folder / "few")
    printed = sandbox.run_page("mnist", ((r"--epochs 3 --eval-every 50", "--steps 60 --eval-every 60"), (r"tutorial\.py mnist", "tutorial.py few --epochs 1")))
    tutorial = printed["examples/mnist/tutorial.py"]
    expect(re.search(r"accuracy on the test images: \d+\.\d\d%", tutorial) and tutorial.count("$ partita-compile") == 2, f"the tutorial says {tutorial}")
    picture = (sandbox.folder / "step.svg").read_text()
    expect(all(f"<title>{unit} #9" in picture for unit in ("F0", "B0", "F1", "B1", "F2", "B2", "F3", "U3")), "draw_trace.py draws no step of four stages")
    log = sandbox.log()
    check_falls(log, 1.5, 0.6)
    accuracy = log[-1]["eval"]["accuracy"]
    expect(log[-1]["step"] == 60 and accuracy > 0.8, f"accuracy {accuracy} after step {log[-1]['step']}")
    expect("<svg" in (sandbox.folder / "curve.svg").read_text(), "plot.py draws no picture")

    def read(name, head):
        return np.frombuffer(gzip.decompress((DATA / "mnist" / name).read_bytes())[head:], np.uint8)

    images = read("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).astype(np.float32)
    images = (images / np.float32(255) - np.float32(0.1307)) / np.float32(0.3081)
    labels = read("t10k-labels-idx1-ubyte.gz", 8)
    session = sandbox.session()
    batches = [session.run(["logits"], {"image": images[i : i + 40]})[0] for i in range(0, len(images), 40)]
    found = (np.concatenate(batches).argmax(axis=1) == labels).mean()
    expect(abs(found - accuracy) <= 2e-4, f"ONNX Runtime finds an accuracy of {found}, and Partita {accuracy}")
    np.save(sandbox.folder / "images.npy", images[:40])
    sandbox.run("partita-run classifier.partita --input images.npy --output logits.npz")
    logits = np.load(sandbox.folder / "logits.npz")["logits"]
    expect(np.allclose(logits, batches[0], rtol=1e-3, atol=1e-4), "ONNX Runtime's logits are others")
    return f"accuracy {accuracy} after 60 steps"


def check_shakespeare(sandbox):
    import numpy as np

    # `sample.py` with an artifact needs Partita's Python package.
    sandbox.run_page("shakespeare", ((r"--steps 2000 --eval-every 250 --report-every 10", "--steps 20 --report-every 5"), (r"--length 400", "--length 5")),
                     leave_out=("examples/shakespeare/sample.py trained.partita",))
    log = sandbox.log()
    # ln 65 = 4.17: it knows nothing.
    check_falls(log, 4.0, 3.8)
    expected = log[-1]["eval"]["eval_loss"]
    expect(expected < 3.8, f"validation loss {expected}")
    tokens = np.frombuffer((sandbox.folder / "shakespeare" / "val.bin").read_bytes(), "<u2").astype(np.int64)
    session, losses = sandbox.session(), []
    for begin in range(0, (len(tokens) - 1) // 64 // 12 * 12 * 64, 12 * 64):
        windows = tokens[begin : begin + 12 * 64].reshape(12, 64)
        targets = tokens[begin + 1 : begin + 1 + 12 * 64].reshape(12, 64)
        logits = session.run(["logits"], {"tokens": windows})[0].astype(np.float64)
        chosen = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        losses.append((np.log(np.exp(logits).sum(axis=-1)) - chosen).mean())
    found = float(np.mean(losses))
    expect(abs(found - expected) <= 1e-4, f"ONNX Runtime finds a validation loss of {found}, and Partita {expected}")
    return f"validation loss {expected:.4f} after 20 steps"


CHECKS = {
    "mnist": (check_mnist, {"mnist": DATA / "mnist"}),
    "shakespeare": (check_shakespeare, {"tinyshakespeare.txt": DATA / "text" / "tinyshakespeare.txt"}),
}


def main():
    check, data = CHECKS[sys.argv[1]]
    missing = [str(path) for path in data.values() if not path.exists()]
    if missing:
        print(f"skipped: there is no {', '.join(missing)} (set PARTITA_TEST_DATA)")
        return 77
    try:
        import onnx, onnxruntime  # noqa: E401, F401
    except ImportError as error:
        print(f"skipped: {error} (tools/setup.sh installs it)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        try:
            print(check(Sandbox(pathlib.Path(folder), pathlib.Path(sys.argv[2]).resolve(), data)))
        except (Failure, subprocess.TimeoutExpired) as failure:
            print(failure)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
