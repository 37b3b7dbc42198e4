#!/usr/bin/env python3
"""Training in several processes (mpirun): the bits of one process and of one device, whatever the arrangement; checkpoints that the other kind of run goes on
from; what is wrong in one process; what is asked to stop; and processes that are killed or stand still.

    training_processes.py                all
    training_processes.py bits signals   these parts
"""

import concurrent.futures
import contextlib
import dataclasses
import itertools
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import BIN, SKIPPED, Failure, compile_model, main, mpi_environment, run, run_artifact, some
from peers import rank_processes

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
    from training import case_named, train, write_data, write_model
except ImportError as error:
    print(f"skipped: no {error.name} (tools/setup.sh installs it)")
    sys.exit(SKIPPED)

STEPS = 12
MESSAGE = re.compile(r"^partita-run(?: \(process \d+\))?: error: .*$", re.MULTILINE)


def case(name, micro, **others):
    return dataclasses.replace(case_named(name), micro=micro, **others)


def model_of(work, which):
    """The model's file. The transformer has a table for its words and another for its scores."""
    path = write_model(work, which.model, "f32")
    if which.model != "transformer":
        return path
    untied = path.with_name("untied.onnx")
    model = onnx.load(path)
    table = next(tensor for tensor in model.graph.initializer if tensor.name == "wte")
    model.graph.initializer.append(numpy_helper.from_array(numpy_helper.to_array(table) * np.float32(0.5), "head"))
    for node in model.graph.node:
        if node.op_type != "Gather":
            node.input[:] = ["head" if name == "wte" else name for name in node.input]
    onnx.save(model, untied)
    return untied


def compile_case(work, which, artifact, *flags):
    compile_model(model_of(work, which), artifact, *which.flags(), *flags)
    return artifact


def outcome(work, artifact, data, name, *flags, steps=STEPS, clean=True, **options):
    """Trains and evaluates; the losses, and what is left: the trained model and the last checkpoint."""
    folder, exported = work / name, work / f"{name}.onnx"
    if clean:
        shutil.rmtree(folder, ignore_errors=True)
    held = [word.replace("--data", "--eval-data") for word in data]
    lines = train(artifact, *data, *held, "--seed", 3, "-t", 1, "--eval-every", 5, "--export", exported, *flags, folder=folder, steps=steps, order="shuffled", alone=True, **options)
    last = folder / f"step-{steps:08}"
    return [(line["step"], line["loss"], line.get("eval")) for line in lines], {"model": exported.read_bytes()} | {path.name: path.read_bytes() for path in sorted(last.iterdir())}


def compare(found, wanted, what):
    if found[0] != wanted[0]:
        raise Failure(f"{what}: other losses or evaluations: {found[0]} and {wanted[0]}")
    for name in wanted[1]:
        if found[1].get(name) != wanted[1][name]:
            raise Failure(f"{what}: {name} has other bytes")


def check_bits(work):
    """One device, threads and processes: losses, evaluations, checkpoints and the trained model are equal in every bit."""
    count = 0
    for which, plans in ((case("mnist-momentum", 8), ((4, "1f1b", (2, 4)), (4, "zb_h1", (2, 4, "0,3/1,2")), (3, "gpipe", (1, 2)))),
                         (case("transformer-nesterov", 4), ((4, "1f1b", (2, 4)), (4, "zb_h1", (3, 4)), (2, "interleaved", (2,)))),
                         (case("cnn-sgd", 2), ((2, "zb_v", (2,)),))):
        data = write_data(work, which, "f32")
        wanted = outcome(work, compile_case(work, which, work / "whole.partita"), data, "whole")
        for devices, schedule, arrangements in plans:
            artifact = compile_case(work, which, work / "piped.partita", "--devices", devices, "--schedule", schedule)
            compare(outcome(work, artifact, data, "threads"), wanted, f"{which.name} on {devices} devices by {schedule}")
            for ranks in some(arrangements, 2, count):
                flags = ("--device-map", ranks) if isinstance(ranks, str) else ()
                compare(outcome(work, artifact, data, "processes", *flags, ranks=ranks.count("/") + 1 if flags else ranks), wanted, f"{which.name} on {devices} devices by {schedule}, processes {ranks}")
                count += 1
    print(f"{count} arrangements of processes train to the bits of one device")


