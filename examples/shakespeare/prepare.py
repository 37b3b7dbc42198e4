#!/usr/bin/env python3
"""Makes tokens of a text, a token a character. Needs nothing but Python.

    prepare.py TEXT FOLDER

Writes FOLDER/train.bin (the first 90 % of the text) and FOLDER/val.bin (the rest), tokens of 16 bits, little-endian; and FOLDER/vocabulary.json, the
characters in the order of their tokens: all that the text has, sorted.
"""

import array
import json
import pathlib
import sys


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    text, folder = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), pathlib.Path(sys.argv[2])
    vocabulary = sorted(set(text))
    token_of = {character: token for token, character in enumerate(vocabulary)}
    tokens = array.array("H", (token_of[character] for character in text))
    if sys.byteorder == "big":
        tokens.byteswap()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocabulary.json").write_text(json.dumps(vocabulary))
    cut = len(tokens) * 9 // 10
    for name, part in (("train", tokens[:cut]), ("val", tokens[cut:])):
        (folder / f"{name}.bin").write_bytes(part.tobytes())
        print(f"{folder / name}.bin: {len(part)} tokens")
    print(f"{len(vocabulary)} different characters")


if __name__ == "__main__":
    main()
