#!/usr/bin/env python3
"""docs/derivatives.md says of each op of the nn dialect whether it has a derivative, and if not, why. What it says comes from the ops' TableGen, and is held
against what the compiler does: of each example of an op (test/unit/nn/examples) a gradient is taken.

    derivatives.py LLVM_TBLGEN MLIR_INCLUDES PARTITA_OPT             exit status 1 if an op says nothing or something wrong, or if the page is another
    derivatives.py LLVM_TBLGEN MLIR_INCLUDES PARTITA_OPT --update    the same, and writes the page
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "test" / "cuda"))
from examples import examples  # noqa: E402

PAGE = ROOT / "docs" / "derivatives.md"
DIALECT = "dialects/nn/NNOps.td"
INTERFACE = "DifferentiableOpInterface"
KINDS = ("sum", "prod", "max", "min")
REFUSED = "has no derivative, and a gradient of the model needs it"
# The examples' only cast makes integers.
CAST = """func.func @main(%x: tensor<2x6xf32>) -> tensor<2x6xf64> {
  %r = nn.cast %x : tensor<2x6xf32> -> tensor<2x6xf64>
  return %r : tensor<2x6xf64>
}
"""
HEAD = """# Derivatives of ops

Of which ops of the `nn` dialect the compiler knows a derivative, and why it knows none of the others. An ONNX model is imported to these ops
(`partita-compile --emit nn` shows them), and differentiated by [--gradients](gradients.md), by [training](training.md) and by nodes `Gradient`. An op
without derivative is an error only if the loss depends on a trained parameter through it.

*In part*: not all of its forms have one. *By its parts*: it is written as other ops where it is differentiated. Ops of the `dist` dialect, which exchange
values between devices within a model, have none. `test/derivatives.py --update` writes this page from the ops' TableGen, and a test holds it against
what the compiler does.

| family | ops | derivative | |
| --- | --- | --- | --- |
"""


class Op:
    def __init__(self, record, records):
        self.name = record["opName"]
        self.family = re.match(r"NN(\w+)\.td", record["!locs"][-1])[1].lower()
        self.why, self.note = record["noDerivative"], record["derivativeNote"]
        self.differentiable = any(records[trait["def"]].get("cppInterfaceName") == INTERFACE for trait in record["traits"])
        self.found = collections.Counter()  # examples with a gradient, and without
        self.kinds = set()  # those without

    def wrong(self):
        """What is wrong with what the op says of itself, or None."""
        # Operands of the examples themselves are variables.
        if self.differentiable and not self.found and self.name != "variable":
            return "has a derivative, and no example in test/unit/nn/examples with floats shows it"
        if self.differentiable and self.why:
            return f"has a derivative ({INTERFACE}), and `noDerivative` says why it has none: remove that"
        if not self.differentiable and not self.why:
            return f"has no derivative: say in its TableGen why (`let noDerivative = ...`), or implement {INTERFACE}"
        if self.differentiable and self.found[False] and not self.kinds:
            return f"implements {INTERFACE}, and has no derivative in one of its examples"
        if self.differentiable and self.found and not self.found[True]:
            return f"implements {INTERFACE}, and has no derivative in any of its examples"
        if not self.differentiable and self.found[True] and self.found[False]:
            return "is written as other ops only in some of its examples"
        return None

    def kind(self):
        if self.differentiable:
            return "in part" if self.found[False] else "yes"
        return "by its parts" if self.found[True] else "none"

    def remark(self):
        if self.kinds:
            return "none of " + ", ".join(f"`{kind}`" for kind in KINDS if kind in self.kinds)
        return self.note or self.why


def read_ops(tblgen, includes):
    text = subprocess.run([tblgen, "-dump-json", "-I", str(ROOT), "-I", includes, str(ROOT / DIALECT)], check=True, capture_output=True, text=True).stdout
    records = json.loads(text)
    return {op.name: op for op in (Op(records[name], records) for name in records["!instanceof"]["NN_Op"])}


def with_gradient(text):
    """An example that takes the gradient of its result to its operands of floats; None if there is none to take."""
    head = re.search(r"^func\.func @main\((.*)\) -> (tensor<\S+>) \{$", text, re.M)
    arguments = re.findall(r"%(\w+): (tensor<[^>]*>)", head[1])
    is_float = lambda type: re.search(r"[x<]b?f\d+(E\w+)?>$", type)
    variables = [(name, type) for name, type in arguments if is_float(type)]
    if not variables or not is_float(head[2]):
        return None
    signature = head[0]
    for name, _ in variables:
        signature = signature.replace(f"%{name}:", f"%{name}_at:")
    made = "".join(f"\n  %{name} = nn.variable %{name}_at number {number} : {type}" for number, (name, type) in enumerate(variables))
    text = text.replace(head[0], signature + made)
    names, types = ", ".join(f"%{name}" for name, _ in variables), ", ".join(type for _, type in variables)
    return re.sub(r"^  return (%\w+) :.*$", lambda at: f"  %gradients:{len(variables)} = nn.gradient {at[1]} to {names} : {head[2]}, ({types}) -> ({types})\n{at[0]}", text, flags=re.M)


def resolves(opt, name, text):
    done = subprocess.run([opt, "--nn-resolve-gradients"], input=text, capture_output=True, text=True)
    if done.returncode == 0 or REFUSED in done.stderr:
        return done.returncode == 0
    sys.exit(f"example {name}: {done.stderr}")


def of_each_kind(text):
    """An op that combines elements, with each way to combine them: (kind, text). Others as they are, with the kind None."""
    kind = re.compile(rf"(nn\.(?:scan|reduce|window_reduce)|combine) (?:{'|'.join(KINDS)})\b")
    return [(each, kind.sub(rf"\1 {each}", text)) for each in KINDS] if kind.search(text) else [(None, text)]


def try_examples(ops, opt):
    made = [(name, op, with_gradient(text)) for _, name, op, text in [*examples(), ("pointwise", "cast_floats", "cast", CAST)]]
    tried = [(name, op, kind, text) for name, op, made_of in made if made_of for kind, text in of_each_kind(made_of)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (_, op, kind, _), has_one in zip(tried, pool.map(lambda row: resolves(opt, row[0], row[3]), tried)):
            ops[op].found[has_one] += 1
            if kind and not has_one:
                ops[op].kinds.add(kind)
    return len(tried)


def page(ops):
    """Ops of a family of which the same is to be said stand in one row."""
    order, rows = ("yes", "in part", "by its parts", "none"), collections.defaultdict(list)
    for op in ops.values():
        rows[op.family, order.index(op.kind()), op.remark()].append(f"`{op.name}`")
    return HEAD + "".join(f"| {family} | {', '.join(sorted(names))} | {order[kind]} | {why} |\n" for (family, kind, why), names in sorted(rows.items()))


def main():
    parser = argparse.ArgumentParser()
    for name in ("tblgen", "includes", "opt"):
        parser.add_argument(name)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    ops = read_ops(options.tblgen, options.includes)
    count = try_examples(ops, options.opt)
    wrong = [f"nn.{op.name} {op.wrong()}" for op in ops.values() if op.wrong()]
    if wrong:
        sys.exit("\n".join(wrong))
    if options.update:
        PAGE.write_text(page(ops))
    elif not PAGE.exists() or PAGE.read_text() != page(ops):
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what the ops say: run test/{pathlib.Path(__file__).name} with --update")
    print(f"what {len(ops)} ops say of their derivatives holds for {count} examples")


if __name__ == "__main__":
    main()
