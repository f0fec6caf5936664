"""The table of troubled situations: five kinds of servers, on all CPUs and on one, that are stopped,
killed, throttled, disturbed, or loaded at some part of their capacity. The limit of each is known."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import everyday_servers as servers
from common import pinned
from situations import (
    CLIENT, CONCURRENCY, DISTURBED, INCONCLUSIVE, RATE, SERVER, SHARED, Place, Situation,
)
from surroundings import NotPossible, busy_process, cpu_quota

FAILED, THINK_TIME = "server_failed", "think_time"
QUOTA_PERCENT = 30
# Parts of the measured time.
TROUBLE_AT, RESUMED_AT = 0.4, 0.8
CAPACITY_SECONDS = 1
KINDS = {
    "nginx": ("nginx_default", 1),
    "node": ("node", "hello"),
    "go": ("go", "hello"),
    "gunicorn": ("gunicorn", "hello"),
    "threaded": ("threaded", "hello"),
}


def processes(pid):
    """A process and its descendants, the oldest first."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def send_all(pid, number):
    for each in processes(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, number)


def bind_all(pid, core):
    for each in processes(pid):
        for task in Path(f"/proc/{each}/task").iterdir():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(task.name), {core})


@contextlib.contextmanager
def later(seconds, act):
    timer = threading.Timer(seconds, act)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def at(bench, part):
    """Seconds after brunt's start at which so much of the window is over."""
    return bench.warmup_seconds + part * (bench.total_seconds - bench.warmup_seconds)


# --- What happens to a server that runs -----------------------------------------------------------


@contextlib.contextmanager
def stopped(bench, pid, resumed):
    with contextlib.ExitStack() as stack:
        # Also where brunt ends before: a stopped process does not end by being asked to.
        stack.callback(send_all, pid, signal.SIGCONT)
        stack.enter_context(later(at(bench, TROUBLE_AT), lambda: send_all(pid, signal.SIGSTOP)))
        if resumed:
            back = later(at(bench, RESUMED_AT), lambda: send_all(pid, signal.SIGCONT))
            stack.enter_context(back)
        yield ()


@contextlib.contextmanager
def killed(bench, pid):
    with later(at(bench, TROUBLE_AT), lambda: send_all(pid, signal.SIGKILL)):
        yield ()


@contextlib.contextmanager
def others(bench, _pid, count):
    """Other programs, each on a CPU."""
    with contextlib.ExitStack() as stack:
        for core in (bench.server_core, bench.client_core)[:count]:
            stack.enter_context(busy_process(core))
        yield ()


@contextlib.contextmanager
def server_quota(bench, pid):
    with both_quota(bench, pid):
        yield ()


@contextlib.contextmanager
def both_quota(_bench, pid):
    """A quota on server and brunt together, as a hypervisor takes from both."""
    with cpu_quota(QUOTA_PERCENT) as into_group:
        members = Path(into_group[-1])
        for each in processes(pid):
            members.write_text(str(each))
        try:
            yield into_group
        finally:
            # A group is removed when it is empty.
            for each in processes(pid):
                (members.parent.parent / members.name).write_text(str(each))


@contextlib.contextmanager
def client_quota(_bench, _pid):
    with cpu_quota(QUOTA_PERCENT) as into_group:
        yield into_group


# --- Places ---------------------------------------------------------------------------------------


def arranged(kind, is_bound, trouble=None):
    @contextlib.contextmanager
    def arrange(bench):
        name, *arguments = KINDS.get(kind, ("threaded", kind))
        with getattr(servers, name)(bench, *arguments) as url:
            pid = bench.server_pid
            prefix = ()
            if is_bound:
                bind_all(pid, bench.server_core)
                prefix = tuple(pinned(bench.client_core, ()))
            with trouble(bench, pid) if trouble else contextlib.nullcontext(()) as more:
                yield Place(url, (*more, *prefix))
    return arrange


