"""The table of situations: the limit of each run, and so the right verdict, is known before."""

import contextlib
import dataclasses
import typing
from pathlib import Path

from common import pinned
from surroundings import (
    brunt_serve, busy_process, cpu_quota, drop_input, limit_speed, namespaces, nginx, odd_server,
    set_sysctl,
)

CLIENT, NETWORK, RATE = "client_limited", "network_limited", "rate_limited"
SERVER, CONCURRENCY, SHARED = "server_limited", "concurrency_limited", "shared_host"
SHARED_SERVER, INCONCLUSIVE = "shared_server", "inconclusive"
NO_SUCCESS, DISTURBED = "no_success", "disturbed"
# Verdicts by which the figures describe what was tested. Wrong ones among them are dangerous.
TRUSTING = (SERVER, CONCURRENCY, RATE)
LINK_MBIT_PER_S = 100


@dataclasses.dataclass(frozen=True)
class Place:
    """Where brunt runs, and what it loads."""

    # None: no URL is given, and brunt loads its own server.
    url: typing.Optional[str]
    # In front of brunt's command.
    prefix: tuple
    # What brunt is told besides.
    options: tuple = ()


@dataclasses.dataclass(frozen=True)
class Situation:
    """One row of the table."""

    name: str
    label: str
    # Verdicts that are right, the expected one first.
    accepted: tuple
    # A context that makes the situation and gives the `Place`.
    arrange: typing.Callable
    # What brunt is told besides.
    options: tuple
    # What a refusal before the run (exit code 2) has to name to be right as well.
    refusal: str = None
    # Why the accepted verdicts are right, where the label does not say it.
    reason: str = ""
    # Situations of one kind, with different servers, are also counted together.
    kind: str = None


# --- Arrangements ---------------------------------------------------------------------------------


def served(path, *serve_options, same_core=False, beside_busy_process=False):
    """The reference server on its core, brunt on the other one."""
    @contextlib.contextmanager
    def arrange(bench):
        with contextlib.ExitStack() as stack:
            client_core = bench.server_core if same_core else bench.client_core
            root = stack.enter_context(brunt_serve(bench, *serve_options))
            if beside_busy_process:
                stack.enter_context(busy_process(client_core))
            yield Place(root + path, tuple(pinned(client_core, ())))
    return arrange


def drifting(from_time, to_time):
    """A server that was just started, whose delay changes until after the end of the run."""
    @contextlib.contextmanager
    def arrange(bench):
        # Starting the server and brunt takes some of it.
        period_ms = round((bench.total_seconds + 0.3) * 1000)
        with brunt_serve(bench) as root:
            url = f"{root}/drift/{from_time}/{to_time}/{period_ms}ms"
            yield Place(url, tuple(pinned(bench.client_core, ())))
    return arrange


@contextlib.contextmanager
def nginx_served(bench):
    with nginx(bench) as url:
        yield Place(url, tuple(pinned(bench.client_core, ())))


@contextlib.contextmanager
def accepted_slowly(bench):
    with odd_server(bench, "slow-accept") as root:
        yield Place(root + "/", tuple(pinned(bench.client_core, ())))


def across(path, prepare, odd=None):
    """Server and brunt in network namespaces of their own, which `prepare` changes."""
    @contextlib.contextmanager
    def arrange(bench):
        with namespaces() as link:
            prepare(link)
            server = odd_server(bench, odd, link) if odd else brunt_serve(bench, link=link)
            with server as root:
                prefix = (*link.inside(link.client), *pinned(bench.client_core, ()))
                yield Place(root + path, prefix)
    return arrange


def slow_link(link):
    limit_speed(link, LINK_MBIT_PER_S)


def loss_to(side):
    """Two of a hundred packets to one side are lost."""
    def prepare(link):
        drop_input(link, getattr(link, side), "numgen random mod 100 < 2")
    return prepare


def ports(count):
    """So many local ports for the client, each in use until a minute after its connection."""
    def prepare(link):
        set_sysctl(
            link, link.client, "net.ipv4.ip_local_port_range", f"40000 {40000 + count - 1}"
        )
        set_sysctl(link, link.client, "net.ipv4.tcp_tw_reuse", 0)
    return prepare


@contextlib.contextmanager
def quota(bench):
    with brunt_serve(bench) as root, cpu_quota(percent=30) as into_group:
        yield Place(root + "/", (*into_group, *pinned(bench.client_core, ())))


