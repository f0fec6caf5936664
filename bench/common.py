"""What the scripts here have in common: programs, processes, cores, facts of the machine.

Needs Linux, Python 3.9 or later, and taskset.
"""

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS_MAX = 10
CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
SOMAXCONN = Path("/proc/sys/net/core/somaxconn")
# The body of the file that nginx serves.
BODY_BYTES = 100
LISTENING = "0A"
# A machine on which less than this share of one core is busy is quiet.
QUIET_SHARE_MAX = 0.1


# --- Processes ------------------------------------------------------------------------------------


def pinned(core, command):
    return ["taskset", "--cpu-list", str(core), *map(str, command)]


def stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            # Bounded too: an exception in the middle of a wait can leave its lock taken.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)


def undo_on_termination():
    """Ends the program on SIGTERM by an exception, so that contexts undo what they did. `timeout`
    sends the signal twice; the second one would interrupt that."""
    def end(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)


def cpu_seconds(pid):
    """CPU time that a process and its children have used so far, all threads, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user_ticks, system_ticks = int(fields[11]), int(fields[12])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = (user_ticks + system_ticks) / CLOCK_TICKS_PER_SECOND
    return own + sum(cpu_seconds(int(child)) for child in children)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until_listening(name, process, port, output=None):
    """Waits until somebody listens on an IPv4 port, in the network namespace of the process. It
    connects to nobody, so that no server spends anything on it. `output` is the file that tells
    why, should the process end instead."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while not listens(process.pid, port):
        if process.poll() is not None:
            told = output.read_text(errors="replace") if output else ""
            sys.exit(f"{name} ended at once, exit code {process.returncode}\n{told}".rstrip())
        if time.monotonic() > deadline:
            sys.exit(f"{name} does not listen after {START_SECONDS_MAX} s")
        time.sleep(0.02)


def listens(pid, port):
    try:
        rows = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return False
    sockets = (row.split() for row in rows)
    return any(row[1].endswith(f":{port:04X}") and row[3] == LISTENING for row in sockets)


def sleep_until(instant):
    time.sleep(max(0.0, instant - time.monotonic()))


# --- Programs -------------------------------------------------------------------------------------


def program_path(program):
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


def build_brunt():
    return built("brunt", "--package", "brunt")


def built(name, *options):
    """The program of this name, built in profile dist."""
    command = ["cargo", "build", "--profile", "dist", *options, "--message-format=json"]
    print("$ " + " ".join(command), file=sys.stderr)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{name} does not build")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return message["executable"]
    sys.exit(f"cargo built no program `{name}`")


def version(program, *arguments):
    """The first line that a program prints about its version."""
    done = subprocess.run(
        [program, *(arguments or ("--version",))], stdin=subprocess.DEVNULL, capture_output=True,
        text=True,
    )
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else "?"


NGINX_CONFIGURATION = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile {descriptors};
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections {descriptors}; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    tcp_nodelay on;
    open_file_cache max=16;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog={backlog};
        root {directory}/files;
        location = /stub_status {{ stub_status; }}
    }}
    {secure}
}}
"""

# One version, cipher suite and group for every client, and a full handshake for each connection.
NGINX_SECURE_SERVER = """\
server {{
        listen 127.0.0.1:{port} ssl{word} backlog={backlog};
        {lines}
        root {directory}/files;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        ssl_ecdh_curve X25519;
        ssl_session_cache off;
        ssl_session_tickets off;
    }}
"""


def nginx_command(directory, port, descriptors, secure_port=None, http3=False):
    """Writes what nginx needs into a new directory; the command that serves `/100.html` there, and
    with `secure_port` also over TLS, in HTTP/1.1 and HTTP/2, and in HTTP/3 if that is asked for."""
    files = directory / "files"
    files.mkdir(parents=True)
    (files / "100.html").write_bytes(b"x" * BODY_BYTES)
    # As root the worker runs as another user, which must reach the file.
    for public in (directory.parent, directory, files):
        public.chmod(0o755)
    configuration = directory / "nginx.conf"
    backlog = SOMAXCONN.read_text().strip()
    secure = ""
    if secure_port:
        secure = nginx_secure_server(directory, secure_port, backlog, http3)
    configuration.write_text(
        NGINX_CONFIGURATION.format(
            directory=directory, port=port, backlog=backlog, descriptors=descriptors, secure=secure,
        )
    )
    return [program_path("nginx"), "-p", directory, "-c", configuration]


def nginx_secure_server(directory, port, backlog, http3):
    certificate, key = self_signed(directory)
    numbers = re.search(r"nginx/(\d+)\.(\d+)\.(\d+)", version(program_path("nginx"), "-v"))
    # HTTP/2 was a word of `listen` before it got a line of its own.
    has_line = numbers is not None and tuple(map(int, numbers.groups())) >= (1, 25, 1)
    lines = ["http2 on;"] if has_line else []
    if http3:
        # All clients share this socket. By default it has room for some 270 requests, and what is
        # lost there comes again after 30 ms, whichever the client.
        lines.append(f"listen 127.0.0.1:{port} quic reuseport rcvbuf=4m;")
    return NGINX_SECURE_SERVER.format(
        directory=directory, port=port, backlog=backlog, certificate=certificate, key=key,
        word="" if has_line else " http2", lines=" ".join(lines),
    )


def self_signed(directory):
    """A new certificate for loopback that nobody vouches for, and its key, as PEM files."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-noenc", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", key, "-out", certificate),
        ],
        check=True, capture_output=True,
    )
    return certificate, key


# --- The machine, and rounds on it ----------------------------------------------------------------


def machine():
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return {
        "time": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "kernel": platform.release(),
        "cpu": model[1] if model else platform.machine(),
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg()[0],
    }


def add_core_arguments(parser):
    parser.add_argument("--server-core", type=int, default=0, help="[0]")
    parser.add_argument("--client-core", type=int, default=1, help="[1]")
    parser.add_argument("--brunt", help="a built brunt, instead of building it")


def add_patience_argument(parser):
    parser.add_argument(
        "--patience", type=float, default=0, metavar="SECONDS",
        help="wait for so long at most, before each run, for other work to end [0]",
    )


def check_cores(parser, arguments):
    cores = os.sched_getaffinity(0)
    for core in (arguments.server_core, arguments.client_core):
        if core not in cores:
            parser.error(f"core {core} is not usable here; usable: {sorted(cores)}")


def busy_seconds():
    """CPU time that all processes and the kernel have used so far, and what was stolen."""
    fields = Path("/proc/stat").read_text().split(maxsplit=9)[1:9]
    user, nice, system, _, _, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / CLOCK_TICKS_PER_SECOND


def wait_until_quiet(seconds_max):
    """Waits, for so long at most, until a second passes in which next to nothing runs."""
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        busy, begun = busy_seconds(), time.monotonic()
        time.sleep(1)
        if (busy_seconds() - busy) / (time.monotonic() - begun) < QUIET_SHARE_MAX:
            return


def rotated(cases, round_number):
    """Each round starts with another case, so that none always follows the same one."""
    turn = (round_number - 1) % len(cases)
    return cases[turn:] + cases[:turn]


def spread(values, digits, scale=1):
    """The median of the values that there are, with minimum and maximum, in units of `scale`."""
    values = [value / scale for value in values if value is not None]
    if not values:
        return "-"
    middle = f"{statistics.median(values):,.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"
