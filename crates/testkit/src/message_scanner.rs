//! How the simulated server reads messages over TCP.

use std::rc::Rc;

use brunt_proto::messages::{Framing, Scanner};

use super::settings::SimMessages;

/// Finds brunt's messages in the bytes of one connection, however they are cut.
#[derive(Debug)]
pub(super) struct MessageScanner {
    framing: Framing,
    scanner: Scanner,
    /// The received bytes of a message that is not complete.
    begun: Vec<u8>,
    awaits_opening: bool,
}

impl MessageScanner {
    pub(super) fn new(settings: &SimMessages) -> Self {
        Self {
            framing: settings.framing.clone(),
            scanner: Scanner::default(),
            begun: Vec::new(),
            awaits_opening: settings.has_opening,
        }
    }

    /// Takes `bytes`; `found` gets each message with the bytes up to its end, and
    /// whether it is the one that opens the connection.
    pub(super) fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(usize, bool, Rc<[u8]>)) {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &bytes[taken..];
            let Ok(scanned) = self.scanner.receive(&self.framing, rest, &[]) else {
                return;
            };
            taken += scanned.consumed;
            self.begun.extend_from_slice(&rest[..scanned.consumed]);
            if scanned.message_bytes.is_some() {
                let bytes = std::mem::take(&mut self.begun).into();
                found(taken, std::mem::take(&mut self.awaits_opening), bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_at_every_cut_with_their_ends() {
        let bytes = b"hello\na\nbb\ncut";
        for cut in 0..=bytes.len() {
            let settings = SimMessages {
                has_opening: true,
                ..SimMessages::default()
            };
            let mut scanner = MessageScanner::new(&settings);
            let mut found = Vec::new();
            let (first, second) = bytes.split_at(cut);
            for (before, part) in [(0, first), (cut, second)] {
                scanner.scan(part, |end, is_opening, bytes| {
                    found.push((before + end, is_opening, bytes.to_vec()));
                });
            }
            let expected = [
                (6, true, b"hello\n".to_vec()),
                (8, false, b"a\n".to_vec()),
                (11, false, b"bb\n".to_vec()),
            ];
            assert_eq!(found, expected, "cut at {cut}");
        }
    }
}
