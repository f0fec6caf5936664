//! The simulated server's side of HTTP/2: how it handles brunt's frames.
//!
//! It answers whatever brunt sends, and checks that brunt keeps the rules: a frame that breaks one
//! is counted as a violation and ends the connection.

use brunt_proto::http2::frame::{self, ErrorCode, STREAM_MAX, Setting, WINDOW_BYTES_MAX};

use super::connection::{Allowed, GoAway, Http2, Stage, Stream};
use super::reader::Frame;
use crate::link::{LinkId, Server};
use crate::piece::{Completes, Piece};
use crate::request::Request;
use crate::waiting::Outside;
use crate::world::{Happening, World};

impl World {
    pub(super) fn http2(&mut self, id: LinkId) -> Option<&mut Http2> {
        self.links.get_mut(id)?.http2.as_deref_mut()
    }

    /// Takes a frame of brunt's.
    pub(in super::super) fn take_frame(&mut self, at_ns: u64, id: LinkId, frame: Frame) {
        if let Err(rule) = self.heed(at_ns, id, frame) {
            self.violated(at_ns, id, rule);
        }
    }

    pub(super) fn heed(
        &mut self,
        at_ns: u64,
        id: LinkId,
        frame: Frame,
    ) -> Result<(), &'static str> {
        if let Frame::Head {
            stream,
            is_head,
            ends,
        } = frame
        {
            return self.take_head(at_ns, id, stream, is_head, ends);
        }
        let link = self.links.get(id);
        if link.is_none_or(|link| link.server != Server::Open) {
            // The server has nothing more to say to it.
            return Ok(());
        }
        match frame {
            Frame::Preface => {
                if self.links.get(id).is_some_and(|link| link.tls.is_some())
                    || self.begins_handshake(at_ns, id)
                {
                    let http2 = &self.settings.server.http2;
                    let (streams_max, window_bytes) = (http2.streams_max, http2.window_bytes);
                    let table_bytes = http2.table_bytes;
                    let allowed = (streams_max, window_bytes, table_bytes);
                    self.send_settings(at_ns, id, allowed, Completes::Opening);
                }
            }
            Frame::Setting(setting) => return self.take_setting(id, setting),
            Frame::Settings => {
                let mut bytes = Vec::new();
                frame::write_settings_ack(&mut bytes);
                self.send_frames(at_ns, id, bytes);
                self.unblock(at_ns, id);
            }
            Frame::SettingsAcknowledged => return self.settings_acknowledged(id),
            Frame::Data {
                stream,
                bytes,
                ends,
            } => return self.take_data(at_ns, id, stream, bytes, ends),
            Frame::Reset { stream } => return self.cancelled(at_ns, id, stream),
            Frame::WindowUpdate { stream, bytes } => {
                return self.take_window(at_ns, id, stream, bytes);
            }
            Frame::Ping(payload) => {
                let mut bytes = Vec::new();
                frame::write_ping(&mut bytes, payload, true);
                self.send_frames(at_ns, id, bytes);
            }
            Frame::PingAcknowledged(payload) => {
                let expected = self.http2(id).and_then(|http2| http2.pings.pop_front());
                if expected != Some(payload) {
                    return Err("a PING is acknowledged that was not sent");
                }
                self.counts.pings_acknowledged += 1;
            }
            Frame::Broken(rule) => return Err(rule),
            Frame::Ignored | Frame::Head { .. } => {}
        }
        Ok(())
    }

    pub(super) fn take_head(
        &mut self,
        at_ns: u64,
        id: LinkId,
        number: u32,
        is_head: bool,
        ends: bool,
    ) -> Result<(), &'static str> {
        let Some(link) = self.links.get_mut(id) else {
            return Ok(());
        };
        let is_open = link.server == Server::Open;
        let Some(http2) = &mut link.http2 else {
            return Ok(());
        };
        if number.is_multiple_of(2) || number <= http2.latest {
            self.counts.requests_lost += 1;
            return Err("a stream has a number that it may not have");
        }
        http2.latest = number;
        if !is_open || matches!(http2.goaway, GoAway::Final(_)) {
            self.counts.requests += 1;
            self.counts.not_processed += 1;
            return Ok(());
        }
        if http2.streams.len() >= http2.allowed.streams_max as usize {
            self.counts.requests_lost += 1;
            return Err("more streams than allowed");
        }
        let request = Request {
            stream: number,
            is_head,
            closes: false,
        };
        let stream = Stream {
            stage: Stage::Half(request),
            inward: i64::from(http2.allowed.window_bytes),
            outward: http2.window_bytes,
        };
        http2.streams.insert(number, stream);
        http2.last_taken = number;
        http2.taken += 1;
        let taken = http2.taken;
        if ends {
            self.request_complete(at_ns, id, number);
        }
        self.after_request(at_ns, id, taken);
        Ok(())
    }

    /// What the server does besides after so many requests of a connection.
    pub(super) fn after_request(&mut self, at_ns: u64, id: LinkId, taken: u64) {
        let server = &self.settings.server;
        let (settings, close_after) = (server.http2.clone(), server.close_after);
        let announces = server.announces_close;
        if let Some(change) = settings.change
            && taken == change.after.get()
        {
            let allowed = (
                Some(change.streams_max),
                change.window_bytes,
                change.table_bytes,
            );
            self.send_settings(at_ns, id, allowed, Completes::Nothing);
        }
        if let Some(every) = settings.ping_every
            && taken.is_multiple_of(every.get())
        {
            let payload = taken.to_be_bytes();
            if let Some(http2) = self.http2(id) {
                http2.pings.push_back(payload);
            }
            self.counts.pings += 1;
            let mut bytes = Vec::new();
            frame::write_ping(&mut bytes, payload, false);
            self.send_frames(at_ns, id, bytes);
        }
        if announces && close_after.is_some_and(|limit| taken == limit.get()) {
            match settings.goaway_notice_ns {
                None => self.go_away(at_ns, id),
                Some(notice_ns) => {
                    if let Some(http2) = self.http2(id) {
                        http2.goaway = GoAway::Announced;
                    }
                    self.counts.goaways += 1;
                    let mut bytes = Vec::new();
                    frame::write_go_away(&mut bytes, STREAM_MAX, ErrorCode::NoError);
                    self.send_frames(at_ns, id, bytes);
                    self.agenda.push(at_ns + notice_ns, Happening::GoesAway(id));
                }
            }
        }
    }

    /// Names the last request that is taken.
    pub(in super::super) fn go_away(&mut self, at_ns: u64, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        if link.server != Server::Open || link.is_silent {
            return;
        }
        let Some(http2) = &mut link.http2 else {
            return;
        };
        if matches!(http2.goaway, GoAway::Final(_)) {
            return;
        }
        let last = http2.last_taken;
        if http2.goaway == GoAway::None {
            self.counts.goaways += 1;
        }
        http2.goaway = GoAway::Final(last);
        let mut bytes = Vec::new();
        frame::write_go_away(&mut bytes, last, ErrorCode::NoError);
        self.send_frames(at_ns, id, bytes);
        self.leave_when_done(at_ns, id);
    }

    /// Ends a connection that was sent GOAWAY, once all is answered. What still comes is read.
    pub(super) fn leave_when_done(&mut self, at_ns: u64, id: LinkId) {
        let Some(http2) = self.http2(id) else {
            return;
        };
        if matches!(http2.goaway, GoAway::Final(_)) && http2.streams.is_empty() {
            let completes = Completes::Nothing;
            self.end_sending(at_ns, id, Piece::End { completes });
        }
    }

    /// A request is there in full.
    pub(super) fn request_complete(&mut self, at_ns: u64, id: LinkId, number: u32) {
        self.counts.requests += 1;
        let refused = self.settings.server.faults.stream_refused;
        if self.chance(refused) {
            self.counts.stream_refused += 1;
            self.reset_stream(at_ns, id, number, ErrorCode::RefusedStream);
            return;
        }
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let stream = link
            .http2
            .as_mut()
            .and_then(|http2| http2.streams.get_mut(&number));
        if let Some(stream) = stream
            && let Stage::Half(request) = std::mem::replace(&mut stream.stage, Stage::Waiting)
        {
            link.pending.push_back(request);
            self.begin(at_ns, id);
        }
    }

    pub(super) fn take_data(
        &mut self,
        at_ns: u64,
        id: LinkId,
        number: u32,
        bytes: u32,
        ends: bool,
    ) -> Result<(), &'static str> {
        let Some(http2) = self.http2(id) else {
            return Ok(());
        };
        if number > http2.latest {
            return Err("DATA on a stream that was not opened");
        }
        http2.inward -= i64::from(bytes);
        if http2.inward < 0 {
            return Err("more DATA than the connection's window");
        }
        // Room is given back at once.
        http2.inward += i64::from(bytes);
        let mut room = Vec::new();
        if bytes > 0 {
            frame::write_window_update(&mut room, 0, bytes);
        }
        let mut is_complete = false;
        // A stream that is gone may still get what was on its way.
        if let Some(stream) = http2.streams.get_mut(&number) {
            if !matches!(stream.stage, Stage::Half(_)) {
                return Err("DATA behind the end of a request");
            }
            stream.inward -= i64::from(bytes);
            if stream.inward < 0 {
                return Err("more DATA than the stream's window");
            }
            is_complete = ends;
            if !ends && bytes > 0 {
                stream.inward += i64::from(bytes);
                frame::write_window_update(&mut room, number, bytes);
            }
        }
        self.send_frames(at_ns, id, room);
        if is_complete {
            self.request_complete(at_ns, id, number);
        }
        Ok(())
    }

    /// Brunt gives a stream up.
    pub(super) fn cancelled(
        &mut self,
        at_ns: u64,
        id: LinkId,
        number: u32,
    ) -> Result<(), &'static str> {
        let Some(link) = self.links.get_mut(id) else {
            return Ok(());
        };
        let Some(http2) = &mut link.http2 else {
            return Ok(());
        };
        if number > http2.latest {
            return Err("RST_STREAM on a stream that was not opened");
        }
        if let Some(stream) = http2.streams.remove(&number) {
            link.pending.retain(|request| request.stream != number);
            link.serving.remove(&number);
            match stream.stage {
                Stage::Half(_) => self.counts.requests_lost += 1,
                Stage::Waiting | Stage::Answering(_) => self.counts.cancelled += 1,
                Stage::Left => {}
            }
            self.leave_when_done(at_ns, id);
        }
        Ok(())
    }

    pub(super) fn take_window(
        &mut self,
        at_ns: u64,
        id: LinkId,
        number: u32,
        bytes: u32,
    ) -> Result<(), &'static str> {
        if bytes == 0 {
            return Err("WINDOW_UPDATE of 0 bytes");
        }
        let Some(http2) = self.http2(id) else {
            return Ok(());
        };
        if number > http2.latest {
            return Err("WINDOW_UPDATE on a stream that was not opened");
        }
        let window = if number == 0 {
            Some(&mut http2.outward)
        } else {
            let stream = http2.streams.get_mut(&number);
            stream.map(|stream| &mut stream.outward)
        };
        if let Some(window) = window {
            *window += i64::from(bytes);
            if *window > i64::from(WINDOW_BYTES_MAX) {
                return Err("a window grows beyond its maximum");
            }
        }
        self.unblock(at_ns, id);
        Ok(())
    }

    /// Goes on with the answers that waited for a window.
    pub(super) fn unblock(&mut self, at_ns: u64, id: LinkId) {
        let Some(http2) = self.http2(id) else {
            return;
        };
        for number in std::mem::take(&mut http2.blocked) {
            self.continue_answer(at_ns, id, number);
        }
    }

    pub(super) fn take_setting(
        &mut self,
        id: LinkId,
        setting: Setting,
    ) -> Result<(), &'static str> {
        let Some(http2) = self.http2(id) else {
            return Ok(());
        };
        match setting {
            Setting::HeaderTableSize(bytes) => http2.heads.set_limit(bytes),
            Setting::MaxFrameSize(bytes) => http2.frame_bytes = bytes,
            Setting::InitialWindowSize(bytes) => {
                let change = i64::from(bytes) - http2.window_bytes;
                http2.window_bytes = i64::from(bytes);
                for stream in http2.streams.values_mut() {
                    stream.outward += change;
                    if stream.outward > i64::from(WINDOW_BYTES_MAX) {
                        return Err("a window grows beyond its maximum");
                    }
                }
            }
            Setting::EnablePush(_)
            | Setting::MaxConcurrentStreams(_)
            | Setting::MaxHeaderListSize(_)
            | Setting::Other { .. } => {}
        }
        Ok(())
    }

    pub(super) fn settings_acknowledged(&mut self, id: LinkId) -> Result<(), &'static str> {
        let Some(http2) = self.http2(id) else {
            return Ok(());
        };
        let Some(allowed) = http2.unacknowledged.pop_front() else {
            return Err("SETTINGS are acknowledged that were not sent");
        };
        let change = i64::from(allowed.window_bytes) - i64::from(http2.allowed.window_bytes);
        for stream in http2.streams.values_mut() {
            stream.inward += change;
        }
        http2.allowed = allowed;
        self.counts.settings_acknowledged += 1;
        Ok(())
    }

    /// Sends how many streams, bytes of a body and of the dynamic table are allowed.
    pub(super) fn send_settings(
        &mut self,
        at_ns: u64,
        id: LinkId,
        (streams_max, window_bytes, table_bytes): (Option<u32>, u32, u32),
        completes: Completes,
    ) {
        let Some(http2) = self.http2(id) else {
            return;
        };
        http2.unacknowledged.push_back(Allowed {
            streams_max: streams_max.unwrap_or(u32::MAX),
            window_bytes,
        });
        let mut settings = vec![
            Setting::HeaderTableSize(table_bytes),
            Setting::InitialWindowSize(window_bytes),
            // Unknown ones are to be ignored.
            Setting::Other {
                id: 0xfafa,
                value: 1,
            },
        ];
        settings.extend(streams_max.map(Setting::MaxConcurrentStreams));
        self.counts.settings += 1;
        let mut bytes = Vec::new();
        frame::write_settings(&mut bytes, &settings);
        self.send_completing(at_ns, id, bytes, completes);
    }

    /// Resets a stream.
    pub(super) fn reset_stream(&mut self, at_ns: u64, id: LinkId, number: u32, code: ErrorCode) {
        if let Some(http2) = self.http2(id) {
            http2.streams.remove(&number);
        }
        let mut bytes = Vec::new();
        frame::write_rst_stream(&mut bytes, number, code);
        self.send_frames(at_ns, id, bytes);
        self.leave_when_done(at_ns, id);
    }

    /// Brunt broke a rule: the connection ends.
    pub(super) fn violated(&mut self, at_ns: u64, id: LinkId, rule: &str) {
        self.counts.violations += 1;
        let last = self.http2(id).map_or(0, |http2| http2.last_taken);
        let mut bytes = Vec::new();
        frame::write_go_away(&mut bytes, last, ErrorCode::ProtocolError);
        // What was wrong, as the debug data that GOAWAY may carry.
        let length = 8 + rule.len() as u32;
        bytes[..3].copy_from_slice(&length.to_be_bytes()[1..]);
        bytes.extend_from_slice(rule.as_bytes());
        self.send_frames(at_ns, id, bytes);
        let completes = Completes::Nothing;
        self.end(at_ns, id, Piece::End { completes });
    }

    /// Sends frames to brunt.
    pub(super) fn send_frames(&mut self, at_ns: u64, id: LinkId, bytes: Vec<u8>) {
        self.send_completing(at_ns, id, bytes, Completes::Nothing);
    }

    pub(super) fn send_completing(
        &mut self,
        at_ns: u64,
        id: LinkId,
        bytes: Vec<u8>,
        completes: Completes,
    ) {
        let link = self.links.get(id);
        let speaks = link.is_some_and(|link| link.server == Server::Open && !link.is_silent);
        if speaks && !bytes.is_empty() {
            self.deliver(at_ns, id, bytes.into(), completes);
        }
    }
}

#[cfg(test)]
mod tests;
