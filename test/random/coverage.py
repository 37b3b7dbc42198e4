"""What the models reach: rows of the importer's table, library calls with what is fused to them, schedules of kernels."""

import collections
import json
import pathlib
import re

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def importer_rows():
    """Ops of the importer's tables."""
    rows = set()
    for path in (REPOSITORY / "compiler" / "import" / "ops").glob("*.cpp"):
        rows |= set(re.findall(r'^\s+\{"([A-Z]\w*)", \d+, \d+', path.read_text(), re.M))
    return rows


def shapes_of(kernel):
    """What a kernel's stages are like."""
    stages = re.split(r"linalg\.generic", kernel)[1:]
    found = {f"{min(len(stages), 4)}{'+' if len(stages) >= 4 else ''} stage{'s' * (len(stages) != 1)}"}
    for stage in stages:
        if '"reduction"' in stage:
            found.add("reduces inner loops" if re.search(r'"reduction"\]', stage) else "reduces outer loops")
        for word, what in (("tensor.extract", "reads at computed places"), ("scf.if", "has conditions"), ("linalg.index", "asks where it is"), ("math.", "functions")):
            if word in stage:
                found.add(what)
    return found


class Coverage:
    SAMPLE = 10  # the plan of one model in so many is looked at

    def __init__(self):
        self.clear()

    def clear(self):
        self.ops, self.calls, self.kernels = collections.Counter(), collections.Counter(), collections.Counter()

    def result(self):
        return dict(self.ops), dict(self.calls), dict(self.kernels)

    def join(self, result):
        for mine, yours in zip((self.ops, self.calls, self.kernels), result):
            mine.update(yours)

    def add(self, model, worker, artifact, seed):
        self.ops.update({n.op_type for n in model.proto().graph.node})
        if seed % self.SAMPLE:
            return
        done = worker.run("partita-compile", worker.folder / "m.onnx", "--emit", "clusters", "--quiet")
        if done.status == 0:
            self.read(done.output)

    def read(self, text):
        """Counts what the IR with lowered clusters says."""
        for call in re.findall(r"lowering = #plan\.call<(.*)", text):
            kind = re.match(r"\w+", call)[0]
            self.calls[kind] += 1
            posts = re.findall(r"#plan\.post_op<(\w+)", call)
            self.calls.update(f"{kind} + {post}" for post in set(posts))
            self.calls.update([f"{kind} + several"] if len(posts) > 1 else [])
        for kernel in re.findall(r"lowering = #plan\.kernel<(.*?)>", text):
            extent = int(re.search(r"extent = (\d+)", kernel)[1])
            self.kernels["one tile" if extent == 1 else "tiles"] += 1
            self.kernels["in place"] += "in_place" in kernel
        for kernel in re.split(r"^\s*func\.func @k\d+_", text, flags=re.M)[1:]:
            self.kernels.update(shapes_of(kernel.partition("\n  }")[0]))

    def text(self, whole):
        rows = importer_rows()
        never = sorted(rows - set(self.ops))
        few = sorted(op for op in rows if 0 < self.ops[op] < 100)
        lines = [f"importer: {len(rows) - len(never)} of {len(rows)} ops of the table" + (f"; never: {' '.join(never)}" if never else "")]
        if few and whole:
            lines.append("fewer than 100 times: " + " ".join(f"{op} {self.ops[op]}" for op in few))
        lines.append(f"library calls (in one model of {self.SAMPLE}): " + ", ".join(f"{n} {c}" for n, c in sorted(self.calls.items())))
        if self.kernels:
            lines.append(f"kernels (likewise): " + ", ".join(f"{n} {c}" for n, c in sorted(self.kernels.items())))
        return "\n".join(lines)
