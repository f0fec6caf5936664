//! A plan from what a program says of it; what it does not say is as the command line has it.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use thiserror::Error;

use crate::{
    ArrivalProcess, LoadModel, Placement, Plan, RequestSet, RequestSpec, Reuse, Schedule,
    ScheduleError, Spoken, Stage, Target, TargetError,
};

/// Why there is no such plan.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// The URL is none that can be loaded.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The rate or the stages are impossible.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A number that must be above 0 is 0.
    #[error("{0} must be above 0")]
    Zero(&'static str),
}

/// Makes a plan; see [`Plan::to`].
#[derive(Clone, Debug)]
pub struct PlanBuilder {
    url: String,
    request: RequestSpec,
    spoken: Option<Spoken>,
    connections: u32,
    workers: Option<u32>,
    process: ArrivalProcess,
    seed: u64,
    rate_per_s: Option<f64>,
    stages: Vec<Stage>,
    duration: Option<Duration>,
    requests: Option<u64>,
    requests_per_connection: Option<u64>,
    warmup: Option<Duration>,
    timeout: Option<Duration>,
}

impl Plan {
    /// A load on this server, such as `http://127.0.0.1:8080/`: without more, GET requests in a
    /// closed loop of 64 connections for 10 s after a warm-up of 1 s, by as many workers as it
    /// takes.
    pub fn to(url: &str) -> PlanBuilder {
        PlanBuilder {
            url: url.to_owned(),
            request: RequestSpec::get(""),
            spoken: None,
            connections: Self::CONNECTIONS_DEFAULT.get(),
            workers: None,
            process: ArrivalProcess::Constant,
            seed: 0,
            rate_per_s: None,
            stages: Vec::new(),
            duration: None,
            requests: None,
            requests_per_connection: None,
            warmup: None,
            timeout: None,
        }
    }
}

impl PlanBuilder {
    /// The method, such as `POST`.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.request.method);
        self
    }

    /// A header field more.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let field = (name.to_owned(), value.to_owned());
        self.request.headers.push(field);
        self
    }

    /// The body of each request.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.request.body = body.into();
        self
    }

    /// What is spoken, such as `HttpChoice::HTTP2`. Without it: what the server chooses over TLS,
    /// and HTTP/1.1 in clear text.
    #[must_use]
    pub fn speaking(mut self, spoken: impl Into<Spoken>) -> Self {
        self.spoken = Some(spoken.into());
        self
    }

    /// Connections held at once, all workers together; above 0.
    #[must_use]
    pub fn connections(mut self, connections: u32) -> Self {
        self.connections = connections;
        self
    }

    /// Worker threads; above 0. Without it, brunt finds their number.
    #[must_use]
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Requests per second, planned whatever the responses do: an open loop.
    #[must_use]
    pub fn rate(mut self, per_s: f64) -> Self {
        self.rate_per_s = Some(per_s);
        self
    }

    /// Requests per second that change in stages, planned whatever the responses do: an open loop.
    /// Without a duration, the load ends with the last stage.
    #[must_use]
    pub fn stages(mut self, stages: Vec<Stage>) -> Self {
        self.stages = stages;
        self
    }

    /// How planned requests are spread around their rate, and where random numbers begin.
    #[must_use]
    pub fn arrivals(mut self, process: ArrivalProcess, seed: u64) -> Self {
        (self.process, self.seed) = (process, seed);
        self
    }

    /// Length of the measure phase. Without it, and without a number of requests, 10 s.
    #[must_use]
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Requests of the measure phase; with a duration, whichever comes first ends it.
    #[must_use]
    pub fn requests(mut self, requests: u64) -> Self {
        self.requests = Some(requests);
        self
    }

    /// Requests after which a connection is replaced; above 0.
    #[must_use]
    pub fn requests_per_connection(mut self, requests: u64) -> Self {
        self.requests_per_connection = Some(requests);
        self
    }

    /// Length of the warm-up; without it 1 s, or nothing with a number of requests.
    #[must_use]
    pub fn warmup(mut self, warmup: Duration) -> Self {
        self.warmup = Some(warmup);
        self
    }

    /// Limit of one request; 10 s without it. The drain lasts as long at most.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The plan. What this builder does not set can be changed in the plan.
    ///
    /// # Errors
    ///
    /// The URL, the rate or the stages are none that can be loaded, or a number is 0.
    pub fn build(self) -> Result<Plan, PlanError> {
        let above_0 = |number, name| NonZeroU32::new(number).ok_or(PlanError::Zero(name));
        let target = Target::parse(&self.url, None)?;
        let request = RequestSpec {
            path: target.path.clone(),
            ..self.request
        };
        let mut plan = Plan::new(target, RequestSet::one(request));
        plan.connections = above_0(self.connections, "the number of connections")?;
        match self.workers {
            Some(workers) => {
                plan.workers = above_0(workers, "the number of workers")?;
                plan.placement = Placement::Given;
            }
            None => {
                plan.workers = plan.connections;
                plan.placement = Placement::Auto;
            }
        }
        let schedule = match (self.rate_per_s, self.stages.is_empty()) {
            (Some(per_s), _) => Some(Schedule::constant_rate(self.process, per_s, self.seed)?),
            (None, false) => Some(Schedule::staged(self.process, self.stages, self.seed)?),
            (None, true) => None,
        };
        let stages_ns = schedule.as_ref().and_then(Schedule::duration_ns);
        if let Some(schedule) = schedule {
            plan.model = LoadModel::Open {
                schedule,
                connections_max: plan.connections,
                queue_max: Plan::QUEUE_DEFAULT,
            };
        }
        plan.think_seed = self.seed;
        if let Some(spoken) = self.spoken {
            plan.spoken = spoken;
        }
        if let Some(count) = self.requests_per_connection {
            let count = NonZeroU64::new(count);
            plan.reuse = Reuse::Requests(count.ok_or(PlanError::Zero("the number of requests"))?);
        }
        let is_counted = self.requests.is_some();
        let unless_counted = |ns: u64| (!is_counted).then_some(ns);
        plan.stop.requests = self.requests;
        plan.stop.duration_ns = self
            .duration
            .map(nanoseconds)
            .or(stages_ns)
            .or(unless_counted(Plan::DURATION_NS_DEFAULT));
        plan.warmup_ns = match self.warmup {
            Some(warmup) => nanoseconds(warmup),
            None => unless_counted(Plan::WARMUP_NS_DEFAULT).unwrap_or(0),
        };
        if let Some(timeout) = self.timeout {
            plan.timeout_ns = nanoseconds(timeout);
            plan.drain_limit_ns = plan.timeout_ns;
        }
        Ok(plan)
    }
}

/// A duration in nanoseconds, or as many as there are.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
