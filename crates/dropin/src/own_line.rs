//! The command line of brunt's own for a plan: every part of the plan is in it, or in a note.

use std::num::NonZeroU32;
use std::path::PathBuf;

use brunt_load::{
    ArrivalProcess, ClientIdentity, EarlyRequests, HttpChoice, LoadModel, MessageExchange,
    Placement, Plan, ReplyMatch, RequestOrder, RequestRef, RequestSpec, Reuse, Schedule, Scheme,
    SocketOptions, Spin, Spoken, Stage, Stop, Target, ThinkSpread, TlsSpec, TlsVersion,
    WebSocketExchange,
};
use brunt_proto::http1::Request;
use brunt_proto::http2::ClientSettings;
use brunt_proto::messages::escape;

use crate::shell;

/// Longer requests and messages are not typed.
const TYPED_BYTES_MAX: usize = 16 << 10;
/// Most requests of a list that the command line names one by one.
const TYPED_PATHS_MAX: usize = 1_000;

/// A command line of brunt's own that makes the same run as another tool's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The command line, for a shell, with its end.
    pub line: String,
    /// What no option of brunt's says, and what is better left to it; whole lines.
    pub notes: String,
}

/// What makes the requests, where it is not the plan's set of them.
#[derive(Clone, Debug, Default)]
pub(crate) enum Made {
    /// The set.
    #[default]
    Set,
    /// The set, with a body that is in this file.
    WithBody(PathBuf),
    /// The set, whose paths are lines of this file.
    Listed(PathBuf),
    /// Requests byte by byte, which are in these files.
    Raw(Vec<PathBuf>),
    /// A script with its arguments: the header fields are those of the set's first request.
    Script(PathBuf, Vec<String>),
    /// Sessions of a log, likewise.
    Sessions(PathBuf),
    /// The set's messages, as they are to be typed.
    Typed(Vec<String>),
}

/// The words of a command line, and the notes on it.
#[derive(Debug)]
pub(crate) struct OwnLine {
    words: Vec<String>,
    behind: Vec<String>,
    notes: Vec<String>,
}

impl OwnLine {
    /// The command line that makes the run of `plan`, on a machine with `cpus` CPUs.
    pub(crate) fn of(plan: &Plan, made: &Made, cpus: NonZeroU32) -> Self {
        // All of them: what is added to a plan is to be added here.
        let Plan {
            target,
            further_targets,
            requests: _,
            // What made says so.
            is_generated: _,
            model,
            connections,
            workers,
            placement,
            spoken,
            tls,
            pipeline,
            streams,
            http2,
            has_equal_parts,
            reuse,
            think_time_ns,
            think_spread,
            think_seed: _,
            sequence_offset: _,
            held_beside_bytes: _,
            stop,
            warmup_ns,
            halves_warmup,
            extends,
            keeps_errors,
            // What a report is made of is not a part of the load.
            logged_requests_max: _,
            logged_responses_max: _,
            timeout_ns,
            setup_timeout_ns,
            connect_timeout_ns,
            drain_limit_ns,
            // Nobody but brunt has these.
            sends_again: _,
            backend: _,
            stamps: _,
            observe: _,
            watch: _,
            server_counter: _,
            link_bits_per_s: _,
            sockets,
            source_addresses,
            spin,
            oversubscribe,
        } = plan;
        let usual = Plan::new(target.clone(), plan.requests.clone());
        let mut line = Self {
            words: vec!["brunt".to_owned()],
            behind: Vec::new(),
            notes: Vec::new(),
        };
        if target.scheme.is_of_messages() {
            line.word("tcp");
        }
        line.option("-c", connections);
        if matches!(placement, Placement::Given) {
            line.option("-t", workers);
            line.word_if(*oversubscribe && *workers > cpus, "--oversubscribe");
        }
        line.model(model, *connections);
        line.stop(stop, model, *warmup_ns, *halves_warmup);
        line.word_if(*extends, "--extend");
        line.word_if(*keeps_errors, "--show-errors");
        line.duration_unless("-T", *timeout_ns, usual.timeout_ns);
        line.duration_unless("--drain", *drain_limit_ns, *timeout_ns);
        if let Some(ns) = setup_timeout_ns {
            line.option("--setup-timeout", &duration(*ns));
        }
        line.duration_unless(
            "--connect-timeout",
            *connect_timeout_ns,
            usual.connect_timeout_ns,
        );
        // Sessions have bursts of their own.
        let is_asked = !matches!(made, Made::Sessions(_));
        if *pipeline > NonZeroU32::MIN && is_asked {
            line.option(target.scheme.protocol().depth.option, pipeline);
        }
        if *streams > NonZeroU32::MIN {
            line.option("--streams", streams);
        }
        line.http2(http2);
        line.word_if(*has_equal_parts, "--equal-parts");
        match reuse {
            Reuse::Unlimited => {}
            Reuse::Requests(count) if count.get() == 1 => line.word("--no-keepalive"),
            Reuse::Requests(count) => line.option("--requests-per-connection", count),
        }
        if *think_time_ns > 0 {
            let spread = match think_spread {
                ThinkSpread::Fixed => "",
                ThinkSpread::Exponential => ",exp",
                ThinkSpread::Uniform => ",uniform",
            };
            line.option(
                "--think-time",
                &format!("{}{spread}", duration(*think_time_ns)),
            );
        }
        line.sockets(sockets);
        for address in source_addresses {
            line.option("--source-address", address);
        }
        match spin {
            Spin::Auto => {}
            Spin::On => line.option("--spin", &"on"),
            Spin::Off => line.option("--spin", &"off"),
        }
        line.spoken(spoken, plan, made);
        line.tls(tls, target);
        if let Some(path) = &target.unix_socket {
            line.option("--unix-socket", &path.display());
        }
        if let Made::Script(path, arguments) = made {
            line.option("-s", &path.display());
            line.behind.clone_from(arguments);
        }
        let is_list = plan.requests.count() > 1;
        match plan.requests.order() {
            RequestOrder::ConnectionTurns if is_list => line.option("--order", &"connection"),
            RequestOrder::Random { .. } => line.option("--order", &"random"),
            RequestOrder::Turns | RequestOrder::ConnectionTurns => {}
        }
        let path = line.path(plan, made);
        line.word(&address(target, &path));
        if !further_targets.is_empty() {
            line.note("brunt loads one server at a time: run one for each of the others.");
        }
        line
    }

