//! From oha's options to a plan of brunt's.

use std::num::{NonZeroU32, NonZeroU64};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use brunt_load::{
    ArrivalProcess, ClientIdentity, HttpChoice, LoadModel, Placement, Plan, RequestOrder,
    RequestSet, RequestSpec, Reuse, Schedule, Stop, Target, TlsSpec,
};

use super::VERSION;
use super::options::{Body, Options, wrong};
use crate::{Ending, verbatim};

const SETUP_TIMEOUT_NS: u64 = 10_000_000_000;
/// In place of no limit.
const LONG_NS: u64 = 3_600_000_000_000;
/// Requests that may be due and wait.
const QUEUE_MAX: NonZeroU32 = NonZeroU32::new(64_000_000).unwrap();

/// The plan that does what the command line asks for, with the body, or the bodies, that its
/// options name, on a machine with so many CPUs.
///
/// # Errors
///
/// There is no such load.
pub fn plan(options: &Options, body: &[u8], cpus: NonZeroU32) -> Result<Plan, Ending> {
    let (target, server_name) = target(options);
    let mut requests = Vec::new();
    for body in bodies(options, body) {
        requests.push(request(options, &target, body)?);
    }
    let set = match &requests[..] {
        [only] => Some(RequestSet::one(only.clone())),
        _ => RequestSet::of(requests, RequestOrder::Random { seed: 0 }),
    };
    let set = set.ok_or_else(|| wrong("-Z: too many bodies, or none"))?;
    let mut plan = Plan::new(target, set);
    plan.connections = connections(options);
    plan.workers = cpus.min(plan.connections);
    plan.placement = Placement::Auto;
    plan.spoken = options.http.into();
    plan.streams = if options.http == HttpChoice::HTTP1 {
        NonZeroU32::MIN
    } else {
        options.streams
    };
    let identity = options.certificate.clone().zip(options.key.clone());
    plan.tls = TlsSpec {
        insecure: options.insecure,
        roots: options.roots.clone().map(Into::into),
        identity: identity.map(|(certificate, key)| ClientIdentity {
            certificate: certificate.into(),
            key: key.into(),
        }),
        server_name,
        ..TlsSpec::default()
    };
    if options.closes && options.http == HttpChoice::HTTP1 {
        plan.reuse = Reuse::Requests(NonZeroU64::MIN);
    }
    plan.stop = Stop {
        duration_ns: options.duration_ns,
        requests: options
            .duration_ns
            .is_none()
            .then(|| options.requests.get()),
    };
    plan.warmup_ns = 0;
    plan.halves_warmup = false;
    plan.sends_again = false;
    plan.timeout_ns = options.timeout_ns.unwrap_or(LONG_NS).max(1_000_000);
    plan.drain_limit_ns = plan.timeout_ns;
    plan.connect_timeout_ns = options.connect_timeout_ns.max(1_000_000);
    plan.setup_timeout_ns = Some(SETUP_TIMEOUT_NS);
    plan.model = match options.rate_per_s {
        None => LoadModel::Closed {
            connect_per_s: None,
        },
        Some(rate_per_s) => {
            let schedule = Schedule::constant_rate(ArrivalProcess::Constant, rate_per_s, 0);
            LoadModel::Open {
                schedule: schedule.map_err(|reason| wrong(&format!("-q: {reason}")))?,
                connections_max: plan.connections,
                queue_max: QUEUE_MAX,
            }
        }
    };
    Ok(plan)
}

/// As many as there is work for.
fn connections(options: &Options) -> NonZeroU32 {
    let useful = match options.duration_ns {
        Some(_) => u64::from(u32::MAX),
        None => options
            .requests
            .get()
            .div_ceil(options.streams.get().into()),
    };
    let useful = NonZeroU32::new(u32::try_from(useful).unwrap_or(u32::MAX));
    options.connections.min(useful.unwrap_or(NonZeroU32::MIN))
}

/// Where connections go, and the name of the server where that is another one.
fn target(options: &Options) -> (Target, Option<String>) {
    let mut target = options.target.clone();
    let asked = (target.host.clone(), target.port);
    let mut elsewhere = options.connect_to.iter();
    let Some((_, (host, port))) = elsewhere.find(|(requested, _)| *requested == asked) else {
        return (target, None);
    };
    (target.host, target.port) = (host.clone(), *port);
    (target, Some(asked.0))
}

fn bodies<'a>(options: &Options, body: &'a [u8]) -> Vec<&'a [u8]> {
    if !matches!(options.body, Body::Lines(_)) {
        return vec![body];
    }
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    let lines = body.split(|&byte| byte == b'\n');
    lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect()
}

