//! From h2load's options to a plan of brunt's: what is requested, when, and over which TLS.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_load::{
    ArrivalProcess, HttpChoice, LoadModel, Plan, ProtocolSpec, RequestOrder, RequestSet,
    RequestSpec, Reuse, Schedule, Stage, Target,
};
use brunt_record::RequestLog;

use super::options::{H2loadOptions, error, is_absolute, path_of};
use crate::libraries::{SECOND_NS, at_least_1};
use crate::{Ending, request};

/// h2load waits for ever.
const TIMEOUT_NS: u64 = 3_600 * SECOND_NS;
/// What is in flight when the time is over is waited for that long.
const DRAIN_LIMIT_NS: u64 = SECOND_NS;
/// Requests or connections that are due and wait, at most.
const QUEUE_MAX: NonZeroU32 = NonZeroU32::new(1_000_000).unwrap();
/// Requests of a script that are due at one instant follow each other so fast, per second.
const BURST_PER_S: f64 = 1e6;
/// How long each of them takes at that rate, nanoseconds.
const BURST_GAP_NS: u64 = 1_000;
const AGENT: (&str, &str) = ("user-agent", "h2load nghttp2/1.52.0");

impl H2loadOptions {
    /// The plan that does what the command line asks for, with what it requests and the content of
    /// its body file, where it has one.
    ///
    /// # Errors
    ///
    /// There is no such load.
    pub fn plan(&self, uris: &Uris, data: Option<&[u8]>) -> Result<Plan, Ending> {
        let target = self.target(uris)?;
        let is_secure = target.scheme.is_secure();
        let http = if is_secure {
            self.secured
        } else {
            self.clear_text
        };
        if self.secured == HttpChoice::HTTP3 && http != HttpChoice::HTTP3 {
            return Err(error("brunt: HTTP/3 needs an https URI"));
        }
        let mut requests = Vec::with_capacity(uris.paths.len());
        for path in &uris.paths {
            requests.push(self.request(&target, http, path, data)?);
        }
        let set = match requests.len() {
            1 => requests.pop().map(RequestSet::one),
            _ => RequestSet::of(requests, RequestOrder::ConnectionTurns),
        };
        let set = set.ok_or_else(|| error("brunt: too many URIs"))?;
        let mut plan = Plan::bare(target, set);
        plan.load.connections = at_least_1(self.clients);
        plan.workers.count = at_least_1(self.threads);
        plan.connection.protocol = http.into();
        plan.connection.tls = self.tls.clone();
        plan.connection.tls.server_name = self.server_name(uris)?;
        (plan.traffic.pipeline, plan.traffic.streams) = self.depths(http);
        if [HttpChoice::AUTO, HttpChoice::HTTP2].contains(&http) {
            plan.connection.http2 = self.http2;
        }
        let is_timed = self.duration_ns.is_some();
        plan.load.stop.duration_ns = self.duration_ns;
        if !is_timed {
            plan.load.stop.requests = Some(self.requests_in_all(uris.paths.len()));
            plan.traffic.has_equal_parts = self.rate.is_none();
        }
        plan.observation.logged_requests_max = RequestLog::REQUESTS_MAX;
        // Runs by count have none.
        plan.load.warmup_ns = if is_timed { self.warmup_ns } else { 0 };
        plan.limits.timeout_ns = self.timeout_ns();
        plan.load.drain_limit_ns = if is_timed {
            DRAIN_LIMIT_NS
        } else {
            plan.limits.timeout_ns
        };
        if let Some(rate) = self.rate {
            plan.load.model = LoadModel::Sessions {
                schedule: self.connection_schedule(rate)?,
                queue_max: QUEUE_MAX,
            };
            plan.traffic.reuse = Reuse::Requests(self.requests_each());
        } else if let Some(schedule) = self.request_schedule(uris)? {
            plan.load.stop.duration_ns = plan.load.stop.duration_ns.or(schedule.duration_ns());
            plan.load.model = LoadModel::Open {
                schedule,
                connections_max: plan.load.connections,
                queue_max: QUEUE_MAX,
            };
        }
        Ok(plan)
    }

