"""HttpArena: each of its profiles by its own functions, with brunt in place of its tools."""

import os
import re
import subprocess
import sys
from pathlib import Path

import brunt
import servers

HERE = Path(__file__).resolve().parent
TOOL_FILE = HERE.parent / "httparena" / "brunt.sh"
PROFILE = re.compile(r"^\s*\[([\w-]+)\]=\"(\d+)\|(\d+)\|([^|]*)\|([\d,]+)\|([\w-]*)\"", re.M)
ORDER = re.compile(r"^PROFILE_ORDER=\((.*?)^\)", re.M | re.S)
TIME = re.compile(r"[\d.]+(us|µs|ms|s)")
# Which route of the server a count of templates is about.
TEMPLATES = {"tpl_baseline": "baseline11", "tpl_json": "json", "tpl_async_db": "async-db"}
SHOWN = ("rps", "avg_lat", "p99_lat", "reconnects", "bandwidth", "rate_ratio", *TEMPLATES)
# ghz alone makes streams of gRPC.
LEFT_OUT = {"grpc-stream", "grpc-stream-tls"}
HTTP2 = {"h2", "static-h2", "h2c", "json-h2c", "gateway-64", "production-stack", "grpc", "grpc-tls"}
HTTP3 = {"h3", "static-h3", "gateway-h3"}
# Bodies that a snapshot without its largest files lacks, with their lengths.
UPLOADS = {"upload-500k": 512_000, "upload-2m": 2 << 20, "upload-10m": 10 << 20,
           "upload-20m": 20 << 20}


def profiles(checkout):
    """Name, connections and endpoint of each run, in the board's order."""
    text = (checkout / "scripts/lib/profiles.sh").read_text()
    known = {found[1]: found for found in PROFILE.finditer(text)}
    order = re.sub(r"#.*", "", ORDER.search(text)[1]).split()
    for name in order:
        connections, endpoint = known[name][5], known[name][6]
        for number in connections.split(","):
            yield name, int(number), endpoint


def fill_uploads(checkout):
    """Writes upload bodies that the checkout lacks; their names."""
    written = []
    for name, length in UPLOADS.items():
        path = checkout / "requests" / f"{name}.raw"
        if path.exists() and path.stat().st_size > 0:
            continue
        head = f"POST /upload HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: {length}\r\n\r\n"
        path.write_bytes(head.encode() + b"x" * length)
        written.append(name)
    return written


def run(arguments, folder):
    """A row for each run: what the board's parser read, and what the server counted."""
    for name in fill_uploads(arguments.checkout):
        print(f"{name}.raw is not in the checkout; another of its length takes its place",
              file=sys.stderr)
    done = set()
    for name, connections, endpoint in profiles(arguments.checkout):
        if endpoint in LEFT_OUT or (arguments.only and name not in arguments.only):
            continue
        connections = min(connections, arguments.connections_max or connections)
        if (name, connections) in done:
            continue
        done.add((name, connections))
        yield run_one(arguments, folder, name, connections, endpoint)


def run_one(arguments, folder, name, connections, endpoint):
    certificates = arguments.checkout / "certs"
    if endpoint in HTTP3:
        server = servers.Caddy(folder, certificates, port=8443)
    elif endpoint in HTTP2:
        server = servers.Nginx(folder, certificates, port=8443, clear_ports=[8080, 8082])
    else:
        server = servers.Node(certificates, http=[8080], https=[8081])
    program = brunt.recorder(folder, arguments.brunt)
    output = folder / f"{name}-{connections}.txt"
    command = [HERE / "httparena-profile", arguments.checkout, name, connections, output]
    environment = {
        "THREADS": "2", "H2THREADS": "2", "H3THREADS": "2",
        "DURATION": f"{arguments.seconds}s",
    }
    if arguments.without_adapter:
        environment |= brunt.links(folder, arguments.brunt)
    else:
        command.append(TOOL_FILE)
        environment |= {"BRUNT": program}
    with server:
        done = subprocess.run(
            [str(word) for word in command], env={**os.environ, **environment}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
        )
        counted = server.counts()
    parsed = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return judged(f"{name}, {connections}", endpoint, parsed, counted, brunt.records(folder), done)


def judged(name, endpoint, parsed, counted, record, done):
    messages = endpoint == "ws-echo"
    answered = counted["messages_sent"] if messages else counted["answered"]["2xx"]
    wrong = []
    if done.returncode != 0:
        wrong.append(f"exit code {done.returncode}")
    if not number(parsed.get("rps")):
        wrong.append(f"rps={parsed.get('rps')!r}")
    for key in ("avg_lat", "p99_lat"):
        if not TIME.fullmatch(parsed.get(key, "")):
            wrong.append(f"{key}={parsed.get(key)!r}")
    for kind in ("3xx", "4xx", "5xx"):
        if (number(parsed.get(f"status_{kind}")) or 0) != counted["answered"][kind]:
            wrong.append(f"{kind}: {parsed.get(f'status_{kind}')}, not {counted['answered'][kind]}")
    most = record.outside + record.unknown
    for key, route in TEMPLATES.items():
        if key in parsed and not 0 <= counted["by_route"].get(route, 0) - int(parsed[key]) <= most:
            wrong.append(f"{key}={parsed[key]}, and the server has {counted['by_route'][route]}")
    values = {key: parsed[key] for key in SHOWN if key in parsed}
    row = brunt.compared(
        name, number(parsed.get("status_2xx")), values, answered, record, wrong)
    if row["wrong"]:
        row["wrong"] += done.stderr.strip().splitlines()[-2:]
    return row


def number(text):
    return int(text) if text and text.isdigit() else None
