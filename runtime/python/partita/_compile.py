"""compile(): partita-compile from Python."""

from __future__ import annotations

import os
import pathlib
import subprocess
import tempfile

from . import _start
from ._library import Error


def _flags(options: dict) -> list[str]:
    """The command line of keyword arguments: micro_batches=4 is --micro-batches 4, True a flag, a list several, a dict NAME=VALUE."""
    words = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, dict):
            for key, each in value.items():
                words += [flag, f"{key}={each}"]
        elif isinstance(value, (list, tuple)):
            for each in value:
                words += [flag, str(each)]
        else:
            words += [flag, str(value)]
    return words


def compile(model, output: str | os.PathLike, **options) -> pathlib.Path:
    """Compiles an ONNX model for devices, and returns the path of the artifact. ::

        partita.compile("net.onnx", "net.partita", devices=2, micro_batches=4, dim={"batch": 2})

    `model` is a path, or an ONNX model in memory (what has SerializeToString). Options are those of partita-compile, with `_` for `-`. Raises Error with what the
    compiler says is wrong.
    """
    tool = _start.find("partita-compile")
    if tool is None:
        raise Error("there is no partita-compile: make the wheel where it is built, or put it on the PATH")
    with tempfile.TemporaryDirectory() as folder:
        if hasattr(model, "SerializeToString"):
            path = pathlib.Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            model = path
        command = [os.fspath(tool), os.fspath(model), "-o", os.fspath(output), "--quiet", *_flags(options)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              env=_start.environment(tool))
    if done.returncode:
        raise Error((done.stderr or done.stdout).strip().removeprefix("partita-compile: error: "))
    return pathlib.Path(output)
