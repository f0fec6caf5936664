//! Runs drawn at random: plans, servers, networks and what goes wrong.

use brunt_engine::backend::sim::{
    AfterMalformed, Costs, Framing, HeadCoding, Http2Malformed, LateWakeUps, Limiter, Outage,
    ResetCode, ServiceTime, SettingsChange, SimCounts, SimFaults, SimHost, SimHttp2, SimSettings,
    Stall, Taken,
};
use brunt_engine::{RunError, prepare, simulate};
use brunt_load::{
    ArrivalProcess, HttpChoice, LoadModel, Plan, Reuse, Schedule, Stage, Stamps, Stop, Target,
    TlsVersion,
};
use brunt_measure::Run;
use rand::Rng;
use rand_pcg::Pcg64;

use super::plan;
use crate::common::{MS, S, US, change_request, many, many_long};

/// One drawn case.
pub(super) struct Case {
    pub(super) plan: Plan,
    pub(super) settings: SimSettings,
}

/// Draws values; the probability that something is out of the ordinary is a third each.
struct Draw(Pcg64);

impl Draw {
    fn within(&mut self, least: u64, most: u64) -> u64 {
        self.0.random_range(least..=most)
    }

    /// Mostly small: evenly spread over the orders of magnitude.
    fn length(&mut self, least_ns: u64, most_ns: u64) -> u64 {
        let (low, high) = ((least_ns as f64).ln(), (most_ns as f64).ln());
        self.0.random_range(low..=high).exp() as u64
    }

    fn sometimes(&mut self) -> bool {
        self.within(1, 3) == 1
    }

    fn fault(&mut self) -> f64 {
        if self.sometimes() {
            self.0.random_range(0.0..0.08)
        } else {
            0.0
        }
    }
}

impl Case {
    pub(super) fn of(seed: u64) -> Self {
        let mut draw = Draw(Pcg64::new(seed.into(), 1_000));
        let mut case = Self {
            plan: Self::plan(&mut draw),
            settings: Self::settings(&mut draw, seed),
        };
        case.settings.interrupt_ns = (draw.within(1, 10) == 1).then(|| {
            // Somewhere in the window, if that is long enough.
            let before_ns = 5 * case.settings.network_ns + 30 * MS + case.plan.warmup_ns;
            before_ns + draw.length(MS, 100 * MS)
        });
        Self::limits(&mut draw, &mut case.settings);
        case
    }

    /// The same case over TLS.
    pub(super) fn over_tls(mut self) -> Self {
        self.plan.target = Target::parse("https://simulated/", None).expect("a URL");
        if self.plan.http == HttpChoice::Auto {
            self.plan.http = HttpChoice::Http1;
        }
        let draw = &mut Draw(Pcg64::new(self.settings.seed.into(), 1_002));
        self.plan.tls.resumption = draw.sometimes();
        if draw.sometimes() {
            self.plan.tls.version_max = TlsVersion::Tls12;
        }
        if self.settings.server.framing == Framing::UntilClose {
            // The simulated server ends TLS without an alert: such answers would all be cut short.
            self.settings.server.framing = Framing::Length;
        }
        Self::handshakes(draw, &mut self.settings);
        self
    }

    /// The same case over HTTP/2, with what there is in it alone.
    pub(super) fn over_http2(mut self) -> Self {
        let draw = &mut Draw(Pcg64::new(self.settings.seed.into(), 1_001));
        self.plan.http = HttpChoice::Http2;
        self.plan.pipeline = many(1);
        self.plan.streams = many(draw.length(1, 100) as u32);
        let server = &mut self.settings.server;
        let has_faults = server.faults != SimFaults::default();
        if draw.sometimes() && has_faults {
            server.faults.stream_silent = draw.fault() / 4.0;
            server.faults.stream_reset = draw.fault();
            server.faults.stream_cut = draw.fault();
            server.faults.stream_refused = draw.fault();
            server.faults.goaway = draw.fault();
        }
        let change = draw.sometimes().then(|| SettingsChange {
            after: many_long(draw.length(1, 100)),
            streams_max: draw.length(1, 100) as u32,
            window_bytes: draw.length(1_000, 1_000_000) as u32,
            table_bytes: draw.within(0, 1) as u32 * draw.length(32, 10_000) as u32,
        });
        server.http2 = SimHttp2 {
            streams_max: draw.sometimes().then(|| draw.length(1, 100) as u32),
            window_bytes: draw.length(1_000, 1_000_000) as u32,
            table_bytes: draw.within(0, 1) as u32 * draw.length(32, 10_000) as u32,
            change,
            heads: match draw.within(1, 3) {
                1 => HeadCoding::Literal,
                2 => HeadCoding::Indexed,
                _ => HeadCoding::Churning,
            },
            frame_bytes: many(draw.length(100, 100_000) as u32),
            frame_gap_ns: draw.within(0, 1) * draw.within(0, 200 * US),
            ping_every: draw.sometimes().then(|| many_long(draw.length(1, 100))),
            goaway_notice_ns: draw.sometimes().then(|| draw.length(US, 10 * MS)),
            reset_code: ResetCode::Any,
            goaway_code: draw.within(0, 20) as u32,
            malformed: Http2Malformed::ALL[draw.within(0, 8) as usize],
        };
        Self::handshakes(draw, &mut self.settings);
        self
    }

