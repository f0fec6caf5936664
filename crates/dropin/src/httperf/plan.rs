//! From httperf's options to a plan of brunt's, and its requests, byte for byte.

use std::sync::{Arc, Mutex};

use brunt_load::sessions::{
    CallOrder, LoggedSteps, Replay, SessionFigures, SessionLog, SessionReplay, SessionSource,
    SessionTexts, UniformSessions, WorkingSet,
};
use brunt_load::{
    ArrivalProcess, HttpChoice, LoadModel, Plan, RequestGenerator, RequestSet, Schedule, Spin,
    Stage, Target,
};

use super::options::{HttperfOptions, Period, Uris, Workload};
use crate::Ending;
use crate::ending::ensure;
use crate::libraries::{SECOND_NS, at_least_1};
use crate::request::only_request;

/// Connections at once, at most; those above it wait.
pub(super) const CONNECTIONS_MAX: u32 = 20_000;
/// What begins one after the other is due so fast: it waits for the one before.
const AT_ONCE_PER_S: f64 = 1e6;
/// How long schedules last that end by their counts, nanoseconds: nearly ten years.
const ENDLESS_NS: u64 = Schedule::DURATION_MAX_NS / 2;
/// Requests at once, at most.
const BURST_MAX: u32 = 10_000;

/// A plan with what makes its requests.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Makes the requests.
    pub generator: Box<dyn RequestGenerator>,
    /// Where the figures of the sessions are left when the generator is dropped.
    pub place: Arc<Mutex<SessionFigures>>,
    /// What is said about the requests; whole lines, or empty.
    pub warning: String,
}

impl HttperfOptions {
    /// The plan that does what the command line asks for.
    ///
    /// # Errors
    ///
    /// There is no such load.
    pub fn plan(&self, files: &Files) -> Result<Planned, Ending> {
        let (texts, warning) = self.texts(files)?;
        let (source, depth) = self.source(files, &texts)?;
        let first = only_request(texts.bytes(0))
            .map_err(|why| Ending::of_brunt(format!("the request cannot be sent: {why}")))?;
        let scheme = if self.is_secure { "https" } else { "http" };
        let url = format!("{scheme}://{}:{}/", self.server, self.port());
        let target = Target::parse(&url, None).map_err(Ending::of_brunt)?;
        let mut plan = Plan::bare(target, RequestSet::one(first));
        plan.load.model = self.model()?;
        let at_once = match self.period {
            Period::Sequential => 1,
            _ => self.sessions().min(CONNECTIONS_MAX),
        };
        plan.load.connections = at_least_1(at_once.into());
        plan.traffic.pipeline = at_least_1(depth.into());
        plan.connection.protocol = HttpChoice::HTTP1.into();
        plan.connection.tls.insecure = true;
        plan.connection.tls.asks_by_name = false;
        plan.connection.tls.resumption = self.has_sessions() && !self.no_resumption;
        plan.limits.timeout_ns = time_limit(self.timeout_s, self.think_timeout_s);
        plan.limits.connect_timeout_ns = time_limit(self.timeout_s, 0.0);
        plan.load.drain_limit_ns = SECOND_NS;
        // httperf has but a busy loop, which is what its users want to be rid of.
        plan.workers.spin = Spin::Off;
        let replay = Replay {
            sessions: Some(self.sessions().into()),
            reconnects: self.has_sessions(),
            connections_max: (self.connections_max > 0).then_some(self.connections_max),
            failure_status: self.failure_status.filter(|_| self.has_sessions()),
            retries: self.retries,
            cookies: self.cookies,
        };
        let texts = Arc::new(texts);
        let (generator, place) = SessionReplay::new(source, texts, replay, 0, 1);
        Ok(Planned {
            plan,
            generator: Box::new(generator),
            place,
            warning,
        })
    }

    /// Where the sessions come from, and how many requests each has at once at most.
    fn source(
        &self,
        files: &Files,
        texts: &SessionTexts,
    ) -> Result<(Box<dyn SessionSource>, u32), Ending> {
        if let (Workload::Log { think_s, .. }, Some(log)) = (self.workload(), &files.log) {
            let steps = LoggedSteps::new(log, nanoseconds(think_s));
            let depth = steps.requests_max();
            return Ok((Box::new(steps), depth));
        }
        let (calls, think_s) = match self.workload() {
            Workload::Calls { calls, .. } => (calls, 0.0),
            Workload::Sessions { calls, think_s, .. } => (calls, think_s),
            Workload::Log { .. } => (1, 0.0),
        };
        ensure(self.burst.min(calls) <= BURST_MAX, || {
            Ending::of_brunt(format!("a burst has {BURST_MAX} requests at most"))
        })?;
        let (client, clients) = self.client;
        let order = match self.uris {
            Uris::One => CallOrder::One,
            Uris::List { wraps, .. } => CallOrder::List {
                requests: texts.count() as u32,
                wraps,
                sent: 0,
            },
            Uris::Set { requests, step } => CallOrder::Walk(WorkingSet {
                requests,
                step,
                first: client.into(),
                stride: clients.into(),
                sent: 0,
            }),
        };
        let sessions = UniformSessions {
            calls,
            burst: self.burst,
            first_alone: self.has_sessions(),
            think_ns: nanoseconds(think_s),
            order,
        };
        Ok((Box::new(sessions), self.burst.min(calls)))
    }

