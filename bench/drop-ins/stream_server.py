"""A server over TCP that records, per connection, what it gets: bytes, or where a connection begins
with an upgrade, messages of WebSocket. It sends everything back, or nothing."""

import asyncio
import base64
import hashlib
import threading
import time

# Of each connection, so many bytes are kept.
KEPT_BYTES = 1 << 16
HEAD_END = b"\r\n\r\n"
HEAD_BYTES_MAX = 1 << 14
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CLOSE, PING, PONG = 8, 9, 10


class Record:
    """What came on a connection."""

    def __init__(self, echoes):
        # Whether it was sent back.
        self.echoes = echoes
        # Lines of the upgrade, without its key.
        self.upgrade = ()
        # Bytes, or payloads of messages, the first ones; each message begins with its opcode.
        self.kept = bytearray()
        # How many bytes came, or messages.
        self.count = 0

    def add(self, data, count):
        self.kept += data[:max(0, KEPT_BYTES - len(self.kept))]
        self.count += count


def take_frame(buffer):
    """The opcode and the payload of the first whole frame of a buffer, removed from it; None while
    it is not whole."""
    if len(buffer) < 2:
        return None
    length, begin = buffer[1] & 0x7F, 2
    if length >= 126:
        begin = 4 if length == 126 else 10
        if len(buffer) < begin:
            return None
        length = int.from_bytes(buffer[2:begin], "big")
    key = b""
    if buffer[1] & 0x80:
        key = bytes(buffer[begin:begin + 4])
        begin += 4
    if len(buffer) < begin + length:
        return None
    opcode, payload = buffer[0] & 15, bytes(buffer[begin:begin + length])
    del buffer[:begin + length]
    if any(key):
        whole = key * (length // 4 + 1)
        number = int.from_bytes(payload, "big") ^ int.from_bytes(whole[:length], "big")
        payload = number.to_bytes(length, "big")
    return opcode, payload


def frame(opcode, payload):
    """A frame of a server, which has no mask."""
    length = len(payload)
    head = bytes([0x80 | opcode])
    if length < 126:
        return head + bytes([length]) + payload
    if length < 1 << 16:
        return head + b"\x7e" + length.to_bytes(2, "big") + payload
    return head + b"\x7f" + length.to_bytes(8, "big") + payload


class Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, server, echoes):
        self._server = server
        self._echoes = echoes
        self._record = Record(echoes)
        self._buffer = bytearray()
        # Absent until it is known.
        self._is_websocket = None

    def connection_made(self, transport):
        self._transport = transport
        self._server.records.append(self._record)
        self._server.open += 1

    def connection_lost(self, _):
        self._server.open -= 1

    def data_received(self, data):
        if self._is_websocket is None:
            self._buffer += data
            if not self._is_decided():
                return
            data = b""
        if self._is_websocket:
            self._buffer += data
            self._take_frames()
            return
        if self._buffer:
            data, self._buffer = bytes(self._buffer) + data, bytearray()
        self._record.add(data, len(data))
        if self._echoes:
            self._transport.write(data)

    def _is_decided(self):
        """Whether it is known what is spoken; answers an upgrade."""
        start = bytes(self._buffer[:4])
        end = self._buffer.find(HEAD_END)
        if b"GET ".startswith(start) and end < 0 and len(self._buffer) < HEAD_BYTES_MAX:
            return False
        lines = bytes(self._buffer[:max(end, 0)]).split(b"\r\n")
        keys = [line.partition(b":")[2].strip() for line in lines
                if line.lower().startswith(b"sec-websocket-key:")]
        self._is_websocket = bool(keys)
        if keys:
            del self._buffer[:end + len(HEAD_END)]
            shown = [line for line in lines if b"websocket-key" not in line.lower()]
            self._record.upgrade = (shown[0], *sorted(line.lower() for line in shown[1:]))
            accept = base64.b64encode(hashlib.sha1(keys[0] + GUID).digest())
            self._transport.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Accept: " + accept + HEAD_END
            )
        return True

    def _take_frames(self):
        out = bytearray()
        while (found := take_frame(self._buffer)) is not None:
            opcode, payload = found
            if opcode == CLOSE:
                continue
            self._record.add(bytes([opcode]) + payload, 1)
            if opcode == PING:
                out += frame(PONG, payload)
            elif self._echoes and opcode != PONG:
                out += frame(opcode, payload)
        if out:
            self._transport.write(bytes(out))


class StreamServer:
    """Two addresses of loopback: what comes to `echo` is sent back, what comes to `sink` is not."""

    def __init__(self):
        self.records = []
        self.open = 0
        self._loop = asyncio.new_event_loop()
        self.echo, self.sink = (self._listen(echoes) for echoes in (True, False))
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def _listen(self, echoes):
        server = self._loop.run_until_complete(
            self._loop.create_server(lambda: Connection(self, echoes), "127.0.0.1", 0)
        )
        return server.sockets[0].getsockname()[1]

    def take_record(self):
        """What came since this was last called, per connection."""
        taken, self.records = self.records, []
        return taken

    def wait_until_idle(self):
        """Until nobody is connected, for 5 s at most."""
        for _ in range(100):
            if not self.open:
                break
            time.sleep(0.05)

    def stop(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
