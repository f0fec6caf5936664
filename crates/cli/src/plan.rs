//! From what was typed to a plan. What contradicts itself is said here, before anything is opened.

use std::hash::{BuildHasher, RandomState};
use std::num::{NonZeroU32, NonZeroU64};

use anyhow::{Result, bail};
use brunt_load::{
    ArrivalProcess, BackendChoice, LoadModel, Placement, Plan, RequestSet, RequestSpec, Reuse,
    Schedule, ServerCounter, SocketOptions, Spin, Spoken, Stamps, Stop, Streams, Target, ThinkTime,
};
use brunt_proto::http2::ClientSettings;

use crate::args::{ArrivalsName, BackendName, LoadArguments, OrderName, SpinName, StampsName};
use crate::protocol::ProtocolChoice;
use crate::request::request;

/// Most connections at once, where connections are planned: their number follows from the rate
/// and the server, and the limit is for when the server is overloaded.
const SESSIONS_DEFAULT: NonZeroU32 = NonZeroU32::new(10_000).unwrap();

/// The seed of a plan that is shared out, unless one was typed.
const PART_SEED: u64 = 1;

/// The part of a plan that follows from the arguments alone.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) model: LoadModel,
    pub(crate) connections: NonZeroU32,
    protocol: ProtocolChoice,
    /// In place of HTTP.
    spoken: Option<Spoken>,
    sockets: SocketOptions,
    /// In place of `--pipeline`.
    depth: Option<NonZeroU32>,
    reuse: Reuse,
    stop: Stop,
    warmup_ns: u64,
    request: RequestSpec,
    /// Whether random numbers are filled into it.
    draws: bool,
    /// In place of it.
    list: Option<RequestSet>,
    think_time: ThinkTime,
}

impl Load {
    /// Looks at the arguments for a load on `target`, and reads the files of header fields and
    /// body. Without a target it is the built-in server.
    pub(crate) fn new(arguments: &LoadArguments, target: Option<&Target>) -> Result<Self> {
        let load = Self::at(arguments, target, None)?;
        // What is random in a list is known when it is read.
        let may_draw = target.is_some_and(|it| !it.scheme.protocol().carries_http)
            || load.draws
            || has_list(arguments);
        refuse_useless_seed(arguments, may_draw)?;
        Ok(load)
    }

    /// The same with planned requests at this rate, where it is given, whatever rate was typed.
    pub(crate) fn at(
        arguments: &LoadArguments,
        target: Option<&Target>,
        rate: Option<f64>,
    ) -> Result<Self> {
        let rate = rate.or(arguments.rate);
        let protocol = ProtocolChoice::new(arguments, target)?;
        let reuse = if arguments.no_keepalive {
            Reuse::Requests(NonZeroU64::MIN)
        } else {
            arguments
                .requests_per_connection
                .map_or(Reuse::Unlimited, Reuse::Requests)
        };
        // Arrivals and think times share it, so that one number repeats a run.
        let seed = seed(arguments);
        let mut request = request(arguments)?;
        let draws = fill_in(arguments, target, &mut request)?;
        let (model, connections) = model(arguments, rate, reuse, seed)?;
        let requests = arguments.requests.map(NonZeroU64::get);
        let default = |ns| requests.is_none().then_some(ns);
        let stages_ns = model.schedule().and_then(Schedule::duration_ns);
        let stop = Stop {
            duration_ns: arguments
                .duration
                .or(stages_ns)
                .or(default(Plan::DURATION_NS_DEFAULT)),
            requests,
        };
        Ok(Self {
            model,
            connections,
            protocol,
            spoken: None,
            sockets: SocketOptions::default(),
            depth: None,
            reuse,
            stop,
            warmup_ns: arguments
                .warmup
                .or(default(Plan::WARMUP_NS_DEFAULT).filter(|_| !arguments.hold))
                .unwrap_or(0),
            request,
            draws,
            list: None,
            think_time: ThinkTime {
                seed,
                ..arguments.think_time.unwrap_or_default()
            },
        })
    }

