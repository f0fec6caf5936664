"""The page about servers: text, tables and charts from the figures of stored runs."""

import collections
import math
import textwrap

from charts import Panel, chart
from figures import CLOSED, FIXED, HALF, all_measured, pairs_alike, ranks, rate_spread, spread_of

COLUMNS = 100
MICRO, MILLION = 1e3, 1e6
DASH = "–"


class Page:
    """What is shown of the servers, in the order of their CPU time per reply at the fixed rate."""

    def __init__(self, record, directory):
        self.record = record
        names = list(record["servers"])
        self.runs = all_measured(directory, names)
        self.cpu = {load: self.spreads(names, load, "cpu_ns") for load in (FIXED, HALF, CLOSED)}
        self.resident = self.spreads(names, CLOSED, "resident_bytes")
        self.p50 = self.spreads(names, HALF, "p50_ns")
        self.p99 = self.spreads(names, HALF, "p99_ns")
        self.fixed_p99 = self.spreads(names, FIXED, "p99_ns")
        self.rate = {name: rate_spread(self.runs[name, CLOSED]) for name in names}
        self.names = sorted(
            names, key=lambda name: (self.cpu[FIXED][name] or (0, math.inf))[1],
        )

    def spreads(self, names, load, field):
        return {name: spread_of(self.runs[name, load], field) for name in names}

    def fixed(self):
        return f"{self.record['rate_per_s']:,}/s"

    # --- Tables -----------------------------------------------------------------------------------

    def cost_table(self):
        order = ranks(self.cpu[FIXED])
        rows = [
            (
                name, shown_ranks(order, name), shown(self.cpu[FIXED][name], MICRO),
                shown(self.cpu[HALF][name], MICRO), shown(self.cpu[CLOSED][name], MICRO),
                shown(self.resident[name], MILLION),
            )
            for name in self.names
        ]
        heads = (
            "server", "ranks", f"µs at {self.fixed()}", "µs at half", "µs, closed loop",
            "memory, MB",
        )
        return table(heads, rows)

    def rate_table(self):
        order = ranks(self.rate, is_more_better=True)
        rows = [
            (
                name, shown_ranks(order, name), shown_rate(self.rate[name]),
                verdicts(self.runs[name, CLOSED]),
            )
            for name in self.names
        ]
        return table(("server", "ranks", "replies per second", "verdicts"), rows)

    def time_table(self):
        order = ranks(self.p99)
        rows = [
            (
                name, f"{self.record['half_per_s'][name]:,}/s", shown(self.p50[name], MICRO),
                shown(self.p99[name], MICRO), shown_ranks(order, name),
                verdicts(self.runs[name, HALF]), shown(self.fixed_p99[name], MICRO),
                verdicts(self.runs[name, FIXED]),
            )
            for name in self.names
        ]
        heads = (
            "server", "half", "p50, µs", "p99, µs", "ranks by p99", "verdicts",
            f"p99 at {self.fixed()}, µs", "verdicts",
        )
        return table(heads, rows)

    def server_table(self):
        rows = []
        for name in self.names:
            known = self.record["servers"][name]
            size = spread_of(self.runs[name, FIXED], "reply_bytes")
            rows.append(
                (name, known["version"], known["answers"], f"{size.middle:.0f}" if size else "-")
            )
        return table(("server", "version", "answers by", "bytes of a reply"), rows)

    # --- Charts -----------------------------------------------------------------------------------

    def cost_chart(self):
        return chart(self.names, [
            Panel("CPU time per reply", "µs", [
                (f"at {self.fixed()}", scaled(self.cpu[FIXED], MICRO)),
                ("closed loop", scaled(self.cpu[CLOSED], MICRO)),
            ]),
            Panel("Closed loop", "replies per second", [
                ("median and range of the rounds; hollow: at least", self.rate),
            ]),
        ])

    def time_chart(self):
        return chart(self.names, [
            Panel("Response time at half of the throughput", "µs", [
                ("p50", scaled(self.p50, MICRO)), ("p99", scaled(self.p99, MICRO)),
            ]),
            Panel("Memory", "MB", [
                ("resident, all processes", scaled(self.resident, MILLION)),
            ]),
        ])

    # --- Text -------------------------------------------------------------------------------------

    def alike(self, spreads):
        alike, pairs = pairs_alike(spreads)
        return f"{alike} of {pairs} pairs"

    def notes(self):
        """What a reader has to know of single servers."""
        found = []
        for load, words in ((CLOSED, "in the closed loop"), (HALF, "at half"),
                            (FIXED, f"at {self.fixed()}")):
            for name in self.names:
                failed = sum(run.failed for run in self.runs[name, load])
                if failed:
                    found.append(f"{name}: {failed:,} requests failed {words}, in all rounds.")
        for name in self.names:
            rounds = min(len(self.runs[name, load]) for load in (CLOSED, HALF, FIXED))
            if rounds < self.record["rounds"]:
                found.append(f"{name}: {rounds} of {self.record['rounds']} rounds gave figures.")
        for name, why in self.record["not_shown"].items():
            found.append(f"{name}: left out, {why}.")
        return found

    def text(self, charts):
        record = self.record
        rounds = record["rounds"]
        chance = math.comb(2 * rounds, rounds) // 2
        by_fixed, by_half = self.fixed(), "half of the throughput of the closed loop"
        parts = [
            "# Servers on one core",
            f"""
            This page compares {len(self.names)} servers as a public benchmark would: what a reply
            costs them, how many they give, how long a reply takes, and how much memory they need.
            `bench/servers/run` measured it and wrote the page. The order of the tables is that of
            CPU time per reply at {by_fixed}. It is no judgement: each server does more than this
            page measures, and some answer from a file, others from a line of their configuration.
            """,
            f"""
            All figures come from {record['cpus']} cores of a shared virtual machine, Linux
            {record['kernel']}, {record['date']}. Each server ran on one core, and brunt
            {record['brunt']} with one worker on the other, over loopback. With more cores, or over
            a network, the order may be another one.
            """,
            "## What was measured",
            f"""
            Each server answers `GET` with 100 bytes over HTTP/1.1 in clear text, keeps connections
            for as long as it can, and writes no log of requests. It has its own defaults otherwise,
            bound to one core before it starts, so that one that asks how many CPUs there are sees
            one. brunt holds {record['connections']} connections. There are three loads:
            """,
            "\n".join((
                bullet("closed loop: each connection sends its next request when the reply is in;"),
                bullet(f"half: open loop at {by_half}, as a first round measured it;"),
                bullet(f"{by_fixed}: open loop at this rate for all."),
            )),
            f"""
            A round starts the server, applies the three loads for {record['seconds']:g} s each,
            after {record['warmup_seconds']:g} s of warm-up, and ends the server. There are {rounds}
            rounds; each begins with another server, so that a slow minute of the machine falls on
            all. Tables show the median of the rounds, and the least and greatest of them.
            """,
            f"""
            CPU time is that of all processes of a server, user and kernel, divided by its replies.
            It also counts if brunt was the limit. Response times of the open loops count from the
            planned instant. Memory is what is resident of all processes at most, under the closed
            loop: pages that processes share count for each of them.
            """,
            "## Which servers can be told apart",
            f"""
            Two servers can be told apart if all rounds of one lie below all rounds of the other. If
            they do not differ, chance does that in 1 of {chance} pairs. The column "ranks" has the
            best and the worst place that this leaves a server. A board that prints one place for
            each server claims more than its measurements show. Here the servers of
            {self.alike(self.cpu[FIXED])} cannot be told apart by CPU time per reply at {by_fixed},
            {self.alike(self.cpu[CLOSED])} by that of the closed loop, {self.alike(self.rate)} by
            throughput, and {self.alike(self.p99)} by p99 at half.
            """,
            "## CPU time per reply, and memory",
            f"![CPU time per reply and throughput of each server]({charts[0]})",
            self.cost_table(),
            f"""
            A reply at {by_fixed} costs more than one of the closed loop: a server that has nothing
            to do sleeps, and is woken for each request. Servers that are busy take several
            requests at a time.
            """,
            "## Throughput of the closed loop",
            f"""
            The [verdict](../../docs/verdict.md) of each run says what limited it. Where it was brunt (`client`), or may have
            been, the throughput is that of brunt's core, and the server's is at least this: it may
            have any better place. brunt itself needs {self.client_cost()} of CPU time per request:
            a server that needs less is faster than one core of brunt can show. Where other programs
            took CPU time that a run needed, the verdict is `disturbed`.
            """,
            self.rate_table(),
            "## Response times",
            f"![Response times and memory of each server]({charts[1]})",
            self.time_table(),
            f"""
            At half, each server gets half of what it can do, so the rates differ as the servers do.
            At {by_fixed} all get the same load, which is too much for the slowest ones: then their
            verdict is not `rate`.
            """,
            "## The servers",
            self.server_table(),
        ]
        if notes := self.notes():
            parts.append("\n".join(map(bullet, notes)))
        parts += [
            "## Doing it again",
            "```\nbench/servers/run --keep runs --write bench/servers/results.md   # needs two cores\n"
            "bench/servers/run --from runs --write bench/servers/results.md   # the page of kept runs\n```",
            "[bench](../README.md#servers) says more.",
        ]
        return "\n\n".join(wrapped(part) for part in parts) + "\n"

    def client_cost(self):
        costs = [
            run.client_cpu_ns for name in self.names for run in self.runs[name, CLOSED]
            if run.client_cpu_ns
        ]
        return f"{min(costs) / MICRO:.1f} µs or more" if costs else "an unknown part"


