"""brunt as the boards call it, with a record of each of its runs."""

import json
import os
import shlex
from dataclasses import dataclass

# Under these names brunt stands in for a tool.
TOOLS = ("h2load", "oha", "wrk")
# One process after the other gets a later name, so that records can be read in this order. With
# COUNTS, an address, the server's counts behind each run are kept too.
WRAPPER = """\
#!/bin/sh
test "$1" != --version || exec {brunt} --version
name={folder}/$(date +%s%N)-$$
BRUNT_REPORT=$name.json {brunt} {words}"$@"
code=$?
test -z "$COUNTS" || curl -s "$COUNTS" > $name.counts
exit $code
"""


@dataclass
class Record:
    """What brunt's records say of requests that are in the server's counts alone."""

    # Replies of all phases that were not complete in the window.
    outside: int = 0
    # Requests that the server may have answered, though brunt did not read it.
    unknown: int = 0
    runs: int = 0

    def add(self, path):
        summary = json.loads(path.read_text())["summary"]
        replies = summary["replies"]
        every = summary["all_phases"]
        self.outside += every["answered"] - replies["successes"] - replies["errors"]
        self.unknown += every["failed"] + every["in_flight"]
        self.runs += 1

    def explains(self, replies):
        """Whether the server may have counted so many replies more than the board reads. A tool
        that reports the whole run leaves none out."""
        most = self.outside + self.unknown
        return self.runs > 0 and (replies == 0 or self.outside <= replies <= most)

    def range(self):
        most = self.outside + self.unknown
        return f"{self.outside:,}" + (f" to {most:,}" if self.unknown else "")


def recorder(folder, brunt):
    """A program in brunt's place that keeps the record of each run."""
    return wrapper(folder, folder, brunt, "brunt", "")


def links(folder, brunt):
    """The environment in which brunt is called by the names of the tools."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name in TOOLS:
        wrapper(tools, folder, brunt, name, f"{name} ")
    return {"PATH": f"{tools}:{os.environ['PATH']}", "H2LOAD_H3": "h2load"}


def wrapper(place, folder, brunt, name, words):
    kept = folder / "records"
    kept.mkdir(exist_ok=True)
    path = place / name
    path.write_text(WRAPPER.format(
        folder=shlex.quote(str(kept)), brunt=shlex.quote(str(brunt)), words=words,
    ))
    path.chmod(0o755)
    return str(path)


def records(folder):
    """The sums of all records since the last call, which removes them."""
    sums = Record()
    for path in (folder / "records").glob("*.json"):
        sums.add(path)
        path.unlink()
    return sums


def runs(folder):
    """The record of each run, and what the server answered by then in all, in their order. A run
    that failed has neither."""
    for path in sorted((folder / "records").glob("*.counts")):
        record = Record()
        kept = path.with_suffix(".json")
        if kept.exists():
            record.add(kept)
        yield record, json.loads(path.read_text())["answered"]


def compared(name, read, values, answered, record, wrong=()):
    """A row. brunt's window ends before the last replies are in, and a request that is being
    answered then is in the server's counts alone; the record of the run says how many these are."""
    wrong = list(wrong)
    beyond = answered - (read or 0)
    if read is None:
        wrong.append("no count is read")
    elif not record.explains(beyond):
        wrong.append(f"{beyond} more at the server")
    return {"name": name, "read": read, "values": values, "counted": answered,
            "outside": record.range(), "wrong": wrong}