def check_breaks(work):
    """Processes go on from a checkpoint of threads, and threads from one of processes; parameters that are loaded, and drawn by chance."""
    which = case("mnist-momentum", 8)
    data = write_data(work, which, "f32")
    artifact = compile_case(work, which, work / "init.partita", "--devices", 4, "--init", "*=default")
    wanted = outcome(work, artifact, data, "whole")
    for orders in ((2, 0, 4), (0, 4, 0), (4, 2, 2)):
        for ranks, end in zip(orders, (4, 7, STEPS)):
            found = outcome(work, artifact, data, "parts", *(["--resume"] if end > 4 else []), steps=end, clean=end == 4, ranks=ranks)
        if found[1] != wanted[1]:
            raise Failure(f"processes {orders} one after another: other bytes than without a break in {[name for name in wanted[1] if found[1][name] != wanted[1][name]]}")
    loaded = work / "whole" / f"step-{STEPS:08}" / "model.safetensors"
    compare(outcome(work, artifact, data, "loaded", "--load", loaded, ranks=4), outcome(work, artifact, data, "loads", "--load", loaded), "--load")
    # A checkpoint that is damaged is passed over, by all processes, and renamed once.
    (work / "parts" / f"step-{STEPS:08}" / "optimizer.safetensors").write_bytes(b"damaged")
    said = run_artifact(artifact, "--train", *data, "--seed", 3, "-t", 1, "--order", "shuffled", "--steps", STEPS, "--checkpoint", work / "parts", "--resume", "--export", work / "again.onnx", ranks=2, alone=True)
    if said.count("is called 'damaged-") != 1 or (work / "again.onnx").read_bytes() != wanted[1]["model"]:
        raise Failure(f"a damaged checkpoint: other bits than without it, or said otherwise than once:\n{said}")
    print("processes and threads go on from each other's checkpoints")


def check_evaluated(work):
    """Replicas, and stages, of several processes find what those of one find, of samples with NaN too: the library's ReLU would drop it. The last samples fill no step."""
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>\ng (float[2,3,16,16] x) => (float[2,4] y) {\n a = Conv <pads = [1,1,1,1]> (x, w)\n r = Relu (a)\n p = GlobalAveragePool (r)\n f = Flatten (p)\n y = MatMul (f, u)\n}\n')
    for name, shape in (("w", (8, 3, 3, 3)), ("u", (8, 4))):
        model.graph.initializer.append(numpy_helper.from_array((0.1 * rng.standard_normal(shape)).astype(np.float32), name))
    onnx.save(model, work / "relu.onnx")
    x, labels = rng.standard_normal((22, 3, 16, 16)).astype(np.float32), rng.integers(0, 4, 22)
    poisoned = x.copy()
    poisoned[5, 1, 7, 7] = np.nan
    for name, array in (("x", x), ("poisoned", poisoned), ("labels", labels)):
        np.save(work / f"{name}.npy", array)
    for flags in (("--data-parallel", 2), ("--data-parallel", 2, "--zero", 3), ("--devices", 2)):
        artifact = work / "relu.partita"
        compile_model(work / "relu.onnx", artifact, "--loss", "cross_entropy:y:labels", "--optimizer", "adamw", "--micro-batches", 4, *flags)
        for held in ("x", "poisoned"):
            data = ["--data", f"x={work}/x.npy", "--data", f"labels={work}/labels.npy", "--eval-data", f"x={work}/{held}.npy", "--eval-data", f"labels={work}/labels.npy", "--eval-every", 1, "-t", 1]
            found = []
            for name, options in (("threads", {}), ("processes", {"ranks": 2})):
                shutil.rmtree(work / name, ignore_errors=True)
                found.append([line["eval"] for line in train(artifact, *data, folder=work / name, steps=2, alone=True, **options)])
            if found[0] != found[1] or (held == "poisoned") != (found[0][0]["eval_loss"] == "nan"):
                raise Failure(f"{' '.join(map(str, flags))}, {held}: threads evaluate as {found[0]}, and processes as {found[1]}")
    print("processes evaluate as threads do")


