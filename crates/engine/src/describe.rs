//! What was asked for and by whom, in the words of the stored run.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_io::backend::Peer;
use brunt_io::tls_config;
use brunt_load as load;
use brunt_load::{LoadModel, ReplyMatch, RequestOrder, RequestSet, Reuse, Schedule, Spoken, share};
use brunt_record::{
    Amounts, ArrivalProcess, BackendChoice, Http2Description, HttpChoice, ListDescription,
    ListOrder, METHODS_MAX, MessagesDescription, ModelDescription, Negotiated, OpeningDescription,
    PlanDescription, RequestDescription, RequestsDescription, ScheduleDescription, Seeds,
    SocketsDescription, Spin, StageDescription, StageRates, Stamps, StopDescription,
    StreamsDescription, ThinkDescription, ThinkSpread, TlsDescription, TlsVersion,
    WebSocketDescription, Window,
};

use brunt_proto::http2::ClientSettings;

use crate::limits;
use crate::prepare::{Carrier, Prepared};

/// The methods of a list, as many as are kept.
fn methods_of(requests: &RequestSet) -> Vec<String> {
    let methods = requests.methods().into_iter().take(METHODS_MAX);
    methods.map(str::to_owned).collect()
}

impl<C: Carrier> Prepared<C> {
    /// The plan as it is stored, with the amounts that the workers of this process have of it.
    pub(crate) fn describe_plan(&self) -> PlanDescription {
        let plan = &self.plan;
        let has_requests = plan.one_way().is_none() && !plan.model.is_held();
        let first = plan.requests.first().filter(|_| has_requests);
        let list = plan.requests.names().len() > 0;
        let mut described = PlanDescription {
            url: urls(plan),
            unix_socket: plan
                .target
                .unix_socket
                .as_ref()
                .map(|path| path.display().to_string()),
            requests: RequestsDescription {
                first: first.map(|first| RequestDescription {
                    method: first.method.to_owned(),
                    path: self.shown_path(first.path),
                    header_names: first.headers.iter().map(|(name, _)| name.clone()).collect(),
                    body_bytes: first.body.len() as u64,
                }),
                list: list.then(|| ListDescription {
                    requests: plan.requests.count() as u64,
                    order: match plan.requests.order() {
                        RequestOrder::Turns => ListOrder::Turns,
                        RequestOrder::ConnectionTurns => ListOrder::ConnectionTurns,
                        RequestOrder::Random { .. } => ListOrder::Random,
                    },
                    is_weighted: plan.requests.is_weighted(),
                    methods: methods_of(&plan.requests),
                }),
            },
            model: describe_model(&plan.model),
            connections: plan.connections.get(),
            workers: plan.workers.get(),
            http: plan.spoken.http().map(|http| match http {
                load::HttpChoice::Auto => HttpChoice::Auto,
                load::HttpChoice::Http1 => HttpChoice::Http1,
                load::HttpChoice::Http2 => HttpChoice::Http2,
            }),
            messages: match &plan.spoken {
                Spoken::Messages(exchange) => Some(MessagesDescription {
                    first: plan.requests.first_name(),
                    reply: exchange.reply.to_string(),
                    opening: exchange.opening.as_ref().map(|opening| OpeningDescription {
                        bytes: opening.message.bytes_max() as u64,
                        reply: opening.reply.to_string(),
                    }),
                }),
                _ => None,
            },
            websocket: match &plan.spoken {
                Spoken::WebSocket(exchange) => Some(WebSocketDescription {
                    first: plan.requests.first_name(),
                    binary: exchange.is_binary,
                    replies: exchange.replies,
                    echo: exchange.matching == ReplyMatch::Echo,
                    subprotocols: exchange.subprotocols.clone(),
                    strict: exchange.is_strict,
                    zero_masks: exchange.has_zero_masks,
                    ping_interval_ns: exchange.ping_interval_ns,
                }),
                _ => None,
            },
            connects_only: plan.connects_only(),
            tls: plan
                .target
                .scheme
                .is_secure()
                .then(|| describe_tls(&plan.tls, &plan.target.host)),
            pipeline: plan.pipeline.get(),
            streams: plan.streams.get(),
            http2: (plan.http2 != ClientSettings::default()).then_some(Http2Description {
                stream_window_bytes: plan.http2.stream_window_bytes,
                connection_window_bytes: plan.http2.connection_window_bytes,
                frame_bytes_max: plan.http2.frame_bytes_max,
                decoder_table_bytes: plan.http2.decoder_table_bytes,
                encoder_table_bytes: plan.http2.encoder_table_bytes,
            }),
            one_way: plan.one_way().map(|streams| StreamsDescription {
                sends: streams.sends,
                receives: streams.receives,
                paced_bits_per_s: streams.paced_bits_per_s.map(NonZeroU64::get),
                server_buffer_bytes_max: limits::server_buffer_bytes_max(&self.peer),
            }),
            sockets: (plan.sockets != load::SocketOptions::default()).then(|| {
                let bytes = |option: Option<NonZeroU32>| option.map(NonZeroU32::get);
                SocketsDescription {
                    is_nodelay: plan.sockets.is_nodelay,
                    send_buffer_bytes: bytes(plan.sockets.send_buffer_bytes),
                    receive_buffer_bytes: bytes(plan.sockets.receive_buffer_bytes),
                    segment_bytes: bytes(plan.sockets.segment_bytes),
                    congestion: plan.sockets.congestion.clone(),
                }
            }),
            requests_per_connection: match plan.reuse {
                Reuse::Unlimited => None,
                Reuse::Requests(count) => Some(count.get()),
            },
            think: (plan.think_time_ns > 0).then_some(ThinkDescription {
                mean_ns: plan.think_time_ns,
                spread: match plan.think_spread {
                    load::ThinkSpread::Fixed => ThinkSpread::Fixed,
                    load::ThinkSpread::Exponential => ThinkSpread::Exp,
                    load::ThinkSpread::Uniform => ThinkSpread::Uniform,
                },
            }),
            stop: StopDescription {
                duration_ns: plan.stop.duration_ns,
                requests: plan.stop.requests,
            },
            has_equal_parts: plan.has_equal_parts,
            warmup_ns: plan.warmup_ns,
            timeout_ns: plan.timeout_ns,
            setup_timeout_ns: plan.setup_timeout_ns,
            connect_timeout_ns: plan.connect_timeout_ns,
            drain_limit_ns: plan.drain_limit_ns,
            backend: match plan.backend {
                load::BackendChoice::Auto => BackendChoice::Auto,
                load::BackendChoice::Uring => BackendChoice::Uring,
                load::BackendChoice::Epoll => BackendChoice::Epoll,
                load::BackendChoice::Sim => BackendChoice::Sim,
            },
            stamps: match plan.stamps {
                load::Stamps::Sampled => Stamps::Sampled {
                    every: load::Stamps::SAMPLE_EVERY.get(),
                },
                load::Stamps::Full => Stamps::Full,
                load::Stamps::Off => Stamps::Off,
            },
            spin: match plan.spin {
                load::Spin::Auto => Spin::Auto,
                load::Spin::On => Spin::On,
                load::Spin::Off => Spin::Off,
            },
            oversubscribe: plan.oversubscribe,
            observe: plan.observe,
        };
        let part = self.part_of(&described.amounts());
        described.set_amounts(&part);
        described
    }

