#!/usr/bin/env python3
"""Runs every command that the README, CONTRIBUTING and docs/ show, in a folder that has the files they speak of. What takes long runs with less of it; what another test
runs is not run again. A command that is none of these is a failure, so that nobody shows what nobody has tried.

    commands.py BUILD [TEXT]     only commands that hold TEXT; exit status 77 where the package onnx is missing
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Command lines begin with the name of a program, after settings of the environment.
PROGRAM = r"(?:\w+=\S+ )*(?:partita-[a-z]+|(?:tools|test|runtime|examples|embed|build|build-\w+|\.\.)/\S+|cmake|ctest|cd|cpack|mpirun|ninja|lit|pip|python3)(?= |$)"

# A command, and the test that runs it as it must be run.
ELSEWHERE = {
    r"tools/demo\.sh": "docs-commands",  # see check_demo
    r"tools/test\.sh": "docs-commands",  # which it runs
    r"tools/build\.sh && cmake --install": "install",
    r"cmake -S examples/embed": "examples",
    r"embed/": "examples",
    r"cmake -S test/gpu-emulator": "gpu-emulator",
    r"examples/embed/(?:run_batch|train_loop)\.py": "python-package",
    r"runtime/python/wheel\.py": "python-package",
    r"cd build && cpack": "package",
    r"cd build/test/fuzz|(?:\w+=1 )?\.\./\.\./bin/partita-fuzz": "fuzz.plan",
    r"build-fuzz/bin/partita-fuzz": "fuzz.plan",
    r"test/gpu/|FOLDER/run\.sh": "gpu-run",
    r"python3 test/fuzz/make_seeds\.py": "fuzz.seeds",
}

# What takes hours, needs a build of its own, or changes the sources: its options are looked up in the script.
ONLY_READ = (
    r"test/bench/",
    r"test/random/mutants\.py",
    r"test/executed/backend\.py --update",
    r"tools/setup\.sh",
    r"(?:\w+=\S+ )*tools/build\.sh",
    r"\w+_OPTIONS=\S+ ctest",
    r"(?:ninja -C build partita-opt && .*|lit -v build/test --filter )\S*nn-drop-double-neg",
)

# Commands that are shown because they fail.
FAILS = {r"PARTITA_CRASH=": 70}

# Less of it.
SHORTER = (
    (r"^(partita-run --calibrate .*)", r"\1 --calibrate-seconds 0.5"),
    (r"^(partita-run .* --calibrate .*)", r"\1 --seconds 0.2"),
    (r"(--rate \d+)", r"\1 --seconds 1"),
    (r"--models \d+", "--models 3"),
    (r"^((?:\w+=\S+ )?test/random/run\.py(?! .*--(?:models|seed)).*)", r"\1 --models 3"),
    # What was found before, random-models computes.
    (r"^((?:\w+=\S+ )?test/random/run\.py(?! .*--seed).*)", r"\1 --no-found"),
)

SEQUENCES = """<ir_version: 10, opset_import: ["" : 21]>
g (seq(float[2]) x, optional(float[2]) mask, float[2] z) => (float[2] y) { one = Constant<value = int64 {1}>()  t = SequenceAt(x, one)  y = Add(t, z) }
"""
EXPERTS = """<ir_version: 9, opset_import: ["": 18, "com.microsoft": 1]>
moe (float[6, 16] x) => (float[6, 16] y) {
  scores = MatMul(x, router)
  y = com.microsoft.MoE<k = 2>(x, scores, fc1, , fc2)
}"""
# Sound, of which the last frame is kept.
FILTER = """<ir_version: 10, opset_import: ["" : 21]>
filter (float[1, 257, 2] x, float[1, 257, 2] last_cache) => (float[1, 257, 2] y, float[1, 257, 2] last_cache_out)
<float half = {0.5}>
{ sum = Add(x, last_cache) y = Mul(sum, half) last_cache_out = Identity(x) }
"""
# The caches of Optimum's decoders, without the decoder. Names with points, and sums, are set behind it.
GROWING = """<ir_version: 10, opset_import: ["" : 21]>
growing (float[batch_size, 2, sequence_length, 4] x, float[batch_size, 2, past_sequence_length, 4] past)
  => (float[batch_size, 2, sequence_length, 4] y, float[batch_size, 2, all, 4] present)
{ present = Concat<axis = 2>(past, x) y = Relu(x) }
"""
FIXED_INPUT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x, int64 n) => (float[2] y) { f = Cast<to = 1>(n)  y = Mul(x, f) }
"""
CLASSIFIER = """<ir_version: 10, opset_import: ["" : 21]>
g (float[2, 3] image) => (float[2, 4] logits)
<float[3, 4] weight = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[4] bias = {0, 0, 0, 0}> { xw = MatMul(image, weight)  logits = Add(xw, bias) }
"""
TRAINING = """loss: {kind: cross_entropy, output: logits, labels: label}
optimizer: {kind: adamw, learning_rate: 0.001}
"""
NET = """<ir_version: 10, opset_import: ["" : 21]>
net (float[8, 1, 16, 16] image) => (float[8, 4] logits) {
  [n0] a = Conv<pads = [1, 1, 1, 1]>(image, conv1_weight, conv1_bias)  [n1] b = Relu(a)  [n2] c = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(b)
  [n3] d = Conv<pads = [1, 1, 1, 1]>(c, conv2_weight, conv2_bias)  [n4] e = Relu(d)  [n5] f = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(e)
  [n6] g = Flatten(f)  [n7] h = Gemm<transB = 1>(g, fc1_weight, fc1_bias)  [n8] i = Relu(h)  [n9] logits = Gemm<transB = 1>(i, fc2_weight, fc2_bias)
}
"""
BERT = """<ir_version: 10, opset_import: ["" : 21]>
g (int64[batch, tokens] ids, int64[batch, tokens] attention_mask) => (float[batch, tokens, 4] y)
<float[3, 4] table = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[1] last = {2}> {
  e = Gather(table, ids)  m = Cast<to = 1>(attention_mask)  m2 = Unsqueeze(m, last)  w = Mul(e, m2)  y = Softmax(w)
}
"""


