"""What a situation is made of: servers, busy processes, networks and quotas. Each is a context that
undoes what it did."""

import contextlib
import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path

from common import free_port, nginx_command, pinned, program_path, stop, wait_until_listening

COMMAND_SECONDS_MAX = 10
CLIENT_ADDRESS, SERVER_ADDRESS, SERVER_PORT = "10.213.7.1", "10.213.7.2", 8080
INTERFACE = "bench0"
# More than the connections of a situation can have in flight: what waits in it is never dropped.
LINK_QUEUE = "4mb"
CGROUPS = Path("/sys/fs/cgroup")
QUOTA_PERIOD_US = 100_000


class NotPossible(Exception):
    """The situation cannot be made here, and why."""


def require_root():
    if os.geteuid() != 0:
        raise NotPossible("needs root")


def run(*command, text=None):
    """Runs a command that changes the surroundings."""
    program = program_path(command[0])
    if not program:
        raise NotPossible(f"needs `{command[0]}`")
    try:
        done = subprocess.run(
            [program, *map(str, command[1:])], input=text, capture_output=True, text=True,
            timeout=COMMAND_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as error:
        raise NotPossible(f"`{' '.join(map(str, command))}` does not end") from error
    if done.returncode != 0:
        raise NotPossible(f"`{' '.join(map(str, command))}`: {done.stderr.strip()}")


# --- Processes ------------------------------------------------------------------------------------


@contextlib.contextmanager
def process(command, output=subprocess.DEVNULL):
    running = subprocess.Popen(
        list(map(str, command)), stdin=subprocess.DEVNULL, stdout=output, stderr=output
    )
    try:
        yield running
    finally:
        stop(running)


@contextlib.contextmanager
def serving(bench, name, command, port):
    """A server until the end of the context; it listens at the beginning."""
    told = bench.directory / "server-output"
    with open(told, "wb") as output, process(command, output) as server:
        wait_until_listening(name, server, port, told)
        yield server


@contextlib.contextmanager
def brunt_serve(bench, *options, link=None, core=None):
    """The reference server with one worker; the URL of its root."""
    address, port, prefix = place(link)
    core = bench.server_core if core is None else core
    command = [*prefix, *pinned(core, [
        bench.brunt, "serve", "-t", "1", "--listen", f"{address}:{port}", *options,
    ])]
    with serving(bench, "brunt serve", command, port):
        yield f"http://{address}:{port}"


@contextlib.contextmanager
def odd_server(bench, kind, link=None):
    """A server of `odd_server.py`; the URL of its root."""
    address, port, prefix = place(link)
    program = Path(__file__).resolve().parent / "odd_server.py"
    command = [*prefix, *pinned(bench.server_core, [sys.executable, program, kind, address, port])]
    with serving(bench, kind, command, port):
        yield f"http://{address}:{port}"


@contextlib.contextmanager
def nginx(bench):
    """nginx with one worker; the URL of a file of 100 bytes."""
    if not program_path("nginx"):
        raise NotPossible("needs nginx")
    port = free_port()
    bench.nginx_count += 1
    directory = bench.directory / f"nginx-{bench.nginx_count}"
    command = pinned(bench.server_core, nginx_command(directory, port, 1024))
    with serving(bench, "nginx", command, port):
        yield f"http://127.0.0.1:{port}/100.html"


def busy_process(core):
    """A process that takes all that it can get of a core."""
    return process(pinned(core, [sys.executable, "-c", "while True: pass"]))


# --- Networks -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Link:
    """Two network namespaces, and a pair of Ethernet interfaces that joins them."""

    client: str
    server: str

    def inside(self, namespace):
        return ("ip", "netns", "exec", namespace)


def place(link):
    """Address and port for a server, and what goes in front of its command."""
    if link:
        return SERVER_ADDRESS, SERVER_PORT, link.inside(link.server)
    return "127.0.0.1", free_port(), ()


@contextlib.contextmanager
def namespaces():
    require_root()
    link = Link(f"brunt-client-{os.getpid()}", f"brunt-server-{os.getpid()}")
    with contextlib.ExitStack() as stack:
        for name in (link.client, link.server):
            run("ip", "netns", "add", name)
            stack.callback(run, "ip", "netns", "delete", name)
        run(
            "ip", "link", "add", INTERFACE, "netns", link.client,
            "type", "veth", "peer", "name", INTERFACE, "netns", link.server,
        )
        for name, address in ((link.client, CLIENT_ADDRESS), (link.server, SERVER_ADDRESS)):
            run("ip", "-n", name, "address", "add", f"{address}/30", "dev", INTERFACE)
            run("ip", "-n", name, "link", "set", INTERFACE, "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
        yield link


def limit_speed(link, mbit_per_s):
    """Lets so much through from server to client, by whatever this kernel has for it."""
    rate = f"{mbit_per_s}mbit"
    tc = (*link.inside(link.server), "tc")
    on = ("dev", INTERFACE)
    ways = (
        [(*tc, "qdisc", "add", *on, "root", "tbf", "rate", rate, "burst", "64kb",
          "limit", LINK_QUEUE)],
        [(*tc, "qdisc", "add", *on, "root", "handle", "1:", "htb", "default", "1"),
         (*tc, "class", "add", *on, "parent", "1:", "classid", "1:1", "htb", "rate", rate)],
    )
    for way in ways:
        try:
            for command in way:
                run(*command)
            return
        except NotPossible:
            continue  # The kernel does not know it; the next way replaces what there is of it.
    kbytes_per_s = mbit_per_s * 1000 // 8
    drop_input(link, link.client, f"limit rate over {kbytes_per_s} kbytes/second")


def drop_input(link, namespace, match):
    """Drops TCP packets that come into a namespace and match."""
    rules = f"""
        table ip brunt {{
            chain input {{
                type filter hook input priority 0
                ip protocol tcp {match} drop
            }}
        }}
    """
    # It goes with its namespace.
    run(*link.inside(namespace), "nft", "-f", "-", text=rules)


def set_sysctl(link, namespace, name, value):
    run(*link.inside(namespace), "sysctl", "-q", "-w", f"{name}={value}")


# --- Quotas ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def cpu_quota(percent):
    """A cgroup that may use so much of one CPU; what goes in front of a command to start it
    there."""
    require_root()
    quota_us = QUOTA_PERIOD_US * percent // 100
    with contextlib.ExitStack() as stack:
        first = CGROUPS / "cpu"
        if (first / "cpu.cfs_quota_us").exists() or (first / "cpu.shares").exists():
            files = {"cpu.cfs_period_us": QUOTA_PERIOD_US, "cpu.cfs_quota_us": quota_us}
            parent = first
        else:
            parent = second_hierarchy(stack)
            files = {"cpu.max": f"{quota_us} {QUOTA_PERIOD_US}"}
        group = parent / f"brunt-{os.getpid()}"
        group.mkdir()
        stack.callback(remove_group, group)
        try:
            for name, value in files.items():
                (group / name).write_text(str(value))
        except OSError as error:
            raise NotPossible(f"needs CPU quotas: {error}") from error
        yield ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs"))


def second_hierarchy(stack):
    """The root of cgroup v2, with CPU quotas in the groups below it."""
    for root in (CGROUPS, CGROUPS / "unified"):
        controllers, enabled = root / "cgroup.controllers", root / "cgroup.subtree_control"
        if not controllers.exists() or "cpu" not in controllers.read_text().split():
            continue
        if "cpu" not in enabled.read_text().split():
            enabled.write_text("+cpu")
            stack.callback(enabled.write_text, "-cpu")
        return root
    raise NotPossible("needs the cpu controller of cgroups")


def remove_group(group):
    """Removes a cgroup; the kernel takes a moment to see that its last process has ended."""
    deadline = time.monotonic() + COMMAND_SECONDS_MAX
    while True:
        try:
            return group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
