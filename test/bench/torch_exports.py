#!/usr/bin/env python3
"""Trains modules that PyTorch exports, by PyTorch and by Partita, and compares losses, parameters and running statistics: functions and layers one by one, and small networks.

    torch_exports.py [--exporter dynamo] [--flags="--devices 2"] [NAME ...]

A function or layer reads x * w + b, where w and b are parameters, so what it passes back counts. --exporter script takes the older exporter, which does not say what is a parameter,
nor what is padding: there `table`, `pairs` and `bert` differ, whose parameters of one number are not trained, or whose padding is.
--flags are more ones of partita-compile. What the exporter refuses is left out, and so is what it exports otherwise: there ONNX Runtime does not compute what PyTorch does.
Exit status 1: some training differs from PyTorch's. Needs torch, torchvision, onnx, onnxscript and onnxruntime, and for networks of Hugging Face's transformers (run.sh makes such an environment).
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PARTITA_BIN", REPOSITORY / "build" / "bin"))
STEPS, MICRO_BATCHES, RATE = 2, 2, 0.05
WORDS, LENGTH = 50, 12

# name: (function, shape of x)
FUNCTIONS = {name: (getattr(F, name), (4, 5)) for name in (
    "relu", "relu6", "elu", "selu", "celu", "gelu", "silu", "mish", "hardswish", "hardsigmoid", "hardtanh", "softplus", "softsign", "logsigmoid", "tanhshrink", "hardshrink", "softshrink", "leaky_relu")}
FUNCTIONS |= {
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), (4, 5)), "glu": (F.glu, (4, 6)), "threshold": (lambda x: F.threshold(x, 0.3, -1), (4, 5)),
    "softmax": (lambda x: F.softmax(x, -1), (4, 5)), "log_softmax": (lambda x: F.log_softmax(x, 1), (3, 4, 5)), "logsumexp": (lambda x: torch.logsumexp(x, -1), (4, 5)),
    "norm": (lambda x: x.norm(dim=-1), (4, 5)), "norm_1": (lambda x: x.norm(p=1, dim=-1), (4, 5)), "norm_3": (lambda x: x.norm(p=3, dim=-1), (4, 5)), "normalize": (lambda x: F.normalize(x, dim=-1), (4, 5)),
    "std": (lambda x: x.std(-1), (4, 5)), "var": (lambda x: x.var(-1, unbiased=False), (4, 5)), "prod": (lambda x: x.prod(-1), (4, 5)), "cumsum": (lambda x: x.cumsum(-1), (4, 5)),
    "max": (lambda x: x.max(-1).values, (4, 5)), "amin": (lambda x: x.amin(-1), (4, 5)), "sort": (lambda x: x.sort(-1).values, (4, 5)), "topk": (lambda x: x.topk(3, -1).values, (4, 5)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), (4, 5)), "maximum": (lambda x: torch.maximum(x, x.flip(-1) * 0.5), (4, 5)), "fmod": (lambda x: torch.fmod(x, 0.7), (4, 5)), "remainder": (lambda x: torch.remainder(x, 0.7), (4, 5)),
    "pow": (lambda x: (x.abs() + 0.1)**1.5, (4, 5)), "exp2": (lambda x: 2.0**x, (4, 5)), "atan2": (lambda x: torch.atan2(x, x.flip(-1) + 2), (4, 5)), "erf": (torch.erf, (4, 5)), "expm1": (torch.expm1, (4, 5)),
    "log1p": (lambda x: torch.log1p(x.abs()), (4, 5)), "logaddexp": (lambda x: torch.logaddexp(x, x.flip(-1)), (4, 5)), "rsqrt": (lambda x: torch.rsqrt(x.abs() + 0.1), (4, 5)), "where": (lambda x: torch.where(x > 0, x * 2, x.exp()), (4, 5)),
    "roll": (lambda x: x.roll(2, -1), (4, 5)), "tril": (torch.tril, (3, 5, 5)), "diagonal": (lambda x: torch.diagonal(x, dim1=1, dim2=2), (3, 5, 5)), "diag_embed": (torch.diag_embed, (4, 5)), "repeat": (lambda x: x.repeat(1, 3), (4, 5)),
    "expand": (lambda x: x.unsqueeze(1).expand(-1, 3, -1) * torch.arange(3.0).view(1, 3, 1), (4, 5)), "unfold": (lambda x: x.unfold(-1, 3, 2), (4, 7)), "im2col": (lambda x: F.unfold(x, 3, padding=1, stride=2), (3, 2, 6, 6)),
    "col2im": (lambda x: F.fold(x, (6, 6), 2, stride=2), (3, 8, 9)), "pad_reflect": (lambda x: F.pad(x, (1, 2), mode="reflect"), (4, 3, 5)), "pad_circular": (lambda x: F.pad(x, (1, 2), mode="circular"), (4, 3, 5)),
    "pad_replicate": (lambda x: F.pad(x, (1, 2), mode="replicate"), (4, 3, 5)), "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (3, 8, 3, 3)), "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), (3, 2, 4, 4)),
    "index": (lambda x: x[:, [3, 0, 3]], (4, 5)), "index_add": (lambda x: torch.zeros_like(x).index_add(1, torch.tensor([0, 1, 1, 4, 0]), x), (4, 5)), "masked_fill": (lambda x: x.masked_fill(x > 0.5, -1.0), (4, 5)),
    "gather": (lambda x: x.gather(1, torch.tensor([[0, 2, 2]]).expand(x.shape[0], -1)), (4, 5)), "select_scatter": (lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, 3), (4, 5)),
    "scatter": (lambda x: (x * 2).scatter(1, torch.tensor([[0, 2, 4]]).expand(x.shape[0], -1), x[:, :3]), (4, 5)),
    **{f"scatter_{how}": (lambda x, how=how: torch.zeros_like(x).scatter_reduce(1, torch.tensor([[0, 2, 2, 1, 1]]).expand(x.shape[0], -1), x, how), (4, 5)) for how in ("sum", "amax", "amin")},
    "einsum": (lambda x: torch.einsum("bij,bkj->bik", x, x), (3, 4, 5)), "cosine_similarity": (lambda x: F.cosine_similarity(x, x.flip(-1), dim=-1), (4, 5)), "cross": (lambda x: torch.linalg.cross(x, x.roll(1, 1)), (4, 3, 3)),
    "rfft": (lambda x: torch.fft.rfft(x).abs(), (4, 8)), "stft": (lambda x: torch.view_as_real(torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True, center=False)), (4, 32)),
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2, 1), (3, 2, 7, 7)), "max_pool_ceil": (lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True), (3, 2, 7, 7)), "max_pool_dilated": (lambda x: F.max_pool2d(x, 2, 1, dilation=2), (3, 2, 7, 7)),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, 2, 1), (3, 2, 7, 7)), "avg_pool_inside": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (3, 2, 7, 7)), "adaptive_avg_pool": (lambda x: F.adaptive_avg_pool2d(x, 3), (3, 2, 7, 7)),
    "lp_pool": (lambda x: F.lp_pool2d(x, 2, 2), (3, 2, 6, 6)), "max_pool3d": (lambda x: F.max_pool3d(x, 2), (2, 2, 4, 4, 4)), "grid_sample": (lambda x: F.grid_sample(torch.arange(36.0).view(1, 1, 6, 6).expand(x.shape[0], 1, 6, 6) * 0.1, torch.tanh(x.permute(0, 2, 3, 1)), align_corners=False), (3, 2, 4, 4)),
    **{f"resize_{mode}_{align}": (lambda x, mode=mode, align=align: F.interpolate(x, size=(5, 9), mode=mode, align_corners=align), (3, 2, 4, 6)) for mode, align in (("nearest", None), ("bilinear", False), ("bilinear", True), ("bicubic", False))},
}


class Through(nn.Module):
    """A layer that is read in some other way than by one tensor."""

    def __init__(self, layer, how):
        super().__init__()
        self.layer, self.how = layer, how

    def forward(self, *x):
        return self.how(self.layer, *x)


class Table(nn.Module):
    """A lookup with a row of padding, a buffer that is no parameter, and parameters of one number."""

    def __init__(self):
        super().__init__()
        self.table, self.scale, self.shift = nn.Embedding(7, 4, padding_idx=2), nn.Parameter(torch.tensor(0.7)), nn.Parameter(torch.tensor([0.3]))
        self.register_buffer("ids", torch.tensor([1, 2, 2, 6]))
        self.register_buffer("frequencies", torch.tensor([0.5, 1.0, 2.0, 3.0]))

    def forward(self, x):
        return x.sum(-1, keepdim=True) * self.table(self.ids).mean(0) * self.frequencies * self.scale + self.shift


def attend(causal):
    return lambda: Through(nn.Linear(4, 12), lambda layer, x: F.scaled_dot_product_attention(*layer(x).chunk(3, -1), is_causal=causal))


def recur(kind, **options):
    return lambda: Through(kind(5, 6, batch_first=True, **options), lambda layer, x: layer(x)[0])


# name: (layer, shape of x)
LAYERS = {
    "conv_circular": (lambda: nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"), (3, 2, 6, 6)), "conv_same": (lambda: nn.Conv2d(2, 4, 4, padding="same"), (3, 2, 6, 6)), "conv_dilated": (lambda: nn.Conv2d(2, 4, 3, dilation=2, groups=2), (3, 2, 8, 8)),
    "conv_depthwise": (lambda: nn.Conv2d(4, 8, 3, stride=2, groups=4, padding=1), (3, 4, 7, 7)), "conv3d": (lambda: nn.Conv3d(2, 3, 3, padding=1), (2, 2, 4, 4, 4)), "conv_transpose": (lambda: nn.ConvTranspose2d(2, 4, 3, 2, 1, output_padding=1), (3, 2, 5, 5)),
    "conv_transpose_groups": (lambda: nn.ConvTranspose2d(4, 4, 3, 2, groups=2, dilation=2), (3, 4, 4, 4)), "conv_transpose1d": (lambda: nn.ConvTranspose1d(2, 4, 4, 2, 1), (3, 2, 6)),
    "bilinear": (lambda: Through(nn.Bilinear(5, 5, 3), lambda layer, x: layer(x, x.flip(-1))), (4, 5)), "layer_norm": (lambda: nn.LayerNorm([4, 5]), (3, 4, 5)), "layer_norm_plain": (lambda: nn.LayerNorm(5, elementwise_affine=False), (4, 5)),
    "group_norm": (lambda: nn.GroupNorm(2, 4), (3, 4, 5)), "instance_norm": (lambda: nn.InstanceNorm2d(2, affine=True), (3, 2, 4, 4)), "rms_norm": (lambda: nn.RMSNorm(5), (4, 5)), "local_response_norm": (lambda: nn.LocalResponseNorm(3), (3, 4, 4, 4)),
    "batch_norm": (lambda: nn.BatchNorm1d(5), (8, 5)), "batch_norm_plain": (lambda: nn.BatchNorm2d(2, affine=False), (3, 2, 4, 4)), "batch_norm_untracked": (lambda: nn.BatchNorm2d(2, track_running_stats=False), (3, 2, 4, 4)),
    "weight_norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(5, 6)), (4, 5)), "prelu": (nn.PReLU, (4, 5)), "table": (Table, (4, 5)), "attention": (attend(False), (3, 2, 6, 4)), "attention_causal": (attend(True), (3, 2, 6, 4)),
    "multihead_attention": (lambda: Through(nn.MultiheadAttention(8, 2, batch_first=True), lambda layer, x: layer(x, x, x, need_weights=False)[0]), (3, 6, 8)),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (3, 6, 8)), "encoder_norm_first": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True), (3, 6, 8)),
    "lstm": (recur(nn.LSTM), (3, 4, 5)), "lstm_no_bias": (recur(nn.LSTM, bias=False), (3, 4, 5)), "gru": (recur(nn.GRU, num_layers=2, bidirectional=True), (3, 4, 5)), "rnn": (recur(nn.RNN, nonlinearity="relu"), (3, 4, 5)),
}


class Behind(nn.Module):
    def __init__(self, inner, shape):
        super().__init__()
        self.w, self.b, self.inner = nn.Parameter(torch.randn(shape[1:]) * 0.3 + 1), nn.Parameter(torch.randn(shape[1:]) * 0.1), inner

    def forward(self, x):
        return self.inner(x * self.w + self.b)


def image(batch, size, channels=3):
    return lambda count: torch.randn(count * batch, channels, size, size)


def tokens(batch):
    return lambda count: torch.randint(0, WORDS, (count * batch, LENGTH))


class Gated(nn.Module):
    """Two of four experts for each token, all of them computed."""

    def __init__(self):
        super().__init__()
        self.table, self.gate, self.norm, self.head = nn.Embedding(WORDS, 16), nn.Linear(16, 4), nn.RMSNorm(16), nn.Linear(16, WORDS, bias=False)
        self.up, self.down = nn.Parameter(torch.randn(4, 16, 32) * 0.1), nn.Parameter(torch.randn(4, 32, 16) * 0.1)

    def forward(self, ids):
        x = self.table(ids)
        chances = torch.softmax(self.gate(x), -1)
        best, experts = torch.topk(chances, 2)
        gates = torch.zeros_like(chances).scatter(-1, experts, best / best.sum(-1, keepdim=True))
        y = torch.einsum("bleh,ehd->bled", F.gelu(torch.einsum("bld,edh->bleh", x, self.up)), self.down)
        return self.head(self.norm(x + (y * gates.unsqueeze(-1)).sum(2)))


class Pairs(nn.Module):
    """Two encoders whose pairs are told from others, with a learned temperature; the model computes the loss."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.temperature = nn.Linear(6, 8), nn.Linear(5, 8), nn.Parameter(torch.tensor(2.66))

    def forward(self, x, y):
        scores = self.temperature.exp() * F.normalize(self.a(x), dim=-1) @ F.normalize(self.b(y), dim=-1).T
        numbers = torch.arange(scores.shape[0])
        return (F.cross_entropy(scores, numbers) + F.cross_entropy(scores.T, numbers)) / 2