    /// Adds an option that takes no value, where it is given.
    pub(crate) fn with_word_if(mut self, is_given: bool, option: &str) -> Self {
        if is_given {
            self.words.insert(self.words.len() - 1, option.to_owned());
        }
        self
    }

    /// Adds a note.
    pub(crate) fn noting(mut self, note: &str) -> Self {
        self.note(note);
        self
    }

    /// Adds a note where it is true.
    pub(crate) fn noting_if(self, is_true: bool, note: &str) -> Self {
        if is_true { self.noting(note) } else { self }
    }

    /// The command line with its notes.
    pub(crate) fn explanation(mut self) -> Explanation {
        if !self.behind.is_empty() {
            self.words.push("--".to_owned());
            self.words.append(&mut self.behind);
        }
        let notes = self.notes.iter().map(|note| format!("brunt: {note}\n"));
        Explanation {
            line: shell::line(&self.words),
            notes: notes.collect(),
        }
    }

    fn word(&mut self, word: &str) {
        self.words.push(word.to_owned());
    }

    fn word_if(&mut self, is_given: bool, word: &str) {
        if is_given {
            self.word(word);
        }
    }

    fn option(&mut self, option: &str, value: &dyn std::fmt::Display) {
        self.words.extend([option.to_owned(), value.to_string()]);
    }

    fn duration_unless(&mut self, option: &str, ns: u64, usual_ns: u64) {
        if ns != usual_ns {
            self.option(option, &duration(ns));
        }
    }

    fn note(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }

    fn model(&mut self, model: &LoadModel, connections: NonZeroU32) {
        match model {
            LoadModel::Closed { connect_per_s } | LoadModel::Held { connect_per_s } => {
                self.word_if(model.is_held(), "--hold");
                if let Some(per_s) = connect_per_s {
                    self.option("--connection-rate", per_s);
                }
            }
            LoadModel::Open {
                schedule,
                connections_max,
                queue_max,
            } => {
                match schedule.stages() {
                    several @ [_, ..] => self.stages(several),
                    [] => self.option("-r", &schedule.rate_at(0)),
                }
                self.arrivals(schedule);
                if *connections_max != connections {
                    self.option("--max-connections", connections_max);
                }
                self.waiting(*queue_max);
            }
            LoadModel::Sessions {
                schedule,
                queue_max,
            } => {
                self.option("--connection-rate", &schedule.rate_at(0));
                self.arrivals(schedule);
                self.waiting(*queue_max);
                if schedule.stages().len() > 1 {
                    self.note("--connection-rate has one rate, here the first of several.");
                }
            }
        }
    }

