#!/usr/bin/env python3
"""The wheel in a fresh virtual environment, on a model that is compiled for it: numbers, samples of several threads, messages, and the tools.

    package.py BUILD
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

try:
    import numpy
except ImportError:
    print("skipped: there is no NumPy (tools/setup.sh installs it)")
    sys.exit(77)

MODEL = """<ir_version: 10, opset_import: ["" : 20]>
small (float[N, 3, 8] x, float[N, 8] y) => (float[N, 3, 8] sum, float[N, 8] half) <float two = {2.0}, int64[3] shape = {0, 1, 8}>
{
  z = Reshape(y, shape)
  sum = Add(x, z)
  half = Div(y, two)
}
"""


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model, artifact = folder / "small.onnxtxt", folder / "small.partita"
        model.write_text(MODEL)
        subprocess.run([build / "bin" / "partita-compile", model, "--dim", "N=2", "--devices", "2", "--micro-batches", "3", "--quiet", "-o", artifact], check=True)
        subprocess.run([sys.executable, ROOT / "runtime" / "python" / "wheel.py", "--build", build, "--output", folder], check=True)
        try:
            venv.create(folder / "venv", with_pip=True)
        except subprocess.CalledProcessError as error:
            print(f"skipped: no virtual environment can be made ({error})")
            sys.exit(77)
        python = folder / "venv" / "bin" / "python"
        wheel = next(folder.glob("*.whl"))
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel], check=True)
        # NumPy alone comes from outside: nothing is downloaded.
        numpy_folder = pathlib.Path(numpy.__file__).resolve().parents[1]

        def run(script, *arguments):
            words = [str(word) for word in (script, *arguments)]
            code = f"import sys; sys.path.append({str(numpy_folder)!r}); sys.argv = {words!r}; exec(open({words[0]!r}).read())"
            subprocess.run([python, "-I", "-c", code], check=True)

        single, one = folder / "single.onnxtxt", folder / "single.partita"
        single.write_text('<ir_version: 10, opset_import: ["" : 20]>\nsingle (float[N, 4] x) => (float[N, 4] y) { y = Neg(x) }\n')
        subprocess.run([build / "bin" / "partita-compile", single, "--dim", "N=1", "--quiet", "-o", one], check=True)
        run(HERE / "check.py", artifact, one)
        check_tools(build, folder, run)
        check_example(build, folder, run)
        check_training(build, folder, run)


COMPILE = '''
import pathlib, sys
import partita

model, artifact = sys.argv[1:]
assert partita.compile(model, artifact, devices=2, micro_batches=5, dim={"batch": 2}) == pathlib.Path(artifact)

class InMemory:
    def SerializeToString(self):
        return pathlib.Path(model).read_bytes()

partita.compile(InMemory(), artifact + ".memory", devices=2, micro_batches=5, dim={"batch": 2})
assert pathlib.Path(artifact).stat().st_size == pathlib.Path(artifact + ".memory").stat().st_size
for wrong, options, expected in ((model, {"devices": -1}, "--devices: '-1' is no number"), ("none.onnx", {}, "cannot open 'none.onnx'")):
    try:
        partita.compile(wrong, artifact, **options)
    except partita.Error as error:
        assert expected in str(error), error
    else:
        raise SystemExit(f"compile() took {wrong} with {options}")
'''


def check_tools(build, folder, run):
    """The commands of the environment, with nothing of this process's environment; the libraries that they load; and compile()."""
    digits, images, bare = ROOT / "examples" / "digits" / "digits.onnx", ROOT / "examples" / "digits" / "digits.npy", {"PATH": "/usr/bin:/bin"}
    commands, flags = folder / "venv" / "bin", ["--dim", "batch=2", "--devices", "2", "--micro-batches", "5"]
    subprocess.run([commands / "partita-compile", digits, *flags, "--quiet", "-o", folder / "tools.partita"], check=True, env=bare)
    subprocess.run([build / "bin" / "partita-compile", digits, *flags, "--quiet", "-o", folder / "build.partita"], check=True)
    if (folder / "tools.partita").read_bytes() != (folder / "build.partita").read_bytes():
        raise SystemExit("the wheel's compiler makes another artifact than the one that was built")
    subprocess.run([commands / "partita-run", folder / "tools.partita", "--input", images, "--output", folder / "tools.npz"], check=True, env=bare, stdout=subprocess.DEVNULL)
    if not (numpy.load(folder / "tools.npz")["probabilities"].argmax(1) == numpy.arange(10)).all():
        raise SystemExit("the wheel's partita-run computes wrong numbers")
    package = next((folder / "venv").glob("lib/python3*/site-packages/partita"))
    places = ":".join(str(package / place) for place in ("lib", "lib/tools", "lib/mpi"))
    for binary in (*(package / "bin").iterdir(), package / "libpartita.so.1"):
        text = subprocess.run(["ldd", binary], check=True, stdout=subprocess.PIPE, text=True, env={**bare, "LD_LIBRARY_PATH": places}).stdout
        outside = {line.split()[0] for line in text.splitlines() if str(package) not in line}
        print(f"{binary.name}: of the machine it loads {', '.join(sorted(name.rpartition('/')[2] for name in outside))}")
        header = subprocess.run(["readelf", "-d", binary], check=True, stdout=subprocess.PIPE, text=True).stdout
        for path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", header):
            if not all(place.startswith(("/", "$ORIGIN")) for place in path.split(":")):
                raise SystemExit(f"{binary.name} looks for libraries in the current folder: {path}")
        if more := {name for name in outside if not re.match(r"(linux-vdso|.*ld-linux[\w-]*|libc|libm|libgcc_s|libstdc\+\+)\.so", name)}:
            raise SystemExit(f"{binary.name} needs {', '.join(sorted(more))}, which the wheel does not have")
    script = folder / "compile.py"
    script.write_text(COMPILE)
    run(script, digits, folder / "python.partita")
    if (folder / "python.partita").read_bytes() != (folder / "build.partita").read_bytes():
        raise SystemExit("compile() makes another artifact than partita-compile")


