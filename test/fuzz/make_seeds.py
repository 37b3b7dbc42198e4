#!/usr/bin/env python3
"""make_seeds.py BIN FLATC SOURCE OUT

Makes the corpora of the fuzz targets in OUT/<target>, all small, of the repository's own examples and tests:

  import, compile  the example's model, without and with annotations of devices, and every model in ONNX's text form that the lit tests of the importer hold
  artifact, plan   what partita-compile (in BIN) makes of those that compile, and of a small model that is trained; plans get kernels named k00, k01, ...
  partition        partition files: those that partita-compile writes, and the features of the README
  orders           schedules that are files: orders of a pipeline as PyTorch writes and prints them
  train-file       files that say how a model is trained: the features of docs/training-file.md, and brackets
  module           those models as functions of the nn dialect
  machine, machine-rates  what partita-run --calibrate writes, with tables of two points, and brackets
  constant         the seeds of npy and tensor-proto
  npy, npz, tensor-proto   every element type, both byte orders, compressed and not
  idx, csv         samples for training: each element type, compressed and not; what programs write as columns
  safetensors, trainer     what a checkpoint consists of, and brackets

Needs nothing but Python and flatc. Models are compiled by a process of test/worker.
"""
import gzip
import io
import json
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "worker"))
import worker

LARGEST = 96 << 10  # bytes; larger files only make fuzzing slow
KERNELS = 64  # as many as Kernels.c has