    fn stages(&mut self, stages: &[Stage]) {
        let stages = stages.iter().map(|stage| {
            let (length, from, to) = (
                duration(stage.duration_ns),
                stage.from_per_s,
                stage.to_per_s,
            );
            if from == to {
                format!("{length}:{from}")
            } else {
                format!("{length}:{from}..{to}")
            }
        });
        let stages: Vec<String> = stages.collect();
        self.option("--stages", &stages.join(","));
    }

    fn arrivals(&mut self, schedule: &Schedule) {
        if schedule.process() != ArrivalProcess::Constant {
            self.option("--arrivals", &schedule.process());
            // The same instants each time.
            self.option("--seed", &schedule.seed());
        }
    }

    fn waiting(&mut self, queue_max: NonZeroU32) {
        if queue_max != Plan::QUEUE_DEFAULT {
            self.option("--queue", &queue_max);
        }
    }

    fn stop(&mut self, stop: &Stop, model: &LoadModel, warmup_ns: u64, halves_warmup: bool) {
        let Stop {
            duration_ns,
            requests,
        } = stop;
        if let Some(requests) = requests {
            self.option("-n", requests);
        }
        // Stages say how long they are.
        let of_stages_ns = model.schedule().and_then(Schedule::duration_ns);
        if let Some(ns) = duration_ns
            && of_stages_ns != Some(*ns)
        {
            self.option("-d", &duration(*ns));
        }
        let warms_up = requests.is_none() && !model.is_held();
        let usual_ns = if warms_up { Plan::WARMUP_NS_DEFAULT } else { 0 };
        self.duration_unless("--warmup", warmup_ns, usual_ns);
        self.word_if(warmup_ns > 0 && !halves_warmup, "--plain-warmup");
    }

    fn http2(&mut self, settings: &ClientSettings) {
        let usual = ClientSettings::default();
        let ClientSettings {
            stream_window_bytes,
            connection_window_bytes,
            frame_bytes_max,
            decoder_table_bytes,
            encoder_table_bytes,
        } = settings;
        for (option, bytes, usual) in [
            (
                "--h2-stream-window",
                stream_window_bytes,
                usual.stream_window_bytes,
            ),
            (
                "--h2-window",
                connection_window_bytes,
                usual.connection_window_bytes,
            ),
            ("--h2-frame", frame_bytes_max, usual.frame_bytes_max),
            ("--h2-table", decoder_table_bytes, usual.decoder_table_bytes),
            (
                "--h2-encoder-table",
                encoder_table_bytes,
                usual.encoder_table_bytes,
            ),
        ] {
            if *bytes != usual {
                self.option(option, bytes);
            }
        }
    }

    fn sockets(&mut self, sockets: &SocketOptions) {
        let SocketOptions {
            is_nodelay,
            send_buffer_bytes,
            receive_buffer_bytes,
            segment_bytes,
            congestion,
            paced_bytes_per_s: _,
            receive_bytes_min: _,
        } = sockets;
        if !is_nodelay {
            self.option("--nodelay", &"off");
        }
        for (option, bytes) in [
            ("--sndbuf", send_buffer_bytes),
            ("--rcvbuf", receive_buffer_bytes),
            ("--mss", segment_bytes),
        ] {
            if let Some(bytes) = bytes {
                self.option(option, bytes);
            }
        }
        if let Some(name) = congestion {
            self.option("--congestion", name);
        }
    }

    fn spoken(&mut self, spoken: &Spoken, plan: &Plan, made: &Made) {
        let is_secure = plan.target.scheme.is_secure();
        match spoken {
            Spoken::Http(http) => {
                let is_text = self.requests(plan, made);
                if let Some(option) = http.option() {
                    // In clear text, and of a text, it need not be said.
                    let is_implied = *http == HttpChoice::HTTP1 && (is_text || !is_secure);
                    self.word_if(!is_implied, option);
                }
            }
            Spoken::Messages(exchange) => self.exchange(exchange, plan, made),
            Spoken::WebSocket(exchange) => self.frames(exchange, plan, made),
            // The tools whose lines are written here make no other load.
            _ => self.note("this load has no command line here."),
        }
    }

    /// The path of the URL, which says only where to send what has its own.
    fn path(&self, plan: &Plan, made: &Made) -> String {
        let is_elsewhere = matches!(made, Made::Sessions(_) | Made::Listed(_))
            || self.words.iter().any(|it| it == RAW);
        match plan.requests.first() {
            Some(_) if is_elsewhere => "/".to_owned(),
            Some(spec) => spec.path.to_owned(),
            None => plan.target.path.clone(),
        }
    }

