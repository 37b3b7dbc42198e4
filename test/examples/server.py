"""infer-server under test, and what its clients say."""

import http.client
import json
import pathlib
import re
import signal
import subprocess

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


class Server:
    """infer-server on a free port."""

    def __init__(self, program, artifact, *flags):
        self.process = subprocess.Popen([program, artifact, "--port", "0", *map(str, flags)], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(rf"listening on http://127.0.0.1:(\d+)/v2/models/{artifact.stem}\n", line)
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

    def peak(self):
        """The most memory that the server has taken, in bytes."""
        return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1])

    def figures(self):
        """What /metrics says: a number for each name, with its labels."""
        connection = self.connect()
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        text = response.read().decode()
        expect(response.status == 200 and response.headers["Content-Type"].startswith("text/plain"), text)
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}


def request_of(samples, **changes):
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(samples), WIDTH], "data": samples}
    return {"id": "7", "inputs": [{**tensor, **changes}]}
