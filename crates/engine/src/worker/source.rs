//! Where the requests of a worker come from: the plan, or a generator that makes them while the run
//! goes on, as scripts and sessions do. A plan has a request for every connection at any time, and
//! nothing to be told.

use std::net::SocketAddr;

use brunt_io::backend::Slot;
use brunt_load::{ConnectionNumber, Plan, RequestSource};
use brunt_proto::BodiesWanted;

use crate::generated::Generated;

/// What says what is sent next.
#[derive(Debug)]
pub(super) struct Source {
    /// The requests of the plan, in its order, where there is no generator.
    pub(super) planned: RequestSource,
    pub(super) generated: Option<Box<Generated>>,
}

impl Source {
    /// The requests of the plan, of which this worker sends its part.
    pub(super) fn planned(plan: &Plan, worker: u32) -> Self {
        let requests = &plan.traffic.requests;
        Self {
            planned: requests.source(worker, plan.workers.count.get()),
            generated: None,
        }
    }

    #[inline]
    pub(super) fn generated(&self) -> Option<&Generated> {
        self.generated.as_deref()
    }

    #[inline]
    pub(super) fn generated_mut(&mut self) -> Option<&mut Generated> {
        self.generated.as_deref_mut()
    }

    /// Whether there is a generator.
    #[inline]
    pub(super) fn is_generated(&self) -> bool {
        self.generated.is_some()
    }

    /// A connection is about to be opened. Gives where to; absent: to the target.
    pub(super) fn opening(&mut self, slot: Slot) -> Option<SocketAddr> {
        let generator = &mut self.generated_mut()?.generator;
        generator.opening(ConnectionNumber(slot.0));
        generator.address()
    }

    /// A connection is open.
    pub(super) fn opened(&mut self, slot: Slot) {
        if let Some(generated) = self.generated_mut() {
            generated.generator.opened(ConnectionNumber(slot.0));
        }
    }

    /// An attempt to open a connection failed.
    pub(super) fn unopened(&mut self, slot: Slot) {
        if let Some(generated) = self.generated_mut() {
            generated.generator.unopened(ConnectionNumber(slot.0));
        }
    }

    /// An open connection is no more, and nothing is in flight on it.
    pub(super) fn closed(&mut self, slot: Slot) {
        if let Some(generated) = self.generated_mut() {
            generated.closed(slot);
        }
    }

    /// Whether there was nothing for the connection when its requests were asked for.
    #[inline]
    pub(super) fn is_parked(&self, slot: Slot) -> bool {
        self.generated()
            .is_some_and(|generated| generated.is_parked(slot))
    }

    /// Whether connections wait before each request, as long as the generator says.
    pub(super) fn delays(&self) -> bool {
        self.generated().is_some_and(|generated| generated.delays)
    }

    /// What is kept of responses, beside what is kept for others.
    pub(super) fn wanted(&self, others: BodiesWanted) -> BodiesWanted {
        let generated = self.generated();
        generated.map_or(others, |generated| generated.wanted(others))
    }
}