def launch(*commands):
    """mpirun of several commands, each with a number of processes before it: exit status and output."""
    words = []
    for count, command in commands:
        words += [*([":"] if words else []), "-n", count, *command]
    return run(["mpirun", "--oversubscribe", *words], expect=None, alone=True, timeout=60)


def check_errors(work):
    """What is wrong in one process, or in all, ends all of them, with one message and exit status 1."""
    which = case("mnist-momentum", 8)
    data = write_data(work, which, "f32")
    artifact = compile_case(work, which, work / "errors.partita", "--devices", 2)
    good = [BIN / "partita-run", artifact, "--train", *data, "--steps", 4, "-t", 1, "--timeout", 10]
    other = compile_case(work, case("mnist-momentum", 8, settings={"learning_rate": 0.5}), work / "other.partita", "--devices", 2)
    images, labels = (pathlib.Path(data[i].split("=")[1]) for i in (1, 3))
    np.save(work / "fewer.npy", np.load(images)[:-8])
    changed = np.load(images)
    changed[0] += 1
    np.save(work / "changed.npy", changed)
    wrong = np.load(labels)
    wrong[5] = 99
    np.save(work / "wrong.npy", wrong)
    at = {"data": lambda path: ["--data", f"image={path}", *data[2:]]}
    swapped = lambda path: [good[0], artifact, "--train", *at["data"](path), *good[good.index("--steps"):]]
    cases = [
        ("a missing file", [(1, good), (1, swapped(work / "missing.npy"))], "process 1: ", "missing.npy"),
        ("a missing file in all", [(2, swapped(work / "missing.npy"))], "", "missing.npy"),
        ("another seed", [(1, good), (1, [*good, "--seed", 7])], "", "process 1 has other flags of --train than process 0"),
        ("a checkpoint in one", [(1, good), (1, [*good, "--checkpoint", work / "nowhere", "--resume"])], "", "process 1 has other flags of --train than process 0"),
        ("fewer samples", [(1, good), (1, swapped(work / "fewer.npy"))], "", ""),
        ("other samples", [(1, good), (1, swapped(work / "changed.npy"))], "", "process 1 has other samples of --data than process 0"),
        ("another artifact", [(1, good), (1, [*good[:1], other, *good[2:]])], "", "process 1 has another artifact than process 0"),
        ("no checkpoint", [(2, [*good, "--checkpoint", work / "nowhere", "--resume"])], "", "there is no checkpoint"),
        ("no file to load", [(2, [*good, "--load", work / "missing.safetensors"])], "", "missing.safetensors"),
        ("an export over the model", [(2, [*good, "--export", write_model(work, "mnist", "f32")])], "", "--export: "),
        ("an unknown input", [(2, [*good, "--data", "nothing=x.npy"])], "", "there is no input 'nothing'"),
        ("too many processes", [(3, good)], "", "use mpirun -n 2 or fewer"),
        ("a map that does not fit", [(2, [*good, "--device-map", "0/1/2"])], "", "--device-map"),
        ("a label that is no class", [(2, [good[0], artifact, "--train", *data[:2], "--data", f"label={work}/wrong.npy", "--order", "in-order", *good[good.index("--steps"):]])], "", "99"),
        ("an unknown flag in one", [(1, good), (1, [*good, "--stepz", 3])], None, "--stepz"),
        ("a loss that is not finite", [(2, [good[0], compile_case(work, case("mnist-momentum", 8, settings={"learning_rate": 1e30}), work / "huge.partita", "--devices", 2), *good[2:]])], "", "not finite"),
    ]
    # The launcher sleeps for a second or two when one of its processes fails.
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        ends = pool.map(lambda case: launch(*case[1]), cases)
    for (what, _, who, text), (status, said) in zip(cases, ends):
        lines = MESSAGE.findall(said) if who is not None else [said]
        if status != 1 and who is not None or status == 0 or len(lines) != 1 or text not in lines[0] or (who and who not in lines[0]):
            raise Failure(f"{what}: exit status {status}, and the message is not one with '{text}':\n{said}")
    # A folder that cannot be written is known to process 0 alone.
    (work / "file").write_text("")
    status, said = launch((2, [*good, "--checkpoint", work / "file" / "run"]))
    if status != 1 or len(MESSAGE.findall(said)) != 1:
        raise Failure(f"a folder that cannot be made: exit status {status}\n{said}")
    print(f"{len(cases) + 1} errors end all processes with one message")


