//! What is recorded of connections: opened, missing, lost.

use super::Recorder;
use crate::merged::Merge;
use crate::record::{Downtime, LiveConnections};
use crate::{FailureKind, Window};

impl Recorder {
    /// Open connections now.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// The window is over, and connections were only kept open.
    pub fn held_until_now(&mut self) {
        self.recording.record.live.at_end = Some(self.live);
    }

    /// Something failed that was no request: a connection attempt or an idle connection.
    pub fn failed(&mut self, at_ns: u64, kind: FailureKind, discarded_bytes: u64) {
        let tally = self.tally(at_ns);
        tally.failures.add(kind);
        tally.discarded_bytes += discarded_bytes;
        if let Some(offset) = self.window.offset(at_ns) {
            self.point(offset).failures += 1;
        }
        if self.live == 0 && kind.is_refusal() && !self.are_attempts {
            self.is_down(at_ns);
        }
    }

    /// Records that `opening` attempts to connect are in flight from now on.
    pub fn opening(&mut self, at_ns: u64, opening: u32) {
        let at_ns = at_ns.max(self.opening_since_ns);
        let open_ns = self.window.overlap_ns(self.opening_since_ns, at_ns);
        let opening_ns = u64::from(self.opening).saturating_mul(open_ns);
        let missing = &mut self.recording.record.live.missing;
        missing.opening_ns.merge(&opening_ns);
        (self.opening, self.opening_since_ns) = (opening, at_ns);
    }

    /// A connection that was open all the time has its first request now, and in a closed loop it
    /// could have had it when the load began.
    pub fn begun(&mut self, now_ns: u64) {
        self.add_time(0, now_ns, |live| &mut live.not_begun_ns);
    }

    /// Adds what of `[from_ns, to_ns)` lies in the window to one of the times of connections.
    fn add_time(&mut self, from_ns: u64, to_ns: u64, of: fn(&mut LiveConnections) -> &mut u64) {
        let within_ns = self.window.overlap_ns(from_ns, to_ns);
        of(&mut self.recording.record.live).merge(&within_ns);
    }

    /// An open connection had nothing in flight from `from_ns` to `to_ns`, and could take nothing:
    /// its server had not taken what was sent before.
    pub fn blocked(&mut self, from_ns: u64, to_ns: u64) {
        self.add_time(from_ns, to_ns, |live| &mut live.blocked_ns);
    }

    /// The window begins, and so many connections were not to be had by then.
    pub fn unopened_at_start(&mut self, connections: u32) {
        self.recording.record.live.unopened_at_start = Some(connections);
    }

    /// Records that, after an attempt that failed, a connection was not tried again from `from_ns`
    /// to `to_ns`: its pause lasted, or the worker did not run.
    pub fn retry_awaited(&mut self, from_ns: u64, to_ns: u64) {
        self.add_time(from_ns, to_ns, |live| &mut live.missing.retrying_ns);
    }

    /// A user whose connection the server ended thought from `from_ns` to `to_ns`, before opening
    /// the next one.
    pub fn thought(&mut self, from_ns: u64, to_ns: u64) {
        self.add_time(from_ns, to_ns, |live| &mut live.missing.thinking_ns);
    }

    /// In an open loop, no request needed another connection from `from_ns` to `to_ns`, in place of
    /// one that had ended.
    pub fn unneeded(&mut self, from_ns: u64, to_ns: u64) {
        self.add_time(from_ns, to_ns, |live| &mut live.missing.unneeded_ns);
    }

    /// A connection is opened that was not needed until now. Where none was open, that was no
    /// failure of the server.
    pub fn needed(&mut self, at_ns: u64) {
        if self.live == 0 {
            self.live_changed(at_ns, 0);
        }
    }

