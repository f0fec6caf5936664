//! What this process did of a plan, as the stored run has it: its share, its seeds, what it
//! negotiated.

use std::num::NonZeroU64;

use brunt_io::backend::Peer;
use brunt_load::{Amounts, Plan, RequestOrder, Reuse, Schedule};
use brunt_record::{Negotiated, Seeds, Window};

use crate::prepare::{Carrier, Prepared};

impl<C: Carrier> Prepared<C> {
    /// The plan as it is stored, with the amounts of the workers of this process. Where other
    /// processes have the rest of the plan, the amounts of the whole plan are given, too.
    pub(crate) fn stored_plan(&self) -> (Plan, Option<Amounts>) {
        let plan = self.plan.without_secrets();
        let part_of = (!self.is_whole()).then(|| plan.amounts());
        (plan.part(self.workers.clone()).unwrap_or(plan), part_of)
    }

    /// Arrivals that the workers of this process have in `window` on average, in a load that starts
    /// at `load_ns`. Absent without a schedule.
    pub(crate) fn expected_arrivals(&self, load_ns: u64, window: Window) -> Option<f64> {
        let schedule = self.plan.model.schedule()?;
        let from_load = schedule.clone().after(self.plan.warmup_ns);
        let (from_ns, to_ns) = (window.start_ns - load_ns, window.end_ns - load_ns);
        let expected = from_load.expected(from_ns, to_ns);
        let all = self.plan.workers.get();
        Some(match self.workers.len() {
            part if part == all as usize => expected,
            part => expected * part as f64 / f64::from(all),
        })
    }

    /// The seeds of what is drawn.
    pub(crate) fn seeds(&self) -> Seeds {
        let plan = &self.plan;
        Seeds {
            arrivals: plan.model.schedule().map(Schedule::seed),
            think: (plan.think_time_ns > 0).then_some(plan.think_seed),
            order: match plan.requests.order() {
                RequestOrder::Turns | RequestOrder::ConnectionTurns => None,
                RequestOrder::Random { seed } => Some(seed),
            },
            numbers: plan.requests.draws_numbers().then_some(plan.think_seed),
        }
    }

    /// What was negotiated.
    pub(crate) fn describe_negotiated(&self) -> Negotiated {
        let is_single = self.plan.reuse == Reuse::Requests(NonZeroU64::MIN);
        Negotiated {
            address: match &self.peer {
                Peer::Tcp(address) | Peer::Udp(address) => address.to_string(),
                Peer::Unix(path) => path.display().to_string(),
            },
            protocol: self.negotiated.protocol,
            note: self.negotiated.note.clone(),
            depth: self.negotiated.depth,
            tls: self
                .negotiated
                .tls
                .as_ref()
                .map(|tls| tls.description.clone()),
            request_bytes: self.requests.bytes(is_single) as u64,
        }
    }
}
