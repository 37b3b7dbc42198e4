#!/usr/bin/env python3
"""Trains the models of training_cases.py by PyTorch, in f64, and writes training_reference.json: for each case the losses of all steps, the norms of
their gradients if they are clipped, and for each parameter and running statistic its sum and its norm after the last one; and how far PyTorch itself is off in f32. Run by hand: it needs torch.

    training_reference.py

The loss of a step is the mean over all samples (labels that count) of its micro-batches. Gradients are clipped once, by the norm of all together."""

import fnmatch
import json
import pathlib

import numpy as np
import torch
from torch.nn import functional as F

from training_cases import BATCH, CASES, CELLS, CHOSEN, EPSILON, HEADS, IGNORED, KEPT, STEPS, TIMES, TOKENS, WIDTH, statistics, weights

DIGITS = 13


def mlp(p, x, running):
    return F.linear(torch.tanh(F.linear(x, p["fc1.weight"], p["fc1.bias"])), p["fc2.weight"], p["fc2.bias"])


def mnist(p, x, running):
    for layer in ("conv1", "conv2"):
        x = F.relu(F.max_pool2d(F.conv2d(x, p[f"{layer}.weight"], p[f"{layer}.bias"]), 2))
    x = F.relu(F.linear(x.flatten(1), p["fc1.weight"], p["fc1.bias"]))
    return F.linear(x, p["fc2.weight"], p["fc2.bias"])