    fn handshakes(draw: &mut Draw, settings: &mut SimSettings) {
        if draw.within(1, 6) == 1 {
            settings.server.faults.handshake_cut = draw.fault();
            settings.server.faults.handshake_silent = draw.fault();
        }
    }

    pub(super) fn run(&self) -> Result<(Run, SimCounts), RunError> {
        let prepared = prepare(self.plan.clone()).expect("a plan that fits");
        simulate(prepared, &self.settings)
    }

    fn plan(draw: &mut Draw) -> Plan {
        let mut plan = plan();
        let connections = draw.within(1, 20);
        plan.connections = many(connections as u32);
        plan.workers = many(draw.within(1, connections.min(4)) as u32);
        if draw.sometimes() {
            plan.pipeline = many(draw.within(1, 8) as u32);
        }
        if draw.sometimes() {
            plan.reuse = Reuse::Requests(many_long(draw.length(1, 50)));
        }
        plan.model = Self::model(draw, connections as u32);
        if !matches!(plan.model, LoadModel::Open { .. }) && draw.sometimes() {
            plan.think_time_ns = draw.length(10 * US, 50 * MS);
        }
        plan.stamps = match draw.within(1, 4) {
            1 => Stamps::Off,
            2 => Stamps::Sampled,
            _ => Stamps::Full,
        };
        plan.stop = Stop {
            duration_ns: Some(draw.length(10 * MS, 200 * MS)),
            requests: None,
        };
        if draw.sometimes() {
            plan.stop.requests = Some(draw.length(1, 3_000));
            let has_stages = plan.model.schedule().is_some_and(|schedule| {
                // They may be over before anything was measured.
                schedule.duration_ns().is_some()
            });
            if draw.sometimes() && !has_stages {
                plan.stop.duration_ns = None;
            }
        }
        plan.warmup_ns = draw.within(0, 2) * draw.length(MS, 50 * MS);
        plan.timeout_ns = draw.length(5 * MS, S);
        plan.connect_timeout_ns = draw.length(5 * MS, 200 * MS);
        plan.drain_limit_ns = draw.within(0, 1) * draw.length(MS, 500 * MS);
        match draw.within(1, 6) {
            1 => change_request(&mut plan, |request| request.method = "HEAD".to_owned()),
            2 => {
                change_request(&mut plan, |request| request.method = "POST".to_owned());
                change_request(&mut plan, |request| {
                    request.body = vec![b'b'; draw.length(1, 200_000) as usize]
                });
            }
            _ => {}
        }
        plan
    }

    fn model(draw: &mut Draw, connections: u32) -> LoadModel {
        match draw.within(1, 3) {
            1 => LoadModel::Closed {
                connect_per_s: draw.sometimes().then(|| draw.length(50, 100_000) as f64),
            },
            2 => LoadModel::Open {
                schedule: Self::schedule(draw, 20_000),
                connections_max: many(connections + draw.within(0, 20) as u32),
                queue_max: many(draw.length(1, 100_000) as u32),
            },
            _ => LoadModel::Sessions {
                schedule: Self::schedule(draw, 5_000),
                queue_max: many(draw.length(1, 100_000) as u32),
            },
        }
    }

    /// A schedule with at most so many arrivals per second.
    fn schedule(draw: &mut Draw, most_per_s: u64) -> Schedule {
        let process = ArrivalProcess::ALL[draw.within(0, 2) as usize];
        let seed = draw.within(0, u64::MAX);
        let rate_per_s = |draw: &mut Draw| draw.length(10, 10 * most_per_s) as f64 / 10.0;
        if draw.sometimes() {
            let stage = |draw: &mut Draw| Stage {
                duration_ns: draw.length(MS, 200 * MS),
                from_per_s: draw.within(0, 1) as f64 * rate_per_s(draw),
                to_per_s: rate_per_s(draw),
            };
            let stages = (0..draw.within(1, 4)).map(|_| stage(draw)).collect();
            return Schedule::staged(process, stages, seed).expect("stages");
        }
        Schedule::constant_rate(process, rate_per_s(draw), seed).expect("a rate")
    }

