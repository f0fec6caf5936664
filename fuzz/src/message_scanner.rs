//! Target: messages on a connection, whole against cut.

use brunt_proto::messages::{Framing, ScanError, Scanner};

use crate::PIECE_BYTES;

/// Takes the first line as a framing, the second as what was sent, and the rest as what came back.
pub(crate) fn message_scanner(data: &[u8]) {
    let mut parts = data.splitn(3, |&byte| byte == b'\n');
    let (Some(typed), Some(sent), Some(stream)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    let Ok(framing) = String::from_utf8_lossy(typed).parse() else {
        return;
    };
    let whole = run(&framing, sent, [stream]);
    for bytes in PIECE_BYTES {
        let cut = run(&framing, sent, stream.chunks(bytes));
        assert_eq!(cut, whole, "in pieces of {bytes}");
    }
}

/// The bytes of each message, and how it ended behind them.
fn run<'a>(
    framing: &Framing,
    sent: &[u8],
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<u64>, Result<Option<u64>, ScanError>) {
    let (mut scanner, mut messages) = (Scanner::default(), Vec::new());
    let mut handed_over = 0;
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let unread = scanner.unread_bytes(framing);
            if unread > 0 && unread < rest.len() as u64 && messages.len() % 2 == 1 {
                scanner.discarded(unread);
                handed_over += unread;
                rest = &rest[unread as usize..];
            }
            let received = scanner.receive(framing, rest, sent);
            let taken = received.map_or(rest.len(), |scanned| scanned.consumed);
            handed_over += taken as u64;
            if let Ok(Some(bytes)) = received.map(|scanned| scanned.message_bytes) {
                messages.push(bytes);
                assert_eq!(scanner.pending_bytes(), 0);
            } else {
                assert_eq!(taken, rest.len(), "bytes left without a message");
            }
            let given_out: u64 = messages.iter().sum();
            assert_eq!(given_out + scanner.pending_bytes(), handed_over);
            if let Err(error) = received {
                return (messages, Err(error));
            }
            rest = &rest[taken..];
        }
    }
    let end = scanner.end(framing);
    let rest = end.map_or(0, Option::unwrap_or_default);
    let given_out: u64 = messages.iter().sum();
    assert_eq!(given_out + rest + scanner.pending_bytes(), handed_over);
    (messages, end)
}
