"""TechEmpower's FrameworkBenchmarks: its scripts call `wrk`, its parser reads what they printed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import brunt
import servers

HERE = Path(__file__).resolve().parent
PORT = 8080
# Script, type of test, route; the levels are those of --only, or these.
SCRIPTS = (
    ("concurrency.sh", "json", "/json", "16 64"),
    ("query.sh", "query", "/queries/", "1 20"),
    ("pipeline.sh", "plaintext", "/plaintext", "64 256"),
)
# Each script begins with a primer and a warm-up, which the parser leaves out.
UNREAD_RUNS = 2


def run(arguments, folder):
    for script, kind, route, levels in SCRIPTS:
        levels = " ".join(arguments.only or levels.split())
        with servers.Node(http=[PORT]) as server:
            text = printed(arguments, folder, script, kind, route, levels, server)
            yield from rows(arguments, folder, kind, levels, text)
        for path in (folder / "records").iterdir():
            path.unlink()


def printed(arguments, folder, script, kind, route, levels, server):
    """What the script prints: what the board's container writes into raw.txt."""
    variables = {
        "name": kind, "server_host": "localhost", "levels": levels, "pipeline": "16",
        "duration": str(arguments.seconds), "max_concurrency": "64", "accept": "application/json",
        "url": f"http://localhost:{PORT}{route}", "COUNTS": server.counts_url(),
    }
    return subprocess.run(
        ["bash", script], cwd=arguments.checkout / "toolset/wrk", stdin=subprocess.DEVNULL,
        env={**os.environ, **brunt.links(folder, arguments.brunt), **variables},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=300,
    ).stdout


def rows(arguments, folder, kind, levels, text):
    # In a process of its own: the board's code changes the configuration of git in HOME.
    parsed = subprocess.run(
        [sys.executable, HERE / "techempower_parse.py", arguments.checkout, folder, kind],
        input=text, env={**os.environ, "HOME": str(folder)}, stdout=subprocess.PIPE, text=True,
        check=True,
    ).stdout
    before = 0
    of_levels = []
    for record, answered in brunt.runs(folder):
        of_levels.append((record, answered["2xx"] - before))
        before = answered["2xx"]
    levels = levels.split()
    results = json.loads(parsed)
    for level, result, (record, answered) in zip(levels, results, of_levels[UNREAD_RUNS:]):
        wrong = [f"no {key}" for key in ("latencyAvg", "latencyStdev", "latencyMax")
                 if key not in result]
        values = {key: result[key] for key in result if key not in ("startTime", "endTime")}
        yield brunt.compared(
            f"{kind}, {level}", values.pop("totalRequests", None), values, answered, record, wrong)
    if not len(levels) == len(results) == len(of_levels) - UNREAD_RUNS:
        yield brunt.compared(
            f"{kind}: {len(levels)} levels, {len(results)} results", None, {}, 0, brunt.Record())
