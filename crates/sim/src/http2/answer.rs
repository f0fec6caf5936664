//! How the simulated server answers in HTTP/2: frame by frame, as the windows allow.

use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, Kind, PAYLOAD_BYTES};
use brunt_proto::http2::hpack::encode_indexed;
use rand::Rng;

use super::super::counts::RESET_CODES;
use super::super::link::LinkId;
use super::super::piece::{Completes, Piece};
use super::super::request::Request;
use super::super::service::Fate;
use super::super::settings::Framing;
use super::super::status::Status;
use super::super::world::{Happening, World};
use super::connection::{Answer, Stage, Tail};
use super::{Http2Malformed, ResetCode};

/// A frame type that no specification defines, and what it carries.
const UNKNOWN_KIND: Kind = Kind::Other(0xfa);
const EXTRA: &[u8] = b"boo!";
const NO_BYTES: &str = "0";

impl World {
    /// A request meets its fate.
    pub(in super::super) fn answer_http2(
        &mut self,
        at_ns: u64,
        id: LinkId,
        request: Request,
        fate: Fate,
    ) {
        let number = request.stream;
        let end = Piece::End {
            completes: Completes::Nothing,
        };
        match fate {
            Fate::Silent => {
                self.counts.silent += 1;
                self.leave(id, number);
                self.fall_silent(id);
            }
            Fate::StreamSilent => {
                self.counts.stream_silent += 1;
                self.leave(id, number);
            }
            Fate::Reset => {
                self.counts.reset += 1;
                self.leave(id, number);
                self.end(at_ns, id, Piece::Reset);
            }
            Fate::Closed => {
                self.counts.closed += 1;
                self.leave(id, number);
                self.end(at_ns, id, end);
            }
            Fate::Truncated => {
                self.counts.truncated += 1;
                let mut bytes = self.beginning(id, request);
                let cut = self.random.random_range(1..bytes.len());
                bytes.truncate(cut);
                self.send_frames(at_ns, id, bytes);
                self.leave(id, number);
                self.end(at_ns, id, end);
            }
            Fate::Malformed => {
                self.counts.malformed += 1;
                let bytes = self.malformed(id, number);
                self.send_frames(at_ns, id, bytes);
                self.forget(at_ns, id, number);
                self.after_malformed(at_ns, id);
            }
            Fate::StreamReset => {
                let code = self.reset_code();
                self.reset_stream(at_ns, id, number, code);
            }
            Fate::StreamCut => {
                let bytes = self.beginning(id, request);
                self.send_frames(at_ns, id, bytes);
                let code = self.reset_code();
                self.reset_stream(at_ns, id, number, code);
            }
            Fate::GoAway => {
                self.counts.goaway_errors += 1;
                let code = ErrorCode::of(self.settings.server.http2.goaway_code);
                let last = self.http2(id).map_or(0, |http2| http2.last_taken);
                let mut bytes = Vec::new();
                frame::write_go_away(&mut bytes, last, code);
                self.send_frames(at_ns, id, bytes);
                self.leave(id, number);
                self.end(at_ns, id, end);
            }
            Fate::ExtraBytes | Fate::ErrorStatus | Fate::Limited | Fate::Answered => {
                self.begin_answer(at_ns, id, request, fate);
            }
        }
    }

    /// The request stays without an answer, and brunt's side of it open.
    fn leave(&mut self, id: LinkId, number: u32) {
        let http2 = self.http2(id);
        if let Some(stream) = http2.and_then(|http2| http2.streams.get_mut(&number)) {
            stream.stage = Stage::Left;
        }
    }

    /// The server is done with a stream.
    fn forget(&mut self, at_ns: u64, id: LinkId, number: u32) {
        if let Some(http2) = self.http2(id) {
            http2.streams.remove(&number);
        }
        self.leave_when_done(at_ns, id);
    }

    /// Draws the code of a reset, and counts it.
    fn reset_code(&mut self) -> ErrorCode {
        let code = match self.settings.server.http2.reset_code {
            ResetCode::One(code) => code,
            ResetCode::Any => self.random.random_range(0..RESET_CODES as u32),
        };
        let place = (code as usize).min(RESET_CODES - 1);
        self.counts.stream_resets[place] += 1;
        ErrorCode::of(code)
    }

    /// Bytes of the body of an answer.
    fn body_bytes(&self, request: Request) -> u32 {
        if request.is_head {
            0
        } else {
            self.settings.server.body_bytes
        }
    }

