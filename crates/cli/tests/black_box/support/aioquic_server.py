"""A server of HTTP/3 on aioquic: ADDRESS PORT CERTIFICATE KEY LOG.

It writes a line to LOG for each whole request: method, path and bytes of its body. LOG is there
when the server is ready.
"""

import asyncio
import sys

from aioquic.buffer import encode_uint_var
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, FrameType, H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated

MEGABYTE = bytes(1_000_000)
# Requests after which a connection is given up, gracefully.
GRACE = 5
LAST_STREAM = 2**62 - 4


class Server(QuicConnectionProtocol):
    log = None
    http = None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http, self.requests = H3Connection(self._quic), {}
        if self.http is None:
            return
        for each in self.http.handle_event(event):
            if isinstance(each, HeadersReceived):
                # Trailers are not a second request.
                self.requests.setdefault(each.stream_id, [dict(each.headers), 0])
            elif isinstance(each, DataReceived):
                self.requests[each.stream_id][1] += len(each.data)
            else:
                continue
            if each.stream_ended:
                self.answered(each.stream_id, *self.requests.pop(each.stream_id))

    def answered(self, stream, headers, received):
        if headers[b":path"] != b"/graceful" or stream != 4 * GRACE:
            self.answer(stream, headers, received)
            return
        # RFC 9114 section 5.2: first that it will end, then behind which request.
        self.go_away(LAST_STREAM)

        def end():
            self.go_away(stream + 4)
            self.answer(stream, headers, received)
            self.transmit()

        asyncio.get_running_loop().call_later(0.02, end)

    def go_away(self, stream):
        frame = encode_frame(FrameType.GOAWAY, encode_uint_var(stream))
        self._quic.send_stream_data(self.http._local_control_stream_id, frame)

    def answer(self, stream, headers, received):
        method, path = headers[b":method"].decode(), headers[b":path"].decode()
        self.log.write(f"{method} {path} {received}\n")
        self.log.flush()
        status, body, trailers = b"200", b"hello\n", []
        if path == "/empty":
            body = b""
        elif path == "/large":
            body = MEGABYTE
        elif path == "/early":
            self.send(stream, [(b":status", b"103"), (b"link", b"</style.css>; rel=preload")])
        elif path == "/trailers":
            trailers = [(b"checksum", b"5d41402a")]
        elif path == "/call":
            trailers = [(b"grpc-status", b"0")]
        elif path == "/withheld":
            body = 6 * MEGABYTE
        elif path not in ("/", "/graceful"):
            status, body = b"404", b"nothing is here\n"
        head = [(b":status", status)]
        if not trailers:
            head.append((b"content-length", str(len(body)).encode()))
        if method == "HEAD" or not (body or trailers):
            self.send(stream, head, ends=True)
            return
        self.send(stream, head)
        self.http.send_data(stream, body, end_stream=not trailers)
        if trailers:
            self.send(stream, trailers, ends=True)
        if path == "/withheld":
            # One byte of it is never sent.
            self._quic._streams[stream].sender._pending.subtract(1_000, 1_001)

    def send(self, stream, headers, ends=False):
        self.http.send_headers(stream, headers, end_stream=ends)


async def main(address, port, certificate, key, log):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(certificate, key)
    await serve(address, int(port), configuration=configuration, create_protocol=Server)
    Server.log = open(log, "w")
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
