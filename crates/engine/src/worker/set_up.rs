//! Set-up: the connections of a worker are opened before the load.

use std::io;

use brunt_io::backend::ClientBackend;
use brunt_record::SetUp;

use super::dialling::Dialling;
use super::{Pace, Worker};
use crate::protocol::ClientProtocol;

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Opens the connections, and gives the outcome. Returns when each is open or has failed
    /// often enough, when no more of them were opened for a while, or when the limit is over: the
    /// run then begins with those that are open.
    pub(crate) fn set_up(&mut self) -> io::Result<SetUp> {
        let gap_ns = match self.task.pace {
            Pace::Closed { connect_gap_ns } | Pace::Held { connect_gap_ns } => connect_gap_ns,
            Pace::Open { .. } | Pace::Sessions { .. } => 0.0,
        };
        let from_ns = self.backend.now_ns();
        self.opening.dialling = Dialling::new(self.opening.slots_used, from_ns, gap_ns);
        let limit_ns = from_ns.saturating_add(self.task.setup_limit_ns);
        self.opening.progress_ns = from_ns;
        while self.opening.unsettled > 0 && !self.task.control.is_aborted() {
            let stalls_ns = self.opening.progress_ns;
            let stalls_ns = stalls_ns.saturating_add(self.task.setup_patience_ns);
            let until_ns = limit_ns.min(stalls_ns);
            if self.backend.now_ns() >= until_ns {
                break;
            }
            self.turn(until_ns)?;
        }
        let timed_out = self.opening.unsettled > 0;
        let waited_ns = self
            .backend
            .now_ns()
            .saturating_sub(self.opening.progress_ns);
        let (asked, open) = (self.opening.slots_used, self.accounting.recorder.live());
        let record = self.accounting.recorder.record();
        record.edges.ready.set(self.backend.now_ns());
        let so_far = &record.tallies.before;
        let set_up = SetUp {
            asked,
            open,
            opened: so_far.connections_opened,
            failures: so_far.failures.clone(),
            timed_out,
            waited_ns: timed_out.then_some(waited_ns),
        };
        record.set_up = Some(set_up.clone());
        if P::CONNECTS {
            self.offer_slots();
        }
        Ok(set_up)
    }
}
