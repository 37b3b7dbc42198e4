#!/usr/bin/env python3
"""Puts the pages of the site together, and lets Sphinx make HTML of them: the README, docs/, the references that mlir-tblgen wrote, the interfaces for C
and Python, the ops of ONNX, and what the programs say of themselves.

    make.py BUILD      the site is BUILD/docs/site/index.html; exit status 77 where Sphinx is missing

Pages lie as in the repository, so that the links in them need no change.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import capi  # noqa: E402

GUIDES = {
    "Begin": ("overview", "tutorial", "glossary", "status", "performance", "performance-training", "troubleshooting"),
    "Use": ("compile", "onnx-runtime", "experts", "states", "sequences", "partition-file", "annotations", "run", "comparing", "indices", "hosts", "embed", "serving"),
    "Train": ("training", "training-file", "training-step", "training-pipelines", "training-replicas", "training-data", "checkpoints", "gradients", "gradients-replicas", "derivatives", "replicas"),
    "Inside": ("architecture", "compiler", "train-step", "sharding", "codegen", "schedules", "artifact", "runtime", "memory", "numerics", "equal-bits"),
    "GPUs": ("cuda", "cuda-executed", "cuda-device", "cuda-libraries", "cuda-several", "cuda-ops", "cudnn-attention"),
    "Contribute": ("testing", "tests", "tests-training", "fuzzing", "write-a-pass", "support-an-onnx-op", "add-a-schedule", "add-a-library-call", "add-a-device"),
}
PROJECT = ("CONTRIBUTING", "CHANGELOG")
EXAMPLES = ("mnist", "shakespeare", "cluster")
PROGRAMS = ("partita-compile", "partita-run")


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def toctree(caption, pages):
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])


def commands_page(program, tool):
    text = output(tool, "--help")
    return f"# {program}\n\nWhat `{program} --help` prints.\n\n```text\n{text}```\n"


def ops_page(tool):
    rows = [f"| {op['domain']} | {op['op']} | {versions(op['imported'])} | {versions(op['expanded'])} | {versions(op['unsupported'])} |"
            for op in json.loads(output(tool, "--list-ops", "--json"))]
    return "\n".join(["# Ops of ONNX", "",
                      "A version is the opset in which an op, or its meaning, changed. An op is imported by a function of the compiler, or expanded by the function",
                      "body in ONNX's schema. `partita-compile --list-ops` prints this table.", "",
                      "| domain | op | imported | expanded | not supported |", "| --- | --- | --- | --- | --- |", *rows, ""])


def versions(numbers):
    return ", ".join(map(str, numbers))


def python_page():
    return """# Python package

```{eval-rst}
.. automodule:: partita
   :no-members:

.. autoclass:: partita.Model
   :members:

.. autoclass:: partita.Port

.. autoclass:: partita.Profile

.. autoclass:: partita.Ticket
   :members:

.. autoclass:: partita.Trainer
   :members:

.. autoclass:: partita.State

.. autoclass:: partita.Step

.. autoclass:: partita.Evaluation
   :members:

.. autoclass:: partita.Position

.. autoexception:: partita.Error

.. autoexception:: partita.InputError
```
"""


def reference_page(path):
    """mlir-tblgen's page, with a title, and without what its own tools would fill in."""
    text = path.read_text().replace("[TOC]\n", "")
    if path.stem.startswith("passes-"):
        text = f"# Passes of compiler/{path.stem.removeprefix('passes-').replace('-', '/')}\n\n" + text
    # The C++ class after an op's name is no part of the heading that is linked to.
    return re.sub(r"(?m)^(### `[\w.]+`) \((::\w.*)\)$", r"\1\n\nC++: `\2`", text)


def write_pages(build, pages):
    shutil.rmtree(pages, ignore_errors=True)
    for folder in ("docs", "reference", "test/executed"):
        (pages / folder).mkdir(parents=True)
    for guide in sum(GUIDES.values(), ()):
        shutil.copy(ROOT / "docs" / f"{guide}.md", pages / "docs")
    for name in (*(f"{page}.md" for page in PROJECT), "LICENSE", "docs/partition.schema.json", "docs/train.schema.json", "test/executed/backend-cases.txt"):
        shutil.copy(ROOT / name, pages / name)
    for example in EXAMPLES:
        (pages / "examples" / example).mkdir(parents=True)
        folder = ROOT / "examples" / example
        for path in (folder / "README.md", *folder.glob("*.svg")):
            shutil.copy(path, pages / "examples" / example)
    generated = sorted((build / "docs" / "tablegen").glob("*.md"))
    for path in generated:
        (pages / "reference" / path.name).write_text(reference_page(path))
    (pages / "reference" / "onnx-ops.md").write_text(ops_page(build / "bin" / "partita-compile"))
    (pages / "reference" / "c.md").write_text(capi.page((ROOT / "runtime" / "capi" / "partita.h").read_text()))
    (pages / "reference" / "python.md").write_text(python_page())
    for program in PROGRAMS:
        (pages / "reference" / f"{program}.md").write_text(commands_page(program, build / "bin" / program))
    index = (ROOT / "README.md").read_text()
    for caption, guides in GUIDES.items():
        index += "\n" + toctree(caption, [f"docs/{guide}" for guide in guides])
    index += toctree("Project", PROJECT)
    index += toctree("Examples", [f"examples/{example}/README" for example in EXAMPLES])
    index += toctree("Interfaces", [*(f"reference/{program}" for program in PROGRAMS), "reference/c", "reference/python", "reference/onnx-ops"])
    index += toctree("Dialects and passes", [f"reference/{path.stem}" for path in generated])
    (pages / "index.md").write_text(index)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    try:
        import furo, myst_parser, sphinx.cmd.build  # noqa: E401, F401
    except ImportError as error:
        print(f"the site cannot be made ({error}): tools/setup.sh installs Sphinx")
        return 77
    pages, site = build / "docs" / "pages", build / "docs" / "site"
    write_pages(build, pages)
    os.environ["PARTITA_PYTHON_API"] = str(ROOT / "runtime" / "python")
    os.environ["PARTITA_LIBRARY"] = str(build / "lib" / "libpartita.so")
    shutil.rmtree(site, ignore_errors=True)
    # A warning is an error: above all a link to what is not there.
    status = sphinx.cmd.build.main(["-q", "-W", "--keep-going", "-c", str(HERE), "-d", str(build / "docs" / "doctrees"), "-E", str(pages), str(site)])
    if status == 0:
        print(f"the site: {site / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
