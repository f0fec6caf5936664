//! What was asked for, in the words of the stored run.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_load::{LoadModel, RequestOrder, Reuse, Schedule, Stage};
use brunt_measure::{
    ListDescription, ListOrder, LoadDescription, ModelDescription, ScheduleDescription,
    StageDescription, Window,
};

use crate::backend::Peer;
use crate::prepare::Prepared;

impl Prepared {
    /// The load as reports tell it: `load_ns` is its start, and `sources_used` the local addresses
    /// that were used of those that brunt chose.
    pub(crate) fn describe(
        &self,
        own_server: bool,
        load_ns: u64,
        window: Window,
        sources_used: usize,
    ) -> LoadDescription {
        let plan = &self.plan;
        let keepalive = plan.reuse != Reuse::Requests(NonZeroU64::MIN);
        LoadDescription {
            target: plan.target.url.clone(),
            unix_socket: plan
                .target
                .unix_socket
                .as_ref()
                .map(|path| path.display().to_string()),
            address: match &self.peer {
                Peer::Tcp(address) => address.to_string(),
                Peer::Unix(path) => path.display().to_string(),
            },
            protocol: self.agreement.protocol,
            protocol_note: self.agreement.note.clone(),
            tls: self
                .agreement
                .tls
                .as_ref()
                .map(|tls| tls.description.clone()),
            list: (!plan.requests.names().is_empty()).then(|| ListDescription {
                requests: plan.requests.requests().len() as u64,
                order: match plan.requests.order() {
                    RequestOrder::Turns => ListOrder::Turns,
                    RequestOrder::Random { seed } => ListOrder::Random { seed },
                },
            }),
            method: plan.requests.first().method.clone(),
            request_bytes: self.requests.bytes(!keepalive) as u64,
            model: self.describe_model(load_ns, window),
            connections: plan.connections.get(),
            workers: plan.workers.get(),
            depth: self.agreement.depth,
            keepalive,
            requests_per_connection: match plan.reuse {
                Reuse::Unlimited => None,
                Reuse::Requests(count) => Some(count.get()),
            },
            think_time_ns: plan.think_time_ns,
            think_spread: (plan.think_time_ns > 0).then(|| plan.think_spread.name().to_owned()),
            think_seed: (plan.think_time_ns > 0).then_some(plan.think_seed),
            stamps_every: plan.stamps.every().map(NonZeroU32::get),
            duration_ns: plan.stop.duration_ns,
            requests: plan.stop.requests,
            warmup_ns: plan.warmup_ns,
            timeout_ns: plan.timeout_ns,
            connect_timeout_ns: plan.connect_timeout_ns,
            drain_limit_ns: plan.drain_limit_ns,
            backend: self.backend,
            backend_note: self.backend_note.clone(),
            source_addresses: self
                .sources
                .used(sources_used)
                .iter()
                .map(|source| source.ip().to_string())
                .collect(),
            source_addresses_chosen: self.sources.is_spread() && sources_used > 1,
            oversubscribed: plan.oversubscribe,
            own_server,
        }
    }

    fn describe_model(&self, load_ns: u64, window: Window) -> ModelDescription {
        let describe = |queue_max: NonZeroU32, typed: &Schedule| {
            let from_load = typed.clone().after(self.plan.warmup_ns);
            let (from_ns, to_ns) = (window.start_ns - load_ns, window.end_ns - load_ns);
            ScheduleDescription {
                process: typed.process().name().to_owned(),
                seed: typed.seed(),
                stages: typed.stages().iter().map(describe_stage).collect(),
                expected: from_load.expected(from_ns, to_ns),
                queue_max: queue_max.get(),
            }
        };
        match &self.plan.model {
            LoadModel::Closed { connect_per_s } => ModelDescription::Closed {
                connect_per_s: *connect_per_s,
            },
            LoadModel::Open {
                schedule,
                connections_max,
                queue_max,
            } => ModelDescription::Open {
                schedule: describe(*queue_max, schedule),
                connections_max: connections_max.get(),
            },
            LoadModel::Sessions {
                schedule,
                queue_max,
            } => ModelDescription::Sessions {
                schedule: describe(*queue_max, schedule),
            },
        }
    }
}

fn describe_stage(stage: &Stage) -> StageDescription {
    StageDescription {
        duration_ns: stage.duration_ns,
        from_per_s: stage.from_per_s,
        to_per_s: stage.to_per_s,
    }
}
