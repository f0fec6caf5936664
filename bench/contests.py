"""What `head-to-head` compares: the servers, the kinds of load on them, and what is shown."""

import dataclasses
import http.client
import json
import subprocess

from common import BODY_BYTES, free_port, nginx_command, pinned, program_path
from tools import first_number

# --- Servers --------------------------------------------------------------------------------------


class Server:
    """A running server."""

    # Whether it counts the requests that it has answered.
    counts = False

    def __init__(self, process, port, url):
        self.process = process
        self.port = port
        self.url = url


class CountingServer(Server):
    """A running server with a count of the requests that it has answered."""

    counts = True

    def __init__(self, process, port, url, counter_path, read_counter, counts_itself):
        super().__init__(process, port, url)
        self._counter_path = counter_path
        self._read_counter = read_counter
        self._counts_itself = counts_itself
        self._asked = 0
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def answered(self):
        """Requests answered so far, those of this method left out."""
        for attempt in (1, 2):
            try:
                self._connection.request("GET", self._counter_path)
                body = self._connection.getresponse().read().decode()
                break
            except (OSError, http.client.HTTPException):
                self._connection.close()
                if attempt == 2:
                    raise
        self._asked += 1
        return self._read_counter(body) - (self._asked if self._counts_itself else 0)


# "server accepts handled requests", then the three numbers.
NGINX_REQUESTS = first_number(r"^ \d+ \d+ (\d+)")
NGINX_ACCEPTS = first_number(r"^ (\d+) \d+ \d+")


def start_nginx(core, directory, descriptors, _):
    port = free_port()
    process = start(core, nginx_command(directory, port, descriptors))
    url = f"http://127.0.0.1:{port}/100.html"
    return CountingServer(process, port, url, "/stub_status", NGINX_REQUESTS, True)


def start_nginx_tls(core, directory, descriptors, _, http3=False):
    port, secure_port = free_port(), free_port()
    process = start(core, nginx_command(directory, port, descriptors, secure_port, http3))
    url = f"https://127.0.0.1:{secure_port}/100.html"
    return CountingServer(process, port, url, "/stub_status", NGINX_REQUESTS, True)


def start_nginx_http3(*arguments):
    return start_nginx_tls(*arguments, http3=True)


def start_nginx_handshakes(*arguments):
    """Counts connections, each with a handshake. The one that asks is kept."""
    server = start_nginx_tls(*arguments)
    return CountingServer(
        server.process, server.port, server.url, "/stub_status", NGINX_ACCEPTS, False
    )


def start_nghttpd(core, directory, _descriptors, _brunt):
    port = free_port()
    directory.mkdir(parents=True)
    (directory / "100.html").write_bytes(b"x" * BODY_BYTES)
    process = start(core, [
        program_path("nghttpd"), "--no-tls", "--address=127.0.0.1", "--workers=1",
        "--max-concurrent-streams=1000", f"--htdocs={directory}", port,
    ])
    return Server(process, port, f"http://127.0.0.1:{port}/100.html")


def start_brunt(core, directory, _, brunt):
    port = free_port()
    directory.mkdir(parents=True)
    command = [brunt, "serve", "--listen", f"127.0.0.1:{port}", "-t", "1"]
    with open(directory / "output", "wb") as output:
        process = start(core, command, output)

    def count(body):
        return json.loads(body)["replies"]

    url = f"http://127.0.0.1:{port}/bytes/{BODY_BYTES}"
    return CountingServer(process, port, url, "/counters", count, False)


def start(core, command, output=None, directory=None):
    """Starts a program on one core; what it prints goes to the file `output`."""
    return subprocess.Popen(
        pinned(core, command), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        cwd=directory,
    )


# --- What is compared -----------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Contest:
    """One kind of load on one server."""

    server: str
    program: str
    start: object
    # The tool that the others are compared with.
    baseline: str
    # What differs from a plain load.
    load: dict = dataclasses.field(default_factory=dict)
    title: str = ""

    @property
    def name(self):
        return f"{self.server}, {self.title}" if self.title else self.server

    @property
    def has_streams(self):
        return bool(self.load.get("http2") or self.load.get("http3"))


@dataclasses.dataclass(frozen=True)
class Mode:
    contests: tuple
    # Connections, and streams on each.
    cases: str
    columns: tuple
    settle_seconds: int = 1
    seconds: int = 3
    # A loop that never ends has the client's core as well.
    has_busy_core: bool = False


COUNTED = (
    "rate", "rate_ratio", "agreement", "cpu", "cpu_ratio", "cpu_in_window", "client_share", "peak",
    "peak_ratio", "server_cpu", "server_share", "runs",
)
UNCOUNTED = ("rate", "rate_ratio", "cpu", "cpu_ratio", "client_share", "peak", "peak_ratio", "runs")
MODES = {
    "http1": Mode(
        (
            Contest("brunt serve", "brunt", start_brunt, "wrk"),
            Contest("nginx", "nginx", start_nginx, "wrk"),
        ),
        "1,16,100,1000,10000",
        COUNTED,
    ),
    "busy-core": Mode(
        (Contest("nginx", "nginx", start_nginx, "wrk", {}, "a busy loop on the client's core"),),
        "4,16,64",
        COUNTED,
        has_busy_core=True,
    ),
    "h2": Mode(
        (
            Contest(
                "nghttpd", "nghttpd", start_nghttpd, "h2load", {"http2": True},
                "HTTP/2 in clear text",
            ),
        ),
        "100x10,10x100",
        UNCOUNTED,
    ),
    "tls": Mode(
        (
            Contest("nginx", "nginx", start_nginx_tls, "wrk", {}, "HTTP/1.1 over TLS"),
            Contest(
                "nginx", "nginx", start_nginx_tls, "h2load", {"http2": True}, "HTTP/2 over TLS"
            ),
        ),
        "100x10,10x100",
        COUNTED,
    ),
    "h3": Mode(
        (
            Contest(
                "nginx", "nginx", start_nginx_http3, "h2load-h3", {"http3": True}, "HTTP/3"
            ),
        ),
        "100x1,10x100,1000x1",
        COUNTED,
    ),
    "handshakes": Mode(
        (
            Contest(
                "nginx", "nginx", start_nginx_handshakes, "wrk", {"reconnect": True},
                "a TLS handshake per request",
            ),
        ),
        "16",
        ("rate", "rate_ratio", "per_cpu", "per_cpu_ratio", "cpu_in_window", "client_share",
         "server_share", "runs"),
    ),
    "idle-memory": Mode(
        (
            Contest(
                "nginx", "nginx", start_nginx_tls, "wrk", {"think_seconds": 4},
                "HTTP/1.1 over TLS, idle between requests",
            ),
            Contest(
                "nghttpd", "nghttpd", start_nghttpd, "h2load",
                {"http2": True, "think_seconds": 4},
                "HTTP/2 in clear text, idle between requests",
            ),
        ),
        "10000",
        ("open", "peak", "peak_ratio", "peak_each", "runs"),
        settle_seconds=12,
        seconds=5,
    ),
}
