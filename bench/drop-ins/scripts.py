"""Scripts for wrk in folders, how each is run, and what a run left.

A folder may hold a `run.json`:

    {"modules": ["helper.lua"],
     "scripts": {"one.lua": {"path": "/x", "arguments": ["16"], "environment": {"A": "b"},
                             "options": ["--latency"], "random": true,
                             "differs": "why brunt is to differ from wrk here",
                             "ours": {"exit": 0, "stdout": ["a part of it"],
                                      "stderr": ["a part of it"], "requests_least": 20,
                                      "requests_most": 20}}}}

Modules are not run by themselves. `random` says that two runs send the same only by shape. `ours`
is what a run of brunt must show whatever wrk does.
"""

import dataclasses
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

OVERRUN_SECONDS_MAX = 15

# Scripts take the time as the seed of their random numbers: held still, two runs send the same.
HELD_TIME_SOURCE = """\
#include <time.h>
time_t time(time_t *result) { if (result) *result = 1700000000; return 1700000000; }
"""


@dataclasses.dataclass(frozen=True, eq=False)
class Script:
    """A script, and how it is run."""

    file: Path
    path: str = "/"
    arguments: tuple = ()
    environment: dict = dataclasses.field(default_factory=dict)
    options: tuple = ()
    random: bool = False
    differs: str = None
    ours: dict = dataclasses.field(default_factory=dict)

    @property
    def name(self):
        return f"{self.file.parent.name}/{self.file.name}"


def scripts_of(root):
    """The scripts of a folder and of those in it, by name."""
    found = []
    for folder in sorted({file.parent for file in Path(root).rglob("*.lua")}):
        listed = {}
        if (folder / "run.json").exists():
            listed = json.loads((folder / "run.json").read_text())
        how = listed.get("scripts", {})
        for file in sorted(folder.glob("*.lua")):
            if file.name not in listed.get("modules", ()):
                fields = {key: value for key, value in how.get(file.name, {}).items()
                          if key != "note"}
                found.append(Script(file.resolve(), **fields))
    return found


@dataclasses.dataclass
class Outcome:
    """What one run of a script left."""

    exit_code: int
    stdout: str
    stderr: str
    # By connection, and in the order of arrival.
    connections: list
    arrivals: list
    # Name and text of what the run wrote into its folder.
    files: dict


class Runner:
    """Runs scripts against a recording server of its own."""

    def __init__(self, server, held_time_library):
        self._server = server
        self._library = held_time_library

    def run(self, command, script, load):
        """Runs a script once, in a copy of its folder, with the options of a load."""
        with tempfile.TemporaryDirectory(prefix="drop-ins-") as directory:
            folder = Path(directory) / "folder"
            shutil.copytree(script.file.parent, folder)
            before = texts_of(folder)
            url = f"http://127.0.0.1:{self._server.port}{script.path}"
            trailing = ["--", *script.arguments] if script.arguments else []
            environment = {**os.environ, **script.environment}
            if self._library:
                environment["LD_PRELOAD"] = str(self._library)
            self._server.take_record()
            process = subprocess.Popen(
                [*command, *load, *script.options, "-s", f"./{script.file.name}", url, *trailing],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            try:
                stdout, stderr = process.communicate(timeout=OVERRUN_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                stdout, stderr = process.communicate()
                stderr += b"\n(killed: it did not end)\n"
            connections, arrivals = self._server.take_record()
            after = texts_of(folder)
            files = {name: text for name, text in after.items() if before.get(name) != text}
            return Outcome(
                process.returncode, stdout.decode(errors="replace"),
                stderr.decode(errors="replace"), connections, arrivals, files,
            )


def texts_of(folder):
    return {
        str(file.relative_to(folder)): file.read_text(errors="replace")
        for file in folder.rglob("*") if file.is_file()
    }


def build_held_time(directory):
    """A library to preload that holds time() still; None without a C compiler."""
    library = Path(directory) / "held_time.so"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        return None
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, "-x", "c", "-"],
        input=HELD_TIME_SOURCE.encode(), check=True,
    )
    return library
