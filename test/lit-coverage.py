#!/usr/bin/env python3
"""Holds the lit tests to the TableGen files: a test file for every pass (`--nn-foo-bar` has foo-bar.mlir in the folder of its Passes.td), a
round-trip of every op, and for every numbered constraint of an op a test of what it refuses, marked `// op C1` or `@op_c1`. And holds the sources to them: each
attribute `nn.x`, `dist.x` or `plan.x` that they name stands in the table of its dialect. Run it from anywhere."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "test"


def missing_pass_tests():
    for table in sorted((ROOT / "compiler").rglob("Passes.td")):
        folder = TESTS / table.parent.relative_to(ROOT)
        for flag in re.findall(r'^def \w+Pass\b[^"{]*<"([\w-]+)"', table.read_text(), re.M):
            if not any((folder / f"{name}.mlir").is_file() for name in (flag, flag.removeprefix("nn-"))):
                yield f"pass --{flag} of {table.relative_to(ROOT)}: no test {folder.relative_to(ROOT)}/{flag}.mlir"


def missing_op_tests(dialect):
    folder = TESTS / "dialects" / dialect
    files = {path: path.read_text() for path in sorted(folder.glob("*.mlir"))}
    valid = "\n".join(text for path, text in files.items() if "invalid" not in path.name)
    invalid = "\n".join(text for path, text in files.items() if "invalid" in path.name)
    count = 0
    for table in sorted((ROOT / "dialects" / dialect).glob("*.td")):
        text = table.read_text()
        # A class may put a word before the names of its ops.
        prefixes = dict(re.findall(r'^class (\w+)<string name\b[^:]*:\s*\w+<"([\w.]+)" # name', text, re.M))
        # Each definition goes to the next one; an op's first string is its name.
        for body in re.split(r"^(?=def |class )", text, flags=re.M):
            op = re.match(r'def \w+Op\s*:\s*(\w+)<"([\w.]+)"', body)
            if not op:
                continue
            name, count = prefixes.get(op.group(1), "") + op.group(2), count + 1
            if not re.search(rf"\b{dialect}\.{name}\b", valid):
                yield f"{dialect}.{name}: in no round-trip test of {folder.relative_to(ROOT)}"
            for number in re.findall(r"^\s*\* \(C(\d+)\)", body, re.M):
                if not re.search(rf"(// {name} C{number}\b)|(@{name}_c{number}(?!\d))", invalid):
                    yield f"{dialect}.{name}, constraint (C{number}): no invalid test marked `// {name} C{number}` or `@{name}_c{number}`"
    if count == 0:
        yield f"no op found in dialects/{dialect}"


def missing_attributes():
    tables = "\n".join(path.read_text() for path in sorted((ROOT / "dialects").rglob("*.td")))
    listed = set(re.findall(r"`((?:nn|dist|plan)\.\w+)`", tables))
    for path in sorted(path for folder in ("compiler", "dialects") for path in (ROOT / folder).rglob("*.*") if path.suffix in (".h", ".cpp")):
        for name in sorted(set(re.findall(r'"((?:nn|dist|plan)\.[a-z_]+)"', path.read_text())) - listed):
            if not re.search(rf"\b{name}\b", tables):
                yield f"{path.relative_to(ROOT)}: attribute {name} stands in no table of a dialect's .td"


def main():
    missing = list(missing_pass_tests()) + list(missing_attributes())
    for dialect in ("nn", "dist", "plan"):
        missing += missing_op_tests(dialect)
    print("\n".join(missing) or "every pass, op and constraint has its test, every attribute its line")
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
