"""infer-server with a model that keeps states: each client goes on with its own sequence, and those who wait share steps."""

import threading

from server import Failure, Server, expect, run

# Adds what came before: `past` is the sum of all rows so far.
MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,words,16] x, float[N,1,16] past) => (float[N,words,16] y, float[N,1,16] present)
<int64[1] axis = {1}> { sum = ReduceSum<keepdims = 1>(x, axis)  present = Add(sum, past)  y = Add(x, past) }
"""
PATH = "/v2/models/sums/infer"
STEPS, WIDTH = 100, 16


def ask(server, sequence, rows, connection=None, **parameters):
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, len(rows), WIDTH], "data": rows}]}
    if sequence is not None:
        parameters["sequence_id"] = sequence
    if parameters:
        body["parameters"] = parameters
    return server.ask("POST", PATH, body, connection)


class Client:
    """A client, and what its sequence should give."""

    def __init__(self, server, sequence):
        self.server, self.sequence, self.past, self.connection = server, sequence, None, server.connect()

    def step(self, *values, end=False):
        """A row of each value."""
        start = self.past is None
        self.past = self.past or 0
        status, answer = ask(self.server, self.sequence, [[value] * WIDTH for value in values], self.connection, sequence_start=start, sequence_end=end)
        expect(status == 200, f"{status} {answer}")
        output = answer["outputs"][0]
        wanted = [value + self.past for value in values for _ in range(WIDTH)]
        expect(output["shape"] == [1, len(values), WIDTH] and output["data"] == wanted, f"the sequence {self.sequence} gives {output}, and should give {wanted}")
        self.past = None if end else self.past + sum(values)


def check_wrong(server, *words, status=400, **request):
    found, answer = ask(server, request.pop("sequence", None), request.pop("rows", [[1] * WIDTH]), **request)
    expect(found == status and all(word in answer["error"] for word in words), f"{found} {answer}")


def check_threads(server):
    failures = []

    def listen(number):
        try:
            client = Client(server, f"thread {number}")
            for step in range(STEPS):
                client.step(*([step] if step % 3 else [step, number, 1]), end=step == STEPS - 1)
        except (Failure, OSError) as failure:
            failures.append(failure)

    threads = [threading.Thread(target=listen, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failures, str(failures))


def check_sequences(prefix, program, work):
    (work / "sums.onnxtxt").write_text(MODEL)
    run(prefix / "bin" / "partita-compile", work / "sums.onnxtxt", "-o", work / "sums.partita", "--dim", "words=1,3", "--dim", "N=1,2", "--state", "past=present", "--sequences", 2)
    server = Server(program, work / "sums.partita")
    try:
        _, answer = server.ask("GET", "/v2/models/sums")
        expect(answer["inputs"][0]["shape"] == [-1, -1, WIDTH], str(answer))
        _, answer = server.ask("GET", "/v2")
        expect(answer["extensions"] == ["sequence"], str(answer))
        check_wrong(server, 'give "parameters"')
        check_wrong(server, "the sequence '7' has not begun", sequence=7)
        check_wrong(server, "'sequence_start' is neither true nor false", sequence=7, sequence_start=1)
        check_wrong(server, "'sequence_id' is no text or whole number", sequence=True)
        first, second, third = (Client(server, name) for name in (7, "second", "third"))
        first.step(1, 2, 3)
        second.step(10)
        first.step(4)
        second.step(20, 30, 40)
        check_wrong(server, "all 2 sequences are taken", status=503, sequence="third", sequence_start=True)
        check_wrong(server, "there are plans for 1 and 3", sequence=7, rows=[[1] * WIDTH] * 2)
        check_wrong(server, "has the shape", "up to 3", sequence=7, rows=[[1] * WIDTH] * 4)
        first.step(5, end=True)
        check_wrong(server, "has not begun, or has ended", sequence=7)
        third.step(100)
        expect(server.figures()["partita_model_sequences"] == 2, str(server.figures()))
        second.past = None  # starts again
        second.step(1, 1, 1)
        second.step(2, end=True)
        third.step(7, end=True)
        check_threads(server)
        server.stop()
    finally:
        server.process.kill()
    server = Server(program, work / "sums.partita", "--sequence-idle", 0)
    try:
        clients = [Client(server, name) for name in "abc"]
        for client in clients:
            client.step(1)
        check_wrong(server, "the sequence 'a' has not begun, or has ended", sequence="a")  # it made room for c
        clients[1].step(2)
        clients[2].step(3)
    finally:
        server.process.kill()
