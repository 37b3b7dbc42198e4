#!/usr/bin/env python3
"""Builds examples/embed against an installed Partita and uses what comes out: the C program, the batch job, and the HTTP server under load
and with clients that are slow, wrong or worse.

    check.py CMAKE EXAMPLES PREFIX ARTIFACTS BUILD
"""

import concurrent.futures
import json
import pathlib
import re
import shutil
import struct
import sys
import tempfile
import zipfile

from hostile import WIDE_MODEL, check_few_connections, check_large, check_slow
from sequences import check_sequences
from server import WIDTH, Failure, Server, expect, request_of, run

CLIENTS, REQUESTS = 6, 20


def values_of(npy):
    """The float32 values of a .npy file's bytes."""
    header = struct.unpack("<H", npy[8:10])[0]
    data = npy[10 + header :]
    return struct.unpack(f"<{len(data) // 4}f", data)


def rows(values):
    return [list(values[i : i + WIDTH]) for i in range(0, len(values), WIDTH)]


def check_samples(embed, artifacts, work):
    text = run(embed / "run-samples", artifacts / "two.partita", 5).stdout.decode()
    expect("5 samples computed" in text, text)
    text = run(embed / "run-samples", work / "none.partita", status=1).stderr.decode()
    expect("none.partita" in text, text)


def check_batch_job(embed, artifact, inputs, outputs):
    raw = struct.pack(f"<{len(inputs) * WIDTH}f", *sum(inputs, []))
    result = run(embed / "batch-job", artifact, input=raw)
    expect(result.stdout == struct.pack(f"<{len(outputs) * WIDTH}f", *sum(outputs, [])), "batch-job: other numbers than partita-run")
    expect(f"{len(inputs)} samples computed" in result.stderr.decode(), result.stderr.decode())
    result = run(embed / "batch-job", artifact, input=raw[:-1], status=1)
    expect("ends within a sample" in result.stderr.decode(), result.stderr.decode())


def check_load(server, inputs, outputs):
    """Several clients at once, each with samples of its own: every one gets its own results, to the last bit."""

    def client(number):
        connection = server.connect()
        for turn in range(REQUESTS):
            begin = (number * REQUESTS + turn) % (len(inputs) - 3)
            end = begin + 1 + turn % 3
            status, answer = server.ask("POST", "/v2/models/two/infer", request_of(inputs[begin:end]), connection)
            expect(status == 200, f"status {status}: {answer}")
            output = answer["outputs"][0]
            expect(answer["id"] == "7" and answer["model_name"] == "two", str(answer)[:200])
            expect((output["name"], output["datatype"], output["shape"]) == ("layers/y:0", "FP32", [end - begin, WIDTH]), str(output)[:200])
            expect(output["data"] == sum(outputs[begin:end], []), f"client {number} got other numbers for samples {begin} to {end}")

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        for done in [clients.submit(client, number) for number in range(CLIENTS)]:
            done.result()


def check_depth(wrong, one):
    """What nests too deep is refused while it is parsed, wherever it is; what walks a value would end the server."""
    wrong(b"[" * 90_000, "no list 'inputs'")
    wrong(b'{"a":' * 15_000, "nests deeper than 32 levels")
    wrong(b'{"a":' + b"[" * 90_000, "nests deeper than 32 levels")
    nested = "[" * 45_000 + "]" * 45_000
    for key, words in {"data": "nests deeper than 32 levels", "name": "'name' is no text", "datatype": "'datatype' is no text",
                       "shape": "'shape' is no list of numbers"}.items():
        text = json.dumps(request_of(one, **{key: "HERE"})).replace('"HERE"', nested)
        wrong(text, words)
    wrong(json.dumps({**request_of(one), "id": "HERE"}).replace('"HERE"', nested), "'id' is no text")