def at_part_of_capacity(kind, is_bound, part):
    """The same with an open loop at a part of what a closed one reached just before."""
    @contextlib.contextmanager
    def arrange(bench):
        with arranged(kind, is_bound)(bench) as place:
            stored = bench.directory / "capacity.json"
            command = [
                *(*place.prefix, bench.brunt, "-d", f"{CAPACITY_SECONDS}s", "--quiet"),
                *("--output", str(stored), place.url),
            ]
            subprocess.run(command, capture_output=True, timeout=60)
            try:
                rate = json.loads(stored.read_text())["summary"]["successes_per_s"]
            except (OSError, ValueError) as error:
                raise NotPossible(f"the capacity is not known: {error}") from error
            finally:
                stored.unlink(missing_ok=True)
            yield Place(place.url, place.prefix, ("-r", str(max(1, round(rate * part)))))
    return arrange


def rows(kind, is_bound):
    bound = ", bound" if is_bound else ""

    def row(name, label, accepted, arrange, *options, reason=""):
        full = f"{kind}-{name}{'-bound' if is_bound else ''}"
        return Situation(full, f"{kind}: {label}{bound}", accepted, arrange, options, reason=reason, kind=name)

    make = functools.partial(arranged, kind, is_bound)
    part = functools.partial(at_part_of_capacity, kind, is_bound)
    # gunicorn's worker serves a connection after the other, so that a second one waits.
    is_serial = kind == "gunicorn"
    at_end = (SERVER,) if is_bound or is_serial else (SERVER, SHARED)
    yield row("saturated", "64 connections", at_end, make())
    yield row(
        "half", "half of its capacity", (RATE, CLIENT, *(() if is_bound else (SHARED,))), part(0.5),
        reason="the rate is met; where p99 is over 20 % and 100 us brunt's own, the latencies are not "
        "the server's, and where both ran on the same CPUs they are those of the pair",
    )
    yield row(
        "above", "twice its capacity", at_end, part(2),
        reason="the rate is not met, and the server is at its end",
    )
    yield row("stopped", "stopped for good", (FAILED,), make(functools.partial(
        stopped, resumed=False)))
    yield row("resumed", "stopped for two fifths of the window", (FAILED,), make(functools.partial(
        stopped, resumed=True)))
    yield row("killed", "killed", (FAILED,), make(killed))
    yield row(
        "one-connection", "one connection",
        (CONCURRENCY, SERVER, SHARED) if is_serial else (CONCURRENCY,), make(), "-c", "1",
    )
    yield row("think-time", "pauses of 100 ms", (THINK_TIME,), make(), "--think-time", "100ms")
    yield row("quota", "a CPU quota on the server", (SERVER,), make(server_quota))
    yield row(
        "client-quota", "a CPU quota on brunt",
        (DISTURBED, CLIENT, INCONCLUSIVE, *((SERVER,) if kind in ("gunicorn", "threaded") else ())),
        make(client_quota), reason="for the slow servers the quota is enough",
    )
    yield row(
        "both-quota", "a CPU quota on server and brunt together",
        (DISTURBED, CLIENT, SHARED, SERVER, INCONCLUSIVE), make(both_quota),
        reason="both are held back; a server that takes most of the quota is at its end",
    )
    yield row(
        "other-all", "other programs on both CPUs", (DISTURBED, SHARED, CLIENT, INCONCLUSIVE),
        make(functools.partial(others, count=2)),
    )
    yield row(
        "other-one", "another program on a CPU",
        (DISTURBED, SHARED, INCONCLUSIVE, *((SERVER,) if kind == "threaded" else ())),
        make(functools.partial(others, count=1)),
        reason="64 threads get all of a CPU but a 65th; of other servers the program takes half",
    )


TROUBLED = (
    *(each for kind in KINDS for is_bound in (False, True) for each in rows(kind, is_bound)),
    Situation("locked", "threaded: a lock", (SERVER, INCONCLUSIVE), arranged("locked", False), ()),
    Situation("sleeping", "threaded: sleeps", (CONCURRENCY,), arranged("sleeping", False), ()),
    Situation(
        "pausing", "threaded: pauses as of a garbage collector", (SERVER, SHARED, INCONCLUSIVE),
        arranged("pausing", False), (),
    ),
    *(
        Situation(
            f"failing-{percent}", f"threaded: {percent} % fail", (SERVER, SHARED),
            arranged(f"failing-{percent}", False), (),
        )
        for percent in (2, 50)
    ),
)
