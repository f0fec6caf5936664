"""The load generators that `head-to-head` compares: how each is called, and what it prints."""

import contextlib
import dataclasses
import json
import re
from pathlib import Path

THINK_SCRIPT = Path(__file__).resolve().parent / "think.lua"
# Handshakes per second that a run by count is laid out for.
HANDSHAKES_PER_SECOND = 1000
# Requests that a tool is told to send at most, where it cannot be told a time alone.
REQUESTS_PER_SECOND_MAX = 1_000_000


@dataclasses.dataclass(frozen=True)
class Load:
    """What one run asks of a tool."""

    url: str
    connections: int
    settle_seconds: int
    seconds: int
    streams: int = 1
    http2: bool = False
    http3: bool = False
    # A connection, with TLS a full handshake, for each request.
    reconnect: bool = False
    # From a reply to the next request on its connection.
    think_seconds: float = None
    # Ends after so many requests instead of after a time.
    requests: int = None

    @property
    def total_seconds(self):
        return self.settle_seconds + self.seconds

    @property
    def tls(self):
        return self.url.startswith("https:")

    @property
    def plain(self):
        """HTTP/1.1 in clear text, by time, over kept connections that are always busy."""
        streams = self.http2 or self.http3
        return not (streams or self.tls or self.reconnect or self.think_seconds or self.requests)


@dataclasses.dataclass(frozen=True)
class Tool:
    """A load generator."""

    program: str
    # The arguments for a load; None where it cannot be had of the tool.
    arguments: object
    # The rate in what the tool prints.
    rate: object
    # The successful replies of its whole run in what it prints; None where it does not tell.
    answered: object = lambda output: None
    # Whether it ends after a number of requests under a load, and not after a time.
    ends_by_count: object = lambda load: bool(load.requests)
    connections_max: int = 1_000_000
    version_arguments: tuple = ("--version",)


def first_number(pattern):
    expression = re.compile(pattern, re.MULTILINE)

    def parse(output):
        match = expression.search(output)
        return float(next(g for g in match.groups() if g)) if match else None

    return parse


# --- brunt ----------------------------------------------------------------------------------------


def brunt_run(output):
    """The stored run in what brunt printed; None where there is none."""
    with contextlib.suppress(ValueError):
        value = json.loads(output[output.index("{") : output.rindex("}") + 1])
        return value if "summary" in value else None
    return None


def brunt_rate(backend):
    def parse(output):
        run = brunt_run(output)
        # A run on the other backend, after a fall-back, is not what was asked for.
        if run and run["agents"][0]["backend"] == backend:
            return run["summary"]["successes_per_s"]
        return None

    return parse


def brunt_answered(output):
    run = brunt_run(output)
    return run["summary"]["all_phases"]["answered"] if run else None


def brunt_protocol(load):
    if load.http2 or load.http3:
        return ["--http3" if load.http3 else "--http2", "--streams", str(load.streams)]
    return ["--http1"]


def brunt_arguments(backend):
    def arguments(load):
        until = ["-d", f"{load.seconds}s", "--warmup", f"{load.settle_seconds}s"]
        if load.requests:
            until = ["-n", str(load.requests)]
        return [
            *("-t", "1", "-c", str(load.connections), *until, "--backend", backend),
            *brunt_protocol(load),
            *(["--insecure"] if load.tls else []),
            *(["--no-keepalive"] if load.reconnect else []),
            *(["--think-time", f"{load.think_seconds}s"] if load.think_seconds else []),
            *("--format", "json", "--quiet", load.url),
        ]

    return arguments


# --- The others -----------------------------------------------------------------------------------


def wrk_arguments(load):
    if load.http2 or load.http3 or load.requests:
        return None
    think = load.think_seconds
    return [
        *("-t1", f"-c{load.connections}", f"-d{load.total_seconds}s", "--timeout", "30s"),
        *(["-H", "Connection: close"] if load.reconnect else []),
        *(["-s", str(THINK_SCRIPT)] if think else []),
        load.url,
        *(["--", str(int(think * 1000))] if think else []),
    ]


