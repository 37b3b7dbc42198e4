#!/usr/bin/env python3
"""Makes a man page of what a program says of itself with --help, so that the two never differ. Standard library only.

    man.py PROGRAM OUTPUT.1
"""

import pathlib
import re
import subprocess
import sys


def escape(line):
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line.startswith((".", "'")) else line


def main():
    program, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    text = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    version = re.search(r"\d+\.\d+\.\d+", version)[0]
    what = text.strip().splitlines()[0]
    page = [f'.TH {program.name.upper()} 1 "" "partita {version}"', ".SH NAME", f"{escape(program.name)} \\- {escape(what.rstrip('.'))}", ".SH DESCRIPTION"]
    page += [".nf"]
    for line in text.splitlines():
        # CLI11's headings stand at the margin and end with a colon.
        if re.fullmatch(r"\[?[A-Z][\w ]*\]?:", line.strip()) and not line.startswith(" "):
            page += [".fi", f".SH {escape(line.strip(' :[]').upper())}", ".nf"]
        elif len(line) > 100:
            indent = len(line) - len(line.lstrip())
            words, row = line.split(), " " * indent
            for word in words:
                if len(row) + len(word) > 100:
                    page.append(escape(row))
                    row = " " * max(indent, 34)
                row += (" " if row.strip() else "") + word
            page.append(escape(row))
        else:
            page.append(escape(line))
    output.write_text("\n".join(page + [".fi", ""]))


main()
