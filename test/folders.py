#!/usr/bin/env python3
"""Holds the table of folders, test/folders.md, against the sources: who includes whom, and how many files a folder has.

    folders.py            exit status 1 if a source includes what its folder may not, if a folder has no row, or if a row names what is not there
    folders.py --list     what each folder includes today, in the table's form
"""

import collections
import pathlib
import re
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
ROOTS = ("dialects", "compiler", "runtime", "tools")
MOST_FILES = 26
FOREIGN = {"MLIR": r'[<"](mlir|llvm)/', "ONNX": r'[<"]onnx/'}  # libraries that only those folders include whose row names them


def table():
    """The rows: folder: (folders it may include, libraries it may include)."""
    rows = {}
    for line in (REPOSITORY / "test" / "folders.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split(" | ")]
        if len(cells) == 3 and re.fullmatch(r"`(dialects|compiler|runtime|tools)[\w/-]*`", cells[0]):
            rows[cells[0].strip("`")] = (set(re.findall(r"`([\w/-]+)`", cells[2])), {name for name in FOREIGN if name in cells[2]})
    return rows


def sources():
    for root in ROOTS:
        for path in sorted((REPOSITORY / root).rglob("*")):
            if path.suffix in (".h", ".cpp", ".td"):
                yield path.relative_to(REPOSITORY)


def owner(path, rows):
    """The row that a file belongs to: the longest folder."""
    folder = pathlib.PurePosixPath(path).parent
    for candidate in (folder, *folder.parents):
        if str(candidate) in rows:
            return str(candidate)
    return None


def main():
    rows, wrong, used = table(), [], collections.defaultdict(set)
    files = collections.Counter()
    for path in sources():
        files[str(path.parent)] += 1
        mine = owner(path, rows)
        if mine is None:
            wrong.append(f"{path}: its folder has no row in test/folders.md")
            continue
        used[mine].add(mine)
        text = (REPOSITORY / path).read_text()
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r'#include "((?:%s)/[^"]+)"' % "|".join(ROOTS), line)
            yours = owner(found[1], rows) if found else None
            if yours:
                used[mine].add(yours)
                if yours != mine and yours not in rows[mine][0]:
                    wrong.append(f"{path}:{number}: `{mine}` may not include `{yours}`")
            for name, pattern in FOREIGN.items():
                if line.startswith("#include") and re.search(pattern, line) and name not in rows[mine][1]:
                    wrong.append(f"{path}:{number}: `{mine}` may not include {name}")
    for mine, (may, _) in rows.items():
        if mine not in used:
            wrong.append(f"test/folders.md: there is nothing in `{mine}`")
        wrong += [f"test/folders.md: `{mine}` does not include `{name}`" for name in sorted(may - used[mine])]
        wrong += cycle(mine, rows)
    wrong += [f"{folder}: {count} files; at most {MOST_FILES} make a folder one can read" for folder, count in files.items() if count > MOST_FILES]
    if "--list" in sys.argv:
        for mine in sorted(rows):
            print(f"{mine}: " + ", ".join(f"`{name}`" for name in sorted(used[mine] - {mine})))
    print("\n".join(wrong) or f"{len(rows)} folders include what they may")
    return bool(wrong)


def cycle(start, rows):
    """A way from a folder back to itself, if there is one."""
    seen, stack = set(), [(start, (start,))]
    while stack:
        here, way = stack.pop()
        for name in rows.get(here, (set(), set()))[0]:
            if name == start:
                return [f"test/folders.md: a cycle: {' -> '.join((*way, name))}"]
            if name not in seen:
                seen.add(name)
                stack.append((name, (*way, name)))
    return []


if __name__ == "__main__":
    sys.exit(main())
