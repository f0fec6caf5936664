//! What follows from a run, as methods of it.

use brunt_record::{Run, max_at_least_ns, mean_at_least_ns};

use crate::behaviour::outage::server_failure_of;
use crate::behaviour::overload::overload_of;
use crate::behaviour::steadiness::steadiness_of;
use crate::behaviour::success::no_success_of;
use crate::figures::bandwidth::bandwidth_intervals;
use crate::figures::with_connect::connects_per_request;
use crate::precision::quantile::quantile_of;
use crate::precision::successes_interval;
use crate::{
    Bandwidth, BandwidthInterval, Judged, Judgement, NoInterval, NoSuccess, Overload, Quantile,
    RateInterval, ServerFailure, Steadiness, Summary,
};

/// What follows from a run, one by one. [`Judged`] has the most of it, worked out once.
pub trait RunFigures {
    /// Adds up the workers of all agents and derives the figures.
    fn summary(&self) -> Summary;

    /// What limited this run. [`Judged`] also has what it follows from.
    fn judge(&self) -> Judgement;

    /// The interval of the rate of successful replies: how much it would vary from one such window
    /// to the next, from how it varies within this one.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn successes_interval(&self) -> Result<RateInterval, NoInterval>;

    /// Whether and how far this run was overloaded. Never so without a schedule.
    ///
    /// Signs of overload are a backlog that grows steadily, be it over the whole window or over
    /// one stage, arrivals dropped because the queue was full, and more than 1 % of the arrivals
    /// dropped or left for having waited too long.
    fn overload(&self) -> Option<Overload>;

    /// Whether the rate held still. Says nothing (no drift, nothing known) of a run whose planned
    /// rate changes.
    fn steadiness(&self) -> Steadiness;

    /// How the server failed in the window; absent where it did not.
    fn server_failure(&self) -> Option<ServerFailure>;

    /// Why no request of this run succeeded; absent where one did, and where nothing was measured.
    fn no_success(&self) -> Option<NoSuccess>;

    /// The figures of its streams; absent in a run of requests.
    fn bandwidth(&self) -> Option<Bandwidth>;

    /// What its streams did interval by interval: between the readings of the worker that made the
    /// fewest, of which there are some 1,200 at most.
    fn bandwidth_intervals(&self) -> Vec<BandwidthInterval>;

    /// Whether every successful response was the first one of its connection, and connections were
    /// opened for that: with one request per connection, or where the server closes each after its
    /// first response. Opening them is part of what a user of such a server waits for.
    fn connects_per_request(&self) -> bool;

    /// The quantile of the response time together with the time to open the connection, as
    /// [`crate::ResponseQuantiles::response_quantile`]. It has no interval.
    fn with_connect_quantile(&self, q: f64) -> Quantile;

    /// The least that the mean response time can be, together with the time to open the connection,
    /// as [`brunt_record::Latencies::response_mean_at_least_ns`].
    fn with_connect_mean_at_least_ns(&self) -> Option<u64>;

    /// The least that the longest response time can be, together with the time to open the
    /// connection, as [`brunt_record::Latencies::response_max_at_least_ns`].
    fn with_connect_max_at_least_ns(&self) -> Option<u64>;
}

impl RunFigures for Run {
    fn summary(&self) -> Summary {
        Summary::of(self, &self.agents)
    }

    fn judge(&self) -> Judgement {
        Judged::of(self).judgement
    }

    fn successes_interval(&self) -> Result<RateInterval, NoInterval> {
        successes_interval(self)
    }

    fn overload(&self) -> Option<Overload> {
        overload_of(self, &self.summary())
    }

    fn steadiness(&self) -> Steadiness {
        steadiness_of(self, &self.summary())
    }

    fn server_failure(&self) -> Option<ServerFailure> {
        server_failure_of(self, &self.summary())
    }

    fn no_success(&self) -> Option<NoSuccess> {
        no_success_of(self, &self.summary())
    }

    fn bandwidth(&self) -> Option<Bandwidth> {
        self.is_streams()
            .then(|| Bandwidth::of(self, &self.summary()))
    }

    fn bandwidth_intervals(&self) -> Vec<BandwidthInterval> {
        bandwidth_intervals(self)
    }

    fn connects_per_request(&self) -> bool {
        connects_per_request(self)
    }

    fn with_connect_quantile(&self, q: f64) -> Quantile {
        let latencies = &self.latencies;
        quantile_of(&latencies.with_connect, &latencies.unfinished, q)
    }

    fn with_connect_mean_at_least_ns(&self) -> Option<u64> {
        mean_at_least_ns(&self.latencies.with_connect, &self.latencies.unfinished)
    }

    fn with_connect_max_at_least_ns(&self) -> Option<u64> {
        max_at_least_ns(&self.latencies.with_connect, &self.latencies.unfinished)
    }
}