    /// Where connections go, with the name of the server that is asked.
    fn target(&self, uris: &Uris) -> Result<Target, Ending> {
        let socket = self
            .base
            .as_deref()
            .and_then(|base| base.strip_prefix("unix:"));
        let asked = named(&uris.base, socket)?;
        let Some((host, port)) = self.connect_to.as_ref().filter(|_| socket.is_none()) else {
            return Ok(asked);
        };
        let shown = request::bracketed(host);
        let port = port.unwrap_or(asked.port);
        let url = format!("{}://{shown}:{port}{}", asked.scheme.name(), asked.path);
        Ok(Target {
            authority: asked.authority,
            ..named(&url, None)?
        })
    }

    /// The name to ask for in the handshake, where it is not the host that connections go to.
    fn server_name(&self, uris: &Uris) -> Result<Option<String>, Ending> {
        Ok(match (&self.tls.server_name, &self.connect_to) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(_)) => Some(named(&uris.base, None)?.host),
            (None, None) => None,
        })
    }

    /// Requests in flight per connection over HTTP/1.1 and in streams, of which those count that
    /// may be spoken. Over HTTP/1.1 a body is not pipelined.
    fn depths(&self, http: HttpChoice) -> (NonZeroU32, NonZeroU32) {
        let protocol = ProtocolSpec::from(http);
        let depth_over = |is_in_order| {
            let mut protocols = protocol.protocols().iter();
            let is_spoken = protocols.any(|protocol| protocol.is_in_order == is_in_order);
            at_least_1(if is_spoken { self.streams } else { 1 })
        };
        let pipelined = match self.data {
            Some(_) => NonZeroU32::MIN,
            None => depth_over(true),
        };
        (pipelined, depth_over(false))
    }

    /// Limit of a request. Where the run is by count, a connection that has sent its last request
    /// has a limit of its own.
    fn timeout_ns(&self) -> u64 {
        let is_timed = self.duration_ns.is_some();
        let last = self.active_timeout_ns.filter(|_| !is_timed);
        let limits = [self.inactivity_timeout_ns, last];
        limits.into_iter().flatten().min().unwrap_or(TIMEOUT_NS)
    }

    fn connection_schedule(&self, per_period: u64) -> Result<Schedule, Ending> {
        let per_s = per_period as f64 * SECOND_NS as f64 / self.period_ns as f64;
        Schedule::constant_rate(ArrivalProcess::Constant, per_s, 0).map_err(Ending::of_brunt)
    }

    /// Requests of each connection, where those are made at a rate.
    fn requests_each(&self) -> NonZeroU64 {
        let each = self.requests.unwrap_or(1).div_ceil(self.clients);
        NonZeroU64::new(each).unwrap_or(NonZeroU64::MIN)
    }

    fn request_schedule(&self, uris: &Uris) -> Result<Option<Schedule>, Ending> {
        let stages = self.stages(uris);
        // Of all connections together.
        let per_s = self.rps.map(|per_s| per_s * self.clients as f64);
        let schedule = match (per_s, stages.is_empty()) {
            (Some(per_s), _) => Schedule::constant_rate(ArrivalProcess::Constant, per_s, 0),
            (None, false) => Schedule::staged(ArrivalProcess::Constant, stages, 0),
            (None, true) => return Ok(None),
        };
        schedule.map(Some).map_err(Ending::of_brunt)
    }

    /// The stages of a script with times: requests in bursts, one for each instant, and silence
    /// between them, but not before the first. Arrival k is due when k arrivals are: the first
    /// burst ends half a gap early, so that the first arrival of each burst is due in it.
    fn stages(&self, uris: &Uris) -> Vec<Stage> {
        let stage = |duration_ns, per_s| Stage {
            duration_ns,
            from_per_s: per_s,
            to_per_s: per_s,
        };
        let (mut stages, mut over_ns) = (Vec::new(), 0);
        let begin_ns = uris.due_ns.first().copied().unwrap_or_default();
        for due in uris.due_ns.chunk_by(|one, other| other <= one) {
            let due_ns = due.first().map_or(0, |due_ns| due_ns - begin_ns);
            let mut burst_ns = due.len() as u64 * self.clients * BURST_GAP_NS;
            if stages.is_empty() {
                burst_ns -= BURST_GAP_NS / 2;
            } else if due_ns > over_ns {
                stages.push(stage(due_ns - over_ns, 0.0));
                over_ns = due_ns;
            }
            stages.push(stage(burst_ns, BURST_PER_S));
            over_ns += burst_ns;
        }
        stages
    }

    fn request(
        &self,
        target: &Target,
        http: HttpChoice,
        path: &str,
        data: Option<&[u8]>,
    ) -> Result<RequestSpec, Ending> {
        let spec = RequestSpec {
            method: self.method(),
            headers: self.fields(target)?,
            body: data.unwrap_or_default().to_vec(),
            ..RequestSpec::get(path)
        };
        if http != HttpChoice::HTTP1 || self.rate.is_none() {
            return Ok(spec);
        }
        // The last request of a connection would ask the server to close it.
        let mut fields = spec.headers;
        if !fields.iter().any(|(name, _)| name == "Host") {
            fields.insert(0, ("Host".to_owned(), target.authority.clone()));
        }
        if let Some(data) = data {
            fields.push(("Content-Length".to_owned(), data.len().to_string()));
        }
        request::request(&spec.method, path, &fields, data.unwrap_or_default())
            .map_err(Ending::of_brunt)
    }

    /// The method: that of `-H :method:`, else by whether there is a body.
    fn method(&self) -> String {
        let typed = self.headers.iter().rfind(|(name, _)| name == ":method");
        let usual = if self.data.is_some() { "POST" } else { "GET" };
        typed.map_or(usual, |(_, method)| method).to_owned()
    }

    /// Header fields beside those that every request has. Typed ones follow h2load's own, or
    /// replace them.
    fn fields(&self, target: &Target) -> Result<Vec<(String, String)>, Ending> {
        let mut fields = vec![(AGENT.0.to_owned(), AGENT.1.to_owned())];
        let mut host = None;
        for (name, value) in &self.headers {
            match name.as_str() {
                "host" | ":authority" => host = Some(value),
                name if name == AGENT.0 => fields[0].1.clone_from(value),
                ":method" => {}
                ":scheme" if value == target.scheme.name() => {}
                pseudo if pseudo.starts_with(':') => {
                    let reason = "brunt makes it from the URI; leave it out";
                    return Err(Ending::of_brunt(format!("-H {pseudo}: {reason}")));
                }
                _ => fields.push((name.clone(), value.clone())),
            }
        }
        // Where connections go elsewhere, the host of the URI is asked for all the same.
        let host = host.or(self.connect_to.as_ref().map(|_| &target.authority));
        if let Some(host) = host {
            fields.insert(0, ("Host".to_owned(), host.clone()));
        }
        Ok(fields)
    }
}

