"""A server over HTTP/1.1 and HTTP/2 that records, per connection, what it is asked, and answers
after a delay. With a certificate it listens with TLS, too, and once more for clients with a
certificate alone.

What it answers depends on nothing but the request and its number on its connection, so that two
clients that ask the same get the same.
"""

import asyncio
import collections
import dataclasses
import json
import re
import ssl
import threading

from http2_server import PREFACE, Http2

# A request whose head or body is larger ends its connection.
REQUEST_BYTES_MAX = 16 << 20
ABSOLUTE_URL = re.compile(rb"^https?://[^/]*")
HEAD_END = b"\r\n\r\n"


@dataclasses.dataclass(frozen=True)
class Request:
    """One request as it came: the line without its end, the header lines, the body."""

    line: bytes
    headers: tuple
    body: bytes
    # What is unusual about how it came: its address, and TLS.
    way: tuple = ()

    @property
    def method(self):
        return self.line.partition(b" ")[0]

    @property
    def path(self):
        """What is asked for, without scheme and host where the line has them."""
        words = self.line.split(b" ")
        return ABSOLUTE_URL.sub(b"", words[1]) if len(words) > 1 else b""

    def header(self, name):
        """The value of the first header of a name in lower case; None without one."""
        for line in self.headers:
            key, _, value = line.partition(b":")
            if key.strip().lower() == name:
                return value.strip()
        return None


def way_of(transport):
    """What is unusual about how a connection was made."""
    peer = transport.get_extra_info("peername")
    way = [f"from {peer[0]}"] if peer and peer[0] != "127.0.0.1" else []
    if not peer:
        way.append("over a Unix socket")
    if secure := transport.get_extra_info("ssl_object"):
        way += [secure.version(), f"for {secure.context.names.pop(secure, None)}"]
        # The server does not choose in the order of the client with newer versions.
        way += [secure.cipher()[0]] if secure.version() == "TLSv1.2" else []
    return tuple(way)


def take_request(buffer):
    """The first whole request of a buffer, removed from it; None while it is not whole."""
    end = buffer.find(HEAD_END)
    if end < 0:
        return None
    line, *headers = bytes(buffer[:end]).split(b"\r\n")
    request = Request(line, tuple(headers), b"")
    length = request.header(b"content-length") or b"0"
    begin = end + len(HEAD_END)
    whole = begin + (int(length) if length.isdigit() else 0)
    if len(buffer) < whole:
        return None
    body = bytes(buffer[begin:whole])
    del buffer[:whole]
    return dataclasses.replace(request, body=body)


def reply_to(request, number):
    """The reply to the request of a number on its connection, counted from 1, and whether the
    connection is closed after it. Without a reply the server keeps silent."""
    path, method = request.path, request.method
    if path.startswith(b"/never"):
        return None, False
    if path.startswith(b"/bare"):
        # Without any header: the body lasts until the connection ends.
        return b"HTTP/1.1 200 OK\r\n\r\nbare", True
    status = b"200 OK"
    if b"/500" in path and number % 2 == 0:
        status = b"500 Internal Server Error"
    elif path.startswith(b"/redirect") and number == 1:
        status = b"302 Found"
    elif path.startswith(b"/missing"):
        status = b"404 Not Found"
    elif method == b"CONNECT":
        status = b"405 Method Not Allowed"
    lines = [
        b"HTTP/1.1 " + status,
        b"Server: recording/1",
        b"X-Token: t%d" % number,
        b"Set-Cookie: a=1; Path=/",
        b"Set-Cookie: b=%d; Path=/" % number,
    ]
    # What a script sends to recognise a reply comes back with it.
    lines += [line for line in request.headers if re.match(rb"X-(?!Token)", line)]
    body = json.dumps({
        "id": number, "token": f"t{number}", "path": path.decode(errors="replace"),
        "method": method.decode(errors="replace"), "items": [1, 2, 3],
        "errCode": 0, "data": {"userId": 7, "accessToken": f"t{number}"},
    }).encode()
    sized = re.match(rb"/bytes/(\d+)", path)
    if sized:
        body = b"x" * int(sized[1])
    is_old = request.line.endswith(b" HTTP/1.0")
    is_kept = (request.header(b"connection") or b"").lower() == b"keep-alive"
    closes = path.startswith(b"/close")
    if closes:
        lines.append(b"Connection: close")
    elif is_old and is_kept:
        lines.append(b"Connection: keep-alive")
    closes |= is_old and not is_kept
    lines.append(b"Content-Type: application/json")
    if path.startswith(b"/chunked"):
        lines.append(b"Transfer-Encoding: chunked")
        half = len(body) // 2
        pieces = (body[:half], body[half:], b"")
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    else:
        lines.append(b"Content-Length: %d" % len(body))
    if method == b"HEAD":
        body = b""
    return b"\r\n".join(lines) + HEAD_END + body, closes


