"""Comparisons as a CI job makes them: the server of a pull request with that of its base, by
packaging/ci/compare. Some change nothing; others make a reply cost the server 5 % more CPU time."""

import collections
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

from common import ROOT, free_port, stop, wait_until_listening, wait_until_quiet

COMPARE = ROOT / "packaging" / "ci" / "compare"
RATE_PER_S = 1000
LIMIT = "cpu > +3%"
PLANTED_SHARE = 0.05
# What a request computes in the base, and in the runs that tell what computing costs.
BASE_NS, MORE_NS = 100_000, 200_000
COST_SECONDS, COST_ROUNDS = 2, 3
# What a comparison may take behind its time: its first look, which takes what it takes, and reports.
OVERRUN_SECONDS = 120
CPU = "server_cpu_ns_per_reply"
FOUND_SHARE_LEAST, SILENT_SHARE_LEAST = 0.9, 0.95

Outcome = collections.namedtuple(
    "Outcome", "exit_code claims is_exceeded limit change interval pairs medians_ns seconds",
)


def pull_requests(bench, count, minutes, patience):
    """Makes `count` comparisons with the planted change and twice as many of a server with itself,
    in turns, and prints a row for each; whether enough were right."""
    planted_ns = planted(bench)
    print(
        f"\n{minutes:g} minutes each, {RATE_PER_S}/s, limit {LIMIT}; a request computes "
        f"{BASE_NS / 1e3:g} µs, with the change {planted_ns / 1e3:g} µs\n"
    )
    print("| change | exit code | CPU per reply | limit | claims | pairs | took | right |")
    print("|---" * 8 + "|")
    found = {planted_ns: [], BASE_NS: []}
    for _ in range(count):
        for new_ns in (planted_ns, BASE_NS, BASE_NS):
            wait_until_quiet(patience)
            outcome = compare(bench, new_ns, minutes)
            found[new_ns].append(outcome)
            print_row(new_ns != BASE_NS, outcome)
    return judged(found[planted_ns], found[BASE_NS])


def planted(bench):
    """How long a request has to compute for its reply to cost the server 5 % more than the base's,
    all in all: the server spends CPU time beside computing."""
    costs = {BASE_NS: [], MORE_NS: []}
    port = free_port()
    server = subprocess.Popen(
        ["sh", "-c", server_command(bench, port)], stdout=subprocess.DEVNULL,
    )
    try:
        wait_until_listening("brunt serve", server, port)
        for _ in range(COST_ROUNDS):
            for compute_ns, measured in costs.items():
                measured.append(cost_ns(bench, url(port, compute_ns)))
    finally:
        stop(server)
    base, more = (statistics.median(measured) for measured in costs.values())
    per_computed = (more - base) / (MORE_NS - BASE_NS)
    print(
        f"a reply costs the server {base / 1e3:.1f} µs of CPU time with {BASE_NS / 1e3:g} µs of "
        f"computing, {more / 1e3:.1f} µs with {MORE_NS / 1e3:g} µs", flush=True,
    )
    return round(BASE_NS + PLANTED_SHARE * base / per_computed)


def cost_ns(bench, target):
    command = [
        bench.brunt, "-r", str(RATE_PER_S), "-d", f"{COST_SECONDS}s", "--format", "json", target,
    ]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
        timeout=OVERRUN_SECONDS,
    )
    return 1e9 / json.loads(done.stdout)["summary"]["server"]["requests_per_cpu_s"]


def server_command(bench, port):
    return f"exec '{bench.brunt}' serve --quiet --threads 1 --listen 127.0.0.1:{port}"


def url(port, compute_ns):
    return f"http://127.0.0.1:{port}/compute/{compute_ns}ns"


