//! From oha's options to a plan of brunt's.

use std::num::{NonZeroU32, NonZeroU64};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use brunt_load::{
    ArrivalProcess, HttpChoice, LoadModel, Placement, Plan, RequestSet, RequestSpec, Reuse,
    Schedule, Stop, TlsSpec,
};

use super::VERSION;
use super::options::{Options, wrong};
use crate::{Ending, verbatim};

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
pub fn plan(options: &Options, body: &[u8], cpus: NonZeroU32) -> Result<Plan, Ending> {
    let request = request(options, body)?;
    let mut plan = Plan::new(options.target.clone(), RequestSet::one(request));
    plan.connections = connections(options);
    plan.workers = cpus.min(plan.connections);
    plan.placement = Placement::Auto;
    plan.spoken = options.http.into();
    plan.streams = if options.http == HttpChoice::HTTP1 {
        NonZeroU32::MIN
    } else {
        options.streams
    };
    plan.tls = TlsSpec {
        insecure: options.insecure,
        roots: options.roots.clone().map(Into::into),
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

fn request(options: &Options, body: &[u8]) -> Result<RequestSpec, Ending> {
    let is_http1 = options.http == HttpChoice::HTTP1;
    let mut fields: Vec<(String, String)> = Vec::new();
    // A field that is there already is replaced in its place.
    let mut put = |name: &str, value: &str| match fields.iter_mut().find(|(other, _)| other == name)
    {
        Some((_, earlier)) => value.clone_into(earlier),
        None => fields.push((name.to_owned(), value.to_owned())),
    };
    put("accept", "*/*");
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
            fields.push(("host".to_owned(), options.target.authority.clone()));
        }
        if !body.is_empty() {
            fields.push(("content-length".to_owned(), body.len().to_string()));
        }
        return verbatim::request(&options.method, &options.target.path, &fields, body)
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
        ..RequestSpec::get(&options.target.path)
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

    #[test]
    fn the_plan_is_what_the_options_say() {
        let plan = plan_of("-n 7 -c 100 --http2 -p 2 --insecure https://h/", b"");
        assert_eq!((plan.connections.get(), plan.workers.get()), (4, 2));
        assert_eq!((plan.streams.get(), plan.stop.requests), (2, Some(7)));
        assert!(plan.tls.insecure && plan.model.schedule().is_none());
        let plan = plan_of("-z 3s -q 50 -t 2s http://h/", b"");
        let rate = plan.model.schedule().map(Schedule::rate_max);
        assert_eq!((rate, plan.timeout_ns), (Some(50.0), 2_000_000_000));
    }
}