    /// The one request, without its path.
    pub(crate) fn request(&self) -> &RequestSpec {
        &self.request
    }

    /// The same with a list of requests.
    pub(crate) fn with_list(mut self, list: Option<RequestSet>) -> Self {
        self.list = list;
        self
    }

    /// The same with something else than HTTP spoken.
    pub(crate) fn speaking(mut self, spoken: impl Into<Spoken>) -> Self {
        self.spoken = Some(spoken.into());
        self
    }

    /// The same with connections that are opened and closed again, in place of requests.
    pub(crate) fn connecting(mut self) -> Self {
        self.reuse = Reuse::Requests(NonZeroU64::MIN);
        self.with_list(Some(RequestSet::nothing()))
            .speaking(Spoken::Connections)
    }

    /// The same with so many messages in flight per connection.
    pub(crate) fn with_depth(mut self, depth: NonZeroU32) -> Self {
        self.depth = Some(depth);
        self
    }

    /// The same with these options of its sockets.
    pub(crate) fn over(mut self, sockets: SocketOptions) -> Self {
        self.sockets = sockets;
        self
    }

    /// The same with streams, of which there is one unless a number was typed.
    pub(crate) fn streaming(mut self, streams: Streams, connections: Option<NonZeroU32>) -> Self {
        self.connections = connections.unwrap_or(NonZeroU32::MIN);
        self.speaking(streams)
    }

    /// The plan, with what depends on the machine: the workers where `-t` gives no number, at most,
    /// and the CPUs that they are to be bound to, if any.
    pub(crate) fn plan(
        self,
        arguments: &LoadArguments,
        target: Target,
        workers_default: NonZeroU32,
        cpus: Option<Vec<u32>>,
    ) -> Plan {
        let placement = match (arguments.threads, cpus) {
            (Some(_), _) => Placement::Given,
            (None, Some(cpus)) => Placement::Bound(cpus),
            (None, None) => Placement::Auto,
        };
        // Where nothing is received, there is nothing to be stamped.
        let spoken = self.spoken.as_ref();
        let is_stamped = spoken.is_none_or(|it| !it.connects_only());
        // Reports and messages show no more of a target than this.
        let shown = |target: Target| match arguments.output.redact {
            true => target.redacted(),
            false => target,
        };
        let requests = self.list.unwrap_or_else(|| {
            let mut request = RequestSpec {
                path: target.path.clone(),
                ..self.request
            };
            if !is_generated(arguments) {
                // What is wrong with it was said before.
                let _ = request.fill_in();
            }
            RequestSet::one(request)
        });
        Plan {
            further_targets: Vec::new(),
            target: shown(target),
            requests,
            is_generated: false,
            model: self.model,
            connections: self.connections,
            workers: arguments
                .threads
                .unwrap_or(workers_default.min(self.connections)),
            placement,
            spoken: self.spoken.unwrap_or_else(|| self.protocol.http.into()),
            tls: self.protocol.tls,
            pipeline: self.depth.unwrap_or(arguments.pipeline),
            streams: self.protocol.streams,
            http2: ClientSettings::default(),
            reuse: self.reuse,
            think_time_ns: self.think_time.mean_ns,
            think_spread: self.think_time.spread,
            think_seed: self.think_time.seed,
            held_beside_bytes: 0,
            stop: self.stop,
            sequence_offset: arguments.seq_from.map_or(0, |first| first.get() - 1),
            has_equal_parts: false,
            warmup_ns: self.warmup_ns,
            halves_warmup: true,
            keeps_errors: arguments.show_errors,
            logged_requests_max: 0,
            logged_responses_max: 0,
            timeout_ns: arguments.timeout,
            sends_again: true,
            setup_timeout_ns: None,
            connect_timeout_ns: arguments.connect_timeout,
            drain_limit_ns: arguments.drain.unwrap_or(arguments.timeout),
            backend: backend_choice(arguments.backend),
            sockets: self.sockets,
            source_addresses: arguments.source_addresses.clone(),
            stamps: match arguments.stamps {
                _ if !is_stamped => Stamps::Off,
                StampsName::Full => Stamps::Full,
                StampsName::Sampled => Stamps::Sampled,
                StampsName::Off => Stamps::Off,
            },
            spin: match arguments.spin {
                SpinName::Auto => Spin::Auto,
                SpinName::On => Spin::On,
                SpinName::Off => Spin::Off,
            },
            oversubscribe: arguments.oversubscribe,
            observe: !arguments.no_evidence,
            watch: arguments.watch.clone(),
            server_counter: arguments.verify_url.clone().map(|counter| ServerCounter {
                target: shown(counter.target),
                path: counter.path,
            }),
            link_bits_per_s: arguments.link_speed,
        }
    }
}