    /// Appends the head of an answer, with the interim ones before it.
    fn put_head(&mut self, id: LinkId, number: u32, status: Status, ends: bool, out: &mut Vec<u8>) {
        let server = &self.settings.server;
        let length = server.body_bytes.to_string();
        let (code, retry) = match status {
            Status::Ok => ("200", None),
            Status::TooManyRequests => ("429", Some(("retry-after", "1"))),
            Status::Unavailable => ("503", None),
        };
        let mut fields = vec![(":status", code)];
        fields.extend(retry);
        if server.framing == Framing::Length {
            fields.push(("content-length", length.as_str()));
        }
        let interim = server.interim;
        let Some(http2) = self.http2(id) else {
            return;
        };
        let mut block = Vec::new();
        for _ in 0..interim {
            block.clear();
            http2.heads.encode(&[(":status", "103")], false, &mut block);
            frame::write_head(out, number, &block, false, PAYLOAD_BYTES);
        }
        block.clear();
        http2.heads.encode(&fields, true, &mut block);
        frame::write_head(out, number, &block, ends, PAYLOAD_BYTES);
    }

    /// Head and first frame of an answer that will have no end.
    fn beginning(&mut self, id: LinkId, request: Request) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put_head(id, request.stream, Status::Ok, false, &mut bytes);
        // Half of the body at most, so that it is never whole.
        let half = self.body_bytes(request) / 2;
        let part = half.min(self.frame_room(id, request.stream));
        if part > 0 {
            self.put_data(id, request.stream, part, false, &mut bytes);
        }
        bytes
    }

    fn begin_answer(&mut self, at_ns: u64, id: LinkId, request: Request, fate: Fate) {
        let number = request.stream;
        let answer = Answer {
            status: Self::status_of(fate),
            body_left: self.body_bytes(request),
            tail: match self.settings.server.framing {
                _ if request.is_head => Tail::None,
                Framing::Length => Tail::None,
                Framing::Chunked => Tail::Trailer,
                Framing::UntilClose => Tail::EmptyData,
            },
            extra: fate == Fate::ExtraBytes,
        };
        let ends = answer.body_left == 0 && answer.tail == Tail::None;
        let mut bytes = Vec::new();
        self.put_head(id, number, answer.status, ends, &mut bytes);
        let http2 = self.http2(id);
        if let Some(stream) = http2.and_then(|http2| http2.streams.get_mut(&number)) {
            stream.stage = Stage::Answering(answer);
            self.go_on(at_ns, id, number, answer, bytes);
        }
    }

    /// Goes on with an answer, if it is still wanted.
    pub(in super::super) fn continue_answer(&mut self, at_ns: u64, id: LinkId, number: u32) {
        let http2 = self.http2(id);
        let stream = http2.and_then(|http2| http2.streams.get(&number));
        if let Some(&Stage::Answering(answer)) = stream.map(|stream| &stream.stage) {
            self.go_on(at_ns, id, number, answer, Vec::new());
        }
    }

    /// Sends what may be sent of an answer, behind `bytes`.
    fn go_on(
        &mut self,
        at_ns: u64,
        id: LinkId,
        number: u32,
        mut answer: Answer,
        mut bytes: Vec<u8>,
    ) {
        let gap_ns = self.settings.server.http2.frame_gap_ns;
        while answer.body_left > 0 {
            let part = answer.body_left.min(self.frame_room(id, number));
            if part == 0 {
                self.counts.window_waits += 1;
                if let Some(http2) = self.http2(id) {
                    http2.blocked.push_back(number);
                }
                return self.pause(at_ns, id, number, answer, bytes);
            }
            answer.body_left -= part;
            let ends = answer.body_left == 0 && answer.tail == Tail::None;
            self.put_data(id, number, part, ends, &mut bytes);
            if gap_ns > 0 && answer.body_left > 0 {
                let wait_ns = self.random.random_range(0..=gap_ns);
                let happening = Happening::Continues(id, number);
                self.agenda.push(at_ns + wait_ns, happening);
                return self.pause(at_ns, id, number, answer, bytes);
            }
        }
        match answer.tail {
            Tail::None => {}
            Tail::EmptyData => frame::write_data_header(&mut bytes, number, 0, true),
            Tail::Trailer => {
                let mut block = Vec::new();
                if let Some(http2) = self.http2(id) {
                    http2
                        .heads
                        .encode(&[("trailer-is", "yes")], false, &mut block);
                }
                frame::write_head(&mut bytes, number, &block, true, PAYLOAD_BYTES);
            }
        }
        self.count_reply(answer.status);
        self.send_completing(at_ns, id, bytes, Completes::Answer);
        if answer.extra {
            self.counts.extra_bytes += 1;
            let mut bytes = Vec::new();
            unknown_frame(number, &mut bytes);
            self.send_frames(at_ns, id, bytes);
        }
        self.answered(at_ns, id, number);
    }

    /// Sends what there is of an answer, and keeps the rest of it.
    fn pause(&mut self, at_ns: u64, id: LinkId, number: u32, answer: Answer, bytes: Vec<u8>) {
        let http2 = self.http2(id);
        if let Some(stream) = http2.and_then(|http2| http2.streams.get_mut(&number)) {
            stream.stage = Stage::Answering(answer);
        }
        self.send_frames(at_ns, id, bytes);
    }

    /// An answer is whole.
    fn answered(&mut self, at_ns: u64, id: LinkId, number: u32) {
        let server = &self.settings.server;
        let (limit, announces) = (server.close_after, server.announces_close);
        if let Some(link) = self.links.get_mut(id) {
            link.answered += 1;
            let is_last = limit.is_some_and(|limit| link.answered >= limit.get());
            self.forget(at_ns, id, number);
            if is_last && !announces {
                let completes = Completes::Nothing;
                self.end(at_ns, id, Piece::End { completes });
            }
        }
    }

    /// Bytes that the next DATA frame of a stream may have.
    fn frame_room(&mut self, id: LinkId, number: u32) -> u32 {
        let most = self.settings.server.http2.frame_bytes.get();
        let Some(http2) = self.http2(id) else {
            return 0;
        };
        let Some(stream) = http2.streams.get(&number) else {
            return 0;
        };
        let window = http2.outward.min(stream.outward).max(0);
        let most = most.min(http2.frame_bytes);
        u32::try_from(window).unwrap_or(u32::MAX).min(most)
    }

    /// Appends a DATA frame, for which there is room.
    fn put_data(&mut self, id: LinkId, number: u32, length: u32, ends: bool, out: &mut Vec<u8>) {
        if let Some(http2) = self.http2(id) {
            http2.outward -= i64::from(length);
            if let Some(stream) = http2.streams.get_mut(&number) {
                stream.outward -= i64::from(length);
            }
        }
        frame::write_data_header(out, number, length, ends);
        out.resize(out.len() + length as usize, b'x');
    }

    /// An answer that breaks a rule.
    fn malformed(&mut self, id: LinkId, number: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let kind = self.settings.server.http2.malformed;
        let mut head = |world: &mut Self, fields: &[(&str, &str)], ends| {
            let mut block = Vec::new();
            if let Some(http2) = world.http2(id) {
                http2.heads.encode(fields, true, &mut block);
            }
            frame::write_head(&mut out, number, &block, ends, PAYLOAD_BYTES);
        };
        match kind {
            Http2Malformed::NoStatus => head(self, &[("content-length", NO_BYTES)], true),
            Http2Malformed::ShortBody => {
                head(self, &[(":status", "200"), ("content-length", "1")], true);
            }
            Http2Malformed::LongBody => {
                let fields = [(":status", "200"), ("content-length", NO_BYTES)];
                head(self, &fields, false);
                if self.frame_room(id, number) > 0 {
                    self.put_data(id, number, 1, true, &mut out);
                }
            }
            Http2Malformed::HeadBlock => {
                let mut block = Vec::new();
                encode_indexed(&mut block, 10_000);
                frame::write_head(&mut out, number, &block, true, PAYLOAD_BYTES);
            }
            Http2Malformed::FrameSize => {
                let most = self
                    .http2(id)
                    .map_or(PAYLOAD_BYTES, |http2| http2.frame_bytes);
                frame::write_data_header(&mut out, number, most + 1, true);
            }
            Http2Malformed::DataOnConnection => {
                frame::write_data_header(&mut out, 0, 1, false);
                out.push(b'x');
            }
            Http2Malformed::UnknownStream => {
                let mut block = Vec::new();
                encode_indexed(&mut block, 8);
                let never = self.http2(id).map_or(1, |http2| http2.latest + 10_000);
                frame::write_head(&mut out, never, &block, true, PAYLOAD_BYTES);
            }
            Http2Malformed::WindowOverflow => {
                frame::write_window_update(&mut out, 0, frame::WINDOW_BYTES_MAX);
                frame::write_window_update(&mut out, 0, frame::WINDOW_BYTES_MAX);
            }
            Http2Malformed::NotHttp2 => {
                out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            }
        }
        out
    }
}

/// Appends a frame that is to be ignored.
fn unknown_frame(stream: u32, out: &mut Vec<u8>) {
    let header = FrameHeader {
        length: EXTRA.len() as u32,
        kind: UNKNOWN_KIND,
        flags: 0xff,
        stream,
    };
    header.write(out);
    out.extend_from_slice(EXTRA);
}
