"""Servers as people run them, started with their defaults, and what else may load them. Each is a
context that ends what it started."""

import contextlib
import http.client
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from common import free_port, program_path, stop, wait_until_listening
from surroundings import NotPossible, process

SOURCES = Path(__file__).resolve().parent / "servers"
BUILD_SECONDS_MAX = 300
DATABASE_SECONDS_MAX = 60
POSTGRES_DIRECTORIES = "/usr/lib/postgresql"
# Nobody browses faster: pages per second, and requests for each.
PAGE_PAUSE_SECONDS = 0.5
REQUESTS_PER_PAGE = 4
BODY = b"x" * 100


def required(program):
    path = program_path(program)
    if not path:
        raise NotPossible(f"needs `{program}`")
    return path


@contextlib.contextmanager
def serving(bench, name, command, port, variables=None, **owner):
    """A server on all CPUs until the end of the context; it listens at the beginning. Its output
    goes to a file, as that of a service does."""
    told = bench.directory / f"{name}-output"
    with open(told, "wb") as output:
        server = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            cwd=bench.directory, env={**os.environ, **(variables or {})}, **owner,
        )
    try:
        wait_until_listening(name, server, port, told)
        # Of the server that was started last: what a situation does to it.
        bench.server_pid = server.pid
        yield server
    finally:
        stop(server)


@contextlib.contextmanager
def threaded(bench, handler):
    port = free_port()
    command = [sys.executable, SOURCES / "threaded.py", handler, port]
    with serving(bench, "threaded", command, port):
        yield f"http://127.0.0.1:{port}/"


@contextlib.contextmanager
def node(bench, handler):
    port = free_port()
    command = [required("node"), SOURCES / "node_server.js", handler, port]
    with serving(bench, "node", command, port):
        yield f"http://127.0.0.1:{port}/"


@contextlib.contextmanager
def go(bench, handler, database=""):
    program = built_go_server(bench)
    port = free_port()
    with serving(bench, "go", [program, handler, port], port, {"DATABASE": database}):
        yield f"http://127.0.0.1:{port}/"


def built_go_server(bench):
    """The Go server, built once for all rounds."""
    program = bench.directory / "go-server"
    if not program.exists():
        compiler = program_path("go") or shutil.which("go", path="/usr/local/go/bin")
        if not compiler:
            raise NotPossible("needs `go`")
        try:
            done = subprocess.run(
                [compiler, "build", "-o", program, "."], cwd=SOURCES / "go", capture_output=True,
                text=True, timeout=BUILD_SECONDS_MAX,
            )
        except subprocess.TimeoutExpired as error:
            raise NotPossible("`go build` does not end") from error
        if done.returncode != 0:
            raise NotPossible(f"`go build`: {done.stderr.strip()}")
    return program


@contextlib.contextmanager
def gunicorn(bench, application, database="", options=()):
    """gunicorn with one worker, which is its default."""
    port = free_port()
    command = [
        required("gunicorn"), "--chdir", SOURCES, "--bind", f"127.0.0.1:{port}",
        *options, f"wsgi:{application}",
    ]
    variables = {"DATABASE": database, "PYTHONDONTWRITEBYTECODE": "1"}
    with serving(bench, "gunicorn", command, port, variables):
        yield f"http://127.0.0.1:{port}/"


# --- Servers of files -----------------------------------------------------------------------------

APACHE_CONFIGURATION = """\
ServerName localhost
ServerRoot {directory}
DefaultRuntimeDir {directory}
PidFile {directory}/apache.pid
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
Listen 127.0.0.1:{port}
DocumentRoot {directory}/files
ErrorLog {directory}/error.log
{lines}
{user}
"""
# Debian's.
APACHE_LOG = """\
LogFormat "%h %l %u %t \\"%r\\" %>s %O" common
CustomLog access.log common
"""
# `worker_processes` and the log are Debian's; what is not named has nginx's defaults.
NGINX_CONFIGURATION = """\
daemon off;
worker_processes {workers};
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 768; }}
http {{
    sendfile on;
    tcp_nopush on;
    {lines}
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port};
        root {directory}/files;
    }}
}}
"""
NGINX_LOG = "access_log access.log;"
APACHE_MODULES = ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules")


@contextlib.contextmanager
def file_directory(bench):
    """A directory with `files/100.txt`, for one server and what it logs."""
    bench.directory.chmod(0o755)  # As root servers change to a user who must reach the file.
    with tempfile.TemporaryDirectory(dir=bench.directory) as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "files").mkdir()
        (directory / "files" / "100.txt").write_bytes(BODY)
        yield directory


@contextlib.contextmanager
def apache(bench, lines=APACHE_LOG):
    program = program_path("apache2") or required("httpd")
    modules = next((path for path in APACHE_MODULES if Path(path).is_dir()), None)
    if not modules:
        raise NotPossible("needs Apache's modules")
    port = free_port()
    with file_directory(bench) as directory:
        user = "User daemon\nGroup daemon" if os.geteuid() == 0 else ""
        configuration = directory / "apache.conf"
        configuration.write_text(
            APACHE_CONFIGURATION.format(
                directory=directory, modules=modules, port=port, user=user, lines=lines,
            )
        )
        command = [program, "-D", "FOREGROUND", "-f", configuration]
        with serving(bench, "apache", command, port):
            yield f"http://127.0.0.1:{port}/100.txt"