def wrapped(part):
    """Prose is broken to lines; tables, code, lists and pictures stay as they are."""
    if not part.startswith("\n"):
        return part
    return textwrap.fill(
        " ".join(part.split()), COLUMNS, break_long_words=False, break_on_hyphens=False,
    )


def bullet(words):
    return textwrap.fill(
        words, COLUMNS, initial_indent="- ", subsequent_indent="  ", break_long_words=False,
        break_on_hyphens=False,
    )


def table(heads, rows):
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def scaled(spreads, unit):
    return {
        name: spread and spread._replace(
            low=spread.low / unit, middle=spread.middle / unit, high=spread.high / unit,
        )
        for name, spread in spreads.items()
    }


def digits(value):
    """A number with about three digits that count."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def shown(spread, unit):
    if not spread:
        return "-"
    low, middle, high = (digits(each / unit) for each in spread[:3])
    return f"{middle} ({low}{DASH}{high})"


def shown_rate(spread):
    if not spread:
        return "-"
    if spread.high == math.inf:
        return f"≥ {spread.middle:,.0f} (from {spread.low:,.0f})"
    return f"{spread.middle:,.0f} ({spread.low:,.0f}{DASH}{spread.high:,.0f})"


def shown_ranks(order, name):
    if name not in order:
        return "-"
    best, worst = order[name]
    return str(best) if best == worst else f"{best}{DASH}{worst}"


def verdicts(runs):
    counts = collections.Counter(
        run.verdict.removesuffix("_limited").replace("_", " ") for run in runs
    )
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "-"