def check_example(build, folder, run):
    """The batch job of the examples computes what partita-run computes."""
    artifact, images, outputs, expected = folder / "digits.partita", ROOT / "examples" / "digits" / "digits.npy", folder / "out.npy", folder / "out.npz"
    subprocess.run([build / "bin" / "partita-compile", ROOT / "examples" / "digits" / "digits.onnx", "--dim", "batch=1", "--quiet", "-o", artifact], check=True)
    subprocess.run([build / "bin" / "partita-run", artifact, "--input", images, "--output", expected], check=True)
    run(ROOT / "examples" / "embed" / "run_batch.py", artifact, images, outputs)
    if not numpy.array_equal(numpy.load(outputs), numpy.load(expected)["probabilities"]):
        raise SystemExit("run_batch.py computes other numbers than partita-run")


IDS = """<ir_version: 10, opset_import: ["" : 20]>
ids (int64[N, 2] ids) => (float[N, 2, 3] y) <float[5, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}> { y = Gather(w, ids) }
"""


def check_training(build, folder, run):
    """A loop in Python, and the command on the same samples; then the command goes on from the loop's checkpoint."""
    work = folder / "training"
    work.mkdir()
    compiler, runner = build / "bin" / "partita-compile", build / "bin" / "partita-run"
    digits, artifact = ROOT / "examples" / "digits" / "digits.onnx", work / "digits.partita"
    settings = ["--loss", "cross_entropy:probabilities:label", "--optimizer", "adamw,learning_rate=0.01", "--schedule-rate", "constant,warmup=2", "--clip-norm", "1"]
    subprocess.run([compiler, digits, "--dim", "batch=4", "--micro-batches", "2", *settings, "--quiet", "-o", artifact], check=True)
    subprocess.run([compiler, digits, "--dim", "batch=4", "--quiet", "-o", work / "plain.partita"], check=True)
    (work / "ids.onnxtxt").write_text(IDS)
    subprocess.run([compiler, work / "ids.onnxtxt", "--dim", "N=2", "--loss", "mse:y", "--optimizer", "sgd", "--quiet", "-o", work / "ids.partita"], check=True)
    images = numpy.load(ROOT / "examples" / "digits" / "digits.npy")
    noise = numpy.random.default_rng(1).random((4, *images.shape), numpy.float32)
    numpy.save(work / "image.npy", (images + noise).reshape(-1, *images.shape[1:]))
    numpy.save(work / "label.npy", numpy.tile(numpy.arange(10), 4))

    def train(place, steps, *more):
        subprocess.run([runner, artifact, "--train", "--data", f"image={work / 'image.npy'}", "--data", f"label={work / 'label.npy'}", "--order", "in-order",
                        "--seed", "5", "--steps", str(steps), "--checkpoint-every", "3", "--threads", "1", "--no-pin", "--checkpoint", work / place, *more],
                       check=True, stdout=subprocess.DEVNULL)

    train("command", 7, "--export", work / "command.onnx")
    run(HERE / "check_train.py", work)
    train("loop", 9, "--resume")
    train("whole", 9)
    for name in "model.safetensors", "optimizer.safetensors", "trainer.json":
        if (work / "loop" / "step-00000009" / name).read_bytes() != (work / "whole" / "step-00000009" / name).read_bytes():
            raise SystemExit(f"partita-run goes on from the loop's checkpoint with other bits: {name}")
    check_loop_example(runner, artifact, work, run)


def check_loop_example(runner, artifact, work, run):
    """The loop of the examples writes the model that partita-run writes after as many steps on the samples that are not held out."""
    run(ROOT / "examples" / "embed" / "train_loop.py", artifact, work / "example", work / "example.onnx", *(f"{name}={work / name}.npy" for name in ("image", "label")))
    steps = [int(path.name[5:]) for path in (work / "example").iterdir()]
    # The best is the last one, or two epochs of four steps before it.
    written = (work / "example.onnx").read_bytes()
    for name in "image", "label":
        numpy.save(work / f"{name}.learned.npy", numpy.load(work / f"{name}.npy")[:36])
    found = []
    for step in max(steps), max(steps) - 8:
        subprocess.run([runner, artifact, "--train", "--order", "in-order", "--steps", str(step), "--data", f"image={work / 'image.learned.npy'}",
                        "--data", f"label={work / 'label.learned.npy'}", "--export", work / "same.onnx"], check=True, stdout=subprocess.DEVNULL)
        found.append((work / "same.onnx").read_bytes() == written)
    if sum(found) != 1:
        raise SystemExit("train_loop.py writes another model than partita-run")


if __name__ == "__main__":
    main()