def ab_arguments(load):
    if not load.plain:
        return None
    return [
        # -t sets -n to 50,000, so -n comes after it.
        *("-q", "-k", "-r", "-t", str(load.total_seconds), "-n", request_limit(load)),
        *("-c", str(load.connections), load.url),
    ]


def h2load_arguments(load):
    if load.http3:
        return None
    until = ["-D", str(load.seconds), f"--warm-up-time={load.settle_seconds}s"]
    if load.requests:
        until = ["-n", str(load.requests)]
    elif load.reconnect:
        # By time it would not end (version 1.52).
        until = ["-n", str(HANDSHAKES_PER_SECOND * load.total_seconds)]
    return [
        *(["-m", str(load.streams)] if load.http2 else ["--h1"]),
        *("-t", "1", "-c", str(load.connections), *until),
        *(["-H", "connection: close"] if load.reconnect else []),
        *(["--rps", str(1 / load.think_seconds)] if load.think_seconds else []),
        load.url,
    ]


def h2load_http3_arguments(load):
    if not load.http3:
        return None
    return [
        *("--alpn-list=h3", "-m", str(load.streams), "-t", "1", "-c", str(load.connections)),
        *("-D", str(load.seconds), f"--warm-up-time={load.settle_seconds}s", load.url),
    ]


def oha_arguments(load):
    if load.think_seconds:
        return None
    return [
        *("--no-tui", "-c", str(load.connections)),
        *(["-n", str(load.requests)] if load.requests else ["-z", f"{load.total_seconds}s"]),
        *(["--http2", "-p", str(load.streams)] if load.http2 else []),
        *(["--http-version", "3", "-p", str(load.streams)] if load.http3 else []),
        *(["--insecure"] if load.tls else []),
        *(["--disable-keepalive"] if load.reconnect else []),
        load.url,
    ]


def weighttp_arguments(load):
    if not load.plain:
        return None
    return [
        *("-q", "-k", "-t", "1", "-c", str(load.connections), "-n", request_limit(load)),
        *("-a", str(load.total_seconds), load.url),
    ]


def request_limit(load):
    return str(REQUESTS_PER_SECOND_MAX * load.total_seconds)


TOOLS = {
    **{
        f"brunt ({backend})": Tool(
            "brunt", brunt_arguments(backend), brunt_rate(backend), brunt_answered
        )
        for backend in ("uring", "epoll")
    },
    "wrk": Tool(
        "wrk",
        wrk_arguments,
        first_number(r"^Requests/sec:\s+([\d.]+)"),
        version_arguments=("-v",),
    ),
    "ab": Tool(
        "ab",
        ab_arguments,
        first_number(r"^Requests per second:\s+([\d.]+)"),
        connections_max=20_000,
        version_arguments=("-V",),
    ),
    "h2load": Tool(
        "h2load",
        h2load_arguments,
        first_number(r"^finished in .*?, ([\d.]+) req/s"),
        first_number(r"^requests: .*?(\d+) succeeded"),
        lambda load: bool(load.requests or load.reconnect),
    ),
    # Built with HTTP/3, which the one of a distribution rarely is.
    "h2load-h3": Tool(
        "h2load-h3",
        h2load_http3_arguments,
        first_number(r"^finished in .*?, ([\d.]+) req/s"),
        first_number(r"^requests: .*?(\d+) succeeded"),
    ),
    "oha": Tool(
        "oha",
        oha_arguments,
        first_number(r"^\s*Requests/sec:\s+([\d.]+)"),
        first_number(r"^\s*\[200\] (\d+) responses"),
    ),
    "weighttp": Tool(
        "weighttp",
        weighttp_arguments,
        # Version 0.5 prints JSON, older ones a sentence.
        first_number(r'"reqs_per_sec":\s*([\d.]+)|finished in .*?, ([\d.]+) req/s'),
        version_arguments=("-V",),
    ),
}