/// Whether the requests are those of a list, which says so where a seed is of no use to it.
pub(crate) fn has_list(arguments: &LoadArguments) -> bool {
    let files = [&arguments.urls, &arguments.targets];
    files.iter().any(|file| file.is_some()) || !arguments.raw.is_empty()
}

/// Refuses a seed where nothing of a run is random; `draws` says whether anything of its requests
/// is. An experiment has a use of its own for a seed.
pub(crate) fn refuse_useless_seed(arguments: &LoadArguments, draws: bool) -> Result<()> {
    let is_used = draws
        || arguments.order == OrderName::Random
        || arguments.rate.is_some()
        || arguments.stages.is_some()
        || arguments.connection_rate.is_some()
        || arguments.think_time.is_some();
    if arguments.seed.is_some() && !is_used {
        bail!(
            "--seed is about what is random, and nothing of this load is; leave it out, or give a \
             rate, --think-time, a list with --order random, or numbers to be filled in (see \
             docs/lists.md)"
        );
    }
    Ok(())
}

/// Refuses a start of sequences where requests hold none; `counts` says whether some do.
pub(crate) fn refuse_useless_start(arguments: &LoadArguments, counts: bool) -> Result<()> {
    if arguments.seq_from.is_some() && !counts {
        bail!("--seq-from is about {{{{seq}}}}, and no request has it; leave it out");
    }
    Ok(())
}

/// Whether requests come from elsewhere than the plan.
fn is_generated(arguments: &LoadArguments) -> bool {
    arguments.script.is_some() || arguments.sessions.is_some()
}

/// Looks for numbers to be filled into the request of a URL, and says whether some are random.
fn fill_in(
    arguments: &LoadArguments,
    target: Option<&Target>,
    request: &mut RequestSpec,
) -> Result<bool> {
    request.path = target.map_or_else(String::new, |target| target.path.clone());
    let is_of_messages = target.is_some_and(|it| !it.scheme.protocol().carries_http);
    if is_generated(arguments) || is_of_messages {
        request.fill_in_nothing()?;
    } else {
        request.fill_in()?;
    }
    let draws = request.view().draws();
    // A list says so itself.
    refuse_useless_start(arguments, request.view().counts() || has_list(arguments))?;
    request.path.clear();
    Ok(draws)
}