TOKENS = itertools.count()


class Training:
    """A long training of several processes, once it has a checkpoint."""

    def __init__(self, artifact, data, folder, steps, ranks, *flags):
        self.token = f"{os.getpid()}.training.{next(TOKENS)}"
        environment = mpi_environment(PARTITA_TEST_RUN=self.token)
        before = {path.name for path in folder.glob("step-*")}
        command = ["mpirun", "--oversubscribe", "-n", ranks, BIN / "partita-run", artifact, "--train", *data, "--seed", 3, "-t", 1, "--steps", steps, "--checkpoint", folder, "--checkpoint-every", 20, "--timeout", 10, *flags]
        self.process = subprocess.Popen([str(word) for word in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not {path.name for path in folder.glob("step-*")} - before:
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.process.kill()
                raise Failure("the training writes no checkpoint:\n" + self.process.communicate()[0].decode())
            time.sleep(0.02)

    def processes(self):
        return rank_processes(self.token)

    def end(self):
        """Its exit status, seconds, and output."""
        begin = time.monotonic()
        try:
            text = self.process.communicate(timeout=60)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure("the training did not end within 60 s") from None
        finally:
            for pid in self.processes().values():
                os.kill(pid, signal.SIGKILL)
        return self.process.returncode, time.monotonic() - begin, text


LONG = 2000


def long_training(work):
    """Artifact and data of a training that is interrupted, and the artifact of one device, whose steps wait for nobody: a run of processes that stood
    still comes to the same bits as its."""
    which = case("mnist-momentum", 8)
    data = write_data(work, which, "f32")
    return compile_case(work, which, work / "long.partita", "--devices", 3), data, compile_case(work, which, work / "alone.partita")


def last_step(folder):
    return max((int(path.name[5:]) for path in folder.glob("step-*")), default=0)


def check_end(work, artifact, data, alone, folder, what, ranks):
    """The run goes on from its last checkpoint, and comes to the bits of one that was not disturbed."""
    steps = last_step(folder) + 50
    flags, exported = ["--train", *data, "--seed", 3, "-t", 1, "--steps", steps, "--export"], (work / "end.onnx", work / "wanted.onnx")
    run_artifact(artifact, *flags, exported[0], "--checkpoint", folder, "--checkpoint-every", 500, *(["--resume"] if folder.is_dir() else []), ranks=ranks, alone=True)
    run_artifact(alone, *flags, exported[1], alone=True)
    if exported[0].read_bytes() != exported[1].read_bytes():
        raise Failure(f"{what}: other bits after step {steps} than without a break")


def check_signals(work):
    """Asked to stop, all processes end after the same step, with a checkpoint."""
    artifact, data, alone = long_training(work)
    signals = ("SIGTERM to process 1", 1, signal.SIGTERM), ("SIGINT to process 0", 0, signal.SIGINT), ("SIGUSR1 to mpirun", None, signal.SIGUSR1), ("SIGTERM to mpirun", None, signal.SIGTERM)
    for number, (what, target, kind) in some(enumerate(signals), 2):
        folder = work / f"signal{number}"
        training = Training(artifact, data, folder, 100 * LONG, 2)
        os.kill(training.process.pid if target is None else training.processes()[target], kind)
        status, seconds, text = training.end()
        stopped = re.search(r"stopped after step (\d+)", text)
        # What mpirun itself is told to end is ended by it, if need be within a second, and its exit status is its own.
        if what != "SIGTERM to mpirun" and (status != 0 or not stopped or not (folder / f"step-{int(stopped[1]):08}").is_dir()):
            raise Failure(f"{what}: exit status {status} after {seconds:.1f} s, without a checkpoint of the last step:\n{text}")
        check_end(work, artifact, data, alone, folder, what, 2 * (number % 2))
    print("asked to stop, all processes end with a checkpoint of the same step")


def check_lost(work):
    """A process that is killed or stands still: the others name it in time, and the run goes on from its last checkpoint."""
    artifact, data, alone = long_training(work)
    noise = random.Random(1)
    for number, (ranks, rank, kind) in some(enumerate(((2, 1, signal.SIGKILL), (3, 0, signal.SIGKILL), (2, 1, signal.SIGSTOP), (3, 2, signal.SIGSTOP), (3, 0, signal.SIGSTOP))), 2):
        what, folder = f"process {rank} of {ranks} gets {kind.name}", work / f"lost{number}"
        # The launcher gives the others a second to say what they waited for: too short for a busy machine once, not every time.
        for _ in range(4 if kind == signal.SIGKILL else 1):
            shutil.rmtree(folder, ignore_errors=True)
            training = Training(artifact, data, folder, 100 * LONG, ranks)
            time.sleep(noise.uniform(0, 0.2))
            os.kill(training.processes()[rank], kind)
            status, seconds, text = training.end()
            named = f"(no answer from process {rank})" in text
            if status == 0 or named:
                break
        if status == 0 or not named or seconds > 40:
            raise Failure(f"{what}: exit status {status} after {seconds:.1f} s:\n{text}")
        check_end(work, artifact, data, alone, folder, what, (0, 3, 2)[number % 3])
        print(f"{what}: ended after {seconds:.1f} s, and went on")


def check_killed(work):
    """Processes are killed at random, one after the other, as often as PARTITA_TEST_KILLS says; each time the run goes on, to the bits of one that was not disturbed."""
    artifact, data, alone = long_training(work)
    noise, folder, runs = random.Random(2), work / "killed", 1
    kills = int(os.environ.get("PARTITA_TEST_KILLS", 3))
    for number in range(kills):
        training = Training(artifact, data, folder, 100 * LONG, 3, *(["--resume"] if folder.is_dir() else []))
        time.sleep(noise.uniform(0, 0.3))
        if alive := training.processes():
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(noise.choice(list(alive.values())), signal.SIGKILL)
        status, seconds, text = training.end()
        if seconds > 40 or status == 0:
            raise Failure(f"kill {number}: exit status {status} after {seconds:.1f} s:\n{text}")
        if last_step(folder) > LONG:
            check_end(work, artifact, data, alone, folder, f"kill {number}", 0)
            shutil.rmtree(folder)
            runs += 1
    check_end(work, artifact, data, alone, folder, f"{kills} kills", 3)
    print(f"{kills} times a process was killed, and the run went on to the bits of one that was not disturbed ({runs} runs)")


def check_slow(work):
    """A disk that takes longer for a checkpoint than processes wait for each other."""
    if not shutil.which("cc"):
        print("skipped: no cc for a slow disk")
        return
    (work / "slow.c").write_text("#include <unistd.h>\n#include <sys/syscall.h>\nint fsync(int file) { sleep(2); return syscall(SYS_fsync, file); }\n")
    run(["cc", "-shared", "-fPIC", "-o", work / "slow.so", work / "slow.c"], alone=True)
    which = case("mnist-momentum", 8)
    artifact = compile_case(work, which, work / "slow.partita", "--devices", 2)
    flags = ["--train", *write_data(work, which, "f32"), "--steps", 2, "-t", 1, "--timeout", 1, "--checkpoint", work / "run", "--export", work / "slow.onnx"]
    begin = time.monotonic()
    run(["mpirun", "--oversubscribe", "-n", 2, "-x", f"LD_PRELOAD={work / 'slow.so'}", BIN / "partita-run", artifact, *flags], alone=True)
    if time.monotonic() - begin < 8:
        raise Failure("the disk was not slow")
    print("processes wait for a slow disk")


def check(work, words):
    parts = {part.__name__.removeprefix("check_"): part for part in (check_bits, check_breaks, check_evaluated, check_errors, check_signals, check_lost, check_killed, check_slow)}
    if unknown := set(words) - set(parts):
        raise Failure(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    for name, part in parts.items():
        if not words or name in words:
            folder = work / name
            folder.mkdir()
            part(folder)


if __name__ == "__main__":
    if not shutil.which("mpirun"):
        print("skipped: no mpirun")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder), sys.argv[1:]), optimize=8)
