"""Figures of servers from stored runs: a median over the rounds with an interval, and the ranks
that these leave open."""

import collections
import json
import math
import statistics

CLOSED, HALF, FIXED = LOADS = ("closed", "half", "fixed")
CLIENT_LIMITED = "client_limited"

# The median of rounds, the least and the greatest of them, and how many there are.
Spread = collections.namedtuple("Spread", "low middle high rounds")
Measured = collections.namedtuple(
    "Measured", "rate_per_s is_bound verdict cpu_ns client_cpu_ns resident_bytes p50_ns p99_ns "
    "reply_bytes failed",
)


def stored_name(slug, load, round_number):
    return f"{slug}-{load}-{round_number}.json"


def slug_of(name):
    return "".join(each if each.isalnum() else "-" for each in name.lower())


def measured(path):
    """What one stored run says of its server."""
    run = json.loads(path.read_text())
    summary = run["summary"]
    server = summary.get("server") or {}
    response = summary["response"]
    per_cpu_s = server.get("requests_per_cpu_s")
    rate, attempts = summary["successes_per_s"], summary["attempts_per_s"]
    verdict = (summary.get("verdict") or {}).get("name", "none")
    return Measured(
        rate_per_s=rate,
        is_bound=bool(summary["successes_is_lower_bound"]) or verdict == CLIENT_LIMITED,
        verdict=verdict,
        cpu_ns=1e9 / per_cpu_s if per_cpu_s else None,
        client_cpu_ns=summary.get("cpu_ns_per_reply"),
        resident_bytes=server.get("resident_bytes_max"),
        p50_ns=response["p50_ns"], p99_ns=response["p99_ns"],
        reply_bytes=summary["bytes_received_per_s"] / attempts if attempts else None,
        failed=summary["requests"]["failed"] + summary["requests"]["errors"],
    )


def all_measured(directory, names):
    """The runs of each server and load, by both."""
    found = {}
    for name in names:
        for load in LOADS:
            paths = directory.glob(stored_name(slug_of(name), load, "[0-9]*"))
            found[name, load] = [measured(path) for path in sorted(paths)]
    return found


def spread_of(runs, field):
    values = [getattr(run, field) for run in runs]
    values = [value for value in values if value is not None]
    if not values:
        return None
    return Spread(min(values), statistics.median(values), max(values), len(values))


def rate_spread(runs):
    """Throughput; without an upper end where brunt was the limit of a run."""
    found = spread_of(runs, "rate_per_s")
    if found and any(run.is_bound for run in runs):
        return found._replace(high=math.inf)
    return found


def is_below(one, other):
    """Whether every round of one lies below every round of the other."""
    return one.high < other.low


def ranks(spreads, is_more_better=False):
    """For each name the best and the worst rank that the intervals leave it."""
    known = {name: spread for name, spread in spreads.items() if spread}
    found = {}
    for name, mine in known.items():
        others = [spread for other, spread in known.items() if other != name]
        below = sum(is_below(other, mine) for other in others)
        above = sum(is_below(mine, other) for other in others)
        better, worse = (above, below) if is_more_better else (below, above)
        found[name] = (1 + better, len(known) - worse)
    return found


def pairs_alike(spreads):
    """How many pairs cannot be told apart, and how many there are."""
    known = [spread for spread in spreads.values() if spread]
    pairs = [
        (one, other) for at, one in enumerate(known) for other in known[:at]
    ]
    alike = [pair for pair in pairs if not is_below(*pair) and not is_below(*reversed(pair))]
    return len(alike), len(pairs)