def compare(bench, new_ns, minutes):
    """One CI job. Both builds are brunt's reference server, on no core of their own; what makes
    them differ is the path."""
    port, output = free_port(), Path(bench.directory) / "compare"
    stored = output / "compare.json"
    stored.unlink(missing_ok=True)
    command = server_command(bench, port)
    variables = {
        "BRUNT": bench.brunt, "OLD": command, "NEW": command, "RATE": str(RATE_PER_S),
        "FAIL_IF": LIMIT, "UNTIL": f"{round(60 * minutes)}s", "OUTPUT": output,
        # The first of two URLs.
        "OPTIONS": f"--label base --label change {url(port, BASE_NS)}", "URL": url(port, new_ns),
    }
    begun = time.monotonic()
    done = subprocess.run(
        [COMPARE], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env={**os.environ, **{name: str(value) for name, value in variables.items()}},
        timeout=60 * minutes + OVERRUN_SECONDS,
    )
    seconds = time.monotonic() - begun
    if not stored.exists():
        raise SystemExit(f"exit code {done.returncode}: {done.stdout}{done.stderr}")
    return outcome_of(json.loads(stored.read_text()), done.returncode, seconds)


def outcome_of(found, exit_code, seconds):
    cpu = next(each for each in found["comparisons"] if each["compared"] == CPU)
    names = ("exceeded", "not_judged", "open")
    limit = next((name for name in names if found[name]), "kept").replace("_", " ")
    claims = [each for each in found["comparisons"] if each["claim"] == "differs"]
    return Outcome(
        exit_code=exit_code, claims=[(each["compared"], each["change"]) for each in claims],
        is_exceeded=bool(found["exceeded"]), limit=limit, change=cpu["change"],
        interval=(cpu["change_low"], cpu["change_high"]), pairs=cpu["pairs"],
        medians_ns=cpu["medians"], seconds=seconds,
    )


def is_claimed(outcome):
    """Whether it says that a reply costs more."""
    return any(name == CPU and change > 0 for name, change in outcome.claims)


def is_found(outcome):
    return outcome.is_exceeded or is_claimed(outcome)


def is_silent(outcome):
    return outcome.exit_code == 0 and not outcome.claims


def print_row(is_planted, outcome):
    what = f"{PLANTED_SHARE:+.0%}" if is_planted else "none"
    shown = "no result"
    if None not in (outcome.change, *outcome.interval):
        low, high = outcome.interval
        shown = f"{outcome.change:+.1%} ({low:+.1%} to {high:+.1%})"
    claims = ", ".join(f"{name} {change:+.1%}" for name, change in outcome.claims) or "none"
    is_right = is_found(outcome) if is_planted else is_silent(outcome)
    print(
        f"| {what} | {outcome.exit_code} | {shown} | {outcome.limit} | {claims} | {outcome.pairs} "
        f"| {outcome.seconds:.0f} s | {'yes' if is_right else 'NO'} |", flush=True,
    )


def judged(with_change, with_itself):
    medians = [outcome.medians_ns for outcome in with_change if outcome.medians_ns]
    if medians:
        old, new = (statistics.median(side) / 1e3 for side in zip(*medians))
        print(f"\nmedians over the planted comparisons: {old:.1f} µs and {new:.1f} µs per reply, "
              f"{new / old - 1:+.1%}")
    exceeded = sum(outcome.is_exceeded for outcome in with_change)
    claimed = sum(map(is_claimed, with_change))
    found = sum(map(is_found, with_change))
    failed = sum(outcome.exit_code != 0 for outcome in with_itself)
    loud = sum(bool(outcome.claims) for outcome in with_itself)
    silent = sum(map(is_silent, with_itself))
    conditions = (
        (
            found >= FOUND_SHARE_LEAST * len(with_change),
            f"the planted change was found in {found} of {len(with_change)}: limit exceeded in "
            f"{exceeded}, a rise claimed in {claimed} (at least {FOUND_SHARE_LEAST:.0%})",
        ),
        (
            silent >= SILENT_SHARE_LEAST * len(with_itself),
            f"nothing was claimed in {silent} of {len(with_itself)} of a server with itself: "
            f"claims in {loud}, exit code not 0 in {failed} (at least {SILENT_SHARE_LEAST:.0%})",
        ),
    )
    print()
    for is_met, words in conditions:
        print(f"{'PASS' if is_met else 'FAIL'}  {words}")
    return all(is_met for is_met, _ in conditions)