def cnn(p, x, running):
    for i, stride in ((1, 1), (2, 2)):
        x = F.conv2d(x, p[f"conv{i}.weight"], stride=stride, padding=1)
        x = F.relu(F.batch_norm(x, running[f"bn{i}.running_mean"], running[f"bn{i}.running_var"], p[f"bn{i}.weight"], p[f"bn{i}.bias"], training=True, momentum=1 - KEPT, eps=EPSILON))
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def transformer(p, x, running):
    norm = lambda x, layer: F.layer_norm(x, (WIDTH,), p[f"{layer}.weight"], p[f"{layer}.bias"], EPSILON)
    linear = lambda x, layer: x @ p[f"{layer}.weight"] + p[f"{layer}.bias"]
    x = p["wte"][x] + p["wpe"]
    q, k, v = (part.reshape(BATCH, TOKENS, HEADS, WIDTH // HEADS).transpose(1, 2) for part in (norm(x, "ln1") @ p["qkv.weight"]).split(WIDTH, 2))
    mask = torch.full((TOKENS, TOKENS), -1e9, dtype=p["wte"].dtype).triu(1)
    y = torch.softmax(q @ k.transpose(2, 3) * 0.5 + mask, -1) @ v
    x = x + linear(y.transpose(1, 2).reshape(BATCH, TOKENS, WIDTH), "proj")
    x = x + linear(F.gelu(linear(norm(x, "ln2"), "fc1")), "fc2")
    return norm(x, "ln") @ p["wte"].T


def lstm(p, x, running):
    """ONNX has the gates in the order input, output, forget, cell."""
    h = c = torch.zeros(BATCH, CELLS, dtype=x.dtype)
    bias = p["lstm.bias"][0]
    for t in range(TIMES):
        gates = x[:, t] @ p["lstm.input"][0].T + h @ p["lstm.recurrent"][0].T + bias[:4 * CELLS] + bias[4 * CELLS:]
        i, o, f, g = gates.split(CELLS, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return F.linear(h, p["fc.weight"], p["fc.bias"])


def experts(p, x, running):
    x = torch.tanh(F.linear(x, p["in.weight"], p["in.bias"]))
    scores, chosen = F.linear(x, p["router.weight"], p["router.bias"]).topk(CHOSEN)
    y = torch.einsum("bknd,bd->bkn", p["fc1.weight"][chosen], x) + p["fc1.bias"][chosen]
    y = torch.einsum("bknc,bkn->bkc", p["fc2.weight"][chosen], F.gelu(y)) + p["fc2.bias"][chosen]
    return (y * torch.softmax(scores, -1)[..., None]).sum(1)


MODELS = {"mlp": mlp, "mnist": mnist, "cnn": cnn, "transformer": transformer, "lstm": lstm, "experts": experts}
NAMES = {"learning_rate": "lr", "learning_rate_decay": "lr_decay", "initial_accumulator": "initial_accumulator_value"}
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "adagrad": torch.optim.Adagrad}


def loss_sum(case, y, target):
    if case.loss == "cross_entropy":
        return F.cross_entropy(y.reshape(-1, y.shape[-1]), target.reshape(-1), reduction="sum", ignore_index=IGNORED)
    return {"mse": F.mse_loss, "bce_logits": F.binary_cross_entropy_with_logits}[case.loss](y, target, reduction="sum")


def train(case, dtype):
    """The losses of all steps, the norms of their gradients if they are clipped, and the parameters and running statistics after the last one."""
    running = {name: torch.tensor(array, dtype=dtype) for name, array in statistics(case.model).items()}
    p = {name: torch.tensor(array, dtype=dtype).requires_grad_() for name, array in weights(case.model).items()}
    rename = lambda settings: {NAMES.get(key, key): value for key, value in settings.items()}
    groups = [{"params": [], **rename(settings)} for settings in ({}, *(settings for _, settings in case.groups))]
    trained = []
    for name, parameter in p.items():
        if case.freeze and fnmatch.fnmatchcase(name, case.freeze):
            continue
        matching = (i for i, (globs, _) in enumerate(case.groups, 1) if any(fnmatch.fnmatchcase(name, glob) for glob in globs.split("|")))
        groups[next(matching, 0)]["params"].append(parameter)
        trained.append(parameter)
    optimizer = OPTIMIZERS[case.optimizer]([group for group in groups if group["params"]], foreach=False, **rename(case.settings))
    base = case.settings["learning_rate"]
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: case.rate(base, step) / base)
    x, y = (torch.tensor(array) for array in case.files("f64" if dtype == torch.float64 else "f32").values())
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        batches = [slice(at * BATCH, (at + 1) * BATCH) for at in range(step * case.micro, (step + 1) * case.micro)]
        targets = [y[batch] for batch in batches]
        count = sum(int((target != IGNORED).sum()) if case.loss == "cross_entropy" else target.numel() for target in targets)
        total = 0.0
        for batch, target in zip(batches, targets):
            loss = loss_sum(case, MODELS[case.model](p, x[batch], running), target) / count
            loss.backward()
            total += loss.item()
        if case.clip:
            norms.append(torch.nn.utils.clip_grad_norm_(trained, case.clip, foreach=False).item())
        optimizer.step()
        schedule.step()
        losses.append(total)
    return losses, norms, {name: parameter.detach().double() for name, parameter in [*p.items(), *running.items()]}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    text = lambda number: float(f"{number:.{DIGITS}g}")
    result = {"torch": torch.__version__.partition("+")[0], "cases": {}}
    for case in CASES:
        losses, norms, parameters = train(case, torch.float64)
        short, _, others = train(case, torch.float32)
        result["cases"][case.name] = {
            "losses": [text(loss) for loss in losses],
            **({"norms": [text(norm) for norm in norms]} if norms else {}),
            "parameters": {name: [text(value.sum().item()), text(value.norm().item())] for name, value in parameters.items()},
            "f32_loss": float(f"{max(abs(a - b) / abs(a) for a, b in zip(losses, short)):.2g}"),
            "f32_parameters": float(f"{max(((others[n] - v).norm() / v.norm()).item() for n, v in parameters.items()):.2g}"),
        }
        print(f"{case.name}: {losses[0]:.6g} to {losses[-1]:.6g}; f32 differs by {result['cases'][case.name]['f32_loss']:.1e}, {result['cases'][case.name]['f32_parameters']:.1e}"
              + (f"; {sum(norm > case.clip for norm in norms)} steps are clipped" if norms else ""))
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(result, separators=(",", ":")).replace('{"losses"', '\n{"losses"') + "\n")


if __name__ == "__main__":
    main()