fn request(options: &Options, target: &Target, body: &[u8]) -> Result<RequestSpec, Ending> {
    let is_http1 = options.http == HttpChoice::HTTP1;
    let mut fields: Vec<(String, String)> = Vec::new();
    // A field that is there already is replaced in its place.
    let mut put = |name: &str, value: &str| match fields.iter_mut().find(|(other, _)| other == name)
    {
        Some((_, earlier)) => value.clone_into(earlier),
        None => fields.push((name.to_owned(), value.to_owned())),
    };
    put("accept", options.accept.as_deref().unwrap_or("*/*"));
    if options.compresses {
        put("accept-encoding", "gzip, compress, deflate, br");
    }
    put("user-agent", &format!("oha/{VERSION}"));
    if let Some(content_type) = &options.content_type {
        put("content-type", content_type);
    }
    if let Some(host) = &options.host {
        put("host", host);
    }
    if let Some(user) = &options.user {
        let encoded = BASE64_STANDARD.encode(user);
        put("authorization", &format!("Basic {encoded}"));
    }
    if options.closes && is_http1 {
        put("connection", "close");
    }
    for (name, value) in &options.headers {
        put(name, value);
    }
    if is_http1 {
        if !fields.iter().any(|(name, _)| name == "host") {
            fields.push(("host".to_owned(), target.authority.clone()));
        }
        if !body.is_empty() {
            fields.push(("content-length".to_owned(), body.len().to_string()));
        }
        return verbatim::request(&options.method, &target.path, &fields, body)
            .map_err(|reason| wrong(&reason.to_string()));
    }
    // The host of an address that connections do not go to is asked for all the same.
    if let Some(place) = fields.iter().position(|(name, _)| name == "host") {
        fields[place].0 = "Host".to_owned();
        fields.swap(0, place);
    } else if *target.authority != options.target.authority || !options.connect_to.is_empty() {
        fields.insert(0, ("Host".to_owned(), options.target.authority.clone()));
    }
    Ok(RequestSpec {
        method: options.method.clone(),
        headers: fields,
        body: body.to_vec(),
        ..RequestSpec::get(&target.path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn plan_of(line: &str, body: &[u8]) -> Plan {
        let options = Options::parse(&words(line)).expect(line);
        plan(&options, body, NonZeroU32::MIN.saturating_add(1)).expect(line)
    }

    fn texts(plan: &Plan) -> Vec<String> {
        let texts = plan.requests.requests().filter_map(|request| request.text);
        texts
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect()
    }

    #[test]
    fn the_request_is_that_of_oha() {
        let usual = "accept: */*\r\naccept-encoding: gzip, compress, deflate, br\r\nuser-agent: \
                     oha/1.15.0\r\n";
        for (line, body, expected) in [
            (
                "http://h:81/a?b",
                "",
                format!("GET /a?b HTTP/1.1\r\n{usual}host: h:81\r\n\r\n"),
            ),
            (
                "-m POST -D f -T a/b -a u:p -H X-A:b --disable-keepalive http://h",
                "body",
                format!(
                    "POST / HTTP/1.1\r\n{usual}content-type: a/b\r\nauthorization: Basic \
                     dTpw\r\nconnection: close\r\nx-a: b\r\nhost: h\r\ncontent-length: \
                     4\r\n\r\nbody"
                ),
            ),
            (
                "--disable-compression --host o -A x/y -H User-Agent:z http://h/",
                "",
                "GET / HTTP/1.1\r\naccept: x/y\r\nuser-agent: z\r\nhost: o\r\n\r\n".to_owned(),
            ),
        ] {
            assert_eq!(texts(&plan_of(line, body.as_bytes())), [expected], "{line}");
        }
        let lines = texts(&plan_of("-Z f http://h/", b"one\ntwo\r\n"));
        assert!(lines[0].ends_with("\r\n\r\none") && lines[1].ends_with("\r\n\r\ntwo"));
    }

    #[test]
    fn the_plan_is_what_the_options_say() {
        let plan = plan_of("-n 7 -c 100 --http2 -p 2 --insecure https://h/", b"");
        assert_eq!((plan.connections.get(), plan.workers.get()), (4, 2));
        assert_eq!((plan.streams.get(), plan.stop.requests), (2, Some(7)));
        assert!(plan.tls.insecure && plan.model.schedule().is_none());
        let plan = plan_of("-z 3s -q 50 -t 2s --connect-to h:80:o:81 http://h/", b"");
        let rate = plan.model.schedule().map(Schedule::rate_max);
        assert_eq!((rate, plan.timeout_ns), (Some(50.0), 2_000_000_000));
        assert_eq!((&*plan.target.host, plan.target.port), ("o", 81));
        assert!(texts(&plan)[0].contains("\r\nhost: h\r\n"));
        assert_eq!(plan.tls.server_name.as_deref(), Some("h"));
    }
}