/// The load model, and the connections that go with it.
fn model(
    arguments: &LoadArguments,
    rate: Option<f64>,
    reuse: Reuse,
    seed: u64,
) -> Result<(LoadModel, NonZeroU32)> {
    let process = arguments
        .arrivals
        .map_or(ArrivalProcess::default(), ArrivalsName::process);
    let queue_max = Plan::QUEUE_DEFAULT;
    let is_bounded = reuse != Reuse::Unlimited || arguments.sessions.is_some();
    let plans_connections = arguments.connection_rate.is_some() && is_bounded;
    let connections = arguments.connections.unwrap_or(if plans_connections {
        SESSIONS_DEFAULT
    } else {
        Plan::CONNECTIONS_DEFAULT
    });
    if arguments.hold {
        let connect_per_s = arguments.connection_rate;
        return Ok((LoadModel::Held { connect_per_s }, connections));
    }
    let schedule = match (rate, &arguments.stages) {
        (Some(per_s), _) => Some(Schedule::constant_rate(process, per_s, seed)?),
        (None, Some(stages)) => Some(Schedule::staged(process, stages.0.clone(), seed)?),
        (None, None) => None,
    };
    if let Some(schedule) = schedule {
        let connections_max = arguments.max_connections.unwrap_or(connections);
        if connections_max < connections {
            bail!(
                "--max-connections {connections_max} is under the {connections} connections that \
                 are held from the start; raise it, or lower -c"
            );
        }
        let model = LoadModel::Open {
            schedule,
            connections_max,
            queue_max,
        };
        return Ok((model, connections));
    }
    if arguments.max_connections.is_some() {
        bail!(
            "--max-connections goes with --rate or --stages; else -c is the most connections at \
             once"
        );
    }
    if let Some(per_s) = arguments.connection_rate
        && plans_connections
    {
        let model = LoadModel::Sessions {
            schedule: Schedule::constant_rate(process, per_s, seed)?,
            queue_max,
        };
        return Ok((model, connections));
    }
    if arguments.arrivals.is_some() {
        bail!(
            "--arrivals is about planned arrivals; give --rate or --stages for requests, or \
             --connection-rate with --requests-per-connection or --sessions for connections"
        );
    }
    let model = LoadModel::Closed {
        connect_per_s: arguments.connection_rate,
    };
    Ok((model, connections))
}

/// The seed of all that is random: a fresh one, unless one was typed or other parts are to have the
/// same.
pub(crate) fn seed(arguments: &LoadArguments) -> u64 {
    let chosen = || match arguments.part.part {
        Some(_) => PART_SEED,
        None => fresh_seed(),
    };
    arguments.seed.unwrap_or_else(chosen)
}

/// A seed that the operating system chose, short enough to be typed again.
pub(crate) fn fresh_seed() -> u64 {
    RandomState::new().hash_one(()) >> u32::BITS
}

/// The backend that goes with the name.
pub(crate) fn backend_choice(name: BackendName) -> BackendChoice {
    match name {
        BackendName::Auto => BackendChoice::Auto,
        BackendName::Uring => BackendChoice::Uring,
        BackendName::Epoll => BackendChoice::Epoll,
    }
}

#[cfg(test)]
mod tests {
    use brunt_load::Watch;
    use clap::Parser;

    use super::*;
    use crate::args::Arguments;

    fn load(typed: &str) -> Result<Load> {
        let words = ["brunt"].into_iter().chain(typed.split_whitespace());
        Load::new(&Arguments::try_parse_from(words)?.load, None)
    }

    fn good(typed: &str) -> Load {
        load(typed).unwrap_or_else(|error| panic!("{typed}: {error}"))
    }

    #[test]
    fn the_model_follows_from_what_was_typed() {
        use LoadModel::{Closed, Held, Open, Sessions};
        for (typed, expected, connections) in [
            ("", "closed", 64),
            ("-c 3 --think-time 1s", "closed", 3),
            ("--connection-rate 100", "closed", 64),
            ("--requests-per-connection 7", "closed", 64),
            ("--hold", "held", 64),
            ("--hold -c 9 --connection-rate 100", "held", 9),
            ("-r 100", "open", 64),
            ("-r 100 --requests-per-connection 7", "open", 64),
            ("-r 100 --no-keepalive -c 5 --max-connections 5", "open", 5),
            ("--stages 10s:0..5k", "open", 64),
            (
                "--connection-rate 10 --requests-per-connection 7",
                "sessions",
                10_000,
            ),
            ("--connection-rate 10 --no-keepalive -c 9", "sessions", 9),
        ] {
            let load = good(typed);
            let kind = match load.model {
                Closed { .. } => "closed",
                Held { .. } => "held",
                Open { .. } => "open",
                Sessions { .. } => "sessions",
            };
            assert_eq!(
                (kind, load.connections.get()),
                (expected, connections),
                "{typed}"
            );
        }
    }

