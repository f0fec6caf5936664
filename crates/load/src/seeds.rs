//! The seeds of a plan: where all that is random in a load begins.

use crate::{LoadModel, Plan};

impl Plan {
    /// This plan with the seeds of `other`, as far as both plans have them. Two plans that differ
    /// only in their seeds become equal.
    #[must_use]
    pub fn with_seeds_of(mut self, other: &Self) -> Self {
        self.think_seed = other.think_seed;
        self.requests = self.requests.with_seed_of(other.requests.order());
        if let (
            LoadModel::Open { schedule, .. } | LoadModel::Sessions { schedule, .. },
            Some(theirs),
        ) = (&mut self.model, other.model.schedule())
        {
            *schedule = schedule.clone().with_seed(theirs.seed());
        }
        if let Some(seed) = other.spoken.seed()
            && let Some(exchange) = self.spoken.exchange_mut()
        {
            exchange.set_seed(seed);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::{
        ArrivalProcess, Framing, MessageExchange, RequestOrder, RequestSet, RequestSpec, Schedule,
        Target,
    };

    fn plan(seed: u64, rate_per_s: f64, is_messages: bool) -> Plan {
        let target = Target::parse("http://127.0.0.1:1/", None).expect("a URL");
        let requests = vec![RequestSpec::get("/")];
        let order = RequestOrder::Random { seed };
        let mut plan = Plan::new(target, RequestSet::of(requests, order).expect("one"));
        plan.think_seed = seed;
        plan.model = LoadModel::Open {
            schedule: Schedule::constant_rate(ArrivalProcess::Poisson, rate_per_s, seed)
                .expect("a rate"),
            connections_max: NonZeroU32::MIN,
            queue_max: NonZeroU32::MIN,
        };
        if is_messages {
            plan.spoken = MessageExchange {
                reply: Framing::Echo,
                opening: None,
                seed,
            }
            .into();
        }
        plan
    }

    #[test]
    fn plans_that_differ_in_seeds_alone_become_equal() {
        for is_messages in [false, true] {
            let (one, other) = (plan(1, 100.0, is_messages), plan(2, 100.0, is_messages));
            assert_ne!(one, other);
            assert_eq!(one.with_seeds_of(&other), other);
        }
    }

    #[test]
    fn what_is_no_seed_stays() {
        let (one, other) = (plan(1, 100.0, false), plan(2, 200.0, true));
        let changed = one.with_seeds_of(&other);
        assert_ne!(changed, other);
        assert_eq!(changed, plan(2, 100.0, false));
    }
}