fn named(uri: &str, socket: Option<&str>) -> Result<Target, Ending> {
    let target = Target::parse(uri, socket.map(Into::into));
    target.map_err(Ending::of_brunt)
}

/// What is requested, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uris {
    /// The first one, or the base in its place: scheme, host and port of all.
    pub base: String,
    /// Path and query of each.
    pub paths: Vec<String>,
    /// When each request of a script with times is due, nanoseconds after its connection is open;
    /// empty without such a script.
    pub due_ns: Vec<u64>,
    /// Warnings for standard error: whole lines, or empty.
    pub warning: String,
}

impl H2loadOptions {
    /// The URIs, with the text of the input file or script where there is one.
    ///
    /// # Errors
    ///
    /// One is no URI, or there is none.
    pub fn uris(&self, text: Option<&str>) -> Result<Uris, Ending> {
        let mut uris = Uris::default();
        let typed: Vec<&str> = match text {
            Some(text) if self.timing_script.is_some() => uris.read_script(text)?,
            Some(text) => text.lines().collect(),
            None => self.uris.iter().map(String::as_str).collect(),
        };
        let first = typed.first().ok_or_else(|| error("no URI available"))?;
        uris.base = match self.base.as_deref() {
            Some(base) if !base.starts_with("unix:") => base.to_owned(),
            _ if is_absolute(first) => (*first).to_owned(),
            _ => return Err(invalid(first)),
        };
        for uri in typed {
            uris.paths.push(path_of(uri).ok_or_else(|| invalid(uri))?);
        }
        Ok(uris)
    }
}

