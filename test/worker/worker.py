"""A client of partita-test-worker (see Worker.cpp): command lines of partita-compile and partita-run without a process for each. Standard library
only.

    with Worker() as worker:
        done = worker.run("partita-compile", "m.onnx", "-o", worker.folder / "m.partita")
        done.status, done.output, done.errors

A worker that dies takes its command's result with it: the status is then the negative number of the signal, as that of subprocess, or the exit status,
`died` is set, and the next command gets a new process.
"""

import dataclasses
import json
import os
import pathlib
import selectors
import shutil
import signal
import subprocess
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))


@dataclasses.dataclass
class Done:
    status: int
    output: str
    errors: str
    ms: float
    died: bool = False  # the process is gone: a crash, or an exit in the midst of a command
    late: bool = False  # it was killed because it ran past the deadline

    @property
    def text(self):
        return self.output + self.errors

    def reason(self):
        """How it ended, in words."""
        if self.late:
            return f"ran past {self.ms / 1000:.0f} s"
        if self.status < 0:
            return f"died of {signal.Signals(-self.status).name}"
        return f"exit status {self.status}" + (" in the midst of a command" if self.died else "")


def scratch_root():
    """A folder in memory where there is one: nothing of it is kept."""
    shm = pathlib.Path("/dev/shm")
    return shm if shm.is_dir() and os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 1 << 30 else None


class Worker:
    def __init__(self, env=None, timeout=120):
        """`env`: variables beside those of this process. `timeout`: seconds for one command."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="partita-worker-", dir=scratch_root()))
        self.env = dict(os.environ, **(env or {}))
        self.timeout = timeout
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        self.process = subprocess.Popen(
            [BIN / "partita-test-worker", "--scratch", self.folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.env)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def run(self, *words):
        """Carries out a command line; see Done."""
        if self.process is None:
            self.start()
        begin = time.monotonic()
        request = json.dumps({"command": [str(word) for word in words]}) + "\n"
        try:
            self.process.stdin.write(request.encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            return self.bury(begin, False)
        answer = b""
        while not answer.endswith(b"\n"):
            left = self.timeout - (time.monotonic() - begin)
            if left <= 0 or not self.selector.select(left):
                self.process.kill()
                return self.bury(begin, True)
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                return self.bury(begin, False)
            answer += part
        answer = json.loads(answer)
        if "refused" in answer:
            raise ValueError(answer["refused"])
        return Done(**answer)

    def bury(self, begin, late):
        status = self.process.wait()
        self.stop()
        ms = (time.monotonic() - begin) * 1000
        read = lambda name: (self.folder / name).read_text(errors="replace") if (self.folder / name).exists() else ""
        return Done(status, read("output"), read("errors"), ms, died=True, late=late)

    def stop(self):
        if self.process is not None:
            self.selector.close()
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass  # it died before it had read a command
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