def transformer(name, config, **options):
    def make():
        import transformers
        settings = {"vocab_size": WORDS, "use_cache": False, **options}
        return Through(getattr(transformers, name)(getattr(transformers, config)(**settings)), lambda model, ids: model(ids).logits)
    return make


LLAMA = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
# name: (network, its inputs of some micro-batches, loss)
NETWORKS = {
    "vit": (lambda: torchvision.models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10), [image(2, 32)], "cross_entropy"),
    "swin": (lambda: torchvision.models.SwinTransformer([4, 4], 16, [2, 2], [2, 2], [4, 4], stochastic_depth_prob=0.0, num_classes=10), [image(2, 32)], "cross_entropy"),
    "convnext": (lambda: torchvision.models.ConvNeXt([torchvision.models.convnext.CNBlockConfig(16, 32, 2), torchvision.models.convnext.CNBlockConfig(32, None, 2)], num_classes=10), [image(2, 32)], "cross_entropy"),
    "squeezenet": (lambda: torchvision.models.squeezenet1_1(num_classes=10, dropout=0.0), [image(2, 64)], "cross_entropy"),
    "experts": (Gated, [tokens(2)], "cross_entropy"), "pairs": (Pairs, [lambda count: torch.randn(count * 4, 6), lambda count: torch.randn(count * 4, 5)], "output"),
    "gpt2": (transformer("GPT2LMHeadModel", "GPT2Config", n_positions=16, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0), [tokens(2)], "cross_entropy"),
    "bert": (transformer("BertForMaskedLM", "BertConfig", hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, hidden_dropout_prob=0, attention_probs_dropout_prob=0), [tokens(2)], "cross_entropy"),
    "llama": (transformer("LlamaForCausalLM", "LlamaConfig", **LLAMA), [tokens(2)], "cross_entropy"), "qwen3": (transformer("Qwen3ForCausalLM", "Qwen3Config", head_dim=8, tie_word_embeddings=True, **LLAMA), [tokens(2)], "cross_entropy"),
    "gemma3": (transformer("Gemma3ForCausalLM", "Gemma3TextConfig", head_dim=8, sliding_window=4, pad_token_id=0, **LLAMA), [tokens(2)], "cross_entropy"),
}


