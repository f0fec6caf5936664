"""Header fields of HTTP/2 (RFC 7541): decoding those of requests, encoding those of replies."""

import collections

# The static table, without its numbers.
STATIC = [
    (b":authority", b""), (b":method", b"GET"), (b":method", b"POST"), (b":path", b"/"),
    (b":path", b"/index.html"), (b":scheme", b"http"), (b":scheme", b"https"),
    (b":status", b"200"), (b":status", b"204"), (b":status", b"206"), (b":status", b"304"),
    (b":status", b"400"), (b":status", b"404"), (b":status", b"500"), (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"), *((name, b"") for name in (
        b"accept-language accept-ranges accept access-control-allow-origin age allow authorization "
        b"cache-control content-disposition content-encoding content-language content-length "
        b"content-location content-range content-type cookie date etag expect expires from host "
        b"if-match if-modified-since if-none-match if-range if-unmodified-since last-modified link "
        b"location max-forwards proxy-authenticate proxy-authorization range referer refresh "
        b"retry-after server set-cookie strict-transport-security transfer-encoding user-agent "
        b"vary via www-authenticate"
    ).split()),
]
ENTRY_BYTES = 32
# Lengths of the Huffman codes of bytes, by their values, as runs of (length, how many); codes of
# one length follow each other by value, and those of the next length come after them.
CODE_LENGTHS = [length for length, count in (
    (13, 1), (23, 1), (28, 7), (24, 1), (30, 1), (28, 2), (30, 1), (28, 8), (30, 1), (28, 9),
    (6, 1), (10, 2), (12, 1), (13, 1), (6, 1), (8, 1), (11, 1), (10, 2), (8, 1), (11, 1), (8, 1),
    (6, 3), (5, 3), (6, 7), (7, 1), (8, 1), (15, 1), (6, 1), (12, 1), (10, 1), (13, 1), (6, 1),
    (7, 22), (8, 1), (7, 1), (8, 1), (13, 1), (19, 1), (13, 1), (14, 1), (6, 1), (15, 1), (5, 1),
    (6, 1), (5, 1), (6, 1), (5, 1), (6, 3), (5, 1), (7, 2), (6, 3), (5, 1), (6, 1), (7, 1), (6, 1),
    (5, 2), (6, 1), (7, 5), (15, 1), (11, 1), (14, 1), (13, 1), (28, 1), (20, 1), (22, 1), (20, 2),
    (22, 3), (23, 1), (22, 1), (23, 5), (24, 1), (23, 1), (24, 2), (22, 1), (23, 1), (24, 1),
    (23, 4), (21, 1), (22, 1), (23, 1), (22, 1), (23, 2), (24, 1), (22, 1), (21, 1), (20, 1),
    (22, 2), (23, 2), (21, 1), (23, 1), (22, 2), (24, 1), (21, 1), (22, 1), (23, 2), (21, 2),
    (22, 1), (21, 1), (23, 1), (22, 1), (23, 2), (20, 1), (22, 3), (23, 1), (22, 2), (23, 1),
    (26, 2), (20, 1), (19, 1), (22, 1), (23, 1), (22, 1), (25, 1), (26, 3), (27, 2), (26, 1),
    (24, 1), (25, 1), (19, 1), (21, 1), (26, 1), (27, 2), (26, 1), (27, 1), (24, 1), (21, 2),
    (26, 2), (28, 1), (27, 3), (20, 1), (24, 1), (20, 1), (21, 1), (22, 1), (21, 2), (23, 1),
    (22, 2), (25, 2), (24, 2), (26, 1), (23, 1), (26, 1), (27, 1), (26, 2), (27, 5), (28, 1),
    (27, 5), (26, 1),
) for _ in range(count)]


def huffman_codes():
    """Bytes by the lengths and values of their codes."""
    codes, code, last = {}, 0, 0
    for length, value in sorted((length, value) for value, length in enumerate(CODE_LENGTHS)):
        code <<= length - last
        codes[length, code] = value
        code, last = code + 1, length
    return codes


CODES = huffman_codes()


def from_huffman(coded):
    text, code, length = bytearray(), 0, 0
    for byte in coded:
        for place in range(7, -1, -1):
            code, length = code << 1 | byte >> place & 1, length + 1
            value = CODES.get((length, code))
            if value is not None:
                text.append(value)
                code = length = 0
    if length > 7 or code != (1 << length) - 1:
        raise ValueError("no Huffman code")
    return bytes(text)


class Decoder:
    """The fields of one connection's requests."""

    def __init__(self):
        self._entries = collections.deque()
        self._bytes = 0
        self._bytes_max = 4_096

    def decode(self, block):
        """Names and values of a whole block."""
        self._block, self._at = block, 0
        fields = []
        while self._at < len(block):
            first = block[self._at]
            if first & 0x80:
                fields.append(self._entry(self._integer(7)))
            elif first & 0xe0 == 0x20:
                self._bytes_max = self._integer(5)
                self._evict()
            else:
                is_inserted = bool(first & 0x40)
                index = self._integer(6 if is_inserted else 4)
                name = self._entry(index)[0] if index else self._text()
                fields.append((name, self._text()))
                if is_inserted:
                    self._entries.appendleft(fields[-1])
                    self._bytes += sum(map(len, fields[-1])) + ENTRY_BYTES
                    self._evict()
        return fields

    def _evict(self):
        while self._bytes > self._bytes_max:
            self._bytes -= sum(map(len, self._entries.pop())) + ENTRY_BYTES

    def _entry(self, index):
        if index <= len(STATIC):
            return STATIC[index - 1]
        return self._entries[index - len(STATIC) - 1]

    def _integer(self, bits):
        most = (1 << bits) - 1
        value = self._block[self._at] & most
        self._at += 1
        if value < most:
            return value
        shift = 0
        while True:
            byte = self._block[self._at]
            self._at += 1
            value += (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def _text(self):
        is_coded = self._block[self._at] & 0x80
        length = self._integer(7)
        text = bytes(self._block[self._at:self._at + length])
        self._at += length
        return from_huffman(text) if is_coded else text


def integer(value, bits, above):
    most = (1 << bits) - 1
    if value < most:
        return bytes([above | value])
    coded, value = bytearray([above | most]), value - most
    while value >= 0x80:
        coded.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes([*coded, value])


def encode_size(table_bytes):
    """The size of the table that is used from here on."""
    return integer(table_bytes, 5, 0x20)


def encode(fields):
    """A block that uses the static table alone."""
    names = [name for name, _ in STATIC]
    block = b""
    for name, value in fields:
        if (name, value) in STATIC:
            block += integer(STATIC.index((name, value)) + 1, 7, 0x80)
            continue
        if name in names:
            block += integer(names.index(name) + 1, 4, 0)
        else:
            block += b"\0" + integer(len(name), 7, 0) + name
        block += integer(len(value), 7, 0) + value
    return block