def write(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    if len(data) <= LARGEST:
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def text_models(source):
    """The .onnxtxt parts of lit tests, by a name of their own."""
    for test in sorted((source / "test").rglob("*.test")):
        for name, text in re.findall(r"^#--- (\S+)\.onnxtxt\n(.*?)(?=^#---|\Z)", test.read_text(), re.S | re.M):
            text = "".join(line for line in text.splitlines(True) if not line.startswith("#"))
            yield f"{test.stem}-{name}", text.strip() + "\n"


def sections(artifact):
    """(kind, bytes) of each section; see runtime/abi/artifact.h."""
    (count,) = struct.unpack_from("<I", artifact, 12)
    for i in range(count):
        kind, _, offset, size = struct.unpack_from("<IIQQ", artifact, 64 + 64 * i)
        yield kind, artifact[offset : offset + size]


def with_stub_kernels(plan, flatc, source, work):
    """The plan with kernels k00, k01, ..., and every number written out, so that it can be changed in its place."""
    schema = source / "runtime/abi/plan.fbs"
    (work / "plan.bin").write_bytes(plan)
    flags = ["--json", "--strict-json", "--defaults-json", "--raw-binary", "-o", str(work)]
    subprocess.run([flatc, *flags, str(schema), "--", str(work / "plan.bin")], check=True)
    text = re.sub(r"(?<=: )(-?)(inf|nan)\b", r"\g<1>3e38", (work / "plan.json").read_text())
    content = json.loads(text)
    for i, kernel in enumerate(content.get("kernels", [])):
        kernel["name"] = f"k{i % KERNELS // 8}{i % 8}"
    (work / "plan.json").write_text(json.dumps(content))
    subprocess.run([flatc, "-b", "--force-defaults", "-o", str(work), str(schema), str(work / "plan.json")], check=True)
    return (work / "plan.bin").read_bytes()


def make_models(bin, flatc, source, out):
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    worker.BIN = bin
    with worker.Worker() as programs:
        compile_models(lambda *words: programs.run("partita-compile", *words).status == 0, flatc, source, out, work)


def compile_models(compiles, flatc, source, out, work):
    """`compiles`: whether a command of partita-compile succeeds."""
    digits = source / "examples/digits/digits.onnx"
    models = [("digits", digits, ["--dim", "batch=2"])]
    for folder in ("import", "compile"):
        write(out / folder, "digits.onnx", digits.read_bytes())
        # With annotations of devices.
        assert compiles(digits, "--dim", "batch=2", "--devices", "4", "--tensor-parallel", "2", "--quiet", "--emit-onnx", work / "annotated.onnx", "-o", work / "x.partita")
        write(out / folder, "annotated.onnx", (work / "annotated.onnx").read_bytes())
    for name, text in text_models(source):
        for folder in ("import", "compile"):
            write(out / folder, name, text)
        path = work / f"{name}.onnxtxt"
        path.write_text(text)
        models.append((name, path, []))
    for name, path, flags in models:
        if compiles(path, *flags, "--emit", "imported", "-o", work / "imported.mlir"):
            write(out / "module", name, (work / "imported.mlir").read_bytes())
    variants = [("1", ["--devices", "1"]), ("2", ["--devices", "2", "--micro-batches", "3"]),
                ("s", ["--devices", "2", "--schedule", "sequential"])]
    for number, (name, path, flags) in enumerate(models):
        for variant, more in variants if name == "digits" else variants[number % 2 : number % 2 + 1]:
            result, split = work / "x.partita", work / "split.yaml"
            # The kernels of all are alike to a reader.
            quick = [] if name == "digits" else ["--no-optimize", "--cpu-level", "v3"]
            if not compiles(path, *flags, *more, *quick, "--quiet", "-o", result, "--emit-partition", split):
                continue
            artifact = result.read_bytes()
            write(out / "artifact", f"{name}-{variant}", artifact)
            write(out / "partition", f"{name}-{variant}", split.read_text())
            plan = next(data for kind, data in sections(artifact) if kind == 1)
            write(out / "plan", f"{name}-{variant}", with_stub_kernels(plan, flatc, source, work))


LINE = """\
<ir_version: 8, opset_import: ["" : 17]>
line (float[2, 3] x) => (float[2, 2] logits)
<float[3, 2] w = {0.1, 0.2, 0.3, -0.1, -0.2, 0.5}, float[2] b = {0.1, 0.2}>
{
  a = MatMul(x, w)
  logits = Add(a, b)
}
"""


def make_trained(bin, flatc, source, out):
    """Artifacts with a plan that learns and one that evaluates."""
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    model, result = work / "line.onnxtxt", work / "x.partita"
    model.write_text(LINE)
    labels, values = "cross_entropy:logits:label", "mse:logits"
    variants = {"adamw": [labels, "adamw", "--micro-batches", "3", "--clip-norm", "1", "--group", "b,weight_decay=0"],
                "momentum": [values, "sgd,momentum=0.9", "--micro-batches", "2"], "sgd": [labels, "sgd"]}
    for name, (loss, optimizer, *more) in variants.items():
        subprocess.run([str(bin / "partita-compile"), str(model), "--loss", loss, "--optimizer", optimizer, *more, "--quiet", "-o", str(result)],
                       check=True)
        artifact = result.read_bytes()
        write(out / "artifact", f"trained-{name}", artifact)
        plans = [data for kind, data in sections(artifact) if kind == 1]
        for entry, plan in zip(("train", "eval"), plans, strict=True):
            write(out / "plan", f"trained-{name}-{entry}", with_stub_kernels(plan, flatc, source, work))


def make_orders(out):
    write(out / "orders", "rows", "0F0,0F1,,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    write(out / "orders", "split", ",0F0,2F0,2I0,2W0,0I0,0W0\r\n1F0,,1I0,1W0\r\n")
    write(out / "orders", "overlap", "0UNSHARD,0F0,(0F1;0B0)OVERLAP_F_B,\"0B1\",0REDUCE_GRAD\n")
    write(out / "orders", "table", "         Rank 0  Rank 1\nStep 0   0F0\nStep 1           1F0\nStep 2   0B0     1B0     <-- ERROR HERE\n")
    write(out / "orders", "most", "4095F65535,0SEND_F0\n")


def make_train_files(out):
    write(out / "train-file", "all", """\
loss: {kind: cross_entropy, output: logits, labels: label, ignore_index: 0, label_smoothing: 0.1}
optimizer: {kind: adamw, learning_rate: 0.001, weight_decay: 0.01, betas: [0.9, 0.95]}
groups: [{parameters: ["*.bias", "*norm*"], weight_decay: 0, learning_rate: 1.0e-4}]
schedule: {kind: cosine, warmup: 100, steps: 2000, final: 3.0e-5}
clip_norm: 1.0
micro_batches: 10
freeze: ["embed*"]
scale: {image: {divide: 255, mean: 0.1307, std: 0.3081}}
""")
    write(out / "train-file", "short", "loss: mse:y\noptimizer: sgd,momentum=0.9\nschedule: step,every=3,factor=0.5\ntrain_only: w\n")
    write(out / "train-file", "lines", "loss:\n  kind: mse\n  output: 'y'\noptimizer:\n  kind: \"sgd\"\ngroups:\n  - parameters: b\n    weight_decay: 0\n")
    write(out / "train-file", "anchors", "x: &a [1, 2]\nfreeze: *a\n")
    for name, bracket in (("lists", "["), ("maps", "{a: "), ("dashes", "- "), ("keys", "? ")):
        for key in ("", "loss: ", "groups: ", "scale: {x: "):
            write(out / "train-file", f"{name}-{key[:3]}", key + bracket * 400)


def make_partitions(out):
    write(out / "partition", "readme", """\
blocks: {B1: ["/conv1/*", "/pool1"], B2: ["/conv2/*"]}
begin_blocks: {B3: "/fc1/Gemm"}
stages: [[B1], [B2, B3]]
devices: [0, 1]
strategy: pipelined
schedule: looped
micro_batches: 8
memory: 512MiB
""")
    write(out / "partition", "automatic", "auto_stage: auto_increment\nblocks:\n  'B1': \"a\\u0020*\"\n  B2:\n    - b\n    - 'c#2'\n")
    write(out / "partition", "anchors", "x: &a [1, 2]\nstages: *a\n")
    for name, bracket in (("lists", "["), ("maps", "{a: "), ("open", "{B1: [a, 'b]'], B2: [c]\n"), ("dashes", "- "), ("keys", "? ")):
        for key in ("", "stages: ", "blocks: {B1: ", "shard: {w: ["):
            write(out / "partition", f"{name}-{key[:3]}", key + bracket * 400)
    write(out / "partition", "nested", "[" * 40 + "]" * 40)


AXES = {"dot": "rows columns depth", "dot_plain": "rows columns depth", "conv": "taps stride in out side", "winograd": "in out side",
        "depthwise": "taps stride channels side", "pool": "taps channels side", "attention": "rows columns depth", "cold": "rows bytes", "read": "bytes",
        "spill": "bytes", "transfer": "bytes", "collective": "bytes"}
SCALARS = ("simple exponential divide reordered epilogue_gelu epilogue_exp epilogue_binary integer dispatch crowd_compute crowd_memory "
           "crowd_cache").split()
RATES = "processors clock memory launch unit copy host peer".split()


def make_machines(out):
    tables = {name: {"unit": "GFLOP/s", "axes": {axis: [1, 64] for axis in axes.split()}, "values": [2.5] * 2 ** len(axes.split())}
              for name, axes in AXES.items()}
    tables |= {name: {"unit": "ns", "axes": {}, "values": [1.5]} for name in SCALARS}
    work = {"1": {"00f3c21d9a5be871": [52100, 48700]}, "2": {"1": [1, 2]}}
    device = {"kind": "cuda", "architecture": "sm_90", "name": "a GPU", "rates": {rate: 2 for rate in RATES}}
    machine = {"partita_machine": 4, "id": "0123456789abcdef", "cpu": "a \"CPU\"", "cores": 2, "level": "x86-64-v3",
               "teams": [{"threads": n, "tables": tables, "work": work} for n in (1, 2)], "devices": [device, device]}
    seeds = {"whole": json.dumps(machine), "lines": json.dumps(machine, indent=1), "small": json.dumps(machine | {"teams": []}),
             "nested": "[" * 90 + "]" * 90, "deep": '{"a":' * 2000, "empty": "{}"}
    for target in ("machine", "machine-rates"):
        for name, text in seeds.items():
            write(out / target, name, text)


def npy(descr, shape, data, order="False", version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


def make_tensors(source, out):
    digits = (source / "examples/digits/digits.npy").read_bytes()
    arrays = {"digits": (0, digits), "big": (255, npy(">f4", "(2, 3)", bytes(24))),
              "fortran": (0, npy("<f8", "(2, 3)", bytes(48), "True")), "scalar": (255, npy("<i8", "()", bytes(8))),
              "empty": (255, npy("<i2", "(0, 5)", b"")), "bool": (12, npy("|b1", "(4,)", b"\0\1\2\3")),
              "int4": (19, npy("|i1", "(3,)", b"\1\7\xf8")), "bf16": (3, npy("|V2", "(2,)", bytes(4))),
              "long": (255, npy("<u4", "(1,)", bytes(4), version=2))}
    for name, (expected, data) in arrays.items():
        write(out / "npy", name, bytes([expected]) + data)
        write(out / "constant", name, b"n" + data)
    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", method) as file:
            for key in ("digits", "scalar", "empty"):
                file.writestr(zipfile.ZipInfo(key + ".npy"), arrays[key][1], method)
        write(out / "npz", name, archive.getvalue())

    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    def tensor(dtype, dims, payload):
        return b"".join(b"\x08" + bytes([d]) for d in dims) + b"\x10" + bytes([dtype]) + payload + field(8, b"x")

    for dtype in range(1, 27):
        write(out / "tensor-proto", f"raw-{dtype}", tensor(dtype, (2, 3), field(9, bytes(range(6)) * 8)))
    write(out / "tensor-proto", "float", tensor(1, (2,), field(4, struct.pack("<2f", 1, 2))))
    write(out / "tensor-proto", "int32", tensor(22, (3,), field(5, b"\x01\x02")))
    write(out / "tensor-proto", "int64", tensor(7, (2,), field(7, b"\x01\x02")))
    write(out / "tensor-proto", "double", tensor(11, (1,), field(10, struct.pack("<d", 3))))
    write(out / "tensor-proto", "uint64", tensor(13, (1,), field(11, b"\x05")))
    write(out / "tensor-proto", "external", tensor(1, (1,), field(13, field(1, b"location") + field(2, b"w")) + b"\x70\x01"))


    for path in (out / "tensor-proto").iterdir():
        write(out / "constant", f"proto-{path.name}", b"p" + path.read_bytes())


def make_samples(out):
    def idx(code, dims, data):
        return bytes([0, 0, code, len(dims)]) + struct.pack(f">{len(dims)}I", *dims) + data

    files = {"bytes": idx(8, (3, 2, 2), bytes(range(12))), "labels": idx(8, (4,), bytes(4)), "shorts": idx(11, (2, 2), bytes(8)),
             "floats": idx(13, (2, 3), struct.pack(">6f", *range(6))), "doubles": idx(14, (1, 1), bytes(8)), "none": idx(8, (0, 28, 28), b"")}
    for name, data in files.items():
        write(out / "idx", name, data)
        write(out / "idx", f"{name}.gz", gzip.compress(data, mtime=0))
    texts = {"plain": "a,b\n1,2\n3,4\n", "quoted": '"a","b"\n"x, ""y""\nz",2\n"",-3\n', "windows": "\ufeffa,b\r\n1.5,2e3\r\n\r\n+1,nan\r\n",
             "large": "b\n9223372036854775807\n1e-60\n", "names": "b", "wide": ",".join("abcdefgh") + "\n" + ",".join("12345678") + "\n"}
    for name, text in texts.items():
        for kind in range(6):
            write(out / "csv", f"{name}-{kind}", bytes([kind]) + text.encode())
def make_checkpoints(out):
    sizes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}

    def tensors(types, shape, count):
        header, end = {"__metadata__": {"w.F32": "parameter"}}, 0
        for dtype in types:
            begin, end = end, end + sizes[dtype] * count
            header[f"w.{dtype}"] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + bytes(end)

    for name, data in {"all": tensors(sizes, [2, 3], 6), "one": tensors(["F32"], [1], 1), "scalar": tensors(["I64"], [], 1),
                       "empty": tensors(["U8", "F32"], [0, 5], 0), "none": struct.pack("<Q", 2) + b"{}",
                       "deep": struct.pack("<Q", 4005) + b'{"a":' + b"[" * 4000}.items():
        write(out / "safetensors", name, data)
    files = {f"{name}.safetensors": {"bytes": 2672, "xxh3": "0123456789abcdef"} for name in ("model", "optimizer")}
    trainer = {"partita_checkpoint": 1, "step": 120, "seed": 7, "data": {"epoch": 3, "sample": 512}, "model": "00f3c21d9a5be871",
               "setup": "0123456789abcdef", "metrics": {"accuracy": 0.91, "loss": "nan"}, "files": files}
    for name, text in {"whole": json.dumps(trainer), "lines": json.dumps(trainer, indent=1), "small": json.dumps(trainer | {"metrics": {}, "files": {}}),
                       "nested": "[" * 90 + "]" * 90, "deep": '{"a":' * 2000, "empty": "{}"}.items():
        write(out / "trainer", name, text)


def main():
    bin, flatc, source, out = sys.argv[1:]
    bin, source, out = Path(bin), Path(source), Path(out)
    shutil.rmtree(out, ignore_errors=True)
    make_tensors(source, out)
    make_samples(out)
    make_partitions(out)
    make_orders(out)
    make_train_files(out)
    make_machines(out)
    make_checkpoints(out)
    if (bin / "partita-compile").exists():
        make_models(bin, flatc, source, out)
        make_trained(bin, flatc, source, out)


if __name__ == "__main__":
    main()
