//! Driving the connections that speak HTTP/2.

use brunt_io::backend::{ServerBackend, Slot};
use brunt_proto::http2::frame::PREFACE;

use super::{Http, Worker};
use crate::answer::Context;
use crate::batch::{Batch, BatchContent, Hold};
use crate::connection::Http2;
use crate::http2::{self, End, Http2Session};

/// How long a client may take to close after GOAWAY. Until then what it sends is read,
/// or the kernel would reset the connection and with it what is still on its way to the client.
pub(super) const LEAVING_NS: u64 = 1_000_000_000;

impl<B: ServerBackend> Worker<B, Http> {
    /// Looks at the first bytes of a connection; whether it speaks HTTP/1.1. What came before is
    /// in the connection's input.
    pub(super) fn begin(&mut self, slot: Slot) -> bool {
        let connection = &mut self.connections[slot.0 as usize];
        let bytes = self.backend.received();
        let work = connection.work.as_deref();
        let before = work.map_or(&[][..], |work| work.input.rest());
        let is_http2 = http2::is_preface(before, bytes);
        connection.begun = is_http2.is_some();
        match is_http2 {
            Some(false) => true,
            None => {
                let work = connection.work.get_or_insert_default();
                if !work.keep(bytes, self.backend.now_ns(), &self.service.room) {
                    self.overflow(slot);
                }
                false
            }
            Some(true) => {
                let preface_bytes = PREFACE.len() - before.len();
                connection.work = None;
                let session = Http2Session::new(self.settings.http2, &mut self.service.batch);
                connection.http2 = Some(Box::new(Http2::new(session)));
                self.service.counters.connections_http2.add(1);
                self.receive_http2(slot, preface_bytes);
                false
            }
        }
    }

    /// Takes what was received but for the first `skipped` bytes.
    pub(super) fn receive_http2(&mut self, slot: Slot, skipped: usize) {
        let connection = &mut self.connections[slot.0 as usize];
        let Some(http2) = &mut connection.http2 else {
            return;
        };
        let bytes = &self.backend.received()[skipped..];
        let batch = if connection.link.sending {
            &mut http2.pending
        } else {
            take_pending(http2, &mut self.service.batch);
            &mut self.service.batch
        };
        batch.fit_into(self.service.output.grant_bytes());
        let clock = || self.backend.now_ns();
        let context = Context::new(&self.shared, &self.service.counters, None, &clock);
        let session = &mut http2.session;
        let mut taken = 0;
        let is_kept = if http2.input.rest().is_empty() {
            taken = session.receive(bytes, batch, &mut self.service.scratch, &context);
            if taken < bytes.len() {
                http2.noticed_ns = self.backend.now_ns();
            }
            taken == bytes.len() || http2.input.keep(&bytes[taken..], &self.service.room)
        } else if http2.input.keep(bytes, &self.service.room) {
            http2.noticed_ns = self.backend.now_ns();
            let rest = http2.input.rest();
            taken = session.receive(rest, batch, &mut self.service.scratch, &context);
            http2.input.take(taken);
            true
        } else {
            false
        };
        if taken > 0 {
            // Parts of a frame, or of a field block, are no progress.
            connection.link.moved = self.calendar.page();
        }
        if !is_kept {
            self.service.counters.links.overflowed.add(1);
            session.calm_down(batch, &context);
            http2.input = Default::default();
        }
        if !http2.holds_output(&self.service.output) {
            self.service.batch.clear();
            return self.overflow(slot);
        }
        if connection.link.sending {
            self.plan_wake(slot);
        } else {
            self.drive_http2(slot);
        }
    }

    /// Goes on with whatever is incomplete, unless a send is in flight.
    pub(super) fn drive_http2(&mut self, slot: Slot) {
        let connection = &mut self.connections[slot.0 as usize];
        let Some(http2) = &mut connection.http2 else {
            return;
        };
        let closes_ns = http2.closes_ns;
        if closes_ns.is_some_and(|closes_ns| self.backend.now_ns() >= closes_ns) {
            return self.close(slot);
        }
        if connection.link.sending {
            // What is due meanwhile goes when the send is complete; only leaving has an end.
            if closes_ns.is_some() {
                self.wake_at(slot, closes_ns);
            }
            return;
        }
        take_pending(http2, &mut self.service.batch);
        self.service.fit_batch();
        let (clock, noticed_ns) = (|| self.backend.now_ns(), Some(http2.noticed_ns));
        let context = Context::new(&self.shared, &self.service.counters, noticed_ns, &clock);
        let session = &mut http2.session;
        let rest = http2.input.rest();
        if !rest.is_empty() {
            let taken = session.receive(
                rest,
                &mut self.service.batch,
                &mut self.service.scratch,
                &context,
            );
            http2.input.take(taken);
        }
        if session.streams.all.wake_ns().is_some() || session.streams.can_send() {
            let now_ns = self.backend.now_ns();
            session.advance(now_ns, &mut self.service.batch, &self.service.counters);
        }
        let goes_on = session.streams.all.wake_ns().is_some() || session.streams.can_send();
        let end = session.end();
        if !http2.holds_output(&self.service.output) {
            self.service.batch.clear();
            return self.overflow(slot);
        }
        if self.flush(slot) {
            return self.plan_wake(slot);
        }
        let connection = &mut self.connections[slot.0 as usize];
        match end {
            End::Now(after) => {
                connection.after = after;
                self.close(slot);
            }
            // Nobody is left who could ask, or make room for more of the answers.
            End::Open if connection.link.ended && !goes_on => self.close(slot),
            End::Left | End::Failed if connection.link.ended => self.close(slot),
            End::Open | End::Left | End::Failed => self.plan_wake(slot),
        }
    }

    /// A send is complete: goes on in the next turn, if there is anything to go on with.
    pub(super) fn sent_http2(&mut self, slot: Slot) {
        let connection = &self.connections[slot.0 as usize];
        let Some(http2) = &connection.http2 else {
            return;
        };
        let session = &http2.session;
        let is_due = http2.wake_ns.is_none() && session.streams.all.wake_ns().is_some();
        let has_more = is_due
            || connection.link.ended
            || session.streams.can_send()
            || session.end() != End::Open
            || !http2.input.rest().is_empty()
            || http2.pending.content() != BatchContent::Nothing;
        if has_more {
            self.go_on_later(slot);
        }
    }

    /// Has the worker come back when the next answer is due, or the connection is to be closed.
    fn plan_wake(&mut self, slot: Slot) {
        let Some(http2) = &mut self.connections[slot.0 as usize].http2 else {
            return;
        };
        if http2.session.end() != End::Open && http2.closes_ns.is_none() {
            // Not once all is sent: a client that does not read would stay for good.
            http2.closes_ns = Some(self.backend.now_ns() + LEAVING_NS);
        }
        let instants = [http2.session.streams.all.wake_ns(), http2.closes_ns];
        self.wake_at(slot, instants.into_iter().flatten().min());
    }
}

/// Puts the input that came during a send in front of what comes now.
fn take_pending(http2: &mut Http2, batch: &mut Batch) {
    if http2.pending.content() != BatchContent::Nothing {
        batch.absorb(&mut http2.pending);
        http2.pending_hold = Hold::default();
    }
}