impl Uris {
    /// Reads lines of milliseconds, a tabulator and a URI.
    fn read_script<'a>(&mut self, text: &'a str) -> Result<Vec<&'a str>, Ending> {
        let mut uris = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.is_empty() {
                let line =
                    format!("Empty line detected at line {number}. Ignoring and continuing.\n");
                self.warning.push_str(&line);
                continue;
            }
            let Some((typed, uri)) = line.split_once('\t') else {
                let what = "Invalid line format detected, no tab character at line";
                return Err(error(&format!("{what} {number}. \n\t{line}")));
            };
            let ms = typed.trim().parse::<f64>().ok();
            let Some(ms) = ms.filter(|ms| ms.is_finite() && (0.0..=1e12).contains(ms)) else {
                let line = format!("Time value error at line {number}. \n\tvalue = {typed}");
                return Err(error(&line));
            };
            self.due_ns.push((ms * 1e6) as u64);
            uris.push(uri);
        }
        Ok(uris)
    }
}

fn invalid(uri: &str) -> Ending {
    error(&format!("invalid URI: {uri}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn plan(line: &str, data: Option<&[u8]>) -> Plan {
        let words = words(line);
        let options = H2loadOptions::parse(&words).expect(line);
        let script = options.timing_script.is_some();
        let uris = options.uris(script.then_some("0\thttp://h/a\n20\t/b\n20\t/c\n"));
        options.plan(&uris.expect(line), data).expect(line)
    }

    #[test]
    fn the_depth_is_that_of_what_is_spoken() {
        for (line, http, depths) in [
            ("-m 9 http://h/", HttpChoice::HTTP2, (1, 9)),
            ("-m 9 -d f http://h/", HttpChoice::HTTP2, (1, 9)),
            ("-m 9 -p http/1.1 http://h/", HttpChoice::HTTP1, (9, 1)),
            ("-m 9 --h1 https://h/", HttpChoice::HTTP1, (9, 1)),
            ("-m 9 --h1 -d f https://h/", HttpChoice::HTTP1, (1, 1)),
            ("-m 9 https://h/", HttpChoice::AUTO, (9, 9)),
            ("-m 9 -d f https://h/", HttpChoice::AUTO, (1, 9)),
            ("-m 9 --npn-list h2 https://h/", HttpChoice::HTTP2, (1, 9)),
            ("-m 9 --alpn-list=h3 https://h/", HttpChoice::HTTP3, (1, 9)),
            ("-m 9 --h3 -d f https://h/", HttpChoice::HTTP3, (1, 9)),
            (
                "-m 9 --npn-list http/1.1 http://h/",
                HttpChoice::HTTP2,
                (1, 9),
            ),
        ] {
            let plan = plan(line, line.contains("-d").then_some(b"x"));
            assert_eq!(plan.connection.protocol, http.into(), "{line}");
            let found = (plan.traffic.pipeline.get(), plan.traffic.streams.get());
            assert_eq!(found, depths, "{line}");
        }
    }

    #[test]
    fn http_3_is_secure() {
        let words = ["--h3", "http://h/"].map(str::to_owned);
        let options = H2loadOptions::parse(&words).expect("good");
        let uris = options.uris(None).expect("good");
        let ending = options.plan(&uris, None).expect_err("in clear text");
        assert_eq!(ending.stderr, "brunt: HTTP/3 needs an https URI\n");
    }

    #[test]
    fn the_plan_is_what_the_options_say() {
        let closed = plan("-n 100 -c 4 -t 2 -m 10 http://h/a http://other/b /d", None);
        assert_eq!(
            (closed.load.connections.get(), closed.traffic.streams.get()),
            (4, 10)
        );
        assert_eq!(
            (closed.load.stop.requests, closed.traffic.has_equal_parts),
            (Some(100), true)
        );
        let requests = closed.traffic.requests.requests();
        let paths: Vec<_> = requests.map(|request| request.path).collect();
        assert_eq!(paths, ["/a", "/b", "/d"]);
        assert_eq!(
            closed.traffic.requests.order(),
            RequestOrder::ConnectionTurns
        );
        let timed = plan("-D 5 --warm-up-time 1 -c 2 -T 1 -w 16 https://h/", None);
        assert_eq!(timed.load.warmup_ns, SECOND_NS);
        assert_eq!(timed.load.stop.duration_ns, Some(5 * SECOND_NS));
        assert_eq!(
            (timed.limits.timeout_ns, timed.traffic.has_equal_parts),
            (TIMEOUT_NS, false)
        );
        assert_eq!(timed.connection.http2.stream_window_bytes, 65_535);
        let limited = plan("-T 2 -N 1 https://h/", None);
        assert_eq!(limited.limits.timeout_ns, SECOND_NS);
        let paced = plan("-n 10 -c 4 -r 2 --rate-period 500ms http://h/", None);
        assert_eq!(
            paced.load.model.schedule().map(Schedule::rate_max),
            Some(4.0)
        );
        assert_eq!(
            paced.traffic.reuse,
            Reuse::Requests(NonZeroU64::new(3).expect("not 0"))
        );
        let rated = plan("-n 10 -c 4 --rps 2.5 http://h/", None);
        assert_eq!(
            rated.load.model.schedule().map(Schedule::rate_max),
            Some(10.0)
        );
        let to = plan("--connect-to [::1]:9 https://h:81/", None).target;
        assert_eq!((&*to.host, to.port, &*to.authority), ("::1", 9, "h:81"));
        let to = plan("--connect-to x https://h/", None);
        assert_eq!((&*to.target.host, to.target.port), ("x", 443));
        assert_eq!(to.connection.tls.server_name.as_deref(), Some("h"));
    }

    #[test]
    fn scripts_with_times_are_bursts() {
        let scripted = plan("-c 2 --timing-script-file f", None);
        assert_eq!(scripted.load.stop.requests, Some(6));
        let stages = scripted
            .load
            .model
            .schedule()
            .expect("one")
            .stages()
            .to_vec();
        let of: Vec<_> = stages
            .iter()
            .map(|stage| (stage.duration_ns, stage.from_per_s))
            .collect();
        let expected = [(1_500, 1e6), (19_998_500, 0.0), (4_000, 1e6)];
        assert_eq!(of, expected);
    }

    fn uris(line: &str, text: Option<&str>) -> Result<Uris, Ending> {
        let words = words(line);
        H2loadOptions::parse(&words).expect(line).uris(text)
    }

    #[test]
    fn lines_of_a_file_are_uris() {
        let found = uris("-i f -B https://base:9", Some("http://h/a\n/b\n")).expect("good");
        assert_eq!(found.base, "https://base:9");
        assert_eq!(found.paths, ["/a", "/b"]);
        for (text, expected) in [
            ("http://h/\n\n/b", "invalid URI: \n"),
            ("http://h/a b\n", "invalid URI: http://h/a b\n"),
            ("", "no URI available\n"),
        ] {
            let ending = uris("-i f", Some(text)).expect_err(text);
            assert_eq!(ending.stderr, expected, "{text}");
        }
    }

    #[test]
    fn scripts_have_times() {
        let script = "0\thttp://h/a\n\n1.5\t/b\n";
        let found = uris("--timing-script-file f", Some(script)).expect("good");
        assert_eq!(found.due_ns, [0, 1_500_000]);
        assert_eq!(found.paths, ["/a", "/b"]);
        assert!(found.warning.starts_with("Empty line detected at line 2."));
        for (script, expected) in [
            ("http://h/", "Invalid line format detected, no tab"),
            (
                "-1\thttp://h/",
                "Time value error at line 1. \n\tvalue = -1\n",
            ),
            (
                "x\thttp://h/",
                "Time value error at line 1. \n\tvalue = x\n",
            ),
        ] {
            let ending = uris("--timing-script-file f", Some(script)).expect_err(script);
            assert!(ending.stderr.starts_with(expected), "{ending:?}");
        }
    }
}
