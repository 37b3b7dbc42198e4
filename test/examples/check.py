#!/usr/bin/env python3
"""Builds examples/embed against an installed Partita and uses what comes out: the C program, the batch job, and the HTTP server under load.

    check.py CMAKE EXAMPLES PREFIX ARTIFACTS BUILD
"""

import concurrent.futures
import http.client
import json
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import zipfile

CLIENTS, REQUESTS = 6, 20
WIDTH = 64  # of a sample of the artifact two.partita, whose input is x and whose output is layers/y:0


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


def run(*words, status=0, **options):
    result = subprocess.run([str(word) for word in words], capture_output=True, **options)
    if result.returncode != status:
        raise Failure(f"$ {' '.join(map(str, words))}\nends with status {result.returncode}:\n{result.stdout.decode()}{result.stderr.decode()}")
    return result


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


class Server:
    """infer-server on a free port."""

    def __init__(self, program, artifact):
        self.process = subprocess.Popen([program, artifact, "--port", "0", "--batch-delay", "2"], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on http://127.0.0.1:(\d+)/v2/models/two\n", line)
        expect(found, f"infer-server says {line!r}")
        self.port = int(found[1])

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method, path, body=None, connection=None):
        connection = connection or self.connect()
        connection.request(method, path, body if body is None or isinstance(body, (str, bytes)) else json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=30)
        expect(status == 0 and self.process.stdout.read() == "stopped\n", f"infer-server ends with status {status}")


def request_of(samples, **changes):
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(samples), WIDTH], "data": samples}
    return {"id": "7", "inputs": [{**tensor, **changes}]}


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
    wrong(b"[" * 50_000, "nests deeper than 32 levels")
    wrong(b'{"a":' * 15_000, "nests deeper than 32 levels")
    nested = "[" * 45_000 + "]" * 45_000
    for key in "data", "name", "datatype", "shape":
        text = json.dumps(request_of(one, **{key: "HERE"})).replace('"HERE"', nested)
        wrong(text, "nests deeper than 32 levels")
    wrong(json.dumps({**request_of(one), "id": "HERE"}).replace('"HERE"', nested), "nests deeper than 32 levels")


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
    wrong({"inputs": request_of(one)["inputs"] + [{"name": "z"}]}, "1 inputs, and the request 2")
    wrong(request_of(one, name="xx"), "'x' is missing")
    wrong(request_of(one, datatype="INT64"), "'x' is of the datatype FP32")
    wrong(request_of(one, datatype=3), "type")
    wrong(request_of(one, shape=[WIDTH]), "has the shape [64], not [N, 64]")
    wrong(request_of(one, shape=[1, WIDTH - 1]), "not [N, 64]")
    wrong(request_of(one, shape=[0, WIDTH]), "not [N, 64]")
    wrong(request_of(one, shape=[-1, WIDTH]), "not [N, 64]")
    wrong(request_of(one, shape=[2, WIDTH]), "has 256 bytes, and 512 belong to its shape")
    wrong(request_of([one[0][:-1] + ["a"]]), "no value of the datatype")
    wrong(request_of(one), "there is no POST /v2/models/three/infer", "'two'", status=404, path="/v2/models/three/infer")
    wrong(None, "there is no GET /", status=404, method="GET", path="/")
    wrong(b"[" * (65 << 20), "too large", status=413)
    # The text of 16 samples of 256 bytes, at 8 characters a byte, and 64 KiB for the rest.
    most = 16 * WIDTH * 4 * 8 + (64 << 10)
    wrong(b"[" * (most + 1), f"at most {most} bytes", status=413)
    wrong(b" " * most, "is not JSON")
    check_depth(wrong, one)
    # The server lives on.
    status, answer = server.ask("GET", "/v2/health/ready")
    expect(status == 200 and answer == {"ready": True}, str(answer))
    status, answer = server.ask("GET", "/v2")
    expect(status == 200 and answer["name"] == "partita" and answer["extensions"] == [] and re.fullmatch(r"\d+", answer["version"]), str(answer))
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


def check_server(embed, artifact, inputs, outputs):
    program = embed / "infer-server"
    if not program.exists():
        print("infer-server was left out: there is no libcpp-httplib-dev")
        return
    text = run(program, status=1).stderr.decode()
    expect("usage:" in text, text)
    server = Server(program, artifact)
    try:
        check_load(server, inputs, outputs)
        check_wrong_requests(server, inputs)
        check_shutdown(server, inputs, outputs)
    finally:
        server.process.kill()


def main():
    cmake, source, prefix, artifacts, embed = sys.argv[1], *(pathlib.Path(word).resolve() for word in sys.argv[2:6])
    run(cmake, "-S", source, "-B", embed, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    text = run(cmake, "--build", embed).stdout.decode()
    expect("warning" not in text.lower(), text)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        run(prefix / "bin" / "partita-run", artifacts / "two.partita", "--input", artifacts / "more.npy", "--output", work / "y.npz")
        inputs = rows(values_of((artifacts / "more.npy").read_bytes()))
        outputs = rows(values_of(zipfile.ZipFile(work / "y.npz").read("layers/y:0.npy")))
        check_samples(embed, artifacts, work)
        check_batch_job(embed, artifacts / "two.partita", inputs, outputs)
        check_server(embed, artifacts / "two.partita", inputs, outputs)
    print(f"run-samples, batch-job and infer-server ({CLIENTS} clients, {REQUESTS} requests each) are right")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