def check_wrong_requests(server, inputs):
    one = inputs[:1]

    def wrong(body, *words, status=400, method="POST", path="/v2/models/two/infer"):
        got, answer = server.ask(method, path, body)
        expect(got == status and all(word in answer.get("error", "") for word in words), f"{str(body)[:200]}: status {got}, {answer}")

    wrong("no json", "is not JSON")
    wrong([], "no list 'inputs'")
    wrong({"inputs": 3}, "no list 'inputs'")
    wrong({"inputs": []}, "'x' is missing")
    wrong({"inputs": request_of(one)["inputs"] * 2}, "'x' is given twice")
    wrong({"inputs": request_of(one)["inputs"] + [{"name": "z"}]}, "no input 'z'")
    wrong({"inputs": request_of(one)["inputs"] + [3]}, "is no object")
    wrong({"inputs": [{"data": one}]}, "has no name")
    wrong(request_of(one, name="xx"), "no input 'xx'")
    wrong(request_of(one, datatype="INT64"), "'x' is of the datatype FP32")
    wrong(request_of(one, datatype=3), "type")
    wrong(request_of(one, shape=[WIDTH]), "has the shape [64], not [N, 64]")
    wrong(request_of(one, shape=[1, WIDTH - 1]), "not [N, 64]")
    wrong(request_of(one, shape=[0, WIDTH]), "not [N, 64]")
    wrong(request_of(one, shape=[-1, WIDTH]), "not [N, 64]")
    wrong(request_of(one, shape=[2, WIDTH]), "has 256 bytes, and 512 belong to its shape")
    for value in "a", None, True, {}, 1e39:
        wrong(request_of([one[0][:-1] + [value]]), "data")
    wrong(json.dumps(request_of(one))[:-1], "is not JSON")
    wrong(json.dumps(request_of(one)) + "}", "is not JSON")
    wrong(request_of(one * 65), "more than 64 samples")
    wrong(request_of(one), "there is no POST /v2/models/three/infer", "'two'", status=404, path="/v2/models/three/infer")
    wrong(None, "there is no GET /", status=404, method="GET", path="/")
    wrong(b"[" * (65 << 20), "too large", status=413)
    # The text of 64 samples of 256 bytes, at 8 characters a byte, and 64 KiB for the rest.
    most = 64 * WIDTH * 4 * 8 + (64 << 10)
    wrong(b"[" * (most + 1), f"at most {most} bytes", status=413)
    wrong(b" " * most, "is not JSON")
    check_depth(wrong, one)
    # Keys may come in any order.
    tensor = request_of(one)["inputs"][0]
    status, answer = server.ask("POST", "/v2/models/two/infer", {"inputs": [{key: tensor[key] for key in ("data", "shape", "datatype", "name")}]})
    expect(status == 200 and len(answer["outputs"][0]["data"]) == WIDTH and "id" not in answer, str(answer)[:200])
    # The server lives on.
    status, answer = server.ask("GET", "/v2/health/ready")
    expect(status == 200 and answer == {"ready": True}, str(answer))
    status, answer = server.ask("GET", "/v2")
    expect(status == 200 and answer["name"] == "partita" and answer["extensions"] == [] and re.fullmatch(r"\d+", answer["version"]), str(answer))
    status, answer = server.ask("GET", "/v2/health/live")
    expect(status == 200 and answer == {"live": True}, str(answer))
    status, answer = server.ask("GET", "/v2/models/two/ready")
    expect(status == 200 and answer == {"name": "two", "ready": True}, str(answer))
    status, answer = server.ask("GET", "/v2/models/two")
    expect(answer["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, WIDTH]}], str(answer))


def check_shutdown(server, inputs, outputs):
    """What was asked before the signal is answered."""
    connection = server.connect()
    connection.request("POST", "/v2/models/two/infer", json.dumps(request_of(inputs)))
    # Its answer begins when it is in work, or done.
    answer = concurrent.futures.ThreadPoolExecutor(1).submit(connection.getresponse)
    server.ask("GET", "/v2/health/ready")
    server.stop()
    response = answer.result()
    expect(json.loads(response.read())["outputs"][0]["data"] == sum(outputs, []), "the last request got other numbers")


def check_server(prefix, embed, artifact, inputs, outputs, work):
    program = embed / "infer-server"
    if not program.exists():
        print("infer-server was left out: there are no headers of Boost 1.81")
        return
    text = run(program, status=1).stderr.decode()
    expect("usage:" in text, text)
    text = run(program, artifact, "--deadline", "soon", status=1).stderr.decode()
    expect("--deadline is 'soon'" in text, text)
    server = Server(program, artifact, "--batch-delay", 2)
    try:
        check_load(server, inputs, outputs)
        _, answer = server.ask("POST", "/v2/models/two/infer", request_of(inputs[:1]))
        check_shutdown(server, inputs, outputs)
    finally:
        server.process.kill()
    check_few_connections(program, artifact)
    result = json.dumps(answer, separators=(",", ":")).encode()
    print(check_slow(program, artifact, inputs[:1], result, lambda server: check_wrong_requests(server, inputs)))
    if (prefix / "bin" / "partita-compile").exists():
        (work / "wide.onnxtxt").write_text(WIDE_MODEL)
        run(prefix / "bin" / "partita-compile", work / "wide.onnxtxt", "-o", work / "wide.partita")
        print(check_large(program, work / "wide.partita"))
        check_sequences(prefix, program, work)


def npy_of(raw, kind, shape):
    """A .npy file of bytes that lie as they should."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + raw


def check_train_loop(prefix, embed, digits, work):
    """The loop writes the model that partita-run writes after as many steps on the samples that are not held out."""
    artifact = work / "digits.partita"
    run(prefix / "bin" / "partita-compile", digits / "digits.onnx", "--dim", "batch=2", "--micro-batches", 3, "--loss", "cross_entropy:probabilities:label",
        "--optimizer", "sgd,learning_rate=0.01", "-o", artifact)
    # Ten drawings four times, and some ink more each time.
    drawings = values_of((digits / "digits.npy").read_bytes())
    image = struct.pack("<2560f", *(value + turn for turn in range(4) for value in drawings))
    label = struct.pack("<40q", *list(range(10)) * 4)
    (work / "image.raw").write_bytes(image)
    (work / "label.raw").write_bytes(label)
    (work / "image.npy").write_bytes(npy_of(image[: 36 * 256], "<f4", (36, 1, 8, 8)))
    (work / "label.npy").write_bytes(npy_of(label[: 36 * 8], "<i8", (36,)))
    files = [f"image={work / 'image.raw'}", f"label={work / 'label.raw'}"]
    text = run(embed / "train-loop", artifact, work / "run", work / "loop.onnx", *files).stdout.decode()
    epochs = re.findall(r"epoch (\d+)  step (\d+)  loss \S+  held out (\S+)  right \d of 4\n", text)
    best = re.search(r"loop.onnx is the model after step (\d+)\n", text)
    expect(epochs and best and all(int(step) == 6 * int(epoch) for epoch, step, _ in epochs), text)
    lowest = min(float(held) for _, _, held in epochs)
    expect(any(step == best[1] and float(held) == lowest for _, step, held in epochs), text)
    expect(len(epochs) == 10 or int(epochs[-1][1]) == int(best[1]) + 12, text)
    run(prefix / "bin" / "partita-run", artifact, "--train", "--order", "in-order", "--steps", best[1], "--data", f"image={work / 'image.npy'}",
        "--data", f"label={work / 'label.npy'}", "--export", work / "run.onnx")
    expect((work / "loop.onnx").read_bytes() == (work / "run.onnx").read_bytes(), "train-loop: another model than partita-run's")
    for arguments, words in ((files[:1], "give the samples of 'label': label=FILE"), ([files[0], "label=nowhere"], "cannot read 'nowhere'"),
                             ([files[0], f"label={work / 'label.npy'}"], "'"), ([f"image={work / 'label.raw'}", files[1]], "ends within a sample")):
        text = run(embed / "train-loop", artifact, work / "none", work / "none.onnx", *arguments, status=1).stderr.decode()
        expect(words in text and not (work / "none.onnx").exists(), text)


def main():
    cmake, source, prefix, artifacts, embed = sys.argv[1], *(pathlib.Path(word).resolve() for word in sys.argv[2:6])
    # Optimizing what the headers of Boost define takes as long as all that follows.
    cache = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run(cmake, "-S", source, "-B", embed, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1", *cache)
    text = run(cmake, "--build", embed).stdout.decode()
    expect("warning" not in text.lower(), text)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        run(prefix / "bin" / "partita-run", artifacts / "two.partita", "--input", artifacts / "more.npy", "--output", work / "y.npz")
        inputs = rows(values_of((artifacts / "more.npy").read_bytes()))
        outputs = rows(values_of(zipfile.ZipFile(work / "y.npz").read("layers/y:0.npy")))
        check_samples(embed, artifacts, work)
        check_batch_job(embed, artifacts / "two.partita", inputs, outputs)
        if (prefix / "bin" / "partita-compile").exists():
            check_train_loop(prefix, embed, source.parent / "digits", work)
        check_server(prefix, embed, artifacts / "two.partita", inputs, outputs, work)
    print(f"run-samples, batch-job, train-loop and infer-server ({CLIENTS} clients, {REQUESTS} requests each) are right")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
