#!/usr/bin/env python3
"""Draws texts from a trained model, a character at a time. Needs numpy, and onnxruntime for an ONNX file or the package partita for an artifact.

    sample.py MODEL.onnx VOCABULARY.json [--start TEXT] [--length 300] [--texts 1] [--temperature 0.8] [--seed 0]
    sample.py MODEL.partita VOCABULARY.json ...

The model looks at as many characters as it was made for, the last ones.
"""

import argparse
import json
import pathlib

import numpy as np


def open_model(path):
    """The shape of the model's tokens, whose first dimension may be no number, and a function from tokens to logits."""
    if path.endswith(".partita"):
        import partita

        model = partita.Model(path)
        shape = next(port for port in model.inputs if port.name == "tokens").shape
        return shape, lambda tokens: model.run(tokens=tokens)["logits"]
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.get_inputs()[0].shape, lambda tokens: session.run(["logits"], {"tokens": tokens})[0]


def draw(logits, temperature, random):
    """A token of each row of logits, more likely ones more often."""
    logits = logits / temperature
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True)).cumsum(axis=-1)
    return (weights < random.random((len(logits), 1)) * weights[:, -1:]).sum(axis=-1)


def sample(run, shape, texts, length, temperature, random):
    """`texts`, an array of tokens with a row for each, with `length` more tokens. A model that takes so many texts at once gets empty ones beside these."""
    batch, block = shape
    for _ in range(length):
        seen = texts[:, -block:]
        # What stands behind a token does not change what the model says at it.
        tokens = np.zeros((batch, block), np.int64)
        tokens[: len(seen), : seen.shape[1]] = seen
        drawn = draw(run(tokens)[: len(seen), seen.shape[1] - 1], temperature, random)
        texts = np.concatenate([texts, drawn[:, None]], axis=1)
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="an ONNX file, or an artifact of it")
    parser.add_argument("vocabulary", help="as prepare.py writes it")
    parser.add_argument("--start", default="\n", help="how the text begins")
    parser.add_argument("--length", type=int, default=300, help="characters to draw")
    parser.add_argument("--texts", type=int, default=1, help="texts to print, at most as many as the model takes at once")
    parser.add_argument("--temperature", type=float, default=0.8, help="below 1: likely characters become likelier")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    vocabulary = json.loads(pathlib.Path(arguments.vocabulary).read_text())
    unknown = sorted(set(arguments.start) - set(vocabulary))
    if unknown or not arguments.start:
        parser.error(f"--start has characters that the vocabulary does not have: {unknown}" if unknown else "--start is empty")
    (batch, block), run = open_model(arguments.model)
    batch = batch if isinstance(batch, int) else arguments.texts
    if not 1 <= arguments.texts <= batch:
        parser.error(f"--texts is {arguments.texts}, and the model takes 1 to {batch} texts at once")
    texts = np.array([[vocabulary.index(character) for character in arguments.start]] * arguments.texts)
    texts = sample(run, (batch, block), texts, arguments.length, arguments.temperature, np.random.default_rng(arguments.seed))
    print("\n----\n".join("".join(vocabulary[token] for token in text) for text in texts))


if __name__ == "__main__":
    main()
