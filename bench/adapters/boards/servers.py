"""The servers that answer the boards' routes, and their counts."""

import json
import subprocess
import urllib.request
from collections import Counter
from pathlib import Path

import common

HERE = Path(__file__).resolve().parent
CADDYFILE = """\
{{
    admin off
    servers {{
        protocols h1 h2 h3
    }}
}}
https://localhost:{port} {{
    bind 127.0.0.1
    tls {certificate} {key}
    log {{
        output file {log} {{
            roll_disabled
        }}
        format json
    }}
    @known path /baseline2 /static/* /json/* /async-db
    respond @known "{body}" 200
    respond 404
}}
"""
NGINX = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/nginx.pid;
events {{ worker_connections 19000; }}
http {{
    log_format brief '{{"status": $status}}';
    # What nginx notes of requests whose client was gone before they were answered: 499, and of
    # calls the error whose page they would have got.
    map $status $answered {{ 405 0; 499 0; default 1; }}
    access_log {log} brief buffer=64k if=$answered;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl http2 backlog=65535;
        {clear}
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        location ~ ^/(baseline2|public/baseline|async-db|api/me)$ {{ return 200 {body}; }}
        location ~ ^/(static|json|api/items)/ {{ return 200 {body}; }}
        location /benchmark.BenchmarkService/ {{
            root {folder}/grpc;
            default_type application/grpc;
            add_trailer grpc-status 0 always;
            error_page 405 =200 $uri;
        }}
        location / {{ return 404; }}
    }}
}}
"""
LISTEN_CLEAR = "listen 127.0.0.1:{} http2 backlog=65535;"
# Five bytes of gRPC, not compressed and of two bytes, then a SumReply whose result is 3.
SUM_REPLY = bytes([0, 0, 0, 0, 2, 8, 3])
BODY = "x" * 100


class Server:
    """A process that listens while its context lasts."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [str(word) for word in self.command], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            for port in self.ports:
                common.wait_until_listening(self.command[0], self.process, port)
        except BaseException:
            common.stop(self.process)
            raise
        return self

    def __exit__(self, *_):
        common.stop(self.process)


class Node(Server):
    """HTTP/1.1, HTTP/2, WebSocket and unary gRPC: server.mjs, which counts by itself."""

    def __init__(self, certificates=None, **ports):
        self.counts_port = common.free_port()
        self.ports = [*(port for some in ports.values() for port in some), self.counts_port]
        files = {}
        if certificates:
            files = {"certificate": str(certificates / "server.crt"),
                     "key": str(certificates / "server.key")}
        plan = {**ports, **files, "counts": self.counts_port}
        self.command = ["node", HERE / "server.mjs", json.dumps(plan)]

    def counts_url(self):
        return f"http://127.0.0.1:{self.counts_port}/"

    def counts(self):
        with urllib.request.urlopen(self.counts_url(), timeout=10) as reply:
            return json.load(reply)


class Logging(Server):
    """A server whose log has a line for each request that it answered."""

    def counts(self):
        # What is buffered of the log is written at the end.
        common.stop(self.process)
        answered = Counter({f"{kind}xx": 0 for kind in range(2, 6)})
        for line in self.log.read_text().splitlines() if self.log.exists() else []:
            answered[f"{json.loads(line)['status'] // 100}xx"] += 1
        return {"answered": answered, "messages_sent": 0}


class Nginx(Logging):
    """HTTP/2 with and without TLS, and unary gRPC, at rates that Node does not reach. A call gets a
    file, which nginx gives for POST only as the page of its error 405."""

    def __init__(self, folder, certificates, port, clear_ports):
        self.log = folder / "nginx.log"
        self.log.unlink(missing_ok=True)
        configuration = folder / "nginx.conf"
        configuration.write_text(NGINX.format(
            port=port, certificate=certificates / "server.crt", key=certificates / "server.key",
            log=self.log, body=BODY, folder=folder,
            clear=" ".join(LISTEN_CLEAR.format(number) for number in clear_ports),
        ))
        service = folder / "grpc/benchmark.BenchmarkService"
        service.mkdir(parents=True, exist_ok=True)
        (service / "GetSum").write_bytes(SUM_REPLY)
        # As root the worker runs as another user, which must reach the file.
        for public in (folder, service.parent, service):
            public.chmod(0o755)
        self.ports = [port, *clear_ports]
        self.command = [
            common.program_path("nginx"), "-p", folder, "-c", configuration, "-e", "stderr",
        ]


class Caddy(Logging):
    """HTTP/3."""

    def __init__(self, folder, certificates, port):
        self.log = folder / "caddy.log"
        self.log.unlink(missing_ok=True)
        configuration = folder / "Caddyfile"
        configuration.write_text(CADDYFILE.format(
            port=port, certificate=certificates / "server.crt", key=certificates / "server.key",
            log=self.log, body=BODY,
        ))
        self.ports = [port]
        self.command = ["caddy", "run", "--adapter", "caddyfile", "--config", configuration]
