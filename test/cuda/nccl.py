#!/usr/bin/env python3
"""Models on GPUs in several processes, which NCCL joins: on test/gpu-emulator with its stand-in of libnccl.so.2.

    nccl.py models    a pipelined and a tensor-parallel model, and both together, in 4 and 2 processes, with 4 seeds each
    nccl.py peers     a process that is stopped or killed is named by the others; other versions of NCCL; no NCCL

PARTITA_GPU_EMULATOR is the folder with both libraries. Skipped where it is missing, or where there is no mpirun.
"""

import argparse
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "executed"))
from harness import BIN, REPOSITORY, SKIPPED, Failure, main, mpi_environment, run
from peers import await_mapped, rank_processes

EMULATOR = pathlib.Path(os.environ.get("PARTITA_GPU_EMULATOR", REPOSITORY / "build" / "test" / "gpu-emulator" / "lib"))
MODEL, INPUT = REPOSITORY / "examples" / "digits" / "digits.onnx", REPOSITORY / "examples" / "digits" / "digits.npy"
TOLERANCE = ("--rtol", "1e-5", "--atol", "1e-6")
BITS = ("--rtol", "0", "--atol", "0")
# A model as small as this would not be cut by itself.
SHARDS = 'shard: {"conv*.weight": [tensor, null, null, null], fc1.weight: [tensor, null], fc2.weight: [null, tensor]}'
PARTITIONS = {
    "pipelined": "devices: [0, 1, 2, 3]",
    "tensor-parallel": "mesh: {tensor: 4}\n" + SHARDS,
    "both": "mesh: {stage: 2, tensor: 2}\n" + SHARDS,
}


def environment(seed=1, libraries=EMULATOR, **more):
    return {"LD_LIBRARY_PATH": str(libraries), "CUDA_EMU_DEVICES": "4", "CUDA_EMU_QUIET": "1", "CUDA_EMU_SEED": str(seed), **more}


def processes(count, artifact, *flags):
    return ["mpirun", "--oversubscribe", "-n", str(count), str(BIN / "partita-run"), str(artifact), "--timeout", "20", *flags]


def compiled(folder, name):
    artifact, split = folder / f"{name}.partita", folder / f"{name}.yaml"
    split.write_text(PARTITIONS[name])
    run([BIN / "partita-compile", MODEL, "--quiet", "-o", artifact, "--dim", "batch=1", "--target", "cuda:sm_90", "--partition", split])
    return artifact


def check_models(folder):
    reference = folder / "reference.npz"
    run([BIN / "partita-compile", MODEL, "--quiet", "-o", folder / "cpu.partita", "--dim", "batch=1"])
    run([BIN / "partita-run", folder / "cpu.partita", "--input", f"image={INPUT}", "--output", reference])
    for name in PARTITIONS:
        artifact, alone = compiled(folder, name), folder / f"{name}.npz"
        feed = ("--input", f"image={INPUT}")
        run([BIN / "partita-run", artifact, *feed, "--output", alone], env=environment())
        for count, seed in itertools.product((4, 2), range(1, 5)):
            said = run(processes(count, artifact, *feed, "--compare", reference, *TOLERANCE), env=environment(seed, CUDA_EMU_TRACE="1" if seed == 1 else "0"), timeout=300)
            if seed == 1 and "runs: calls of NCCL" not in said:
                raise Failure(f"{name} in {count} processes: nothing went through NCCL:\n{said[-2000:]}")
        # In one process and in four, the same bits: bytes are moved, and sums are added in one order.
        run(processes(4, artifact, *feed, "--compare", alone, *BITS), env=environment(2), timeout=300)
        print(f"{name}: in 4 and 2 processes with 4 seeds", flush=True)