class LeftOut(Exception):
    pass


def make(name):
    """A module, its samples, and its loss."""
    count = STEPS * MICRO_BATCHES
    if name in NETWORKS:
        network, inputs, loss = NETWORKS[name]
        try:
            return network(), [samples(count) for samples in inputs], loss
        except ImportError as error:
            raise LeftOut(f"no {error.name}") from error
    inner, shape = (FUNCTIONS | LAYERS)[name]
    return Behind(inner() if name in LAYERS else inner, shape), [torch.randn(count * shape[0], *shape[1:])], "mse"


def export(module, inputs, path, exporter):
    """Writes the module. Exporters of a module that learns change its statistics: it gets them back, but the file of the older exporter has the new ones."""
    before = {key: value.clone() for key, value in module.state_dict().items()}
    how = {"dynamo": True, "optimize": False, "external_data": False} if exporter == "dynamo" else {"dynamo": False, "training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, tuple(inputs), path, input_names=[f"x{i}" for i in range(len(inputs))], output_names=["y"], **how)
    except Exception as error:
        raise LeftOut(f"not exported: {type(error).__name__}") from error
    module.load_state_dict(before)
    for tensor in onnx.load(path).graph.initializer:
        if tensor.name in before and not np.array_equal(onnx.numpy_helper.to_array(tensor), before[tensor.name].numpy()):
            raise LeftOut(f"{tensor.name} was exported with other values")


def check_export(module, inputs, path, wanted):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        found = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {f"x{i}": x.numpy() for i, x in enumerate(inputs)})[0]
    except Exception:
        return  # a layer in training mode
    if not any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in module.modules()) and not np.allclose(found, wanted, rtol=1e-3, atol=1e-4):
        raise LeftOut(f"ONNX Runtime differs by {abs(found - wanted).max():.2g} from PyTorch")