    fn model(&self) -> Result<LoadModel, Ending> {
        let sessions = self.sessions();
        // Exactly so many fall into it.
        let lasting = |per_s: f64| ((f64::from(sessions) - 0.5) / per_s * 1e9).max(1.0);
        let one = |per_s: f64, duration_ns: f64| {
            vec![Stage {
                duration_ns: duration_ns.min(ENDLESS_NS as f64) as u64,
                from_per_s: per_s,
                to_per_s: per_s,
            }]
        };
        let endless = ENDLESS_NS as f64;
        let (process, stages) = match &self.period {
            Period::Sequential => {
                let stages = one(AT_ONCE_PER_S, lasting(AT_ONCE_PER_S));
                (ArrivalProcess::Constant, stages)
            }
            Period::Fixed(period_s) => {
                let per_s = 1.0 / period_s;
                (ArrivalProcess::Constant, one(per_s, lasting(per_s)))
            }
            Period::Uniform(least_s, most_s) => {
                let per_s = 2.0 / (least_s + most_s);
                (ArrivalProcess::Uniform, one(per_s, endless))
            }
            Period::Exponential(mean_s) => (ArrivalProcess::Poisson, one(1.0 / mean_s, endless)),
            Period::Steps(steps) => {
                let stages = steps.iter().flat_map(|&(period_s, length_s)| {
                    one(1.0 / period_s, (length_s * 1e9).min(endless / 2.0))
                });
                (ArrivalProcess::Constant, stages.collect())
            }
        };
        // The same numbers for the same client, as httperf has it.
        let seed = self.client.0.into();
        let schedule = Schedule::staged(process, stages, seed);
        Ok(LoadModel::Sessions {
            schedule: schedule.map_err(Ending::of_brunt)?,
            queue_max: at_least_1(sessions.into()),
        })
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    ((seconds * 1e9) as u64).min(Schedule::DURATION_MAX_NS)
}

/// What httperf waits, where a time-out was given.
fn time_limit(timeout_s: f64, more_s: f64) -> u64 {
    if timeout_s > 0.0 {
        nanoseconds(timeout_s + more_s).max(1_000_000)
    } else {
        Schedule::DURATION_MAX_NS
    }
}

const AGENT: &str = "httperf/0.9.0";
/// Most requests of a working set or a list; more are refused.
const REQUESTS_MAX: usize = 1 << 20;

/// What is read from files before a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The log of `--wsesslog`.
    pub log: Option<SessionLog>,
    /// The list of `--wlog`.
    pub list: Option<Vec<u8>>,
}

impl HttperfOptions {
    /// The requests that are sent, by their numbers, and what is said about them: whole lines, or
    /// empty.
    ///
    /// # Errors
    ///
    /// There are none, or too many.
    pub(super) fn texts(&self, files: &Files) -> Result<(SessionTexts, String), Ending> {
        let (header, warning) = self.added_header();
        let mut texts = SessionTexts::default();
        let method = self.method.as_deref().unwrap_or("GET");
        let mut add = |method: &str, uri: &[u8], body: &[u8]| {
            let text = self.text(method, uri, header.as_deref().unwrap_or_default(), body);
            let uri = String::from_utf8_lossy(uri);
            let name = match method {
                "GET" => uri.into_owned(),
                _ => format!("{method} {uri}"),
            };
            texts.add(text, &name);
        };
        let fits = |count: usize| {
            let line = "there are too many requests; use fewer";
            ensure((1..=REQUESTS_MAX).contains(&count), || {
                Ending::of_brunt(line)
            })
        };
        match (self.workload(), &files.log, &self.uris, &files.list) {
            (Workload::Log { .. }, Some(log), ..) => {
                for logged in log.requests() {
                    let request = &logged.request;
                    add(&request.method, request.path.as_bytes(), &request.body);
                }
            }
            (.., Uris::List { .. }, Some(list)) => {
                let list = list.strip_suffix(b"\0").unwrap_or(list);
                let uris: Vec<_> = list.split(|&byte| byte == 0).collect();
                ensure(!list.is_empty(), || {
                    Ending::of_brunt("there is no URI in the list of --wlog")
                })?;
                fits(uris.len())?;
                uris.iter().for_each(|uri| add(method, uri, b""));
            }
            (.., Uris::Set { requests, .. }, _) => {
                fits(*requests as usize)?;
                let digits = (requests - 1).to_string().len();
                for number in 0..*requests {
                    let path = path_in_set(&self.uri, number, digits);
                    add(method, path.as_bytes(), b"");
                }
            }
            _ => add(method, self.uri.as_bytes(), b""),
        }
        Ok((texts, warning))
    }

