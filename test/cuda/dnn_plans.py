#!/usr/bin/env python3
"""NVIDIA's own cuDNN finalises a plan for each convolution and pool of the shared models, for an A100, an H100 and a B200 that are not there: models are
compiled with library calls, and test/unit/cuda/DnnPlansTest.cpp reads their artifacts. Skipped where cuDNN is not installed, or where there is a driver.
"""

import pathlib
import re
import sys
import tempfile

import execute
from harness import BIN, SKIPPED, data_folder, main, run
import models as executed

TEST = "CudnnLibrary.PlansTheCallsOfModels"


def compiled(folder, name):
    """Whether a model has been compiled into the folder."""
    case, artifact = data_folder() / "models" / name, folder / f"{name.replace('/', '-')}.partita"
    if (case / "refeval_data_set_0").is_dir():
        flags = execute.shape_flags(name)
    elif name in executed.WIDE:
        flags = [f"--shape={port}={'x'.join(map(str, shape))}" for port, shape, *_ in executed.WIDE[name][0]]
    else:
        flags = []
    return run([BIN / "partita-compile", case / "model.onnx", "--quiet", "-o", artifact, *execute.TARGET, *flags], expect=None)[0] == 0


def check():
    names = sorted(str(path.parent.relative_to(data_folder() / "models")) for path in (data_folder() / "models").glob("*/*/model.onnx"))
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        built = [name for name, good in zip(names, execute.in_threads(lambda name: compiled(folder, name), names)) if good]
        print(f"{len(built)} of {len(names)} models compile")
        if missing := {*executed.MODELS, *executed.WIDE} - {*built}:
            raise execute.Failure(f"these do not: {sorted(missing)}")
        said = run([BIN / "partita_cuda_tests", f"--gtest_filter={TEST}"], env={"PARTITA_TEST_ARTIFACTS": work}, timeout=900)
    print("\n".join(line for line in said.splitlines() if re.search(r"convolutions and|installed|driver|library|OK|SKIPPED", line)))
    if "SKIPPED" in said:
        print("skipped: cuDNN planned nothing")
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main(check, use_workers=True)
