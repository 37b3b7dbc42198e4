"""Clients that are slow, endless, wrong or deaf, and infer-server, which answers the others meanwhile and keeps its memory.

No limit of time is tight: a busy machine makes this slow, and nothing else."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import re
import selectors
import socket
import threading
import time

from server import Server, expect, request_of

SLOW = 300
MANY = 10_000 if os.environ.get("PARTITA_TEST_ALL") == "1" else 2_000
DEADLINE = 5  # seconds
PATIENCE = 120
SMALL = 8 << 20  # bytes that a server may take beside twice those of a good one


def post(path, body):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def status_of(answer):
    found = re.match(rb"HTTP/1\.1 (\d+) ", answer)
    return int(found[1]) if found else None


def receive_all(connection):
    """All that comes until the server closes the connection."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(1 << 16):
            answer += piece
    return answer


class SlowClients:
    """So many clients that send a byte now and then. Whoever is cut off connects again."""

    BEGINNINGS = (
        b"GET /v2/health/ready HTTP/1.1\r\nX: ",
        b"POST PATH HTTP/1.1\r\nContent-Length: 50000\r\n\r\n{",
        b'POST PATH HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{"inputs":[\r\n',
    )

    def __init__(self, server, path):
        self.server, self.path = server, path
        self.selector = selectors.DefaultSelector()
        self.cut = {}  # how often a connection ended, by the status of its answer
        self.stopping = threading.Event()
        for number in range(SLOW):
            self.connect(number)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def connect(self, number):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE)
        with contextlib.suppress(ConnectionError):
            connection.sendall(self.BEGINNINGS[number % len(self.BEGINNINGS)].replace(b"PATH", self.path.encode()))
        self.selector.register(connection, selectors.EVENT_READ, number)

    def run(self):
        while not self.stopping.wait(0.1):
            for key, _ in self.selector.select(0):
                status = status_of(receive_all(key.fileobj))
                self.cut[status] = self.cut.get(status, 0) + 1
                self.selector.unregister(key.fileobj)
                key.fileobj.close()
                self.connect(key.data)
            for key in list(self.selector.get_map().values()):
                with contextlib.suppress(ConnectionError):
                    # A chunk of one byte, or a byte of a head or a body.
                    key.fileobj.sendall(b"1\r\n \r\n" if key.data % len(self.BEGINNINGS) == 2 else b" ")

    def stop(self):
        """When each has met its deadline, they have been cut off with 408."""
        end = time.monotonic() + PATIENCE
        while sum(self.cut.values()) < SLOW and time.monotonic() < end:
            time.sleep(0.1)
        self.stopping.set()
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        expect(self.cut.get(408, 0) >= SLOW and set(self.cut) == {408}, f"slow clients were cut off with {self.cut}")