@contextlib.contextmanager
def nginx_default(bench, workers, lines=NGINX_LOG):
    program = required("nginx")
    port = free_port()
    with file_directory(bench) as directory:
        configuration = directory / "nginx.conf"
        configuration.write_text(
            NGINX_CONFIGURATION.format(
                directory=directory, workers=workers, port=port, lines=lines,
            )
        )
        command = [program, "-p", directory, "-c", configuration]
        with serving(bench, "nginx", command, port):
            yield f"http://127.0.0.1:{port}/100.txt"


@contextlib.contextmanager
def caddy(bench):
    program = required("caddy")
    port = free_port()
    with file_directory(bench) as directory:
        home = {"XDG_CONFIG_HOME": str(directory), "XDG_DATA_HOME": str(directory)}
        command = [
            program, "file-server", "--listen", f"127.0.0.1:{port}", "--root", directory / "files",
        ]
        with serving(bench, "caddy", command, port, home):
            yield f"http://127.0.0.1:{port}/100.txt"


# --- PostgreSQL -----------------------------------------------------------------------------------

TABLE = """
CREATE TABLE IF NOT EXISTS items (id integer PRIMARY KEY, name text NOT NULL);
INSERT INTO items SELECT id, 'item ' || id FROM generate_series(1, 10000) AS id
    ON CONFLICT DO NOTHING;
ANALYZE items;
"""


@contextlib.contextmanager
def postgresql(bench):
    """A server with a table `items`; how it is reached, for the variable DATABASE."""
    port = free_port()
    owner = database_owner()
    with database_directory(bench, owner) as directory:
        data = directory / "data"
        administer(
            owner, postgres_program("initdb"), "--pgdata", data, "--username", "bench",
            "--auth", "trust", "--no-sync", "--encoding", "UTF8",
        )
        command = [
            postgres_program("postgres"), "-D", data, "-k", directory, "-h", "127.0.0.1",
            "-p", port,
        ]
        with serving(bench, "postgresql", command, port, **owner):
            reach = f"host=127.0.0.1 port={port} user=bench dbname=postgres sslmode=disable"
            # It listens before it is ready.
            administer(owner, postgres_program("pg_isready"), "-d", reach, attempts=50)
            administer(owner, postgres_program("psql"), reach, "-q", "-c", TABLE)
            yield reach


def postgres_program(name):
    found = sorted(
        Path(POSTGRES_DIRECTORIES).glob(f"*/bin/{name}"),
        key=lambda path: float(path.parent.parent.name),
    )
    return found[-1] if found else required(name)


def database_owner():
    """Whose the database is: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError as error:
        raise NotPossible("needs a user `postgres`, as root") from error
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def database_directory(bench, owner):
    bench.directory.chmod(0o755)
    with tempfile.TemporaryDirectory(dir=bench.directory) as name:
        if owner:
            os.chown(name, owner["user"], owner["group"])
        yield Path(name)


def administer(owner, *command, attempts=1):
    for attempt in range(attempts):
        try:
            done = subprocess.run(
                list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=DATABASE_SECONDS_MAX, cwd="/", **owner,
            )
        except subprocess.TimeoutExpired as error:
            raise NotPossible(f"`{command[0]}` does not end") from error
        if done.returncode == 0:
            return
        threading.Event().wait(0.1 if attempt + 1 < attempts else 0)
    raise NotPossible(f"`{command[0]}`: {done.stderr.strip() or done.stdout.strip()}")


@contextlib.contextmanager
def go_with_database(bench, handler):
    with postgresql(bench) as reach, go(bench, handler, reach) as url:
        yield url


@contextlib.contextmanager
def gunicorn_with_database(bench, application):
    with postgresql(bench) as reach, gunicorn(bench, application, reach) as url:
        yield url


# --- Others at the same server --------------------------------------------------------------------


@contextlib.contextmanager
def second_brunt(bench, url):
    """Another brunt that loads the same server before, while and after."""
    seconds = round(bench.total_seconds) + bench.overrun_seconds_max
    with process([bench.brunt, "-d", f"{seconds}s", "--quiet", url]):
        threading.Event().wait(0.5)
        yield


@contextlib.contextmanager
def browser(url):
    """Somebody who looks at pages: a few requests per second on a kept connection."""
    ending = threading.Event()
    host, _, path = url.removeprefix("http://").partition("/")

    def browse():
        connection = http.client.HTTPConnection(host, timeout=5)
        while not ending.wait(PAGE_PAUSE_SECONDS):
            try:
                for _ in range(REQUESTS_PER_PAGE):
                    connection.request("GET", "/" + path)
                    connection.getresponse().read()
            except (OSError, http.client.HTTPException) as error:
                print(f"browser: {error}", file=sys.stderr)
                connection.close()

    thread = threading.Thread(target=browse)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(10)
