"""Where the package has the command-line tools, and how they are started. Standard library only: the commands need no NumPy."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import sys

HOME = pathlib.Path(__file__).resolve().parent
LIBRARIES = HOME / "lib"  # what the tools need beside the C and C++ libraries


def find(tool: str) -> pathlib.Path | None:
    """The tool of the package, or else one on the PATH; None if there is none."""
    own = HOME / "bin" / tool
    if own.exists():
        return own
    other = shutil.which(tool)
    return pathlib.Path(other) if other else None


def environment(tool: pathlib.Path) -> dict[str, str]:
    """The environment in which a tool finds its libraries."""
    result = dict(os.environ)
    if tool.parent != HOME / "bin":
        return result
    folders = [LIBRARIES, LIBRARIES / "tools"]
    # The MPI of this machine comes first: its mpirun has started the processes.
    if tool.name == "partita-run" and not _has("libmpi.so.40"):
        folders.append(LIBRARIES / "mpi")
    result["LD_LIBRARY_PATH"] = os.pathsep.join([*map(str, folders), *filter(None, [result.get("LD_LIBRARY_PATH")])])
    return result


def _has(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def start(tool: str) -> None:
    """Becomes the tool, with the arguments of this process."""
    path = find(tool)
    if path is None:
        sys.exit(f"{tool}: error: the package has no tools: make its wheel where {tool} is built (runtime/python/wheel.py)")
    os.execve(path, [tool, *sys.argv[1:]], environment(path))
