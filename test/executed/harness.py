"""What the executed tests share: finding tools and data, running them, making .npy files. Standard library only."""

import array
import functools
import itertools
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "worker"))
from worker import Worker

SKIPPED = 77  # CTest's SKIP_RETURN_CODE for these tests

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))


def data_folder():
    """The folder of test data, or exit as skipped, saying so."""
    folder = pathlib.Path(os.environ.get("PARTITA_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        print(f"skipped: no test data at {folder} (set PARTITA_TEST_DATA)")
        sys.exit(SKIPPED)
    return folder


@functools.cache
def cpu_level():
    """The highest level that the compiler has code for and this processor runs."""
    flags = set(re.findall(r"\w+", pathlib.Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0]))
    return "v4" if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= flags else "v3"


class Failure(Exception):
    pass


SCHEDULES = ("fill_drain", "sequential", "looped")

BUG = 70  # exit status of a compiler that crashed


def crashed(status):
    """Whether a program ended by a signal, or by one of its own bugs."""
    return status < 0 or status == BUG or status > 128


class Workers:
    """Processes that carry out many commands (test/worker), one for each thread of this one and each environment."""

    def __init__(self):
        self.all, self.own = [], threading.local()

    def run(self, command, timeout, env):
        mine = self.own.__dict__.setdefault("workers", {})
        key = tuple(sorted((env or {}).items()))
        if key not in mine:
            mine[key] = Worker(env=env)
            self.all.append(mine[key])
        mine[key].timeout = timeout
        done = mine[key].run(command[0].name, *command[1:])
        if done.late:
            raise Failure(f"$ {' '.join(map(str, command))}\nran past {timeout} s\n{done.text[-2000:]}")
        return done.status, done.text

    def close(self):
        for worker in self.all:
            worker.close()


ALL = os.environ.get("PARTITA_TEST_ALL") == "1"


def some(items, of, first=0):
    """One in `of` of what is much alike, from number `first` on; with PARTITA_TEST_ALL=1 all."""
    items = list(items)
    return items if ALL else items[first % of :: of]


workers = None  # set by main()
optimized = 1  # likewise
ARTIFACTS = itertools.count()


MPI_FOLDERS, MPI_RUNS = tempfile.TemporaryDirectory(prefix="partita-mpi-"), itertools.count()


def mpi_environment(**more):
    """The environment of a command that may be mpirun: as root, and with a folder of its own for the files of Open MPI. Two mpirun that make the same
    folder at once fail (Open MPI 4.1, "mkdir: File exists")."""
    own = f"{MPI_FOLDERS.name}/{next(MPI_RUNS)}"
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_orte_tmpdir_base": own, **more}


def run_alone(command, timeout, env, cwd):
    full_env = mpi_environment(**(env or {}))
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, env=full_env, cwd=cwd, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as expired:
        raise Failure(f"$ {' '.join(command)}\nran past {timeout} s\n{(expired.output or b'').decode(errors='replace')[-2000:]}") from None
    return done.returncode, done.stdout.decode(errors="replace")


def run(command, expect=0, timeout=300, env=None, cwd=None, alone=False):
    """Runs a command and returns its output (both streams); raises Failure unless its exit status is `expect` (None: any but that of a crash; then
    the status is returned, too). A test that uses workers has them run Partita's programs, except for `alone`: a process of its own, as a user
    starts it."""
    in_worker = workers and not alone and cwd is None and command[0] in (BIN / "partita-compile", BIN / "partita-run")
    status, text = workers.run(command, timeout, env) if in_worker else run_alone([str(word) for word in command], timeout, env, cwd)
    if status != expect and (expect is not None or crashed(status)):
        raise Failure(f"$ {' '.join(map(str, command))}\nexit status {status}, expected {'0 or 1' if expect is None else expect}\n{text[-4000:]}")
    return text if expect is not None else (status, text)


# What the devices are, where a test does not say: a kind that partita-compile knows.
TARGET = ("--target", os.environ["PARTITA_TEST_TARGET"]) if "PARTITA_TEST_TARGET" in os.environ else ()


def compile_model(model, artifact, *flags, **options):
    """Where a test has no need of fast kernels (see main), code is for this processor alone, and that of most artifacts is as it comes. It gives the same
    results, and takes a tenth of the time to compile."""
    quick = []
    if optimized > 1 and "--cpu-level" not in flags:
        quick += ["--cpu-level", cpu_level()]
    if next(ARTIFACTS) % optimized and "--no-optimize" not in flags:
        quick += ["--no-optimize"]
    return run([BIN / "partita-compile", model, "-o", artifact, *TARGET, *flags, *quick], **options)


def run_artifact(artifact, *flags, ranks=0, program="partita-run", **options):
    """Runs an artifact in one process, or with `ranks` processes under mpirun. `program`: partita-test-run has the kind of devices remote-cpu, as
    workers have."""
    launcher = ["mpirun", "--oversubscribe", "-n", ranks] if ranks else []
    return run([*launcher, BIN / program, artifact, *flags], **options)


def input_ports(model):
    """The model's inputs as the compiler describes them, in order."""
    return json.loads(run([BIN / "partita-compile", model, "--describe", "--json"]))["inputs"]


def input_names(model):
    """Names of the model's inputs, in order."""
    return [port["name"] for port in input_ports(model)]


def write_npy(path, shape, kind="f4", seed=0, high=None, low=None):
    """A seeded .npy file: floats in [low, high), [-1, 1) by default, or integers in [low, high), [0, 2) by default."""
    count = 1
    for size in shape:
        count *= size
    noise = random.Random(seed).randbytes(count)
    if kind == "f4":
        low, high = -1.0 if low is None else low, 1.0 if high is None else high
        values = array.array("f", [low + b / 256 * (high - low) for b in noise])
    else:
        low, high = low or 0, 2 if high is None else high
        values = array.array({"i8": "q", "i4": "i", "u1": "B"}[kind], [low + b % max(high - low, 1) for b in noise])
    order = "|" if kind == "u1" else "<"
    header = f"{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': ({''.join(f'{s}, ' for s in shape)}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values.tobytes())


def main(function, use_workers=False, optimize=1):
    """Runs a test's function; a Failure is printed and becomes exit status 1. `use_workers`: see run(). `optimize`: of so many artifacts that
    compile_model makes, one has optimized code."""
    global workers, optimized
    optimized = optimize
    workers = Workers() if use_workers else None
    try:
        function()
    except Failure as failure:
        print(failure)
        sys.exit(1)
    finally:
        if workers:
            workers.close()
