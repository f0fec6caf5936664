"""the-benchmarker/web-frameworks: its task writes the commands, its collector reads the results."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import brunt
import servers

HERE = Path(__file__).resolve().parent
ADAPTER = HERE.parent / "web-frameworks" / "with_brunt.rake"
PORT = 3000
ENTRY = "node/brunt-try"
ENGINE = "node"
ROUTES = ("GET:/", "GET:/user/0", "POST:/user")
RESULT = re.compile(r"\.results/(\d+)/(_\S*\.json)")
SHOWN = ("total_requests_per_s", "average_latency", "percentile50", "percentile99")
ERRORS = ("socket_connection_errors", "socket_read_errors", "socket_write_errors", "http_errors",
          "request_timeouts")
# What the board's tasks read of an entry.
FILES = {
    "node/config.yaml": "language:\n  version: 20\n  engines:\n    node:\n      command: node\n"
                        "framework:\n  engines:\n    - node\n  files:\n    - '*.js'\n",
    "node/Dockerfile": "FROM scratch\n",
    f"{ENTRY}/config.yaml": "framework:\n  version: 1\n",
    f"{ENTRY}/ip-{ENGINE}.txt": "127.0.0.1\n",
    f"{ENTRY}/cid-{ENGINE}.txt": "none\n",
}


def run(arguments, folder):
    levels = arguments.only or ["64"]
    board = folder / "board"
    for name in (".tasks", "Rakefile", "config.yaml"):
        copy(arguments.checkout / name, board / name)
    for name, text in FILES.items():
        (board / name).parent.mkdir(parents=True, exist_ok=True)
        (board / name).write_text(text)
    for level in levels:
        (board / ENTRY / ".results" / level).mkdir(parents=True)
    with servers.Node(http=[PORT]) as server:
        environment = {
            **os.environ, "CONCURRENCIES": ",".join(levels), "ROUTES": ",".join(ROUTES),
            "DURATION": str(arguments.seconds), "RUBYLIB": str(HERE / "ruby"), "HOME": str(folder),
            "DATABASE_URL": "postgresql:", "DATABASE_ROWS": str(folder / "rows"),
            "COUNTS": server.counts_url(),
        }
        if arguments.without_adapter:
            environment |= brunt.links(folder, arguments.brunt)
            # Some versions call oha in the folder of cargo.
            (folder / ".cargo").mkdir()
            (folder / ".cargo/bin").symlink_to(folder / "tools")
        else:
            shutil.copy(ADAPTER, board / ".tasks")
            environment |= {"BRUNT": brunt.recorder(folder, arguments.brunt)}
        for command in (
            ["rake", "config"],
            ["make", "-f", f"{ENTRY}/.Makefile", "warmup", "collect"],
            ["rake", "collect"],
        ):
            subprocess.run(command, cwd=board, env=environment, check=True, timeout=900,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    yield from rows(folder, board)


def copy(source, target):
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def rows(folder, board):
    """A row for each result file, in the order in which the commands of the board write them; the
    first of the runs is the warm-up. The collector reads the files of a level by their names."""
    written = RESULT.findall((board / ENTRY / ".Makefile").read_text())
    stored = {level: [] for level, _ in written}
    for line in (folder / "rows").read_text().splitlines():
        row = json.loads(line)
        of_level = stored[row["level"]]
        # The label of the first row comes again with the next file.
        if not of_level or row["label"] in of_level[-1]:
            of_level.append({})
        of_level[-1][row["label"]] = row["value"]
    results = {}
    for level, of_level in stored.items():
        names = sorted(name for other, name in written if other == level)
        results |= {(level, name): values for name, values in zip(names, of_level)}
    runs = list(brunt.runs(folder))
    for at, (level, name) in enumerate(written, 1):
        if at >= len(runs):
            record, answered = brunt.Record(), 0
        else:
            record, answered = runs[at][0], runs[at][1]["2xx"] - runs[at - 1][1]["2xx"]
        yield judged(f"{name}, {level}", results.get((level, name), {}), record, answered)


def judged(name, values, record, answered):
    wrong = [f"{key} is absent" for key, value in values.items() if value is None]
    read = values.get("total_requests", -1)
    if read == -1:
        # From oha the collector takes the rate alone.
        rate, length = values.get("total_requests_per_s"), values.get("duration_ms")
        read = round(rate * length / 1000) if rate and length else None
    shown = {key: round(value, 5) for key, value in values.items()
             if key in SHOWN or (key in ERRORS and value and value > 0)}
    return brunt.compared(name, read, shown, answered, record, wrong)