    /// The path of a request, without its query where neither the URL nor the name of the request
    /// shows it.
    fn shown_path(&self, path: &str) -> String {
        let name = self.plan.requests.names().next();
        let is_shown = |query| {
            self.plan.target.url.contains(query) || name.is_some_and(|name| name.contains(query))
        };
        match path.split_once('?') {
            Some((before, query)) if !is_shown(query) => format!("{before}?redacted"),
            _ => path.to_owned(),
        }
    }

    /// What the workers of this process have of `amounts`.
    fn part_of(&self, amounts: &Amounts) -> Amounts {
        let all = self.plan.workers.get();
        if self.workers.len() == all as usize {
            return amounts.clone();
        }
        let of = |total: u32, least: u32| {
            let shares = self.workers.clone();
            shares
                .map(|worker| share(total, all, worker).max(least))
                .sum()
        };
        let part = self.workers.len() as f64;
        let per_s = |rate_per_s: f64| rate_per_s * part / f64::from(all);
        Amounts {
            connections: of(amounts.connections, 0),
            connections_max: amounts.connections_max.map(|most| of(most, 0)),
            workers: self.workers.len() as u32,
            requests: self.requests_of_part(),
            connect_per_s: amounts.connect_per_s.map(per_s),
            rate_per_s: amounts.rate_per_s.map(per_s),
            stages: amounts
                .stages
                .iter()
                .map(|stage| StageRates {
                    from_per_s: per_s(stage.from_per_s),
                    to_per_s: per_s(stage.to_per_s),
                })
                .collect(),
            queue_max: amounts.queue_max.map(|most| of(most, 1)),
        }
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
        }
    }

    /// What was negotiated.
    pub(crate) fn describe_negotiated(&self) -> Negotiated {
        let is_single = self.plan.reuse == Reuse::Requests(NonZeroU64::MIN);
        Negotiated {
            address: match &self.peer {
                Peer::Tcp(address) => address.to_string(),
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

/// The URLs of all servers.
fn urls(plan: &load::Plan) -> String {
    let targets = std::iter::once(&plan.target).chain(&plan.further_targets);
    let urls: Vec<&str> = targets.map(|target| target.url.as_str()).collect();
    urls.join(" ")
}

fn describe_model(model: &LoadModel) -> ModelDescription {
    let describe = |queue_max: NonZeroU32, schedule: &Schedule| ScheduleDescription {
        process: match schedule.process() {
            load::ArrivalProcess::Constant => ArrivalProcess::Constant,
            load::ArrivalProcess::Poisson => ArrivalProcess::Poisson,
            load::ArrivalProcess::Uniform => ArrivalProcess::Uniform,
        },
        rate_per_s: schedule.stages().is_empty().then(|| schedule.rate_max()),
        stages: schedule
            .stages()
            .iter()
            .map(|stage| StageDescription {
                duration_ns: stage.duration_ns,
                from_per_s: stage.from_per_s,
                to_per_s: stage.to_per_s,
            })
            .collect(),
        queue_max: queue_max.get(),
    };
    match model {
        LoadModel::Closed { connect_per_s } => ModelDescription::Closed {
            connect_per_s: *connect_per_s,
        },
        LoadModel::Held { connect_per_s } => ModelDescription::Held {
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

fn describe_tls(spec: &load::TlsSpec, host: &str) -> TlsDescription {
    let version = |version| match version {
        load::TlsVersion::Tls12 => TlsVersion::Tls12,
        load::TlsVersion::Tls13 => TlsVersion::Tls13,
    };
    TlsDescription {
        server_name: tls_config::server_name(spec, host).to_owned(),
        insecure: spec.insecure,
        resumption: spec.resumption,
        client_certificate: spec.identity.is_some(),
        version_min: version(spec.version_min),
        version_max: version(spec.version_max),
        cipher_suites: spec.cipher_suites.clone(),
        groups: spec.groups.clone(),
    }
}