    fn text(&self, method: &str, uri: &[u8], header: &[u8], body: &[u8]) -> Vec<u8> {
        let version = if self.is_http_1_0 { "1.0" } else { "1.1" };
        let mut text = [method.as_bytes(), b" ", uri].concat();
        text.extend(format!(" HTTP/{version}\r\nUser-Agent: {AGENT}\r\n").bytes());
        if self.is_http_1_0 {
            text.extend(b"Connection: keep-alive\r\n");
        }
        if !self.no_host {
            let host = self.server_name.as_ref().unwrap_or(&self.server);
            text.extend(format!("Host: {host}\r\n").bytes());
        }
        text.extend(header);
        if !body.is_empty() {
            text.extend(format!("Content-length: {}\r\n", body.len()).bytes());
        }
        text.extend(b"\r\n");
        text.extend(body);
        text
    }

    /// The header lines that were typed, and what is said of them.
    fn added_header(&self) -> (Option<Vec<u8>>, String) {
        let Some(typed) = &self.add_header else {
            return (None, String::new());
        };
        let (mut header, mut warning) = (Vec::new(), String::new());
        let mut rest = typed.bytes().peekable();
        while let Some(byte) = rest.next() {
            if byte != b'\\' {
                header.push(byte);
                continue;
            }
            match rest.next() {
                Some(b'n') => header.extend(b"\r\n"),
                Some(b'r') => header.push(b'\r'),
                Some(b'a') => header.push(b'\x07'),
                Some(b'\\') | None => header.push(b'\\'),
                Some(digit @ b'0'..=b'7') => {
                    let mut value = u32::from(digit - b'0');
                    while let Some(digit @ b'0'..=b'7') = rest.peek().copied() {
                        value = (value * 8 + u32::from(digit - b'0')) & 0xff;
                        rest.next();
                    }
                    header.push(value as u8);
                }
                Some(other) => warning.push_str(&format!(
                    "httperf: ignoring unknown escape sequence `\\{}' in --add-header\n",
                    char::from(other)
                )),
            }
        }
        (Some(header), warning)
    }
}

/// The path of a request of a working set: its digits, as many as the largest has, are folders.
fn path_in_set(prefix: &str, number: u32, digits: usize) -> String {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let number = format!("{number:0digits$}");
    let folders = number.chars().map(|digit| format!("/{digit}"));
    format!("{prefix}{}.html", folders.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn planned(line: &str) -> Plan {
        let words = words(line);
        let options = HttperfOptions::parse("httperf", &words).expect(line);
        options.plan(&Files::default()).expect(line).plan
    }

    #[test]
    fn the_plan_is_what_the_options_say() {
        let plan = planned("--server h --port 81 --rate 100 --num-conns 300 --num-calls 5");
        assert_eq!(
            (&*plan.target.authority, plan.load.connections.get()),
            ("h:81", 300)
        );
        assert_eq!(
            (plan.load.stop.duration_ns, plan.load.stop.requests),
            (None, None)
        );
        assert_eq!((plan.traffic.pipeline.get(), plan.load.warmup_ns), (1, 0));
        assert_eq!(plan.workers.spin, Spin::Off);
        assert_eq!(plan.limits.timeout_ns, Schedule::DURATION_MAX_NS);
        let schedule = plan.load.model.schedule().expect("connections are planned");
        assert_eq!(schedule.rate_max(), 100.0);
        assert_eq!(schedule.duration_ns(), Some(2_995_000_000));
        let plan = planned("--num-conns 3 --timeout 1.5 --think-timeout 2 --burst-length 4");
        assert_eq!(
            (plan.load.connections.get(), plan.traffic.pipeline.get()),
            (1, 1)
        );
        assert_eq!(plan.limits.timeout_ns, 3_500_000_000);
        assert_eq!(plan.limits.connect_timeout_ns, 1_500_000_000);
        let plan = planned("--wsess 9,7,1 --burst-length 4 --period e0.1 --ssl");
        assert_eq!(
            (plan.load.connections.get(), plan.traffic.pipeline.get()),
            (9, 4)
        );
        assert!(plan.connection.tls.insecure && plan.connection.tls.resumption);
    }
}