def learn(module, samples, targets, loss):
    """Trains by PyTorch; the losses of the steps."""
    optimizer, losses, count = torch.optim.SGD(module.parameters(), lr=RATE, momentum=0.9), [], STEPS * MICRO_BATCHES
    parts = list(zip(*(x.chunk(count) for x in (*samples, targets))))
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0
        for *inputs, target in parts[step * MICRO_BATCHES:(step + 1) * MICRO_BATCHES]:
            y = module(*inputs)
            value = y if loss == "output" else F.mse_loss(y, target) if loss == "mse" else F.cross_entropy(y.flatten(0, -2), target.flatten())
            (value / MICRO_BATCHES).backward()
            total += value.item() / MICRO_BATCHES
        optimizer.step()
        losses.append(total)
    return losses


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout, done.returncode


def compare(name, work, options):
    """What differs; nothing if all is as in PyTorch."""
    torch.manual_seed(sum(name.encode()))
    module, samples, loss = make(name)
    module.train()
    micro = [x.chunk(STEPS * MICRO_BATCHES)[0] for x in samples]
    path = work / "model.onnx"
    export(module, micro, path, options.exporter)
    before = {key: value.clone() for key, value in module.state_dict().items()}
    with torch.no_grad():
        y = module(*micro)
    module.load_state_dict(before)
    check_export(module, micro, path, y.numpy())
    count = len(samples[0])
    targets = torch.randn(count, *y.shape[1:]) if loss == "mse" else torch.randint(0, y.shape[-1], (count, *y.shape[1:-1])) if loss == "cross_entropy" else torch.zeros(count)
    data = []
    for key, array in [*((f"x{i}", x) for i, x in enumerate(samples)), *([("target", targets)] if loss != "output" else [])]:
        np.save(work / f"{key}.npy", array.numpy())
        data += ["--data", f"{key}={work}/{key}.npy"]
    said, status = run(BIN / "partita-compile", path, "--loss", f"{loss}:y", "--optimizer", f"sgd,learning_rate={RATE},momentum=0.9", "--micro-batches", MICRO_BATCHES, *options.flags.split(), "--quiet", "-o", work / "a.partita")
    if status:
        return said
    said, status = run(BIN / "partita-run", work / "a.partita", "--train", "--order", "in-order", "--steps", STEPS, "--outputs", "all", "--json", *data, "--threads", 1, "--export", work / "trained.onnx")
    if status:
        return said
    found = [json.loads(line)["loss"] for line in said.splitlines() if line.startswith("{") and "loss" in json.loads(line)]
    wanted = learn(module, samples, targets, loss)
    wrong = [] if np.allclose(found, wanted, rtol=1e-4, atol=1e-6) else [f"losses {found} instead of {wanted}"]
    trained = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(work / "trained.onnx").graph.initializer}
    for key, value in module.state_dict().items():
        if value.is_floating_point() and key in trained:  # one of two names of a shared parameter
            value, change = value.numpy(), np.linalg.norm(value.numpy() - before[key].numpy())
            apart = np.linalg.norm(trained[key] - value)
            if not apart <= 2e-3 * change + 1e-6 * np.linalg.norm(value) + 1e-7:
                wrong.append(f"{key} differs by {apart:.2g}, and was changed by {change:.2g}")
    return "; ".join(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exporter", choices=("dynamo", "script"), default="dynamo")
    parser.add_argument("--flags", default="")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    torch.set_num_threads(1)
    equal, wrong, left = 0, 0, 0
    for name in options.names or [*FUNCTIONS, *LAYERS, *NETWORKS]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = compare(name, pathlib.Path(folder), options)
            except LeftOut as why:
                left += 1
                print(f"{name}: left out: {why}")
                continue
        wrong, equal = wrong + bool(said), equal + (not said)
        if said:
            print(f"{name}: {said.strip()}", flush=True)
    print(f"{equal} trainings are PyTorch's, {wrong} are not, {left} are left out")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