class Failure(Exception):
    pass


def commands(page):
    """The command lines of a page, with their number and what is printed below (after `$ COMMAND`)."""
    lines = page.read_text().splitlines()
    for i, line in enumerate(lines):
        found = re.match(rf"    (\$ )?({PROGRAM}.*)", line)
        if not found:
            continue
        shown = []
        for below in lines[i + 1 :] if found[1] else ():
            if not below.strip() or below.startswith("    $ "):
                break
            shown.append(below[4:])
        yield i + 1, re.split(r"\s+# ", found[2])[0].strip(), shown


class Sandbox:
    """A folder like the repository, and a model of every kind."""

    def __init__(self, folder, build):
        self.folder = folder
        for name in ("examples", "tools", "test", "runtime"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "build").symlink_to(build)
        # mpirun as root, and with more processes than cores: this is a test.
        self.environment = {**os.environ, "PATH": f"{build / 'bin'}:{os.environ['PATH']}", "PARTITA_BIN": str(build / "bin"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_orte_tmpdir_base": str(folder / "open-mpi")}
        self.make_models()
        self.make_data()

    def make_models(self):
        import onnx
        import onnx.parser

        self.digits = onnx.load(ROOT / "examples" / "digits" / "digits.onnx")
        for port in (*self.digits.graph.input, *self.digits.graph.output):
            port.type.tensor_type.shape.dim[0].dim_value = 2
        self.models = {"--length": onnx.parser.parse_model(SEQUENCES), "--constant": onnx.parser.parse_model(FIXED_INPUT),
                       "--loss": onnx.parser.parse_model(CLASSIFIER), "--train": onnx.parser.parse_model(CLASSIFIER)}
        onnx.save(onnx.parser.parse_model(BERT), self.folder / "bert.onnx")
        onnx.save(onnx.parser.parse_model(FILTER), self.folder / "filter.onnx")
        self.make_growing(onnx)
        self.make_net(onnx)
        sys.path.insert(0, str(ROOT / "test" / "executed"))
        from decoder_model import write_decoder

        write_decoder(self.folder / "decoder.onnx")
        self.make_experts(onnx)
        annotated = onnx.ModelProto()
        annotated.CopyFrom(self.digits)
        annotated.ir_version = 11
        annotated.configuration.add(name="four", num_devices=4)
        for stage, node in enumerate((annotated.graph.node[0], annotated.graph.node[-1])):
            node.device_configurations.add(configuration_id="four", pipeline_stage=stage)
        onnx.save(annotated, self.folder / "annotated.onnx")
        self.onnx = onnx
        self.choose_model("")

    def make_growing(self, onnx):
        model = onnx.parser.parse_model(GROWING)
        graph = model.graph
        graph.input[1].name = graph.node[0].input[0] = "past_key_values.0.key"
        graph.output[1].name = graph.node[0].output[0] = "present.0.key"
        graph.output[1].type.tensor_type.shape.dim[2].dim_param = "past_sequence_length + sequence_length"
        onnx.save(model, self.folder / "growing.onnx")

    def make_experts(self, onnx):
        import numpy

        model = onnx.parser.parse_model(EXPERTS)
        for name, shape in (("router", (16, 4)), ("fc1", (4, 32, 16)), ("fc2", (4, 16, 32))):
            model.graph.initializer.append(onnx.numpy_helper.from_array(numpy.ones(shape, numpy.float32), name))
        onnx.save(model, self.folder / "moe.onnx")

    def make_net(self, onnx):
        """The network of docs/tutorial.md, as PyTorch exports it: with the module that made each node."""
        import numpy

        net = onnx.parser.parse_model(NET)
        shapes = {"conv1": (16, 1, 3, 3), "conv2": (32, 16, 3, 3), "fc1": (64, 512), "fc2": (4, 64)}
        rng = numpy.random.default_rng(0)
        for module, shape in shapes.items():
            for name, values in (("weight", rng.normal(0, 0.05, shape)), ("bias", numpy.zeros(shape[0]))):
                net.graph.initializer.append(onnx.numpy_helper.from_array(values.astype(numpy.float32), f"{module}.{name}"))
        for node in net.graph.node:
            node.input[:] = [name.replace("_", ".") for name in node.input]
            module = next((name.removesuffix(".weight") for name in node.input if name.endswith(".weight")), "")
            node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=f"['', '{module}', '{node.name}']" if module else f"['', '{node.name}']")
        onnx.save(net, self.folder / "net.onnx")
        (self.folder / "corners.yaml").write_text("begin_blocks: {front: conv1, back: conv2}\nstages: [[front], [back]]\n")

    def choose_model(self, command):
        model = next((m for option, m in self.models.items() if option in command), self.digits)
        self.onnx.save(model, self.folder / "model.onnx")

    def make_data(self):
        import numpy
        from onnx import numpy_helper

        (self.folder / "train.yaml").write_text(TRAINING)
        shutil.copy(ROOT / "examples" / "digits" / "digits.npy", self.folder / "x.npy")
        images = numpy.load(self.folder / "x.npy")
        numpy.save(self.folder / "frames.npy", numpy.ones((100, 257, 2), numpy.float32))
        numpy.savez(self.folder / "in.npz", image=images)
        numpy.save(self.folder / "images.npy", numpy.ones((2, 3), numpy.float32))
        numpy.save(self.folder / "labels.npy", numpy.array([3, 0]))
        numpy.save(self.folder / "train-x.npy", numpy.ones((16, 3), numpy.float32))
        numpy.save(self.folder / "train-y.npy", numpy.array([3, 0] * 8))
        numpy.savez(self.folder / "train.npz", x=numpy.ones((16, 3), numpy.float32), y=numpy.array([3, 0] * 8))
        for name in ("train", "test"):
            numpy.save(self.folder / f"{name}-images.npy", numpy.ones((64, 1, 16, 16), numpy.float32))
            numpy.save(self.folder / f"{name}-labels.npy", numpy.array([0, 1, 2, 3] * 16))
        self.run("partita-compile model.onnx -o model.partita")
        self.run("partita-run model.partita --input x.npy --output expected.npz")
        data = self.folder / "test_data_set_0"
        data.mkdir()
        for name, array in (("input", images), ("output", numpy.load(self.folder / "expected.npz")["probabilities"])):
            (data / f"{name}_0.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())

    def run(self, command):
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300)
        if done.returncode == 77:
            return None  # it needs data that is not there, and says so
        if done.returncode != next((status for pattern, status in FAILS.items() if re.match(pattern, command)), 0):
            raise Failure(f"$ {command}\nends with status {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout


def words_of(text):
    """What is the same on every machine."""
    return re.sub(r"[\d.]+", "N", " ".join(text.split()))


def check_shown(shown, printed):
    for line in shown:
        if line.strip() != "..." and words_of(line) not in words_of(printed):
            raise Failure(f"it does not print\n{line}\nbut\n{printed}")


def check_demo(known):
    """The demo shows the commands of the README."""
    for line in re.findall(r"(?m)^show (partita-.*)$", (ROOT / "tools" / "demo.sh").read_text()):
        if line.replace('"$work/', "").replace('"', "") not in known:
            raise Failure(f"tools/demo.sh shows what the README does not: {line}")


def check_options(command):
    """Scripts exist, and know the options that are shown."""
    words = [word for word in shlex.split(command) if not re.match(r"\w+=", word)]
    script = ROOT / words[0]
    if words[0].startswith(("tools/", "test/")):
        text = script.read_text()
        for word in words[1:]:
            if word.startswith("--") and word not in text:
                raise Failure(f"{words[0]} knows no {word}")


def check(command, shown, sandbox, tests):
    for pattern, test in ELSEWHERE.items():
        if re.match(pattern, command):
            if test not in tests:
                raise Failure(f"the test {test}, which runs it, is not there")
            return
    if any(re.match(pattern, command) for pattern in ONLY_READ):
        check_options(command)
        return
    if command.startswith("mpirun"):
        if not shutil.which("mpirun"):
            return
        sandbox.choose_model(command)
        sandbox.run("partita-compile model.onnx --devices 4 -o model.partita")
    if command.startswith("partita-compile"):
        sandbox.choose_model(command)
    for pattern, replacement in SHORTER:
        command = re.sub(pattern, replacement, command)
    printed = sandbox.run(command)
    if printed is not None:
        check_shown(shown, printed)


def main():
    build, only = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else ""
    try:
        import onnx  # noqa: F401
    except ImportError:
        print("skipped: the package onnx is missing (tools/setup.sh installs it)")
        return 77
    listed = subprocess.run(["ctest", "--test-dir", build, "-N"], check=True, capture_output=True, text=True).stdout
    tests = set(re.findall(r"Test +#\d+: (\S+)", listed))
    wrong, known = [], set()
    with tempfile.TemporaryDirectory() as folder:
        sandbox = Sandbox(pathlib.Path(folder), build)
        for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))):
            # Each page begins its training anew.
            shutil.rmtree(sandbox.folder / "run", ignore_errors=True)
            for number, command, shown in commands(page):
                # A calibration takes a quarter of a minute, and gives the same file each time.
                again = command in known and "--calibrate" in command
                known.add(command)
                try:
                    if only in command and not again:
                        check(command, shown, sandbox, tests)
                except (Failure, subprocess.TimeoutExpired) as failure:
                    wrong.append(f"{page.relative_to(ROOT)}:{number}: {command}\n{failure}")
    try:
        check_demo(known)
    except Failure as failure:
        wrong.append(str(failure))
    if len(known) < 50:
        wrong.append(f"only {len(known)} commands were found")
    print("\n\n".join(wrong) or f"{len(known)} commands do what the pages say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
