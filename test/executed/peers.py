#!/usr/bin/env python3
"""A process of an MPI run that is stopped or killed: the others say which operation waits for whom, and end with an error, in time."""

import concurrent.futures
import itertools
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from harness import BIN, REPOSITORY, Failure, compile_model, main, mpi_environment

MODEL = REPOSITORY / "examples" / "digits" / "digits.onnx"


def rank_processes(parent):
    """Process ids of the partita-run processes below `parent`, by rank."""
    ranks = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            command = (entry / "comm").read_text().strip()
            if command == "partita-run" and f"PARTITA_TEST_RUN={parent}".encode() in environment:
                ranks[next(int(e.split(b"=")[1]) for e in environment if e.startswith(b"OMPI_COMM_WORLD_RANK="))] = int(entry.name)
        except (OSError, StopIteration):
            continue
    return ranks


def await_mapped(artifact, ranks, process, deadline):
    """Waits until the processes have the artifact in their memory: they begin their steps soon."""
    while any(str(artifact) not in pathlib.Path(f"/proc/{pid}/maps").read_text() for pid in ranks.values()):
        if time.monotonic() > deadline or process.poll() is not None:
            process.kill()
            raise Failure("the processes do not come to their steps:\n" + process.communicate()[0].decode())
        time.sleep(0.1)


TOKENS = itertools.count()


def disturbed(artifact, what, rank, arranged):
    """Runs an endless benchmark on two processes, sends `what` to one, and returns exit status, seconds until the end, and output."""
    token = f"{os.getpid()}.{next(TOKENS)}"
    environment = mpi_environment(PARTITA_TEST_RUN=token)
    # The launcher gives the others a second to say what they waited for, if nobody says more: too short on a busy machine.
    command = ["mpirun", "--oversubscribe", "--mca", "odls_base_sigkill_timeout", "4", "-n", "2", str(BIN / "partita-run"), str(artifact), "--benchmark", "--runs", "10000000", "--timeout", "3", *arranged]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while len(rank_processes(token)) < 2:
        if time.monotonic() > deadline or process.poll() is not None:
            process.kill()
            raise Failure("the two processes did not start:\n" + process.communicate()[0].decode())
        time.sleep(0.1)
    ranks = rank_processes(token)
    await_mapped(artifact, ranks, process, deadline)
    time.sleep(1.5)
    start = time.monotonic()
    os.kill(ranks[rank], what)
    try:
        text = process.communicate(timeout=30)[0].decode()
    except subprocess.TimeoutExpired:
        process.kill()
        raise Failure(f"the run did not end within 30 s after process {rank} got signal {what}") from None
    finally:
        for pid in rank_processes(token).values():
            os.kill(pid, signal.SIGKILL)
    return process.returncode, time.monotonic() - start, text


def blames(text, rank):
    """Whether the other process says what it was waiting for from the process of this rank when its time was over."""
    late = rf"nothing happened within 3 s \(no answer from process {rank}\)"
    operation = r"cpu:\d+: (receiving micro-batch|waiting for cpu:\d+ to take micro-batch|[a-z_]+ of micro-batch) .*"
    return re.search(f"error: {operation}: {late}, waiting for .*device \\d+ of process {rank}", text) or \
        re.search(f"error: process {1 - rank} waits for process {rank} to come as far, between steps: {late}", text)


# Flags of partita-compile, and of partita-run: one device a process; two, with collectives between processes; three, of which one process has two.
ARRANGEMENTS = (
    (("--devices", "2"), ()),
    (("--devices", "4", "--tensor-parallel", "2"), ("--device-map", "0,3/1,2")),
    (("--devices", "3"), ()),
)


def check_one(artifact, flags, arranged, rank, what):
    name = f"{' '.join(flags)}: process {rank} {'stopped' if what == signal.SIGSTOP else 'killed'}"
    for _ in range(1 if what == signal.SIGSTOP else 4):
        status, seconds, text = disturbed(artifact, what, rank, arranged)
        named = status == 1 and blames(text, rank) if what == signal.SIGSTOP else f"(no answer from process {rank})" in text
        if status == 0 or named:
            break
    if status == 0 or not named:
        raise Failure(f"{name}: status {status} after {seconds:.1f} s:\n{text}")
    return f"{name}: ended after {seconds:.1f} s"


def check(work):
    # They wait for most of the time.
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        cases = []
        for number, (flags, arranged) in enumerate(ARRANGEMENTS):
            artifact = work / f"digits{number}.partita"
            compile_model(MODEL, artifact, "--dim", "batch=1", *flags)
            for rank, what in itertools.product((0, 1), (signal.SIGSTOP, signal.SIGKILL)):
                # Every other one of the later arrangements: each takes seconds.
                if number == 0 or rank != (number + (what == signal.SIGKILL)) % 2:
                    cases.append(pool.submit(check_one, artifact, flags, arranged, rank, what))
        for case in cases:
            print(case.result())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(lambda: check(pathlib.Path(folder)))
