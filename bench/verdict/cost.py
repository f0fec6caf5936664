"""What the evidence costs: pairs of runs with and without it, in turns."""

import contextlib
import json
import os
import select
import statistics
import subprocess
import sys

from common import pinned, spread, stop, wait_until_quiet
from situations import Place
from surroundings import brunt_serve

CONNECTIONS = 100
OVERRUN_SECONDS_MAX = 20
# Throughput with it against without, CPU per reply likewise, and the reading thread's share of a
# CPU.
THROUGHPUT_RATIO_LEAST = 0.98
CPU_RATIO_MOST = 1.03
READING_SHARE_MOST = 0.005
WITH, WITHOUT = (), ("--no-evidence",)


def measure_cost(bench, rounds):
    """Prints the costs and whether each is within its limit; how many are not."""
    throughput, cpu, reading = [], [], []
    with brunt_serve(bench) as root:
        place = Place(root + "/", tuple(pinned(bench.client_core, ())))
        for number in range(1, rounds + 1):
            # Each pair begins with the other one, so that a trend of the machine falls on both.
            order = (WITH, WITHOUT) if number % 2 else (WITHOUT, WITH)
            figures = {options: run_once(bench, place, options) for options in order}
            ours, baseline = figures[WITH], figures[WITHOUT]
            throughput.append(ours["replies_per_s"] / baseline["replies_per_s"])
            cpu.append(ours["cpu_s_per_reply"] / baseline["cpu_s_per_reply"])
            reading.append(ours["reading_share"])
            print(
                f"pair {number}: throughput ×{throughput[-1]:.3f}, CPU per reply ×{cpu[-1]:.3f}",
                file=sys.stderr, flush=True,
            )
    print(
        f"\nClosed loop, {CONNECTIONS} connections, with the evidence against without; by pair\n"
        f"throughput: ×{spread(throughput, 3)}\n"
        f"client CPU per reply: ×{spread(cpu, 3)}\n"
        f"reading thread, % of a CPU: {spread(reading, 3, 0.01)}\n"
    )
    limits = (
        ("throughput, median ratio", median(throughput), THROUGHPUT_RATIO_LEAST, True),
        ("client CPU per reply, median ratio", median(cpu), CPU_RATIO_MOST, False),
        ("reading thread, median share", median(reading), READING_SHARE_MOST, False),
    )
    failed = 0
    for what, value, limit, is_least in limits:
        passed = value is not None and (value >= limit if is_least else value <= limit)
        failed += not passed
        word = "at least" if is_least else "at most"
        shown = "missing" if value is None else f"{value:.4f}"
        print(f"{'PASS' if passed else 'FAIL'}  {what}: {shown} ({word} {limit})")
    return failed


def median(values):
    """The median; None where a value could not be had."""
    return None if None in values else statistics.median(values)


def run_once(bench, place, options):
    """The figures of one run."""
    stored = bench.directory / "cost.json"
    stored.unlink(missing_ok=True)
    wait_until_quiet(bench.patience)
    command = bench.command(place, ("-c", str(CONNECTIONS), *options), stored)
    client = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        usage = wait_with_usage(client, bench.total_seconds + OVERRUN_SECONDS_MAX)
    finally:
        stop(client)
    run = None
    with contextlib.suppress(OSError, ValueError):
        run = json.loads(stored.read_text())
    if client.returncode != 0 or run is None:
        sys.exit(f"exit code {client.returncode}: {' '.join(command)}")
    summary, evidence = run["summary"], run["agents"][0]["evidence"]
    cpu = usage.ru_utime + usage.ru_stime
    interval_ns = evidence.get("interval_ns")
    return {
        "replies_per_s": summary["successes_per_s"],
        "cpu_s_per_reply": cpu / summary["all_phases"]["answered"],
        "reading_share": evidence["observer"]["cpu_ns"] / interval_ns if interval_ns else None,
    }


def wait_with_usage(process, seconds_max):
    """Waits for a process without polling, since both cores are in use; what it used."""
    descriptor = os.pidfd_open(process.pid)
    try:
        ending = select.poll()
        ending.register(descriptor, select.POLLIN)
        if not ending.poll(seconds_max * 1e3):
            process.kill()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return usage
    finally:
        os.close(descriptor)
