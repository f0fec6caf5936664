//! From zrk's options to a plan of brunt's.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_load::{
    ArrivalProcess, HttpChoice, LoadModel, Placement, Plan, RequestSet, RequestSpec, Reuse,
    Schedule, Stage, Stop, TlsSpec,
};

use super::Options;
use crate::{Ending, verbatim};

/// zrk begins at once; connections that are not there by then are tried for on.
const SETUP_TIMEOUT_NS: u64 = 10_000_000_000;
/// In place of no limit.
const LONG_NS: u64 = 3_600_000_000_000;
/// Requests that may be due and wait: those of the whole run, within these limits.
const QUEUE_LEAST: u32 = 1_000_000;
const QUEUE_MOST: u32 = 64_000_000;

/// The plan that does what the command line asks for, with this body. A script may replace its
/// request.
///
/// # Errors
///
/// There is no such load.
pub fn plan(options: &Options, body: &[u8]) -> Result<Plan, Ending> {
    let http = match (options.http2, options.http3) {
        (true, _) => HttpChoice::HTTP2,
        (_, true) => HttpChoice::HTTP3,
        _ => HttpChoice::HTTP1,
    };
    let mut plan = Plan::new(
        options.target.clone(),
        RequestSet::one(request(options, http, body)?),
    );
    plan.connections = options.connections;
    plan.workers = options.threads.min(options.connections);
    plan.placement = Placement::Given;
    plan.oversubscribe = true;
    plan.spoken = http.into();
    plan.streams = options.streams;
    plan.tls = TlsSpec {
        insecure: options.insecure,
        ..TlsSpec::default()
    };
    if options.closes {
        plan.reuse = Reuse::Requests(NonZeroU64::MIN);
    }
    let duration_ns = options.duration_ns.min(Schedule::DURATION_MAX_NS);
    plan.stop = Stop {
        duration_ns: Some(duration_ns),
        requests: None,
    };
    plan.warmup_ns = 0;
    plan.halves_warmup = false;
    plan.sends_again = false;
    let timeout_ns = match options.timeout_ns {
        0 => LONG_NS,
        ns => ns.clamp(1_000_000, Schedule::DURATION_MAX_NS),
    };
    (plan.timeout_ns, plan.drain_limit_ns) = match (options.is_closed, options.deadline_ns) {
        (true, _) => (timeout_ns, timeout_ns),
        // The limit of an attempt bounds no latency: that counts from the planned instant.
        (_, 0) => (duration_ns.saturating_add(timeout_ns), timeout_ns),
        (_, deadline_ns) => (deadline_ns.max(1_000_000), deadline_ns.max(1_000_000)),
    };
    plan.setup_timeout_ns = Some(SETUP_TIMEOUT_NS);
    plan.model = match options.is_closed {
        true => LoadModel::Closed {
            connect_per_s: None,
        },
        false => open_loop(options, duration_ns)?,
    };
    Ok(plan)
}

fn open_loop(options: &Options, duration_ns: u64) -> Result<LoadModel, Ending> {
    let from_per_s = options.rate_per_s as f64;
    let schedule = match options.rate_end_per_s {
        None => Schedule::constant_rate(ArrivalProcess::Constant, from_per_s, 0),
        Some(to_per_s) => {
            let stage = Stage {
                duration_ns,
                from_per_s,
                to_per_s: to_per_s as f64,
            };
            Schedule::staged(ArrivalProcess::Constant, vec![stage], 0)
        }
    };
    let most_per_s = options.rate_per_s.max(options.rate_end_per_s.unwrap_or(0));
    let due = most_per_s as f64 * duration_ns as f64 / 1e9;
    let queue = (due as u32).clamp(QUEUE_LEAST, QUEUE_MOST);
    Ok(LoadModel::Open {
        schedule: schedule.map_err(|error| Ending::error(&format!("zrk: {error}"), 2))?,
        connections_max: options.connections,
        queue_max: NonZeroU32::new(queue).unwrap_or(NonZeroU32::MIN),
    })
}

/// Header fields that stand for one connection, which HTTP/1.1 alone has.
const OF_CONNECTION: [&str; 2] = ["connection", "content-length"];