    fn settings(draw: &mut Draw, seed: u64) -> SimSettings {
        let mut settings = SimSettings::new(seed);
        settings.network_ns = draw.length(US, 2 * MS);
        if draw.sometimes() {
            settings.costs = Costs::NONE;
        }
        settings.send_buffer_bytes = many(draw.length(1_000, 100_000) as u32);
        settings.late_wake_ups = draw.sometimes().then(|| LateWakeUps {
            probability: 0.05,
            delay_ns: draw.length(10 * US, 20 * MS),
        });
        let server = &mut settings.server;
        let service_ns = draw.length(20 * US, 20 * MS);
        server.service = Self::service(draw, service_ns);
        server.concurrency = draw.sometimes().then(|| many(draw.within(1, 4) as u32));
        server.stall = draw.sometimes().then(|| {
            let period_ns = draw.length(MS, 100 * MS);
            Stall {
                silence_ns: period_ns / draw.within(2, 10),
                period_ns: many_long(period_ns),
            }
        });
        server.close_after = draw.sometimes().then(|| many_long(draw.length(1, 100)));
        server.announces_close = draw.within(0, 1) == 1;
        server.honours_close = !draw.sometimes();
        server.outage = (draw.within(1, 10) == 1).then(|| {
            let from_ns = draw.length(MS, 100 * MS);
            Outage {
                from_ns,
                until_ns: from_ns + draw.length(MS, 100 * MS),
            }
        });
        server.body_bytes = draw.within(0, 1) as u32 * draw.length(1, 150_000) as u32;
        server.framing = match draw.within(1, 6) {
            1 => Framing::Chunked,
            2 => Framing::UntilClose,
            _ => Framing::Length,
        };
        server.interim = if draw.sometimes() { 2 } else { 0 };
        if draw.sometimes() {
            server.pieces_max = many(draw.within(2, 6) as u32);
            server.piece_gap_ns = draw.within(0, 300 * US);
        }
        if draw.sometimes() {
            server.faults = SimFaults {
                no_socket: draw.fault(),
                connect_refused: draw.fault(),
                connect_unanswered: draw.fault(),
                silent: draw.fault(),
                reset: draw.fault(),
                closed: draw.fault(),
                truncated: draw.fault(),
                malformed: draw.fault(),
                extra_bytes: draw.fault(),
                error_status: draw.fault(),
                ..SimFaults::default()
            };
            server.after_malformed = match draw.within(1, 3) {
                1 => AfterMalformed::Close,
                2 => AfterMalformed::Continue,
                _ => AfterMalformed::FallSilent,
            };
        }
        settings
    }

    /// What may limit client or server besides.
    fn limits(draw: &mut Draw, settings: &mut SimSettings) {
        let taken = |draw: &mut Draw| {
            draw.sometimes().then(|| {
                let period_ns = draw.length(100 * US, 50 * MS);
                Taken {
                    part_ns: period_ns / draw.within(2, 20),
                    period_ns: many_long(period_ns),
                }
            })
        };
        settings.host = draw.sometimes().then(|| SimHost {
            steal: taken(draw),
            contention: taken(draw),
        });
        let server = &mut settings.server;
        server.delay_ns = draw.within(0, 1) * draw.within(0, 1) * draw.length(10 * US, 10 * MS);
        server.limiter = (draw.within(1, 6) == 1).then(|| Limiter {
            every_ns: many_long(draw.length(100 * US, 10 * MS)),
            burst: many(draw.length(1, 100) as u32),
            refusal_ns: draw.length(100 * US, MS),
        });
        if draw.within(1, 6) == 1 {
            server.drift_per_s = 0.3;
        }
    }

    /// Service times of about this length.
    fn service(draw: &mut Draw, ns: u64) -> ServiceTime {
        match draw.within(1, 6) {
            1 => ServiceTime::Constant(ns),
            2 => ServiceTime::Uniform {
                min_ns: ns / 2,
                max_ns: ns * 2,
            },
            3 => ServiceTime::Bimodal {
                usual_ns: ns,
                rare_ns: draw.length(ns, 100 * ns),
                rare: 0.05,
            },
            4 => ServiceTime::Pareto {
                min_ns: ns / 2,
                max_ns: 1_000 * ns,
                shape: 1.2,
            },
            _ => ServiceTime::Exponential { mean_ns: ns },
        }
    }
}
