//! Frames of HTTP/2 on their way: what they carry is known from their headers.

use brunt_proto::http2::frame::{FrameHeader, HEADER_BYTES, Kind, PREFACE, flags};

/// What brunt's frames carry to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Requests whose heads began.
    pub(crate) requests: u64,
    pub(crate) settings_acknowledged: u64,
    pub(crate) pings_acknowledged: u64,
}

/// Finds frames in what brunt sends on a connection, however it is cut.
#[derive(Debug)]
pub(crate) struct FrameScanner {
    /// Bytes before the next header.
    skipped: usize,
    /// The beginning of a header.
    header: Vec<u8>,
}

impl Default for FrameScanner {
    /// Before the preface.
    fn default() -> Self {
        Self {
            skipped: PREFACE.len(),
            header: Vec::new(),
        }
    }
}

impl FrameScanner {
    /// What the frames carry whose headers end in `bytes`.
    pub(crate) fn scan(&mut self, mut bytes: &[u8]) -> Carried {
        let mut carried = Carried::default();
        loop {
            bytes = &bytes[self.skip(bytes.len())..];
            let taken = bytes.len().min(HEADER_BYTES - self.header.len());
            self.header.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            let Some(header) = self.header.first_chunk().map(FrameHeader::read) else {
                return carried;
            };
            self.header.clear();
            self.skipped = header.length as usize;
            let is_ack = header.has(flags::ACK);
            carried.requests += u64::from(header.kind == Kind::Headers);
            carried.settings_acknowledged += u64::from(header.kind == Kind::Settings && is_ack);
            carried.pings_acknowledged += u64::from(header.kind == Kind::Ping && is_ack);
        }
    }

    fn skip(&mut self, most: usize) -> usize {
        let skipped = self.skipped.min(most);
        self.skipped -= skipped;
        skipped
    }
}

/// The frames that the server sends at once, with the bytes up to the end of each.
pub(super) fn frames(bytes: &[u8]) -> impl Iterator<Item = (FrameHeader, &[u8], usize)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let (header, rest) = bytes[start..].split_first_chunk()?;
        let header = FrameHeader::read(header);
        let payload = rest.get(..header.length as usize)?;
        start += HEADER_BYTES + payload.len();
        Some((header, payload, start))
    })
}

#[cfg(test)]
mod tests {
    use brunt_proto::http2::frame;

    use super::*;

    #[test]
    fn frames_are_found_at_every_cut() {
        let mut bytes = PREFACE.to_vec();
        frame::write_settings(&mut bytes, &[]);
        frame::write_settings_ack(&mut bytes);
        frame::write_head(&mut bytes, 1, b"head", false, 3);
        frame::write_data_header(&mut bytes, 1, 9, true);
        bytes.extend_from_slice(&[1; 9]);
        frame::write_head(&mut bytes, 3, b"", true, 3);
        frame::write_ping(&mut bytes, [8; 8], true);
        for cut in 0..=bytes.len() {
            let mut scanner = FrameScanner::default();
            let (first, second) = bytes.split_at(cut);
            let carried = [scanner.scan(first), scanner.scan(second)];
            let sum = |count: fn(&Carried) -> u64| carried.iter().map(count).sum::<u64>();
            let found = (
                sum(|it| it.requests),
                sum(|it| it.settings_acknowledged),
                sum(|it| it.pings_acknowledged),
            );
            assert_eq!(found, (2, 1, 1), "cut at {cut}");
        }
        let found = frames(&bytes[PREFACE.len()..]).map(|(header, ..)| header.kind);
        let expected = [
            Kind::Settings,
            Kind::Settings,
            Kind::Headers,
            Kind::Continuation,
            Kind::Data,
            Kind::Headers,
            Kind::Ping,
        ];
        assert!(found.eq(expected));
    }
}
