//! From h2load's options to a plan of brunt's.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_engine::verbatim_requests;
use brunt_load::{
    ArrivalProcess, HttpChoice, LoadModel, Placement, Plan, RequestOrder, RequestSet, RequestSpec,
    Reuse, Schedule, Stop, Target, TlsSpec,
};
use brunt_measure::RequestLog;

use super::options::{Options, Version, error};
use crate::Ending;

const SECOND_NS: u64 = 1_000_000_000;
/// h2load begins at once.
const SETUP_TIMEOUT_NS: u64 = 10 * SECOND_NS;
/// h2load waits for ever.
const TIMEOUT_NS: u64 = 3_600 * SECOND_NS;
/// What is in flight when the time is over is waited for that long.
const DRAIN_LIMIT_NS: u64 = SECOND_NS;
const AGENT: (&str, &str) = ("user-agent", "h2load nghttp2/1.52.0");

impl Options {
    /// The plan that does what the command line asks for, with the lines of its input file and the
    /// content of its body file, where it has them.
    ///
    /// # Errors
    ///
    /// There is no such load.
    pub fn plan(&self, lines: Option<&str>, data: Option<&[u8]>) -> Result<Plan, Ending> {
        let uris: Vec<&str> = match lines {
            Some(lines) => lines.lines().filter(|line| !line.is_empty()).collect(),
            None => self.uris.iter().map(String::as_str).collect(),
        };
        let first = uris.first().ok_or_else(|| error("no URI given"))?;
        let (base, socket) = match self.base.as_deref() {
            Some(base) => match base.strip_prefix("unix:") {
                Some(path) => (*first, Some(path.into())),
                None => (base, None),
            },
            None => (*first, None),
        };
        let refused = |reason: &dyn std::fmt::Display| error(&format!("brunt: {reason}"));
        let target = Target::parse(base, socket).map_err(|reason| refused(&reason))?;
        let is_secure = target.scheme.is_secure();
        let version = if is_secure {
            self.secured
        } else {
            self.clear_text
        };
        let paths = uris.iter().map(|uri| path_of(uri));
        let requests = paths.map(|path| self.request(&target, version, path, data));
        let requests: Result<Vec<RequestSpec>, Ending> = requests.collect();
        let set = match &requests?[..] {
            [only] => Some(RequestSet::one(only.clone())),
            several => RequestSet::list(several.to_vec(), RequestOrder::Turns, RequestSpec::name),
        };
        let set = set.ok_or_else(|| error("brunt: too many URIs"))?;
        let mut plan = Plan::new(target, set);
        plan.connections = self.clients;
        plan.workers = self.threads;
        plan.placement = Placement::Given;
        plan.oversubscribe = true;
        let http = match version {
            Version::One => HttpChoice::Http1,
            Version::Two if is_secure => HttpChoice::Auto,
            Version::Two => HttpChoice::Http2,
        };
        plan.spoken = http.into();
        plan.tls = TlsSpec {
            insecure: true,
            ..TlsSpec::default()
        };
        plan.streams = self.streams;
        // A body is not pipelined.
        plan.pipeline = match data {
            Some(_) => NonZeroU32::MIN,
            None => self.streams,
        };
        plan.stop = match self.duration_ns {
            Some(_) => Stop {
                duration_ns: self.duration_ns,
                requests: None,
            },
            None => Stop {
                duration_ns: None,
                requests: Some(self.requests),
            },
        };
        plan.logged_requests_max = RequestLog::REQUESTS_MAX;
        plan.warmup_ns = self.warmup_ns;
        plan.halves_warmup = false;
        plan.timeout_ns = self.timeout_ns.unwrap_or(TIMEOUT_NS);
        plan.drain_limit_ns = DRAIN_LIMIT_NS;
        plan.setup_timeout_ns = SETUP_TIMEOUT_NS;
        if let Some(rate) = self.rate {
            self.pace(&mut plan, rate)?;
        }
        Ok(plan)
    }

    /// Connections are made at a rate, each with its share of the requests.
    fn pace(&self, plan: &mut Plan, rate: NonZeroU32) -> Result<(), Ending> {
        let per_s = f64::from(rate.get()) * SECOND_NS as f64 / self.period_ns as f64;
        let schedule = Schedule::constant_rate(ArrivalProcess::Constant, per_s, 0)
            .map_err(|reason| error(&format!("brunt: {reason}")))?;
        plan.model = LoadModel::Sessions {
            schedule,
            queue_max: self.clients,
        };
        let each = self.requests.div_ceil(self.clients.get().into());
        plan.reuse = Reuse::Requests(NonZeroU64::new(each).unwrap_or(NonZeroU64::MIN));
        Ok(())
    }