# --- The table ------------------------------------------------------------------------------------

BUSY = ("-s", str(Path(__file__).with_name("busy.lua")))

SITUATIONS = (
    Situation(
        "server-saturated", "single-threaded server saturated, client free",
        (SERVER,), served("/compute/20us"), ("-c", "32"),
    ),
    Situation(
        "nginx-saturated", "nginx with one worker saturated, client free",
        (SERVER,), nginx_served, ("-c", "32"),
    ),
    Situation(
        "client-core-shared", "client on the core of a busy process",
        (DISTURBED,), served("/", beside_busy_process=True), ("-c", "32"),
    ),
    Situation(
        "client-slowed", "client slowed by added work",
        (CLIENT,), served("/"), ("-c", "32", *BUSY),
    ),
    Situation(
        "one-core", "client and server on one core",
        (SHARED,), served("/", same_core=True), ("-c", "32"),
    ),
    Situation(
        "one-connection", "1 connection, fast server",
        (CONCURRENCY,), served("/"), ("-c", "1"),
    ),
    Situation(
        "delay", "64 connections, replies after 50 ms",
        (CONCURRENCY,), served("/delay/50ms"), ("-c", "64"),
    ),
    Situation(
        "delay-remote", "the same, server and brunt in network namespaces of their own",
        (INCONCLUSIVE,), across("/delay/50ms", lambda _link: None), ("-c", "64"),
        reason="the CPUs of a remote server are not known; brunt names the experiment that decides",
    ),
    Situation(
        "delay-polling", "the same, from a server that polls",
        (CONCURRENCY, INCONCLUSIVE), served("/delay/50ms", "--spin"), ("-c", "64"),
    ),
    Situation(
        "rate-met", "own rate of 2,000/s met",
        (RATE,), served("/"), ("-r", "2000"),
    ),
    Situation(
        "limiter-429", "429 above 5,000/s, closed loop",
        (RATE,), served("/limit/5k"), ("-c", "2"),
    ),
    Situation(
        "limiter-503", "503 above 5,000/s, open loop",
        (RATE,), served("/limit/5k/503"), ("-r", "20k"),
    ),
    Situation(
        "overloaded", "open loop above the server's capacity",
        (SERVER,), served("/compute/100us"), ("-r", "30k", "-c", "100", "--drain", "1s"),
    ),
    Situation(
        "link-known", f"a link of {LINK_MBIT_PER_S} Mbit/s, its speed given",
        (NETWORK,), across("/bytes/100k", slow_link),
        ("-c", "16", "--link-speed", f"{LINK_MBIT_PER_S}mbit"),
    ),
    Situation(
        "link-unknown", "the same, its speed not given",
        (NETWORK, INCONCLUSIVE), across("/bytes/100k", slow_link), ("-c", "16"),
    ),
    Situation(
        "loss-of-replies", "2 % of the packets to the client lost",
        (NETWORK,), across("/bytes/10k", loss_to("client")), ("-c", "32"),
    ),
    Situation(
        "loss-of-requests", "2 % of the packets to the server lost",
        (NETWORK,), across("/", loss_to("server")), ("-c", "32"),
    ),
    Situation(
        "accept-queue", "the server's accept queue overflows",
        (SERVER,), accepted_slowly, ("-c", "32", "--no-keepalive", "--drain", "1s"),
    ),
    Situation(
        "ports-gone", "all of 200 ports in use before the window",
        (CLIENT, NO_SUCCESS), across("/", ports(200), odd="keeps-open"), ("-c", "16", "--no-keepalive"),
        refusal="port",
    ),
    Situation(
        "ports-run-out", "4,000 ports, of which none are left in the end",
        (CLIENT,), across("/", ports(4_000), odd="keeps-open"), ("-c", "16", "--no-keepalive"),
        refusal="port",
    ),
    Situation(
        "client-quota", "client held back by the CPU quota of its cgroup",
        (CLIENT, INCONCLUSIVE), quota, ("-c", "32"),
    ),
    Situation(
        "drift", "a server that becomes slower",
        (INCONCLUSIVE,), drifting("1ms", "3ms"), ("-c", "8"),
    ),
    Situation(
        "lock", "server limited by a lock",
        (SERVER, INCONCLUSIVE), served("/locked/200us"), ("-c", "32"),
    ),
)
