"""The servers that are measured: where each comes from, and how it is started. They answer with 100
bytes, keep connections for as long as they can, and write no log of requests."""

import collections
import contextlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import everyday_servers as everyday
from common import ROOT, free_port, program_path, version
from everyday_servers import required, serving
from surroundings import NotPossible, brunt_serve

HERE = Path(__file__).resolve().parent
APPS, MANIFEST = HERE / "apps", HERE / "rust" / "Cargo.toml"
BUILT = ROOT / "target" / "bench-servers"
BUILD_SECONDS_MAX = 600
BODY = "x" * 100
# Modules of Debian's packages are in its Python alone.
PYTHONS = (sys.executable, "/usr/bin/python3")
KEEP_ALIVE_REQUESTS = 1_000_000_000
QUIET_PYTHON = {"PYTHONDONTWRITEBYTECODE": "1"}

# A server: its name, what answers, how to install it, its version as a function of the bench, and
# the context that starts it.
Entry = collections.namedtuple("Entry", "name answers install version start")


def address_of(port):
    return f"http://127.0.0.1:{port}/"


@contextlib.contextmanager
def started(bench, name, command_of, variables=None):
    """A server whose command follows from its port."""
    port = free_port()
    with serving(bench, name, command_of(port), port, variables):
        yield address_of(port)


def numbers_in(text):
    found = re.search(r"\d+(\.\d+)+", text)
    return found[0] if found else text


def version_of(program, *arguments):
    return lambda _: numbers_in(version(required(program), *arguments))


# --- Servers of files, and proxies ----------------------------------------------------------------

LIGHTTPD_CONFIGURATION = """\
server.bind = "127.0.0.1"
server.port = {port}
server.document-root = "{directory}/files"
server.errorlog = "{directory}/error.log"
server.max-keep-alive-requests = {requests}
mimetype.assign = ( ".txt" => "text/plain" )
"""
H2O_CONFIGURATION = """\
listen:
  host: 127.0.0.1
  port: {port}
{user}
error-log: {directory}/error.log
hosts:
  default:
    paths:
      /:
        file.dir: {directory}/files
"""
HAPROXY_CONFIGURATION = """\
global
    maxconn 4096
defaults
    mode http
    timeout client 1m
    timeout server 1m
    timeout connect 5s
frontend bench
    bind 127.0.0.1:{port}
    http-request return status 200 content-type text/plain string "{body}"
"""
VARNISH_CONFIGURATION = """\
vcl 4.1;
backend default none;
sub vcl_recv {{ return (synth(200)); }}
sub vcl_synth {{
    set resp.http.Content-Type = "text/plain";
    synthetic("{body}");
    return (deliver);
}}
"""


@contextlib.contextmanager
def of_files(bench, name, configuration, command_of, **more):
    """A server of the file `100.txt`, by a configuration."""
    port = free_port()
    with everyday.file_directory(bench) as directory:
        path = directory / f"{name}.conf"
        path.write_text(configuration.format(directory=directory, port=port, **more))
        with serving(bench, name, command_of(path), port):
            yield f"{address_of(port)}100.txt"


@contextlib.contextmanager
def of_configuration(bench, name, configuration, command_of):
    """A server whose configuration has the reply."""
    port = free_port()
    with everyday.file_directory(bench) as directory:
        path = directory / f"{name}.conf"
        path.write_text(configuration.format(port=port, body=BODY))
        with serving(bench, name, command_of(path, port), port):
            yield address_of(port)


def nginx(bench):
    lines = f"access_log off; keepalive_requests {KEEP_ALIVE_REQUESTS};"
    return everyday.nginx_default(bench, 1, lines)


def apache(bench):
    return everyday.apache(bench, "MaxKeepAliveRequests 0")


def lighttpd(bench):
    program = required("lighttpd")
    return of_files(
        bench, "lighttpd", LIGHTTPD_CONFIGURATION, lambda path: [program, "-D", "-f", path],
        requests=KEEP_ALIVE_REQUESTS,
    )


def h2o(bench):
    program = required("h2o")
    return of_files(
        bench, "h2o", H2O_CONFIGURATION, lambda path: [program, "--mode=worker", "--conf", path],
        user="user: daemon" if everyday.os.geteuid() == 0 else "",
    )


def haproxy(bench):
    program = required("haproxy")
    return of_configuration(
        bench, "haproxy", HAPROXY_CONFIGURATION, lambda path, _: [program, "-db", "-f", path],
    )


def varnish(bench):
    program = required("varnishd")

    def command(path, port):
        place = path.parent / "varnish"
        return [
            program, "-F", "-j", "none", "-n", place, "-f", path, "-a", f"127.0.0.1:{port}",
            "-T", "none",
        ]
    return of_configuration(bench, "varnish", VARNISH_CONFIGURATION, command)


# --- Handlers in languages ------------------------------------------------------------------------


def python_with(module):
    """A Python that has this module, and the module's version."""
    question = (
        f"from importlib.metadata import version; import {module}; print(version('{module}'))"
    )
    for python in PYTHONS:
        if not shutil.which(python):
            continue
        done = subprocess.run([python, "-c", question], capture_output=True, text=True)
        if done.returncode == 0:
            return python, done.stdout.strip()
    raise NotPossible(f"needs Python's module `{module}`")


def module(name, *arguments):
    """A server that is a module of Python, with arguments that may hold `PORT`."""
    def start(bench):
        python, _ = python_with(name)
        return started(
            bench, name,
            lambda port: [
                python, "-m", name, *(each.replace("PORT", str(port)) for each in arguments),
            ],
            {**QUIET_PYTHON, "PYTHONPATH": f"{APPS}:{everyday.SOURCES}"},
        )
    return start