fn request(options: &Options, http: HttpChoice, body: &[u8]) -> Result<RequestSpec, Ending> {
    let has = |wanted: &str| {
        let mut headers = options.headers.iter();
        headers.any(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    let mut fields = options.headers.clone();
    let mut add = |name: &str, value: &str| {
        if !has(name) {
            fields.push((name.to_owned(), value.to_owned()));
        }
    };
    add("User-Agent", "zrk");
    if http == HttpChoice::HTTP1 {
        add(
            "Connection",
            if options.closes {
                "close"
            } else {
                "keep-alive"
            },
        );
        // Servers ask for a length where a method may have a body.
        let may_have_body = ["POST", "PUT", "PATCH"]
            .iter()
            .any(|method| options.method.eq_ignore_ascii_case(method));
        if !body.is_empty() || may_have_body {
            add("Content-Length", &body.len().to_string());
        }
        if !has("host") {
            let host = ("Host".to_owned(), options.target.authority.clone());
            fields.insert(0, host);
        }
        return verbatim::request(&options.method, &options.target.path, &fields, body)
            .map_err(|reason| Ending::error(&format!("zrk: {reason}"), 2));
    }
    fields.retain(|(name, _)| !OF_CONNECTION.iter().any(|it| name.eq_ignore_ascii_case(it)));
    Ok(RequestSpec {
        method: options.method.clone(),
        headers: fields,
        body: body.to_vec(),
        ..RequestSpec::get(&options.target.path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn plan_of(line: &str, body: &[u8]) -> Plan {
        plan(&Options::parse(&words(line)).expect(line), body).expect(line)
    }

    fn text(line: &str, body: &[u8]) -> String {
        let plan = plan_of(line, body);
        let text = plan.requests.first().and_then(|it| it.text);
        String::from_utf8(text.expect("it is given").to_vec()).expect("it was typed so")
    }

    #[test]
    fn the_request_is_zrks_byte_by_byte() {
        for (line, body, expected) in [
            (
                "http://h:81/a?b",
                "",
                "GET /a?b HTTP/1.1\r\nHost: h:81\r\nUser-Agent: zrk\r\nConnection: \
                 keep-alive\r\n\r\n",
            ),
            (
                "-m POST http://h:80/",
                "",
                "POST / HTTP/1.1\r\nHost: h\r\nUser-Agent: zrk\r\nConnection: \
                 keep-alive\r\nContent-Length: 0\r\n\r\n",
            ),
            (
                "-m PUT -H X:y -H user-agent:z --disable-keepalive https://h:443/",
                "body",
                "PUT / HTTP/1.1\r\nHost: h\r\nX: y\r\nuser-agent: z\r\nConnection: \
                 close\r\nContent-Length: 4\r\n\r\nbody",
            ),
            (
                "-H HOST:o -H Connection:x http://h/",
                "",
                "GET / HTTP/1.1\r\nHOST: o\r\nConnection: x\r\nUser-Agent: zrk\r\n\r\n",
            ),
        ] {
            assert_eq!(text(line, body.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn the_plan_is_what_the_options_say() {
        let closed = plan_of("--closed -t 12 -c 8 -d 15 --timeout 8s http://h/", b"");
        assert_eq!((closed.workers.get(), closed.connections.get()), (8, 8));
        assert_eq!((closed.timeout_ns, closed.warmup_ns), (8_000_000_000, 0));
        assert!(closed.model.schedule().is_none() && !closed.tls.insecure);
        let open = plan_of("-R 2000 -d 30 http://h/", b"");
        let schedule = open.model.schedule().expect("a rate was given");
        assert_eq!(schedule.rate_max(), 2_000.0);
        assert_eq!(
            (open.timeout_ns, open.drain_limit_ns),
            (32_000_000_000, 2_000_000_000)
        );
        let ramp = plan_of("-R 100:500 -d 2 --deadline 250ms http://h/", b"");
        let schedule = ramp.model.schedule().expect("a rate was given");
        assert_eq!((schedule.rate_at(0), schedule.rate_max()), (100.0, 500.0));
        assert_eq!(ramp.timeout_ns, 250_000_000);
        let http2 = plan_of("--http2 -k -s 8 -H Connection:x -H A:b https://h/", b"");
        let first = http2.requests.first().expect("there is one");
        let names: Vec<&str> = first.headers.iter().map(|(name, _)| &**name).collect();
        assert_eq!((names, http2.streams.get()), (vec!["A", "User-Agent"], 8));
        assert!(first.text.is_none() && http2.tls.insecure);
    }
}
