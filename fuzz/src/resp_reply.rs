//! Target: replies in Redis' protocol, made of any bytes, and any bytes taken for replies.

use brunt_proto::messages::{Framing, RespKind, ScanError, Scanner};

/// Values within each other, at most: what makes them recurses.
const DEPTH_MAX: usize = 6;

/// Takes the bytes as choices of which values there are, and looks whether each is found whole, as
/// what it is and however it is cut; then takes them for a stream of the protocol itself.
pub fn resp_reply(data: &[u8]) {
    let mut choices = data.iter().copied();
    let (mut stream, mut expected) = (Vec::new(), Vec::new());
    while choices.len() > 0 && stream.len() < 4096 {
        let from = stream.len();
        let kind = write_message(&mut choices, &mut stream);
        expected.push(((stream.len() - from) as u64, kind));
    }
    for bytes in [stream.len().max(1), 1, 2, 5] {
        let found = read(stream.chunks(bytes));
        assert_eq!(found, (expected.clone(), Ok(0)), "in pieces of {bytes}");
    }
    let whole = read([data]);
    for bytes in [1, 3] {
        assert_eq!(read(data.chunks(bytes)), whole, "in pieces of {bytes}");
    }
}

/// The messages in the pieces, and the bytes of one that is begun behind them.
fn read<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<(u64, RespKind)>, Result<u64, ScanError>) {
    let (mut scanner, mut messages) = (Scanner::default(), Vec::new());
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            match scanner.receive(&Framing::Resp, rest, b"") {
                Ok(scanned) => {
                    rest = &rest[scanned.consumed..];
                    messages.extend(scanned.message_bytes.map(|bytes| (bytes, scanned.kind)));
                }
                Err(error) => return (messages, Err(error)),
            }
        }
    }
    (messages, Ok(scanner.pending_bytes()))
}

fn write_message(choices: &mut dyn Iterator<Item = u8>, out: &mut Vec<u8>) -> RespKind {
    let choice = choices.next().unwrap_or(0);
    if choice % 16 == 15 {
        write_attribute(choices, out);
    }
    match choice % 8 {
        6 => {
            out.extend(b">2\r\n+invalidate\r\n");
            write_value(choices, 1, out);
            RespKind::Push
        }
        7 => {
            out.extend(match choice % 3 {
                0 => &b"!8\r\nERR a\r\nb\r\n"[..],
                _ => b"-ERR no\r\n",
            });
            RespKind::Error
        }
        _ => {
            write_value(choices, 0, out);
            RespKind::Reply
        }
    }
}

fn write_attribute(choices: &mut dyn Iterator<Item = u8>, out: &mut Vec<u8>) {
    out.extend(b"|1\r\n+ttl\r\n");
    write_value(choices, DEPTH_MAX - 2, out);
}

/// Writes a value that is no error and no push.
fn write_value(choices: &mut dyn Iterator<Item = u8>, depth: usize, out: &mut Vec<u8>) {
    let choice = choices.next().unwrap_or(0);
    let count = usize::from(choice / 32);
    let is_leaf = depth >= DEPTH_MAX;
    match choice % 16 {
        0 => out.extend(b"+OK\r\n"),
        1 => out.extend(b":-17\r\n"),
        2 => out.extend(b"_\r\n"),
        3 => out.extend(b"#t\r\n"),
        4 => out.extend(b",inf\r\n"),
        5 => out.extend(b"(12345678901234567890123\r\n"),
        6 => out.extend(b"=7\r\ntxt:a\r\n\r\n"),
        7 => out.extend(b"$-1\r\n"),
        8 => out.extend(b"*-1\r\n"),
        9 => out.extend(b"$?\r\n;3\r\n\r\n;\r\n;0\r\n"),
        12 if !is_leaf => {
            out.extend(format!("*{count}\r\n").bytes());
            (0..count).for_each(|_| write_value(choices, depth + 1, out));
        }
        13 if !is_leaf => {
            out.extend(format!("%{count}\r\n").bytes());
            (0..2 * count).for_each(|_| write_value(choices, depth + 1, out));
        }
        // No more of these within each other than are read.
        14 if depth < 3 => {
            out.extend(b"~?\r\n");
            (0..count).for_each(|_| write_value(choices, depth + 1, out));
            out.extend(b".\r\n");
        }
        15 if !is_leaf => {
            write_attribute(choices, out);
            write_value(choices, depth + 1, out);
        }
        _ => {
            let text = &b"\r\n$1\r\n+"[..count];
            out.extend(format!("${count}\r\n").bytes());
            out.extend(text);
            out.extend(b"\r\n");
        }
    }
}