    #[test]
    fn lengths() {
        const S: u64 = 1_000_000_000;
        for (typed, duration_ns, requests, warmup_ns) in [
            ("-r 1", Some(10 * S), None, S),
            ("--hold", Some(10 * S), None, 0),
            ("--hold --warmup 2s", Some(10 * S), None, 2 * S),
            ("-r 1 -n 5", None, Some(5), 0),
            ("-r 1 -n 5 -d 3s --warmup 2s", Some(3 * S), Some(5), 2 * S),
            ("--stages 2s:1,1s:1..4", Some(3 * S), None, S),
            ("--stages 2s:1,1s:1..4 -n 5", Some(3 * S), Some(5), 0),
        ] {
            let load = good(typed);
            assert_eq!(load.stop.duration_ns, duration_ns, "{typed}");
            assert_eq!(load.stop.requests, requests, "{typed}");
            assert_eq!(load.warmup_ns, warmup_ns, "{typed}");
        }
    }

    #[test]
    fn a_seed_that_was_not_typed_is_fresh_and_short() {
        let seed = |typed: &str| good(typed).model.schedule().expect("there is one").seed();
        assert_eq!(seed("-r 1 --seed 18446744073709551615"), u64::MAX);
        let seeds: Vec<_> = (0..4).map(|_| seed("-r 1")).collect();
        assert!(
            seeds.iter().all(|&seed| seed <= u32::MAX.into()),
            "{seeds:?}"
        );
        assert!(seeds.iter().any(|&seed| seed != seeds[0]), "{seeds:?}");
    }

    fn plan(typed: &str) -> Plan {
        let words = ["brunt"].into_iter().chain(typed.split_whitespace());
        let arguments = Arguments::try_parse_from(words).expect(typed).load;
        let target = Target::parse("http://host/", None).expect("it is one");
        let load = Load::new(&arguments, Some(&target)).expect(typed);
        load.plan(&arguments, target, NonZeroU32::MIN, None)
    }

    #[test]
    fn evidence_is_what_was_typed() {
        let default = plan("");
        assert_eq!(default.watch, Watch::Auto);
        assert_eq!(
            (default.server_counter, default.link_bits_per_s),
            (None, None)
        );
        assert_eq!(plan("--watch off").watch, Watch::Off);
        assert_eq!(plan("--watch 17").watch, Watch::Process(17));
        let counter = plan("--verify-url host/status#requests").server_counter;
        assert_eq!(
            counter.and_then(|counter| counter.path).as_deref(),
            Some("requests")
        );
        let link = plan("--link-speed 2.5gbit").link_bits_per_s;
        assert_eq!(link, Some(2_500_000_000));
    }

    #[test]
    fn evidence_that_cannot_be_had() {
        for (typed, words) in [
            ("--watch 0", "not a process id"),
            ("--verify-url http://#requests", "not a URL"),
            ("--link-speed fast", "not a link speed"),
        ] {
            let error = load(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{typed}: {error}");
        }
    }

    #[test]
    fn contradictions() {
        for (typed, words) in [
            ("--arrivals poisson", "--arrivals"),
            ("--connection-rate 5 --arrivals poisson", "--arrivals"),
            ("--seed 1", "--seed"),
            ("--max-connections 100", "--max-connections"),
            ("-r 5 -c 10 --max-connections 9", "--max-connections 9"),
            ("-r 5 --stages 1s:5", "--stages"),
            ("-r 5 --connection-rate 5", "--connection-rate"),
            ("--stages 1s:5 --connection-rate 5", "--connection-rate"),
            ("--stages 1s:5 -d 1s", "--duration"),
            ("-r 5 --think-time 1s", "--think-time"),
            ("--stages 1s:5 --think-time 1s", "--think-time"),
        ] {
            let error = load(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{typed}: {error}");
        }
    }
}
