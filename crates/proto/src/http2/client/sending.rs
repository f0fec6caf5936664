//! Sending requests: heads with the server's dynamic table, bodies under flow control.

use super::Client;
use super::streams::Stream;
use crate::http2::frame::{self, PAYLOAD_BYTES};
use crate::http2::hpack::{TABLE_BYTES, encode_size_update};
use crate::http2::template::Template;

/// Bodies are held back while the caller's buffer has more than this.
const OUT_BYTES: usize = 128 * 1024;

/// The server's dynamic table, as far as its state is our doing (RFC 7541 section 4.2).
#[derive(Debug)]
pub(super) struct PeerTable {
    /// What is used at most: no more than the default is of use to us.
    bytes_max: u32,
    /// What the server allows of that.
    allowed_bytes: u32,
    /// The lowest that it allowed since the last field block.
    lowest_bytes: u32,
    /// The table's size as of the last field block.
    current_bytes: u32,
    /// The template's fields are in it.
    is_filled: bool,
}

impl PeerTable {
    /// One of which at most so many bytes are used.
    pub(super) fn new(bytes_max: u32) -> Self {
        let bytes_max = bytes_max.min(TABLE_BYTES);
        Self {
            bytes_max,
            allowed_bytes: bytes_max,
            lowest_bytes: bytes_max,
            current_bytes: TABLE_BYTES,
            is_filled: false,
        }
    }

    /// The server's SETTINGS_HEADER_TABLE_SIZE.
    pub(super) fn allow(&mut self, bytes: u32) {
        self.allowed_bytes = bytes.min(self.bytes_max);
        self.lowest_bytes = self.lowest_bytes.min(self.allowed_bytes);
    }

    /// Appends the head of a request.
    #[inline]
    fn write_head(&mut self, template: &Template, stream: u32, out: &mut Vec<u8>) {
        if self.lowest_bytes < self.current_bytes || self.allowed_bytes != self.current_bytes {
            self.write_resized_head(template, stream, out);
            return;
        }
        let (form, is_filled) = template.form(self.current_bytes, self.is_filled);
        self.is_filled = is_filled;
        form.write(out, stream);
    }

    /// Appends the head of a request, with the change of the table's size that is due before it.
    #[cold]
    fn write_resized_head(&mut self, template: &Template, stream: u32, out: &mut Vec<u8>) {
        let mut block = Vec::new();
        if self.lowest_bytes < self.current_bytes.min(self.allowed_bytes) {
            encode_size_update(&mut block, self.lowest_bytes);
        }
        encode_size_update(&mut block, self.allowed_bytes);
        self.is_filled &= self.lowest_bytes >= template.table_bytes();
        self.current_bytes = self.allowed_bytes;
        self.lowest_bytes = self.allowed_bytes;

        let (form, is_filled) = template.form(self.current_bytes, self.is_filled);
        self.is_filled = is_filled;
        block.extend_from_slice(&form.block);
        let end_stream = template.body().is_empty();
        frame::write_head(out, stream, &block, end_stream, PAYLOAD_BYTES);
    }
}

impl Client {
    /// Appends the request with this number of `templates`, which are the same for all calls of a
    /// connection. Gives its place, below the depth given to [`new`](Self::new), which is
    /// free again after its [`Event::Reply`](crate::http2::Event::Reply) or
    /// [`Event::Failed`](crate::http2::Event::Failed), or [`cancel`](Self::cancel).
    ///
    /// Of the body, what fits the server's windows is appended, as long as `out` holds under
    /// 128 KiB; the rest follows by [`receive`](Self::receive) as the windows open, or by
    /// [`resume`](Self::resume).
    ///
    /// # Panics
    ///
    /// Unless `in_flight() < depth()`, or where there is no such template.
    #[inline]
    pub fn request(&mut self, templates: &[Template], request: u32, out: &mut Vec<u8>) -> u32 {
        let template = &templates[request as usize];
        assert!(
            self.in_flight() < self.depth(),
            "more streams than are allowed"
        );
        let id = self.next_stream;
        self.next_stream += 2;
        self.table.write_head(template, id, out);
        let mut stream = Stream::new(
            id,
            self.initial_window_bytes as i32,
            self.settings.stream_window_bytes,
        );
        stream.request = request;
        stream.reply.is_head = template.is_head();
        stream.reply.is_call = template.is_call();
        stream.is_sending = !template.body().is_empty();
        let place = self.streams.insert(stream);
        if stream.is_sending {
            self.sending += 1;
            self.send_body(place, templates, out);
        }
        place
    }

