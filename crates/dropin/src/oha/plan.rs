//! From oha's options to a plan of brunt's.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_load::{
    ArrivalProcess, HttpChoice, LoadModel, Placement, Plan, RequestSet, RequestSpec, Reuse,
    Schedule, Target,
};

use super::VERSION;
use super::options::{OhaOptions, invalid, wrong};
use crate::Ending;
use crate::libraries::at_least_1;
use crate::request::{self, basic};

/// Requests of a run, unless something else is asked for.
const REQUESTS: u64 = 200;
const SETUP_TIMEOUT_NS: u64 = 10_000_000_000;
/// In place of no limit.
const LONG_NS: u64 = 3_600_000_000_000;
/// Requests that may be due and wait.
const QUEUE_MAX: NonZeroU32 = NonZeroU32::new(64_000_000).unwrap();

/// The plan that does what the command line asks for, with the body that its options name, on a
/// machine with so many CPUs.
///
/// # Errors
///
/// There is no such load.
pub fn plan(options: &OhaOptions, body: &[u8], cpus: NonZeroU32) -> Result<Plan, Ending> {
    // Without a scheme it is none in oha, which most URLs typed so are not meant to be.
    let target = Target::parse(&options.url, None).map_err(|reason| wrong(&reason.to_string()))?;
    let http = options.http();
    if http == HttpChoice::HTTP3 && !target.scheme.is_secure() {
        return Err(wrong("--http-version 3 needs an https URL"));
    }
    let request = request(options, &target, body)?;
    let requests = options.requests.unwrap_or(REQUESTS);
    let mut plan = Plan::bare(target, RequestSet::one(request));
    // As many as there is work for.
    let useful = match options.duration_ns {
        Some(_) => u64::from(u32::MAX),
        None => requests.div_ceil(options.streams.into()),
    };
    plan.load.connections = at_least_1(useful.min(options.connections.into()));
    plan.workers.count = cpus.min(plan.load.connections);
    plan.workers.placement = Placement::Auto;
    plan.connection.protocol = http.into();
    if http != HttpChoice::HTTP1 {
        plan.traffic.streams = at_least_1(options.streams.into());
    }
    plan.connection.tls.insecure = options.insecure;
    plan.connection.tls.roots = options.roots.clone().map(Into::into);
    if options.closes && http == HttpChoice::HTTP1 {
        plan.traffic.reuse = Reuse::Requests(NonZeroU64::MIN);
    }
    plan.load.stop.duration_ns = options.duration_ns;
    plan.load.stop.requests = Some(requests).filter(|_| options.duration_ns.is_none());
    plan.limits.timeout_ns = options.timeout_ns.unwrap_or(LONG_NS).max(1_000_000);
    plan.load.drain_limit_ns = plan.limits.timeout_ns;
    plan.limits.connect_timeout_ns = options.connect_timeout_ns.max(1_000_000);
    plan.limits.setup_timeout_ns = Some(SETUP_TIMEOUT_NS);
    if let Some(rate_per_s) = options.rate_per_s {
        let schedule = Schedule::constant_rate(ArrivalProcess::Constant, rate_per_s, 0);
        plan.load.model = LoadModel::Open {
            schedule: schedule.map_err(|reason| wrong(&format!("-q: {reason}")))?,
            connections_max: plan.load.connections,
            queue_max: QUEUE_MAX,
        };
    }
    Ok(plan)
}

fn request(options: &OhaOptions, target: &Target, body: &[u8]) -> Result<RequestSpec, Ending> {
    let is_http1 = options.http() == HttpChoice::HTTP1;
    let mut fields: Vec<(String, String)> = Vec::new();
    // A field that is there already is replaced in its place.
    let mut put = |name: &str, value: &str| match fields.iter_mut().find(|(other, _)| other == name)
    {
        Some((_, earlier)) => value.clone_into(earlier),
        None => fields.push((name.to_owned(), value.to_owned())),
    };
    put("accept", "*/*");
    if !options.no_compression {
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
        put("authorization", &basic(user));
    }
    if options.closes && is_http1 {
        put("connection", "close");
    }
    for typed in &options.headers {
        let field = typed.split_once(':');
        let (name, value) = field.ok_or_else(|| invalid("-H <HEADERS>", typed))?;
        put(&name.to_ascii_lowercase(), value.trim_start_matches(' '));
    }
    if is_http1 {
        if !fields.iter().any(|(name, _)| name == "host") {
            fields.push(("host".to_owned(), target.authority.clone()));
        }
        if !body.is_empty() {
            fields.push(("content-length".to_owned(), body.len().to_string()));
        }
        return request::request(&options.method, &target.path, &fields, body)
            .map_err(|reason| wrong(&reason.to_string()));
    }
    if let Some(place) = fields.iter().position(|(name, _)| name == "host") {
        fields[place].0 = "Host".to_owned();
        fields.swap(0, place);
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
    use crate::getopt::tests::words;

    fn plan_of(line: &str, body: &[u8]) -> Plan {
        let options = OhaOptions::parse(&words(line)).expect(line);
        plan(&options, body, NonZeroU32::MIN.saturating_add(1)).expect(line)
    }

    #[test]
    fn the_plan_is_what_the_options_say() {
        let plan = plan_of("-n 7 -c 100 --http2 -p 2 --insecure https://h/", b"");
        assert_eq!(
            (plan.load.connections.get(), plan.workers.count.get()),
            (4, 2)
        );
        assert_eq!(
            (plan.traffic.streams.get(), plan.load.stop.requests),
            (2, Some(7))
        );
        assert!(plan.connection.tls.insecure && plan.load.model.schedule().is_none());
        let plan = plan_of("-z 3s -q 50 -t 2s http://h/", b"");
        let rate = plan.load.model.schedule().map(Schedule::rate_max);
        assert_eq!((rate, plan.limits.timeout_ns), (Some(50.0), 2_000_000_000));
    }
}