def disturbed(artifact, what, rank):
    """Runs an endless benchmark in four processes, sends `what` to one, and returns exit status, seconds until the end, and output."""
    token = f"nccl{os.getpid()}"
    command = processes(4, artifact, "--benchmark", "--runs", "10000000")
    command[command.index("--timeout") + 1] = "4"
    settings = mpi_environment(**environment(), PARTITA_TEST_RUN=token)
    process = subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while len(rank_processes(token)) < 4:
        if time.monotonic() > deadline or process.poll() is not None:
            process.kill()
            raise Failure("the processes did not start:\n" + process.communicate()[0].decode())
        time.sleep(0.1)
    ranks = rank_processes(token)
    await_mapped(artifact, ranks, process, deadline)
    time.sleep(3)
    start = time.monotonic()
    try:
        os.kill(ranks[rank], what)
        text = process.communicate(timeout=40)[0].decode()
    except (subprocess.TimeoutExpired, KeyError):
        process.kill()
        raise Failure(f"the run did not go on, or did not end within 40 s after process {rank} got signal {what}:\n" + process.communicate()[0].decode()) from None
    finally:
        for pid in rank_processes(token).values():
            os.kill(pid, signal.SIGKILL)
    return process.returncode, time.monotonic() - start, text


def check_gpus(folder):
    """Processes that see other GPUs, and GPUs by other names."""
    reference, feed = folder / "reference.npz", ("--input", f"image={INPUT}")
    run([BIN / "partita-compile", MODEL, "--quiet", "-o", folder / "cpu.partita", "--dim", "batch=1"])
    run([BIN / "partita-run", folder / "cpu.partita", *feed, "--output", reference])
    four, two = folder / "four.partita", folder / "two.partita"
    partition = folder / "four.yaml"
    for devices, artifact in ((4, four), (2, two)):
        partition.write_text(PARTITIONS["tensor-parallel"].replace("4", str(devices)))
        run([BIN / "partita-compile", MODEL, "--quiet", "-o", artifact, "--dim", "batch=1", "--target", "cuda:sm_80", "--partition", partition])
    right = ("--compare", reference, *TOLERANCE)

    def job(artifact, *ranks, flags=()):
        """A process for each of `ranks`, its settings."""
        command = ["mpirun", "--oversubscribe"]
        for settings in ranks:
            exports = [word for name, value in settings.items() if name != "flags" for word in ("-x", f"{name}={value}")]
            command += ["-n", "1", *exports, BIN / "partita-run", artifact, "--timeout", "20", *feed, *flags, *settings.get("flags", ()), ":"]
        return run(command[:-1], env=environment(CUDA_EMU_TRACE="1"), expect=None, timeout=120)

    def expect(what, result, status, words):
        if (result[0] != 0) != status or words not in result[1]:
            raise Failure(f"{what}: status {result[0]}, '{words}' is not said:\n{result[1][-1500:]}")

    joined = "runs: calls of NCCL"
    # A batch system shows each process one GPU, which is number 0 there.
    expect("a GPU each", job(four, *({"CUDA_EMU_GPUS": k} for k in (2, 0, 3, 1)), flags=right), 0, joined)
    # The same GPUs by number and by UUID, and in another order.
    expect("other names", job(two, {"CUDA_VISIBLE_DEVICES": "0,1", "CUDA_EMU_GPUS": "0,1"}, {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b", "CUDA_EMU_GPUS": "0,1"}, flags=right), 0, joined)
    expect("another order", job(two, {"CUDA_EMU_GPUS": "0,1"}, {"CUDA_EMU_GPUS": "1,0"}, flags=right), 0, joined)
    expect("too few", job(two, {"CUDA_EMU_GPUS": "3"}, {"CUDA_EMU_GPUS": "3"}), 1, "there is no GPU 1: this machine has 1 GPU that it may use")
    expect("another model", job(two, {"CUDA_EMU_SM": 80}, {"CUDA_EMU_SM": 90}), 1, "error: process 1 has another model of GPU, Emulated H100, sm_90 (sm_90), than process 0, Emulated A100, sm_80 (sm_80)")
    expect("other --devices", job(four, {"flags": ("--devices", "cuda:0,1,2,3")}, {"flags": ("--devices", "cuda:0,1,2*2")}), 1, "error: process 1 has 2 devices on one GPU, but process 0 has a GPU for each device: say the same --devices for all processes")
    expect("another driver", job(two, {"CUDA_EMU_DRIVER": 13000}, {"CUDA_EMU_DRIVER": 13010}, flags=right), 0, "remark: process 1 has a driver of CUDA 13.1, but process 0 one of CUDA 13.0")
    print("other GPUs, names of them, drivers and --devices: said")


def check_peers(folder):
    for name, rank, what in (("pipelined", 1, signal.SIGSTOP), ("tensor-parallel", 2, signal.SIGSTOP), ("pipelined", 2, signal.SIGKILL), ("tensor-parallel", 3, signal.SIGKILL)):
        status, seconds, text = disturbed(compiled(folder, name), what, rank)
        # It may have been stopped in a step or between two.
        named = re.search(rf"error: cuda:\d: .*waiting for .*no answer from process {rank}\b|waits for process {rank} to come as far, between steps|nothing happened within .*no answer from process {rank}\b", text)
        # A launcher that ends the others may be faster than their answers.
        killed = what == signal.SIGKILL and re.search(rf"process rank {rank} with PID", text)
        if status == 0 or seconds > 20 or not (named or killed):
            raise Failure(f"{name}, process {rank}, {what.name}: status {status} after {seconds:.1f} s:\n{text[-4000:]}")
        print(f"{name}, process {rank}, {what.name}: ended after {seconds:.1f} s, {'named' if named else 'the launcher says who'}", flush=True)

    artifact = compiled(folder, "tensor-parallel")
    feed = ("--input", f"image={INPUT}")
    ours = processes(3, artifact, *feed)
    theirs = ["-n", "1", "-x", "CUDA_EMU_NCCL_VERSION=22705", *ours[ours.index("3") + 1 :]]
    status, said = run([*ours, ":", *theirs], env=environment(), expect=None, timeout=120)
    wanted = "error: process 3 has NCCL 2.27.5, but process 0 has NCCL 2.28.9: install the same NCCL for all processes"
    if status == 0 or said.count(wanted) != 1:
        raise Failure(f"other versions: status {status}:\n{said}")
    status, said = run(processes(4, artifact, *feed), env=environment(CUDA_EMU_NCCL_VERSION="21004"), expect=None, timeout=120)
    if status == 0 or "libnccl.so.2 is NCCL 2.10.4; this program needs NCCL 2.18.0 or later" not in said:
        raise Failure(f"an old version: status {status}:\n{said}")

    check_gpus(folder)

    # Without it, everything works through the host, and the run says so.
    without = folder / "libraries"
    without.mkdir()
    for library in EMULATOR.iterdir():
        if not library.name.startswith("libnccl"):
            shutil.copy(library, without)
    (without / "libnccl.so.2").touch()  # comes before one of the system
    for command in ([BIN / "partita-run", artifact, *feed], processes(4, artifact, *feed)):
        status, said = run(command, env=environment(libraries=without), expect=None, timeout=120)
        if status or len(re.findall(r"remark: there is no NCCL \(.*libnccl.so.2: .*\): GPUs exchange their bytes through the host", said)) != 1:
            raise Failure(f"no NCCL: status {status}:\n{said}")
    print("other versions, an old one, none: said")


def check():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("models", "peers"))
    options = parser.parse_args()
    if not (EMULATOR / "libnccl.so.2").exists() or not shutil.which("mpirun"):
        print(f"skipped: no emulator at {EMULATOR} (set PARTITA_GPU_EMULATOR), or no mpirun")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as work:
        (check_models if options.what == "models" else check_peers)(pathlib.Path(work))


if __name__ == "__main__":
    main(check)