def check_many(server, body, result):
    """10^4 requests of eight clients, which keep their connections."""

    def client(requests):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
            stream = connection.makefile("rb")
            for _ in range(requests):
                connection.sendall(message)
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = stream.readline()
                    expect(line, f"the server closed a connection after {head}")
                    head += line
                answer = stream.read(int(re.search(rb"Content-Length: (\d+)", head)[1]))
                expect(status_of(head) == 200 and answer == result, f"{head} {answer[:200]}")

    message = post("/v2/models/two/infer", body)
    before = server.figures()
    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        for done in [clients.submit(client, MANY // 8) for _ in range(8)]:
            done.result()
    after = server.figures()
    name = 'partita_http_requests_total{code="200"}'
    expect(after[name] - before.get(name, 0) >= MANY, f"{name} went to {after[name]}")
    name = "partita_model_samples_total"
    expect(after[name] - before[name] == MANY * len(body["inputs"][0]["data"]), f"{name} went from {before[name]} to {after[name]}")


def pour(server, head, piece):
    """What the server answers while a client sends without end."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(head)
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            end = time.monotonic() + PATIENCE
            while not selector.select(0):
                expect(time.monotonic() < end, f"{head[:100]}: no answer to an endless request")
                with contextlib.suppress(ConnectionError):
                    connection.sendall(piece)
        return status_of(connection.recv(1 << 16))


def chunk(text):
    return f"{len(text):x}\r\n".encode() + text + b"\r\n"


def check_endless(server, path):
    head = f"POST {path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    zeros, spaces = chunk(b"0," * 30_000), chunk(b" " * 60_000)
    for beginning, piece, wanted in (
        (chunk(b'{"inputs":[{"name":"x","data":['), zeros, 400),  # more numbers than samples may have
        (chunk(b'{"inputs":[{"data":[' if path.endswith("two/infer") else b'{"inputs":[{"name":"x","data":['), zeros, 400),
        (chunk(b'{"other":[{"data":['), zeros, 413),
        (chunk(b'{"other":'), spaces, 413),
        (chunk(b'{"inputs":[{"name":"'), chunk(b"x" * 60_000), 400),
        (chunk(b'{"inputs":[{"name":"x","data":['), chunk(b"1" * 60_000), 400),
        (b"", chunk(b"[" * 60_000), 400),
        (b"1;", b"a" * 60_000, 400),  # the line of a chunk
    ):
        got = pour(server, head + beginning, piece)
        expect(got == wanted, f"{beginning} and {piece[:20]} without end: status {got}, not {wanted}")
    got = pour(server, b"GET /v2 HTTP/1.1\r\nX: ", b"a" * 60_000)
    expect(got == 431, f"a head without end: status {got}")


def check_broken(server, path):
    def say(words, wanted, end=True):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
            connection.sendall(words)
            if end:
                connection.shutdown(socket.SHUT_WR)
            got = status_of(receive_all(connection))
            expect(got == wanted, f"{words[:200]}: status {got}, not {wanted}")

    head = f"POST {path} HTTP/1.1\r\n".encode()
    say(b"", None)
    say(b"GET /v2/hea", None)
    say(head + b"Content-Length: 100\r\n\r\n{", None)
    say(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20, 400)
    say(b"GET\r\n\r\n", 400)
    say(head + b"Content-Length: x\r\n\r\n", 400)
    say(head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400)
    # Nobody waits for a body that is too large.
    say(head + b"Content-Length: 10000000000\r\nConnection: close\r\n\r\n", 413)
    say(head + b"Content-Length: 99999999999999999999999999\r\n\r\n", 400)
    say(b"DELETE /v2 HTTP/1.1\r\nConnection: close\r\n\r\n", 405)
    say(b"GET /v2/he%61lth/live?x=1 HTTP/1.1\r\nConnection: close\r\n\r\n", 200)
    # Two requests at once are answered one after the other, and a wrong one costs nobody the connection.
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(post(path, b"{}") + b"GET /v2/health/ready HTTP/1.1\r\nConnection: close\r\n\r\n")
        answer = receive_all(connection)
        expect(status_of(answer) == 400 and answer.endswith(b'{"ready":true}'), answer.decode())


def check_slow(program, artifact, one, result, check_wrong_requests):
    """Everything at once, on a small model: memory stays as it is with good clients, and all good requests are answered."""
    path = "/v2/models/two/infer"
    good = Server(program, artifact)
    server = Server(program, artifact, "--deadline", DEADLINE)
    try:
        check_many(good, request_of(one), result)
        slow = SlowClients(server, path)
        try:
            status, answer = server.ask("GET", "/v2/health/ready")
            expect(status == 200 and answer == {"ready": True}, str(answer))
            check_many(server, request_of(one), result)
            check_wrong_requests(server)
            check_broken(server, path)
            check_endless(server, path)
            figures = server.figures()
            expect(figures["partita_http_connections"] > SLOW / 2, str(figures))
        finally:
            slow.stop()
        peak, usual = server.peak(), good.peak()
        expect(peak <= 2 * usual + SMALL, f"bad clients take {peak >> 10} KiB of the server's memory, good ones {usual >> 10} KiB")
        good.stop()
        server.stop()
        return f"{SLOW} slow clients: {peak >> 10} KiB, and {usual >> 10} KiB without"
    finally:
        good.process.kill()
        server.process.kill()


def check_few_connections(program, artifact):
    """Those that have waited for the longest make room for others."""
    server = Server(program, artifact, "--connections", 10)
    try:
        with contextlib.ExitStack() as stack:
            for _ in range(50):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
            for _ in range(20):
                status, _ = server.ask("GET", "/v2/health/ready")
                expect(status == 200, f"status {status}")
            figures = server.figures()
            expect(figures["partita_http_connections"] <= 10, str(figures))
        server.stop()
    finally:
        server.process.kill()


WIDE = 300_000
WIDE_MODEL = f"""<ir_version: 10, opset_import: ["" : 20]>
wide (float[1, {WIDE}] x, int64[1, 4] i) => (float[1, {WIDE}] y, float[1, 4] z) {{
  [doubles] y = Add (x, x)
  [picks] z = GatherElements <axis = 1> (x, i)
}}
"""


def check_large(program, artifact):
    """Clients of a model with large samples: some keep what they have sent, some do not read their answers, and some give a wrong index."""
    path = "/v2/models/wide/infer"
    values = [random.Random(1).random() for _ in range(WIDE)]

    def body(samples, index=3, **options):
        x = {"name": "x", "shape": [samples, WIDE], "datatype": "FP32", "data": values * samples}
        i = {"name": "i", "shape": [samples, 4], "datatype": "INT64", "data": [0, 1, -WIDE, index] * samples}
        return json.dumps({"inputs": [x, i]}, **options).encode()

    most = body(6)
    good, server = Server(program, artifact), Server(program, artifact, "--deadline", PATIENCE)
    try:
        for _ in range(3):
            status, wanted = good.ask("POST", path, most)
            expect(status == 200, f"status {status}: {str(wanted)[:200]}")

        def check_good():
            status, answer = server.ask("POST", path, most)
            expect(status == 200 and answer == wanted, f"status {status}: {str(answer)[:200]}")

        check_good()
        # Here data comes before the name of its tensor.
        status, answer = server.ask("POST", path, body(1, sort_keys=True))
        expect(status == 200 and answer["outputs"][0]["data"] == wanted["outputs"][0]["data"][:WIDE], f"status {status}: {str(answer)[:200]}")
        status, answer = server.ask("POST", path, body(1, WIDE))
        expect(status == 400 and f"'picks': {WIDE} at [0, 3]" in answer["error"], f"status {status}: {str(answer)[:200]}")
        status, answer = server.ask("POST", path, body(7))
        expect(status == 400 and "more than 6 samples" in answer["error"], f"status {status}: {str(answer)[:200]}")
        check_endless(server, path)
        # All but the end of a request; the text of numbers is as short as can be.
        kept = post(path, b'{"inputs":[{"name":"x","datatype":"FP32","shape":[6,300000],"data":[' + b"0," * (6 * WIDE) + b" " * 100_000)[:-1]
        early = post(path, b'{"inputs":[{"data":[' + b"0.12345678901234567890," * (6 * WIDE) + b" " * 100_000)[:-1]
        with contextlib.ExitStack() as stack:
            for number in range(30):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
                with contextlib.suppress(ConnectionError):
                    connection.sendall((kept, most, early)[number % 3])
                if number % 10 == 9:
                    check_good()
        # Good clients that all come at once get what they asked for, or are told to come again.
        def crowd(_):
            try:
                status, answer = server.ask("POST", path, most)
            except (http.client.IncompleteRead, ConnectionError):  # too slow to read it
                return False
            expect((status == 200 and answer == wanted) or status == 503, f"status {status}: {str(answer)[:200]}")
            return status == 200

        with concurrent.futures.ThreadPoolExecutor(6) as clients:
            expect(any(list(clients.map(crowd, range(6)))), "of six clients, not one got an answer")
        check_good()
        peak, usual = server.peak(), good.peak()
        expect(peak <= 2 * usual + SMALL, f"bad clients take {peak >> 20} MiB of the server's memory, good ones {usual >> 20} MiB")
        good.stop()
        server.stop()
        return f"large requests: {peak >> 20} MiB, and {usual >> 20} MiB for a good one"
    finally:
        good.process.kill()
        server.process.kill()
