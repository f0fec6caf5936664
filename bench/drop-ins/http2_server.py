"""One connection of a server that speaks HTTP/2 (RFC 9113) in clear text or over TLS: frames, flow
control, and requests as those of HTTP/1.1 are shown."""

import struct

from hpack import Decoder, encode, encode_size

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 3, 4, 6, 7, 8, 9
)
END_STREAM = ACK = 1
END_HEADERS, PADDED, PRIORITY = 4, 8, 0x20
INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, HEADER_TABLE_SIZE, MAX_FRAME_SIZE = 4, 3, 1, 5
FRAME_BYTES = 16_384
WINDOW_BYTES = 65_535
TABLE_BYTES = 4_096
# What clients may send without being told that it was taken.
RECEIVE_BYTES = 1 << 30
STREAMS_MAX = 250
# What a client says that tells tools apart.
NAMES = {INITIAL_WINDOW_SIZE: "stream window", HEADER_TABLE_SIZE: "table", MAX_FRAME_SIZE: "frame"}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class Stream:
    """A request that comes, and what is still to be sent of its reply."""

    def __init__(self, window):
        self.fields = []
        self.body = bytearray()
        self.window = window
        self.rest = b""


class Http2:
    """`write` sends bytes; `ask` is called with number of the stream, line, header lines and body
    of each request, and what is unusual about the connection."""

    def __init__(self, write, ask):
        self._write, self._ask = write, ask
        self._buffer = bytearray()
        self._decoder = Decoder()
        self._streams = {}
        self._block, self._block_flags = bytearray(), 0
        self._settings, self._resized = {}, b""
        self._initial_window, self._window = WINDOW_BYTES, WINDOW_BYTES
        self._raised, self._has_asked = 0, False
        settings = struct.pack(">HIHI", MAX_CONCURRENT_STREAMS, STREAMS_MAX, INITIAL_WINDOW_SIZE,
                               RECEIVE_BYTES)
        write(frame(SETTINGS, 0, 0, settings)
              + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", RECEIVE_BYTES)))

    def receive(self, data):
        """Takes what came behind the preface."""
        self._buffer += data
        while len(self._buffer) >= 9:
            length = int.from_bytes(self._buffer[:3], "big")
            if len(self._buffer) < 9 + length:
                return
            kind, flags, stream = struct.unpack(">BBI", self._buffer[3:9])
            payload = bytes(self._buffer[9:9 + length])
            del self._buffer[:9 + length]
            self._frame(kind, flags, stream & 0x7fffffff, payload)

    def reply(self, stream, fields, body):
        """Answers a request."""
        if stream not in self._streams:
            return
        flags = END_HEADERS | (0 if body else END_STREAM)
        block, self._resized = self._resized + encode(fields), b""
        self._write(frame(HEADERS, flags, stream, block))
        self._streams[stream].rest = body
        if body:
            self._send(stream)
        else:
            del self._streams[stream]

    def close(self, last):
        """Says that nothing follows the stream."""
        self._write(frame(GOAWAY, 0, 0, struct.pack(">II", last, 0)))

    def _frame(self, kind, flags, stream, payload):
        if kind in (DATA, HEADERS) and flags & PADDED:
            payload = payload[1:len(payload) - payload[0]]
        if kind == HEADERS:
            self._streams[stream] = Stream(self._initial_window)
            self._has_asked = True
            self._block = bytearray(payload[5:] if flags & PRIORITY else payload)
            self._block_flags = flags
        elif kind == CONTINUATION:
            self._block += payload
        if kind in (HEADERS, CONTINUATION):
            if flags & END_HEADERS:
                self._streams[stream].fields = self._decoder.decode(bytes(self._block))
                if self._block_flags & END_STREAM:
                    self._asked(stream)
        elif kind == DATA and stream in self._streams:
            self._streams[stream].body += payload
            if flags & END_STREAM:
                self._asked(stream)
        elif kind == RST_STREAM:
            self._streams.pop(stream, None)
        elif kind == SETTINGS and not flags & ACK:
            self._take_settings(dict(struct.iter_unpack(">HI", payload)))
        elif kind == PING and not flags & ACK:
            self._write(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE:
            self._widen(stream, int.from_bytes(payload, "big"))

    def _take_settings(self, settings):
        self._settings.update(settings)
        if HEADER_TABLE_SIZE in settings:
            # A smaller table has to be acknowledged in the next block.
            self._resized = encode_size(min(settings[HEADER_TABLE_SIZE], TABLE_BYTES))
        window = settings.get(INITIAL_WINDOW_SIZE, self._initial_window)
        for stream in self._streams.values():
            stream.window += window - self._initial_window
        self._initial_window = window
        self._write(frame(SETTINGS, ACK, 0))

    def _widen(self, stream, count):
        if stream:
            if stream in self._streams:
                self._streams[stream].window += count
                self._send(stream)
            return
        self._window += count
        if not self._has_asked:
            self._raised += count
        for waiting in list(self._streams):
            self._send(waiting)

    def _asked(self, number):
        stream = self._streams[number]
        fields = dict(stream.fields)
        line = b" ".join((fields[b":method"], fields[b":path"], b"HTTP/2"))
        headers = [name + b": " + value for name, value in stream.fields
                   if name not in (b":method", b":path")]
        # Pseudo header fields have no order.
        headers.sort(key=lambda header: (header[:1] != b":", header if header[:1] == b":" else b""))
        said = [f"{name} {self._settings[key]}" for key, name in NAMES.items()
                if key in self._settings]
        self._ask(number, line, tuple(headers), bytes(stream.body),
                  (*said, f"window raised by {self._raised}"))

    def _send(self, number):
        stream = self._streams[number]
        while stream.rest:
            count = min(len(stream.rest), stream.window, self._window, FRAME_BYTES)
            if count <= 0:
                return
            piece, stream.rest = stream.rest[:count], stream.rest[count:]
            stream.window -= count
            self._window -= count
            self._write(frame(DATA, 0 if stream.rest else END_STREAM, number, piece))
            if not stream.rest:
                del self._streams[number]
                return
