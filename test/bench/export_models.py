#!/usr/bin/env python3
"""Writes the benchmark's models that are made rather than stored: architectures from their configurations, weights from a seed.

    export_models.py FOLDER [NAME ...]        resnet50, mobilenet_v2, bert_base, gpt2, mixtral (default: all)

Sequence lengths are those of the benchmark: BERT-base and Mixtral 128, GPT-2 124M 256. Needs torch, torchvision, transformers, onnx and onnxscript.
"""

import pathlib
import sys

import torch


def resnet50():
    import torchvision

    return torchvision.models.resnet50(weights=None), (torch.randn(1, 3, 224, 224),), ["image"]


def mobilenet_v2():
    import torchvision

    return torchvision.models.mobilenet_v2(weights=None), (torch.randn(1, 3, 224, 224),), ["image"]


class Output(torch.nn.Module):
    """A model with plain tensors in and the first tensor out."""

    def __init__(self, model, field):
        super().__init__()
        self.model, self.field = model, field

    def forward(self, input_ids):
        return getattr(self.model(input_ids=input_ids, use_cache=False) if self.field == "logits" else self.model(input_ids=input_ids), self.field)


def bert_base():
    import transformers

    model = transformers.BertModel(transformers.BertConfig(attn_implementation="eager"))
    return Output(model, "last_hidden_state"), (torch.randint(0, 30000, (1, 128)),), ["input_ids"]


def gpt2():
    import transformers

    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_implementation="eager"))
    return Output(model, "logits"), (torch.randint(0, 50000, (1, 256)),), ["input_ids"]


def mixtral():
    """84 million parameters: 4 layers of width 512, each with 8 experts, two of which compute a word."""
    import transformers

    config = transformers.MixtralConfig(vocab_size=30000, hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4,
                                        max_position_embeddings=256, num_local_experts=8, num_experts_per_tok=2, attn_implementation="eager")
    return Output(transformers.MixtralForCausalLM(config), "logits"), (torch.randint(0, 30000, (1, 128)),), ["input_ids"]


def with_experts(model, implementation):
    """A model whose experts, if it has some, are computed in one of transformers' ways: `batched_mm` can be exported, and `eager` computes in f64."""
    if hasattr(getattr(model, "model", None), "set_experts_implementation"):
        model.model.set_experts_implementation(implementation)
    return model


MODELS = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2, "bert_base": bert_base, "gpt2": gpt2, "mixtral": mixtral}


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or MODELS:
        (folder / name).mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        model, inputs, names = MODELS[name]()
        torch.onnx.export(with_experts(model.eval(), "batched_mm"), inputs, str(folder / name / "model.onnx"), input_names=names, output_names=["output"], dynamo=True, external_data=True)
        print(folder / name / "model.onnx")


if __name__ == "__main__":
    main()