def gunicorn_threads(bench):
    return everyday.gunicorn(
        bench, "hundred", options=("--worker-class", "gthread", "--threads", "8"),
    )


def puma(bench):
    program = required("puma")
    return started(
        bench, "puma",
        lambda port: [
            program, "--quiet", "--environment", "production", "--bind", f"tcp://127.0.0.1:{port}",
            APPS / "hundred.ru",
        ],
    )


def aiohttp(bench):
    python, _ = python_with("aiohttp")
    return started(
        bench, "aiohttp", lambda port: [python, APPS / "aiohttp_server.py", port], QUIET_PYTHON,
    )


def go_version(_):
    compiler = program_path("go") or shutil.which("go", path="/usr/local/go/bin")
    if not compiler:
        raise NotPossible("needs `go`")
    return numbers_in(version(compiler, "version"))


# --- Rust -----------------------------------------------------------------------------------------


def built_in_rust(bench, name):
    """A program of the manifest below, built once for all."""
    program = BUILT / "release" / name
    if name not in bench.built:
        cargo = required("cargo")
        command = [
            cargo, "build", "--locked", "--release", "--manifest-path", str(MANIFEST),
            "--target-dir", str(BUILT), "--bin", name,
        ]
        print("$ " + " ".join(command), file=sys.stderr, flush=True)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX)
        except subprocess.TimeoutExpired as error:
            raise NotPossible("`cargo build` does not end") from error
        if done.returncode != 0:
            raise NotPossible(f"`cargo build`: {done.stderr.strip()[-500:]}")
        bench.built.add(name)
    return program


def in_rust(name):
    def start(bench):
        program = built_in_rust(bench, name)
        return started(bench, name, lambda port: [program, port])
    return start


def locked_version(crate):
    def found(bench):
        built_in_rust(bench, crate.partition("-")[0])
        lock = MANIFEST.with_name("Cargo.lock").read_text()
        return re.search(rf'name = "{crate}"\nversion = "(.*)"', lock)[1]
    return found


@contextlib.contextmanager
def reference(bench):
    with brunt_serve(bench) as root:
        yield f"{root}/bytes/100"


FILE, CONFIGURED, HANDLER = "a file", "its configuration", "a handler"

ENTRIES = (
    Entry("nginx", FILE, "apt install nginx", version_of("nginx", "-v"), nginx),
    Entry(
        "Apache", FILE, "apt install apache2",
        lambda _: numbers_in(version(program_path("apache2") or required("httpd"), "-v")), apache,
    ),
    Entry("lighttpd", FILE, "apt install lighttpd", version_of("lighttpd", "-v"), lighttpd),
    Entry("Caddy", FILE, "apt install caddy", version_of("caddy", "version"), everyday.caddy),
    Entry("H2O", FILE, "apt install h2o", version_of("h2o", "--version"), h2o),
    Entry("HAProxy", CONFIGURED, "apt install haproxy", version_of("haproxy", "-v"), haproxy),
    Entry("Varnish", CONFIGURED, "apt install varnish", version_of("varnishd", "-V"), varnish),
    Entry(
        "Node http", f"{HANDLER}, JavaScript", "apt install nodejs", version_of("node"),
        lambda bench: everyday.node(bench, "hundred"),
    ),
    Entry(
        "Go net/http", f"{HANDLER}, Go", "apt install golang", go_version,
        lambda bench: everyday.go(bench, "hundred"),
    ),
    Entry("hyper", f"{HANDLER}, Rust", "apt install cargo", locked_version("hyper"),
          in_rust("hyper")),
    Entry("axum", f"{HANDLER}, Rust", "apt install cargo", locked_version("axum"), in_rust("axum")),
    Entry("actix-web", f"{HANDLER}, Rust", "apt install cargo", locked_version("actix-web"),
          in_rust("actix")),
    Entry("Puma", f"{HANDLER}, Ruby", "apt install puma", version_of("puma"), puma),
    Entry(
        "gunicorn", f"{HANDLER}, Python", "apt install gunicorn", version_of("gunicorn"),
        lambda bench: everyday.gunicorn(bench, "hundred"),
    ),
    Entry(
        "gunicorn gthread", f"{HANDLER}, Python", "apt install gunicorn", version_of("gunicorn"),
        gunicorn_threads,
    ),
    Entry(
        "uvicorn", f"{HANDLER}, Python",
        "apt install uvicorn python3-uvloop python3-httptools",
        lambda _: python_with("uvicorn")[1],
        module("uvicorn", "--port", "PORT", "--no-access-log", "--log-level", "warning",
               "asgi:hundred"),
    ),
    Entry(
        "Hypercorn", f"{HANDLER}, Python", "apt install python3-hypercorn",
        lambda _: python_with("hypercorn")[1],
        module("hypercorn", "--bind", "127.0.0.1:PORT", "asgi:hundred"),
    ),
    Entry(
        "aiohttp", f"{HANDLER}, Python", "apt install python3-aiohttp",
        lambda _: python_with("aiohttp")[1], aiohttp,
    ),
    Entry(
        "waitress", f"{HANDLER}, Python", "apt install python3-waitress",
        lambda _: python_with("waitress")[1],
        module("waitress", "--listen", "127.0.0.1:PORT", "wsgi:hundred"),
    ),
    Entry(
        "http.server", f"{HANDLER}, Python", "apt install python3",
        lambda _: numbers_in(sys.version), lambda bench: everyday.threaded(bench, "hello"),
    ),
    Entry(
        "brunt serve", "a route", "cargo build --profile dist",
        lambda bench: numbers_in(version(bench.brunt)), reference,
    ),
)
