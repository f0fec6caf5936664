"""Runs of command lines against recording servers, and what each run left."""

import collections
import dataclasses
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from recording_server import RecordingServer
from stream_server import StreamServer

RUN_SECONDS_MAX = 60
REPLY_SECONDS = 0.005
# Requests of a run that are kept by connections, at most.
ORDERED_REQUESTS_MAX = 500
# Of each stream, so many bytes are kept.
STREAM_BYTES_KEPT = 120
FILES = {
    "BODY": "a=1&b=2",
    "SESSIONS": (
        "/a think=0.05\n  /a1\n  /a2\n/b method=POST contents='x=1'\n\n/c\n/d method=HEAD\n"
    ),
    "PATHS": "/l1\0/l2\0/l3\0",
    "MANY": "/m1\n/m2?x=1\n/m3\n",
    "TIMES": "0\thttp://HOST:PORT/t1\n30\t/t2\n30\t/t3\n60.5\t/t1\n",
    "URIS": "http://HOST:PORT/u1\nhttp://elsewhere.invalid:1/u2?x=1\n/u3\n",
    "BIG": "0123456789" * 20_000,
    "SCRIPT": (
        "wrk.method = 'POST'\nwrk.headers['X-S'] = 'y'\nfunction request()\n"
        "  return wrk.format(nil, '/s', nil, 'b=' .. (wrk.headers['X-A'] or ''))\nend\n"
        "function done(summary) io.write('done ', summary.requests > 0 and 'well' or 'badly', "
        "'\\n') end\n"
    ),
}


@dataclasses.dataclass
class Outcome:
    """What one run of a command line left."""

    exit_code: int
    stdout: str
    stderr: str
    # How often each request came, as text, with addresses named.
    requests: collections.Counter
    # Of each stream the server, with the lines of the upgrade; the beginning; and the count of
    # bytes or messages.
    streams: list
    # Streams without a byte.
    empty: int
    # Name and text of what the run wrote.
    files: dict
    # The requests of each connection in their order, as text; None where there are many.
    connections: list = None

    @property
    def seen(self):
        """How much a server saw of it: requests, or bytes and messages of streams."""
        return sum(self.requests.values()) or sum(count for _, _, count in self.streams)

    @property
    def reached(self):
        """Whether a server saw anything of it."""
        return bool(self.requests or self.streams or self.empty)

    def stored(self):
        fields = dataclasses.asdict(self)
        del fields["connections"]
        return {**fields, "requests": sorted(self.requests.items())}

    @classmethod
    def of_stored(cls, fields):
        requests = collections.Counter(dict(map(tuple, fields["requests"])))
        streams = [tuple(stream) for stream in fields["streams"]]
        return cls(**{**fields, "requests": requests, "streams": streams})


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def make_certificate(folder):
    """A PEM file with a certificate for this machine, which is its own root, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "30", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )
    certificate.write_text(certificate.read_text() + key.read_text())
    return certificate


class Ground:
    """Where command lines are run: servers, and a folder of its own for each run."""

    def __init__(self, certificate):
        self._folder = tempfile.TemporaryDirectory(prefix="command-lines-")
        root = Path(self._folder.name)
        self._certificate = certificate
        self._environment = {**os.environ, "HOME": str(root)}
        self._socket = root / "socket"
        self._server = RecordingServer(REPLY_SECONDS, certificate, self._socket)
        self._streams = StreamServer()
        self._addresses = {
            "KNOWINGURL": f"https://localhost:{self._server.knowing_port}",
            "TLSURL": f"https://localhost:{self._server.secure_port}",
            "URL6": f"http://[::1]:{self._server.port}",
            "URL": f"http://127.0.0.1:{self._server.port}",
            "HOST": "127.0.0.1",
            "TLSPORT": str(self._server.secure_port),
            "PORT": str(self._server.port),
            "ECHO": f"127.0.0.1:{self._streams.echo}",
            "SINK": f"127.0.0.1:{self._streams.sink}",
            "SOCKET": str(self._socket),
            "CERTIFICATE": "certificate.pem",
            **{name: name.lower() for name in FILES},
        }
        self._ports = re.compile("|".join(sorted({
            rf"\b{port}\b" for port in (
                self._server.port, self._server.secure_port, self._server.knowing_port,
                self._streams.echo, self._streams.sink,
            )
        })))

    def words(self, line):
        """The words of a line of a table, with the addresses of the servers."""
        addresses = {**self._addresses, "FREE": str(free_port())}
        pattern = re.compile("|".join(addresses))
        return [pattern.sub(lambda found: addresses[found[0]], word) for word in shlex.split(line)]

    def run(self, command, words):
        """Runs a tool, by the name that it has without its folder."""
        return self._run([Path(command[0]).name, *command[1:], *words], shutil.which(command[0]))

    def _run(self, command, program):
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        for name, text in FILES.items():
            text = text.replace("HOST:PORT", f"127.0.0.1:{self._server.port}")
            (folder / name.lower()).write_text(text)
        shutil.copy(self._certificate, folder / "certificate.pem")
        given = set(folder.iterdir())
        self._server.take_record()
        self._streams.wait_until_idle()
        self._streams.take_record()
        # A session of its own: what is ended ends with all that it started.
        process = subprocess.Popen(
            command, executable=program, cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
            env=self._environment, start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=RUN_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            stderr += "\n(killed: it did not end)\n"
        connections, arrivals = self._server.take_record()
        records = self._streams.take_record()
        files = {file.name: file.read_text(errors="replace")
                 for file in sorted(folder.iterdir()) if file not in given}
        shutil.rmtree(folder)
        return Outcome(
            process.returncode, self._named(stdout), self._named(stderr),
            collections.Counter(self._text(request) for request in arrivals),
            sorted(
                (["ECHO" if record.echoes else "SINK",
                  *(self._named(line.decode()) for line in record.upgrade)],
                 record.kept[:STREAM_BYTES_KEPT].decode("latin-1"), record.count)
                for record in records if record.count
            ),
            sum(not record.count for record in records),
            {name: self._named(text) for name, text in files.items()},
            sorted("\n".join(map(self._text, requests)) for requests in connections)
            if len(arrivals) <= ORDERED_REQUESTS_MAX else None,
        )

    def _named(self, text):
        return self._ports.sub("PORT", text.replace(str(self._socket), "SOCKET"))

    def _text(self, request):
        text = b"\r\n".join((request.line, *request.headers, b"", request.body))
        return "".join(f"({way}) " for way in request.way) + self._named(text.decode("latin-1"))

    def stop(self):
        self._server.stop()
        self._streams.stop()
        self._folder.cleanup()