    /// An attempt failed while no connection was open.
    fn is_down(&mut self, at_ns: u64) {
        let record = &mut self.recording.record;
        let is_known = record
            .downtimes
            .last()
            .is_some_and(|it| it.until_ns.is_none());
        if is_known || record.downtimes.len() == Downtime::KEPT_MAX {
            return;
        }
        // Connections that come by plan go by plan as well.
        let from_ns = match record.live.asked {
            0 => at_ns,
            _ => self.live_since_ns,
        };
        record.downtimes.push(Downtime {
            from_ns: from_ns.cast_signed(),
            until_ns: None,
        });
    }

    /// The TLS handshake of a connection that is open now, full or resumed, took `tls_ns`. Once
    /// for each [`Recorder::connected`] of a run over TLS.
    pub fn secured(&mut self, at_ns: u64, tls_ns: u64, is_resumed: bool) {
        let tally = self.tally(at_ns);
        if is_resumed {
            tally.handshakes_resumed += 1;
        } else {
            tally.handshakes_full += 1;
        }
        self.recording.latencies.tls.record(tls_ns);
    }

    /// The server's first HTTP/2 settings came `greeting_ns` after the connection, with its TLS,
    /// was there.
    pub fn greeted(&mut self, greeting_ns: u64) {
        self.recording.latencies.greeting.record(greeting_ns);
    }

    /// The server asked for a connection to be replaced (GOAWAY); at most once for each.
    pub fn gone_away(&mut self, at_ns: u64) {
        self.tally(at_ns).goaways += 1;
    }

    /// The server allows no streams on an open connection until further notice.
    pub fn shut(&mut self, at_ns: u64) {
        self.tally(at_ns).connections_shut += 1;
    }

    /// A connection is open for requests. Its TCP handshake took `connect_ns`.
    pub fn connected(&mut self, at_ns: u64, connect_ns: u64) {
        self.tally(at_ns).connections_opened += 1;
        self.recording.latencies.connect.record(connect_ns);
        if let Some(downtime) = self.recording.record.downtimes.last_mut() {
            downtime.until_ns.get_or_insert(at_ns.cast_signed());
        }
        self.live_changed(at_ns, self.live + 1);
    }

    /// A connection that was opened for an earlier round is open still.
    pub fn kept_open(&mut self, at_ns: u64) {
        self.recording.record.connections_kept += 1;
        self.live_changed(at_ns, self.live + 1);
    }

    /// An open connection is no more, whoever ended it.
    pub fn disconnected(&mut self, at_ns: u64) {
        self.live_changed(at_ns, self.live.saturating_sub(1));
    }

    /// The server closed a connection that had no request in flight.
    pub fn closed_idle(&mut self, at_ns: u64) {
        self.tally(at_ns).connections_closed_idle += 1;
    }

    /// The server said before by a reply that it closes it.
    pub fn idle_reply(&mut self, at_ns: u64) {
        self.tally(at_ns).idle_replies += 1;
    }

    pub(super) fn live_changed(&mut self, at_ns: u64, live: u32) {
        // Time stamps of one batch may be out of order: an interval is never counted twice.
        let at_ns = at_ns.max(self.live_since_ns);
        let open_ns = self.window.overlap_ns(self.live_since_ns, at_ns);
        let record = &mut self.recording.record;
        let connection_ns = u64::from(self.live).saturating_mul(open_ns);
        record.live.connection_ns.merge(&connection_ns);
        let Window { start_ns, end_ns } = self.window;
        if let Some(offset) = self.window.offset(at_ns) {
            let point = self.point(offset);
            point.live_min = point.live_min.min(live);
            point.live_max = point.live_max.max(live);
            let record = &mut self.recording.record;
            record.live.min = record.live.min.min(live);
            record.live.max = record.live.max.max(live);
        } else if at_ns < start_ns {
            record.live.min = live;
            record.live.max = live;
        }
        if start_ns < end_ns && self.live_since_ns < end_ns && at_ns >= end_ns {
            // The window is over: its last intervals saw the connections open until now.
            self.point(end_ns - 1 - start_ns);
        }
        self.live = live;
        self.live_since_ns = at_ns;
    }
}