    /// What is requested; whether it is given byte by byte.
    fn requests(&mut self, plan: &Plan, made: &Made) -> bool {
        let Some(first) = plan.requests.first() else {
            return false;
        };
        match (made, plan.requests.count()) {
            (Made::Script(..), _) => self.fields(first.headers, &plan.target),
            (Made::Sessions(path), _) => {
                self.fields(first.headers, &plan.target);
                self.option("--sessions", &path.display());
            }
            (Made::Raw(files), _) => {
                for file in files {
                    self.option(RAW, &format!("@{}", file.display()));
                }
                return true;
            }
            (_, 1) => return self.request(&first.to_spec(), plan, made),
            _ => {
                let texts: Option<Vec<&[u8]>> =
                    plan.requests.requests().map(|spec| spec.text).collect();
                let text = texts.map(|texts| texts.concat());
                match text.filter(|text| text.len() <= TYPED_BYTES_MAX) {
                    Some(text) => {
                        self.option(RAW, &escape(&text));
                        return true;
                    }
                    None => self.paths(plan, made),
                }
            }
        }
        false
    }

    /// Requests that differ in their paths alone: the first one, whose path is that of the URL, and
    /// the paths of the others.
    fn paths(&mut self, plan: &Plan, made: &Made) {
        let Some(first) = plan.requests.first() else {
            return;
        };
        self.request(&first.to_spec(), plan, made);
        if let Made::Listed(file) = made {
            return self.option("--urls", &file.display());
        }
        let mut further = plan.requests.requests().skip(1);
        let is_like = |spec: RequestRef<'_>| {
            RequestRef {
                path: first.path,
                ..spec
            } == first
        };
        if further.len() > TYPED_PATHS_MAX || !further.all(is_like) {
            return self.note("several requests are for --urls FILE, a path per line.");
        }
        for spec in plan.requests.requests().skip(1) {
            self.option("--path", &spec.path);
        }
    }

    /// The one request, by its parts where they give the same bytes; whether it is given byte by
    /// byte.
    fn request(&mut self, spec: &RequestSpec, plan: &Plan, made: &Made) -> bool {
        let target = &plan.target;
        let RequestSpec {
            method,
            path: _,
            headers,
            body,
            text,
            // Other tools have them in files alone.
            placeholders: _,
        } = spec;
        let file = match made {
            Made::WithBody(path) => Some(path),
            _ => None,
        };
        let is_typed = file.is_some() || !body.is_empty();
        let body_text = std::str::from_utf8(body).ok();
        let body_text = body_text.filter(|text| !text.starts_with('@'));
        let has_parts = |text: &&Vec<u8>| {
            is_of_parts(text, spec, plan) && (file.is_some() || body_text.is_some())
        };
        if let Some(text) = text.as_ref().filter(|text| !has_parts(text)) {
            let head = &text[..text.len() - body.len()];
            self.option(RAW, &escape(if file.is_some() { head } else { text }));
            if let Some(path) = file {
                self.option("-b", &format!("@{}", path.display()));
            }
            return true;
        }
        let usual = if is_typed { "POST" } else { "GET" };
        if method != usual {
            self.option("-m", method);
        }
        match (file, body_text) {
            (Some(path), _) => self.option("-b", &format!("@{}", path.display())),
            (None, Some("")) => {}
            (None, Some(text)) => self.option("-b", &text),
            (None, None) => self.note("the body is for -b @FILE."),
        }
        self.fields(headers, target);
        false
    }

    /// Header fields; those that brunt makes likewise are left out.
    fn fields(&mut self, fields: &[(String, String)], target: &Target) {
        let authority = own_target(target, "/").map(|own| own.authority);
        for (place, (name, value)) in fields.iter().enumerate() {
            let is_own = place == 0 && name == "Host" && Some(value) == authority.as_ref();
            if !is_own {
                self.option("-H", &format!("{name}: {value}"));
            }
        }
    }

    fn exchange(&mut self, exchange: &MessageExchange, plan: &Plan, made: &Made) {
        let MessageExchange {
            reply,
            opening,
            seed: _,
        } = exchange;
        self.messages("-m", plan, made);
        if !plan.model.is_held() {
            self.option("--reply", reply);
        }
        if let Some(opening) = opening {
            if let Some(message) = opening.message.given() {
                self.option("--first", message);
            }
            self.option("--first-reply", &opening.reply);
        }
    }

    fn frames(&mut self, exchange: &WebSocketExchange, plan: &Plan, made: &Made) {
        let WebSocketExchange {
            headers,
            subprotocols,
            is_binary,
            replies,
            matching,
            is_strict,
            has_zero_masks,
            // No other tool has it.
            opening: _,
            ping_interval_ns,
            seed: _,
        } = exchange;
        self.messages("--message", plan, made);
        for (name, value) in headers.given().into_iter().flatten() {
            self.option("-H", &format!("{name}: {value}"));
        }
        for name in subprotocols {
            self.option("--subprotocol", name);
        }
        self.word_if(*is_binary, "--binary");
        if *replies != 1 {
            self.option("--replies", replies);
        }
        match matching {
            ReplyMatch::Any => {}
            ReplyMatch::Echo => self.option("--reply-match", &"echo"),
            ReplyMatch::Containing(pattern) => {
                let text = escape(pattern.bytes());
                self.option("--reply-match", &format!("contains={text}"));
            }
        }
        self.word_if(*is_strict, "--strict");
        if *has_zero_masks {
            self.option("--mask", &"zero");
        }
        if let Some(ns) = ping_interval_ns {
            self.option("--ping", &duration(*ns));
        }
    }

    fn messages(&mut self, option: &str, plan: &Plan, made: &Made) {
        if let Made::Typed(messages) = made {
            return messages.iter().for_each(|text| self.option(option, text));
        }
        for message in plan.requests.messages() {
            self.option(option, &message.template);
        }
    }

    fn tls(&mut self, tls: &TlsSpec, target: &Target) {
        if !target.scheme.is_secure() {
            return;
        }
        let TlsSpec {
            server_name,
            asks_by_name,
            roots,
            roots_der: _,
            identity,
            insecure,
            version_min,
            version_max,
            cipher_suites,
            groups,
            resumption,
            early_data,
        } = tls;
        self.word_if(target.scheme == Scheme::Tls, "--tls");
        self.word_if(*insecure, "--insecure");
        self.word_if(!asks_by_name, "--no-sni");
        if let Some(name) = server_name.as_ref().filter(|name| **name != target.host) {
            self.option("--sni", name);
        }
        if let Some(file) = roots {
            self.option("--cacert", &file.name());
        }
        if let Some(ClientIdentity { certificate, key }) = identity {
            self.option("--cert", &certificate.name());
            if key != certificate {
                self.option("--key", &key.name());
            }
        }
        if *version_min != TlsVersion::Tls12 {
            self.option("--tls-min", &"1.3");
        }
        if *version_max != TlsVersion::Tls13 {
            self.option("--tls-max", &"1.2");
        }
        for (option, names) in [("--tls-ciphers", cipher_suites), ("--tls-groups", groups)] {
            if !names.is_empty() {
                self.option(option, &names.join(","));
            }
        }
        self.word_if(*resumption, "--tls-resume");
        self.word_if(*early_data == EarlyRequests::Safe, "--early-data");
        self.word_if(*early_data == EarlyRequests::Any, "--early-data=any");
    }
}