def in_http2(reply):
    """Header fields and body of a reply of HTTP/1.1 as those of HTTP/2."""
    head, _, body = reply.partition(HEAD_END)
    line, *headers = head.split(b"\r\n")
    fields = [(b":status", line.split(b" ")[1])]
    for header in headers:
        name, _, value = header.partition(b": ")
        if name == b"Transfer-Encoding":
            pieces = body.split(b"\r\n")
            body = b"".join(pieces[1::2])
        elif name != b"Connection":
            fields.append((name.lower(), value))
    return fields, body


class Connection(asyncio.Protocol):
    """One connection: its requests are answered in order, each so long after it came."""

    def __init__(self, server):
        self._server = server
        self._record = None
        self._buffer = bytearray()
        self._due = collections.deque()
        self._timer = None
        self._number = 0
        self._http2 = None

    def connection_made(self, transport):
        self._transport = transport
        self._way = way_of(transport)
        self._server.open.add(self)

    def connection_lost(self, _):
        self._server.open.discard(self)
        if self._timer:
            self._timer.cancel()

    def data_received(self, data):
        if self._http2 is None:
            self._buffer += data
            if self._buffer.startswith(PREFACE):
                self._http2 = Http2(self._transport.write, self._asked)
                data = bytes(self._buffer[len(PREFACE):])
            elif PREFACE.startswith(self._buffer):
                return
        if self._http2:
            self._http2.receive(data)
        else:
            while request := take_request(self._buffer):
                self._came(dataclasses.replace(request, way=self._way), None)
        if len(self._buffer) > REQUEST_BYTES_MAX:
            self._transport.abort()
        elif self._due and self._timer is None:
            self._wait()

    def _asked(self, stream, line, headers, body, settings):
        way = (*self._way, *settings)
        self._came(Request(line, headers, body, way), stream)

    def _came(self, request, stream):
        if self._record is None:
            self._record = self._server.new_connection()
        self._record.append(request)
        self._server.arrivals.append(request)
        self._number += 1
        due = self._server.now() + self._server.delay
        self._due.append((due, request, self._number, stream))

    def abort(self):
        self._transport.abort()

    def _wait(self):
        self._timer = self._server.at(self._due[0][0], self._answer)

    def _answer(self):
        self._timer = None
        now = self._server.now()
        while self._due and self._due[0][0] <= now:
            _, request, number, stream = self._due.popleft()
            reply, closes = reply_to(request, number)
            if reply is None:
                continue
            if stream is None:
                self._transport.write(reply)
            else:
                self._http2.reply(stream, *in_http2(reply))
            if closes:
                if stream is not None:
                    self._http2.close(stream)
                self._due.clear()
                self._transport.close()
                return
        if self._due:
            self._wait()


class Secure(ssl.SSLContext):
    """How TLS is spoken, with the names that clients ask for."""

    def __new__(cls, *_):
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, certificate, wants_certificates):
        self.names = {}
        self.load_cert_chain(certificate)
        self.set_alpn_protocols(["h2", "http/1.1"])
        self.sni_callback = lambda secure, name, _: self.names.__setitem__(secure, name)
        if wants_certificates:
            self.verify_mode = ssl.CERT_REQUIRED
            self.load_verify_locations(certificate)


class RecordingServer:
    """The server, in a thread of its own, on free ports of loopback. `certificate` is a PEM file
    with its key, which clients have, too; `socket` the path of a Unix socket."""

    def __init__(self, delay, certificate=None, socket=None):
        self.delay = delay
        self._certificate = certificate
        self._socket = socket
        self.open = set()
        self.connections = []
        self.arrivals = []
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait()

    def _run(self, started):
        asyncio.set_event_loop(self._loop)
        self.port = self._listen()
        if self._certificate:
            self.secure_port = self._listen(Secure(self._certificate, False))
            self.knowing_port = self._listen(Secure(self._certificate, True))
        if self._socket:
            listening = self._loop.create_unix_server(lambda: Connection(self), self._socket)
            self._loop.run_until_complete(listening)
        started.set()
        self._loop.run_forever()

    def _listen(self, secure=None):
        """A port of IPv4, which is IPv6's, too."""
        made = lambda: Connection(self)  # noqa: E731
        first = self._loop.run_until_complete(
            self._loop.create_server(made, "127.0.0.1", 0, backlog=1024, ssl=secure)
        )
        port = first.sockets[0].getsockname()[1]
        if not secure:
            self._loop.run_until_complete(self._loop.create_server(made, "::1", port))
        return port

    def now(self):
        return self._loop.time()

    def at(self, instant, what):
        return self._loop.call_at(instant, what)

    def new_connection(self):
        self.connections.append([])
        return self.connections[-1]

    def take_record(self):
        """What was asked since the last time: the requests of each connection that had any, and all
        of them in the order in which they came. What is still open is closed."""
        taken = threading.Event()
        result = []

        def take():
            for connection in list(self.open):
                connection.abort()
            result.extend((self.connections, self.arrivals))
            self.connections, self.arrivals = [], []
            taken.set()

        self._loop.call_soon_threadsafe(take)
        taken.wait()
        return result

    def stop(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
