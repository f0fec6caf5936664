//! From wrk's options to a plan of brunt's.

use brunt_load::{ArrivalProcess, LoadModel, Plan, RequestSpec, Schedule};

use super::{Program, WrkOptions};
use crate::Ending;
use crate::libraries::{SECOND_NS, at_least_1};
use crate::request::{self, NoRequest};

/// Requests that may be due and wait: those of the whole run, within these limits.
const QUEUE_LEAST: u64 = 1_000_000;
const QUEUE_MOST: u64 = 64_000_000;

/// The plan that does what the command line asks for. Its request is that of the options; a script
/// may replace it.
///
/// # Errors
///
/// There is no such load.
pub fn plan(options: &WrkOptions) -> Result<Plan, Ending> {
    let Some(target) = options.url.target() else {
        let (host, scheme) = (&options.url.host, &options.url.scheme);
        let reason = "Servname not supported for ai_socktype";
        let line = format!("unable to resolve {host}:{scheme} {reason}");
        return Err(Ending::error(&line, 1));
    };
    let request = request(options)?;
    let duration_ns = nanoseconds(options.duration_s);
    let timeout_ns = nanoseconds(options.timeout_s).max(1_000_000);
    let mut plan = request::plan(target, request);
    plan.limits.timeout_ns = timeout_ns;
    if options.program == Program::Wrk2 {
        plan.load.model = open_loop(options)?;
        // No reply is too late: a server that falls behind is seen in the latencies.
        plan.limits.timeout_ns = duration_ns.saturating_add(timeout_ns);
    }
    plan.load.connections = options.connections();
    plan.workers.count = options.threads();
    plan.connection.tls.insecure = true;
    plan.load.stop.duration_ns = Some(duration_ns);
    plan.load.drain_limit_ns = nanoseconds(options.timeout_s);
    Ok(plan)
}

/// The request of the options.
fn request(options: &WrkOptions) -> Result<RequestSpec, Ending> {
    request::request("GET", &options.url.path, &headers(options), b"").map_err(|reason| {
        match reason {
            // In wrk's words.
            NoRequest::Text(reason) => Ending::error(&reason.to_string(), 1),
            NoRequest::Several => Ending::of_brunt(reason),
        }
    })
}

/// `seconds` in nanoseconds: at most ten years, as in brunt's own schedules.
fn nanoseconds(seconds: u64) -> u64 {
    seconds
        .saturating_mul(SECOND_NS)
        .min(Schedule::DURATION_MAX_NS)
}

fn open_loop(options: &WrkOptions) -> Result<LoadModel, Ending> {
    let rate_per_s = options.rate_per_s;
    let schedule = Schedule::constant_rate(ArrivalProcess::Constant, rate_per_s as f64, 0)
        .map_err(Ending::of_brunt)?;
    let due = rate_per_s.saturating_mul(options.duration_s);
    Ok(LoadModel::Open {
        schedule,
        connections_max: options.connections(),
        queue_max: at_least_1(due.clamp(QUEUE_LEAST, QUEUE_MOST)),
    })
}

/// The header fields that were typed. What has no blank behind its colon is none; of two with one
/// name the last counts.
pub(super) fn typed_headers(options: &WrkOptions) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for typed in &options.headers {
        let Some((name, value)) = typed
            .split_once(": ")
            .filter(|(name, _)| !name.contains(':'))
        else {
            continue;
        };
        match headers.iter_mut().find(|(other, _)| other == name) {
            Some((_, earlier)) => value.clone_into(earlier),
            None => headers.push((name.to_owned(), value.to_owned())),
        }
    }
    headers
}

/// The header fields of the request. The length is that of the body, which there is none of.
pub(super) fn headers(options: &WrkOptions) -> Vec<(String, String)> {
    let mut headers = typed_headers(options);
    headers.retain(|(name, _)| name != "Content-Length");
    if !headers.iter().any(|(name, _)| name == "Host") {
        headers.insert(0, ("Host".to_owned(), options.url.authority()));
    }
    headers
}

#[cfg(test)]
mod tests {
    use brunt_load::Scheme;

    use super::*;

    fn options(words: &[&str]) -> WrkOptions {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        WrkOptions::parse(Program::Wrk, "wrk", &words).expect("good")
    }

    #[test]
    fn the_plan_is_what_the_options_say() {
        let closed = plan(&options(&["-t3", "-c7", "-d2m", "-T5", "https://h/x"])).expect("good");
        assert_eq!(
            (closed.workers.count.get(), closed.load.connections.get()),
            (3, 7)
        );
        assert_eq!(closed.load.stop.duration_ns, Some(120 * SECOND_NS));
        assert_eq!(
            (
                closed.limits.timeout_ns,
                closed.load.drain_limit_ns,
                closed.load.warmup_ns
            ),
            (5 * SECOND_NS, 5 * SECOND_NS, 0)
        );
        assert_eq!(closed.target.scheme, Scheme::Https);
        assert!(
            closed.connection.tls.insecure
                && closed.workers.oversubscribe
                && closed.load.model.schedule().is_none()
        );
        let open = plan(&options(&["-R2k", "-d30", "http://h/"])).expect("good");
        assert_eq!(open.limits.timeout_ns, 32 * SECOND_NS);
        let LoadModel::Open {
            schedule,
            connections_max,
            queue_max,
        } = open.load.model
        else {
            panic!("a rate was given");
        };
        assert_eq!((schedule.rate_max(), connections_max.get()), (2_000.0, 10));
        assert_eq!(u64::from(queue_max.get()), QUEUE_LEAST);
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (words, expected) in [
            (
                &["ftp://h/"][..],
                "unable to resolve h:ftp Servname not supported for ai_socktype\n",
            ),
            (&["-R2T", "http://h/"], "brunt: "),
            (
                &["-H", "A B: c", "http://h/"],
                "invalid character in header at ",
            ),
        ] {
            let ending = plan(&options(words)).expect_err(expected);
            assert!(ending.stderr.starts_with(expected), "{ending:?}");
            assert_eq!(ending.code, 1);
        }
    }
}