    fn request(
        &self,
        target: &Target,
        version: Version,
        path: &str,
        data: Option<&[u8]>,
    ) -> Result<RequestSpec, Ending> {
        let method = if data.is_some() { "POST" } else { "GET" };
        let fields = self.fields();
        if version == Version::Two {
            return Ok(RequestSpec {
                method: method.to_owned(),
                headers: fields,
                body: data.unwrap_or_default().to_vec(),
                ..RequestSpec::get(path)
            });
        }
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", target.authority);
        for (name, value) in fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(data) = data {
            text.push_str(&format!("Content-Length: {}\r\n", data.len()));
        }
        text.push_str("\r\n");
        let mut text = text.into_bytes();
        text.extend_from_slice(data.unwrap_or_default());
        let requests = verbatim_requests(&text);
        let requests = requests.map_err(|reason| error(&format!("brunt: {reason}")))?;
        let only = requests.into_iter().next();
        only.ok_or_else(|| error("brunt: a header field holds no request"))
    }

    /// Header fields beside those that every request has; a typed one replaces h2load's own.
    pub(super) fn fields(&self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        for typed in &self.headers {
            // The colon before a pseudo header is not the one behind its name.
            if let Some((name, value)) = typed.split_once(':') {
                fields.push((name.to_ascii_lowercase(), value.trim_start().to_owned()));
            }
        }
        if !fields.iter().any(|(name, _)| name == AGENT.0) {
            fields.insert(0, (AGENT.0.to_owned(), AGENT.1.to_owned()));
        }
        fields
    }
}

/// Path and query of a URI, or of what is left of one.
fn path_of(uri: &str) -> &str {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| {
        let path = &rest[at..];
        path.split('#').next().unwrap_or(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str, data: Option<&[u8]>) -> Plan {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let options = Options::parse(&words).expect(line);
        options.plan(None, data).expect(line)
    }

    #[test]
    fn requests_over_http_1_are_h2loads_byte_by_byte() {
        for (line, data, expected) in [
            (
                "--h1 -H X-a:b http://h:81/x?y",
                None,
                "GET /x?y HTTP/1.1\r\nHost: h:81\r\nuser-agent: h2load nghttp2/1.52.0\r\nx-a: \
                 b\r\n\r\n",
            ),
            (
                "--h1 -H User-Agent:z -d f http://h",
                Some(&b"hello"[..]),
                "POST / HTTP/1.1\r\nHost: h\r\nuser-agent: z\r\nContent-Length: 5\r\n\r\nhello",
            ),
        ] {
            let plan = plan(line, data);
            let text = plan.requests.requests()[0].text.clone().expect("given");
            assert_eq!(String::from_utf8_lossy(&text), expected);
        }
    }

    #[test]
    fn the_plan_is_what_the_options_say() {
        let closed = plan("-n 100 -c 4 -t 2 -m 10 http://h/a http://other/b c/d", None);
        assert_eq!((closed.connections.get(), closed.streams.get()), (4, 10));
        assert_eq!(closed.spoken, HttpChoice::Http2.into());
        assert_eq!(closed.stop.requests, Some(100));
        let paths: Vec<_> = closed
            .requests
            .requests()
            .iter()
            .map(|it| &*it.path)
            .collect();
        assert_eq!(paths, ["/a", "/b", "/d"]);
        let timed = plan("-D 5 --warm-up-time 1 -c 2 https://h/", None);
        assert_eq!(timed.spoken, HttpChoice::Auto.into());
        assert_eq!(timed.warmup_ns, SECOND_NS);
        assert_eq!(timed.stop.duration_ns, Some(5 * SECOND_NS));
        let paced = plan("-n 10 -c 4 -r 2 --rate-period 500ms http://h/", None);
        assert_eq!(paced.model.schedule().map(Schedule::rate_max), Some(4.0));
        assert_eq!(
            paced.reuse,
            Reuse::Requests(NonZeroU64::new(3).expect("not 0"))
        );
    }
}