const RAW: &str = "--raw";

/// Whether brunt makes this text of the request's parts, with the header fields that are typed.
fn is_of_parts(text: &[u8], spec: &RequestSpec, plan: &Plan) -> bool {
    let Some(own) = own_target(&plan.target, &spec.path) else {
        return false;
    };
    let is_plain =
        |(_, value): &(String, String)| value == value.trim() && !value.contains("@env:");
    if own.path != spec.path || !spec.headers.iter().all(is_plain) {
        return false;
    }
    // The last request of a connection may ask for its end.
    let closes: &[bool] = match plan.reuse {
        Reuse::Unlimited => &[false],
        Reuse::Requests(count) if count.get() == 1 => &[true],
        Reuse::Requests(_) => &[false, true],
    };
    closes.iter().all(|&close| {
        let request = Request {
            method: &spec.method,
            path: &spec.path,
            host: &own.authority,
            headers: &spec.headers,
            body: &spec.body,
            close,
        };
        request.encode().is_ok_and(|made| made == text)
    })
}

/// The target as its address alone gives it.
fn own_target(target: &Target, path: &str) -> Option<Target> {
    Target::parse(&address(target, path), None).ok()
}

/// What is typed for a target with this path.
fn address(target: &Target, path: &str) -> String {
    let host = match target.host.contains(':') {
        true => format!("[{}]", target.host),
        false => target.host.clone(),
    };
    let scheme = target.scheme.name();
    if target.scheme.is_of_messages() {
        return format!("{host}:{}", target.port);
    }
    let own_port = if target.scheme.is_secure() { 443 } else { 80 };
    match target.port == own_port {
        true => format!("{scheme}://{host}{path}"),
        false => format!("{scheme}://{host}:{}{path}", target.port),
    }
}

/// A duration as it may be typed.
pub(crate) fn duration(ns: u64) -> String {
    for (unit, unit_ns) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if ns.is_multiple_of(unit_ns) {
            return format!("{}{unit}", ns / unit_ns);
        }
    }
    format!("{ns}ns")
}
