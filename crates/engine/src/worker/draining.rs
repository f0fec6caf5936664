//! The end of a worker's load: what was sent is followed until it has an outcome.

use std::io;

use brunt_io::backend::ClientBackend;

use super::{Mode, Pacing, Worker};
use crate::protocol::ClientProtocol;

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    pub(super) fn drain(&mut self) -> io::Result<()> {
        let now_ns = self.backend.now_ns();
        // What was due in the window belongs to it, however late this worker is.
        let due_before_ns = now_ns.saturating_add(1).min(self.timeline.window_end_ns);
        self.take_arrivals(now_ns);
        while self.next_arrival_ns() < due_before_ns && !self.task.control.is_aborted() {
            self.turn(now_ns)?;
        }
        if let Some(backlog) = self.backlog() {
            backlog.stop();
        }
        self.end_release(now_ns);
        self.timeline.mode = Mode::Drain;
        let from_ns = self.timeline.window_end_ns.min(now_ns);
        let limit_ns = from_ns.saturating_add(self.task.drain_limit_ns);
        // Planned requests that wait are still sent, unless somebody is in a hurry; planned
        // connections are no longer opened.
        let sends = matches!(self.pacing, Pacing::Open(_));
        self.finish_streams(limit_ns)?;
        loop {
            let now_ns = self.backend.now_ns();
            let control = &self.task.control;
            let limit_ns = limit_ns.min(control.drain_end_ns());
            let is_cut_short = control.is_aborted() || control.is_hurried();
            let is_ended = control.is_interrupted_by(now_ns) || control.is_recalled_by(now_ns);
            if !sends || is_cut_short || is_ended {
                self.give_up_waiting(now_ns);
            }
            let is_done = self.connections.in_flight() == 0 && self.waiting() == 0;
            if is_done || is_cut_short || now_ns >= limit_ns {
                break;
            }
            self.turn(limit_ns)?;
        }
        let now_ns = self.backend.now_ns();
        self.count_output(now_ns);
        for slot in self.connections.slots() {
            self.take_overhead(slot, now_ns);
        }
        self.take_kernel_sample();
        self.end_streams();
        for slot in self.connections.slots() {
            self.stop_awaiting_retry(slot, now_ns);
            self.stop_blocking(slot, now_ns);
            while let Some((issue, discarded_bytes)) = self.take_any(slot, None) {
                self.accounting
                    .recorder
                    .censored(issue, now_ns, discarded_bytes);
                if self.round.left_behind.last() != Some(&slot) {
                    self.round.left_behind.push(slot);
                }
            }
            self.settle_bytes(slot, now_ns);
        }
        self.give_up_waiting(now_ns);
        let stamps_clamped = self.backend.stamps_clamped();
        let record = self.accounting.recorder.record();
        record.stamps_clamped += stamps_clamped - self.round.stamps_clamped_before;
        record.spun_ns = self.wake_ups.spinner.spun_ns();
        record.edges.drained.set(now_ns);
        Ok(())
    }
}