    /// Whether bodies wait for [`resume`](Self::resume) and for nothing else: the windows would
    /// let more through, but it was held back so that `out` stays small.
    #[inline]
    pub fn wants_resume(&self) -> bool {
        self.is_held_back
    }

    /// Appends more of the bodies that wait, as long as `out` holds under 128 KiB. To be called
    /// when what was appended before has been sent.
    pub fn resume(&mut self, templates: &[Template], out: &mut Vec<u8>) {
        self.send_bodies(templates, out);
    }

    /// Appends what may be sent of all bodies.
    pub(super) fn send_bodies(&mut self, templates: &[Template], out: &mut Vec<u8>) {
        self.is_held_back = false;
        for _ in 0..self.streams.places() {
            if self.sending == 0 || self.send_window_bytes <= 0 || self.is_held_back {
                return;
            }
            let place = self.send_from;
            self.send_body(place, templates, out);
            // One that is limited by the connection's window or by `out` is continued first.
            if self.send_window_bytes > 0 && !self.is_held_back {
                self.send_from = (place + 1) % self.streams.places();
            }
        }
    }

    /// Appends what may be sent of one body.
    pub(super) fn send_body(&mut self, place: u32, templates: &[Template], out: &mut Vec<u8>) {
        let Some(stream) = self.streams.get_mut(place) else {
            return;
        };
        while stream.is_sending {
            let window = self.send_window_bytes.min(stream.send_window_bytes);
            let Ok(window @ 1..) = usize::try_from(window) else {
                return;
            };
            if out.len() >= OUT_BYTES {
                self.is_held_back = true;
                return;
            }
            let body = templates[stream.request as usize].body();
            let rest = body.get(stream.body_sent_bytes..).unwrap_or(&[]);
            let piece = &rest[..rest.len().min(window).min(PAYLOAD_BYTES as usize)];
            let is_last = piece.len() == rest.len();
            frame::write_data_header(out, stream.id, piece.len() as u32, is_last);
            out.extend_from_slice(piece);
            stream.body_sent_bytes += piece.len();
            stream.send_window_bytes -= piece.len() as i32;
            self.send_window_bytes -= piece.len() as i32;
            if is_last {
                stream.is_sending = false;
                self.sending -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_size_and_the_last_are_told() {
        // What the server allowed between two heads, and the sizes signalled in the second.
        for (allowed, signalled) in [
            (&[][..], &[][..]),
            (&[4_096], &[]),
            (&[65_536], &[]),
            (&[0], &[0]),
            (&[100], &[100]),
            (&[0, 4_096], &[0, 4_096]),
            (&[0, 100, 50], &[0, 50]),
            (&[200, 100, 9_999], &[100, 4_096]),
        ] {
            let template = super::super::tests::get("/");
            let mut table = PeerTable::new(TABLE_BYTES);
            let mut first = Vec::new();
            table.write_head(&template, 1, &mut first);
            for bytes in allowed {
                table.allow(*bytes);
            }
            let mut second = Vec::new();
            table.write_head(&template, 3, &mut second);
            let mut expected = Vec::new();
            for bytes in signalled {
                encode_size_update(&mut expected, *bytes);
            }
            let lowest = signalled.iter().min().copied().unwrap_or(TABLE_BYTES);
            let last = signalled.last().copied().unwrap_or(TABLE_BYTES);
            let is_filled = lowest >= template.table_bytes();
            expected.extend_from_slice(&template.form(last, is_filled).0.block);
            assert_eq!(second[frame::HEADER_BYTES..], expected, "{allowed:?}");

            let mut third = Vec::new();
            table.write_head(&template, 5, &mut third);
            let form = template.form(last, last >= template.table_bytes()).0;
            assert_eq!(third[frame::HEADER_BYTES..], form.block, "{allowed:?}");
        }
    }
}
