//! The command line of brunt's own that does the same as one of httperf's.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_engine::verbatim_requests;
use brunt_load::sessions::SessionLog;
use brunt_load::{LoadModel, Plan, RequestOrder, RequestRef, RequestSet, RequestSpec, Reuse};

use super::Files;
use super::options::{Options, Period, Uris, Workload};
use crate::own_line::{Made, OwnLine};
use crate::{Ending, Explanation};

/// A list of more requests is not typed.
const LISTED_MAX: usize = 64;
/// Longer runs are not looked through for what they repeat.
const SEEN_MAX: u64 = 4_096;

/// The command line, for a machine with so many CPUs, with the files that the options name.
///
/// # Errors
///
/// As those of the plan.
pub fn explanation(
    options: &Options,
    files: &Files,
    cpus: NonZeroU32,
) -> Result<Explanation, Ending> {
    let mut plan = options.plan(files)?.plan;
    if matches!(options.period, Period::Sequential) {
        // One after the other.
        let connect_per_s = None;
        plan.model = LoadModel::Closed { connect_per_s };
    }
    let (mut made, mut is_whole) = (Made::Set, true);
    let (connections, calls, think_s) = match &options.workload {
        Workload::Log { think_s, path, .. } => {
            made = Made::Sessions(path.clone());
            (0, 0, *think_s)
        }
        Workload::Calls { connections, calls } => (*connections, *calls, 0.0),
        Workload::Sessions {
            sessions,
            calls,
            think_s,
        } => (*sessions, *calls, *think_s),
    };
    plan.think_time_ns = (think_s * 1e9) as u64;
    if let Some(log) = files
        .log
        .as_ref()
        .filter(|_| matches!(made, Made::Sessions(_)))
    {
        plan.stop.requests = Some(requests_of(log, options.sessions()));
        // Each has its length.
        plan.requests = RequestSet::one(common(&plan));
    } else {
        plan.reuse = NonZeroU64::new(calls.into()).map_or(Reuse::Unlimited, Reuse::Requests);
        let all = u64::from(connections) * u64::from(calls);
        is_whole = set_requests(options, files, &mut plan, all)?;
    }
    let line = OwnLine::of(&plan, &made, cpus)
        .noting_if(
            !is_whole,
            "several paths are for --urls FILE, a path per line.",
        )
        .noting_if(
            matches!(made, Made::Sessions(_)),
            "bodies have Content-Length, where httperf writes Content-length; -n is of requests.",
        )
        .noting_if(
            options.failure_status.is_some() || options.retries || options.cookies,
            "--failure-status, --retry-on-failure and --session-cookies are httperf's alone; \
             scripts (-s) do such things.",
        )
        .noting_if(
            options.connections_max > 0,
            "--max-connections is httperf's alone: it ends a session that loses so many.",
        )
        .noting_if(
            options.burst > 1,
            "--pipeline keeps so many in flight, and has no bursts.",
        );
    Ok(line.explanation())
}

/// The requests of so many sessions of a log, which are replayed over and over.
fn requests_of(log: &SessionLog, sessions: u32) -> u64 {
    let of_each: Vec<u64> = log
        .sessions
        .iter()
        .map(|session| {
            session
                .bursts
                .iter()
                .map(|burst| burst.requests.len() as u64)
                .sum()
        })
        .collect();
    let (rounds, rest) = match of_each.len() {
        0 => (0, 0),
        count => (sessions as usize / count, sessions as usize % count),
    };
    let whole: u64 = of_each.iter().sum();
    whole * rounds as u64 + of_each[..rest].iter().sum::<u64>()
}

/// What the requests of a plan have in common, without their lengths.
fn common(plan: &Plan) -> RequestSpec {
    let first = plan.requests.first().map(RequestRef::to_spec);
    let mut spec = first.unwrap_or_else(|| RequestSpec::get("/"));
    spec.headers
        .retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
    spec
}

/// Gives the plan the requests of a run of so many, in turns; whether these are all.
fn set_requests(
    options: &Options,
    files: &Files,
    plan: &mut Plan,
    all: u64,
) -> Result<bool, Ending> {
    plan.stop.requests = Some(all);
    if options.uris == Uris::One {
        return Ok(true);
    }
    let sequence = options.first_requests(files, all.min(SEEN_MAX) as usize)?;
    let repeats = |&length: &usize| {
        let mut places = sequence.iter().enumerate();
        places.all(|(place, number)| *number == sequence[place % length])
    };
    let is_seen = all <= SEEN_MAX || matches!(options.uris, Uris::List { .. });
    let length = (1..=LISTED_MAX.min(sequence.len())).find(repeats);
    let Some(length) = length.filter(|_| is_seen) else {
        return Ok(false);
    };
    if all <= SEEN_MAX || matches!(options.uris, Uris::List { wraps: false, .. }) {
        plan.stop.requests = Some(sequence.len() as u64);
    }
    let (texts, _) = options.texts(files)?;
    let text: Vec<u8> = sequence[..length]
        .iter()
        .flat_map(|&number| texts.bytes(number).to_vec())
        .collect();
    let requests = verbatim_requests(&text);
    let requests = requests.map_err(|error| Ending::error(&format!("brunt: {error}"), 1))?;
    let set = match &requests[..] {
        [only] => Some(RequestSet::one(only.clone())),
        _ => RequestSet::of(requests, RequestOrder::Turns),
    };
    let is_whole = set.is_some();
    if let Some(set) = set {
        plan.requests = set;
    }
    Ok(is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    #[test]
    fn command_lines_are_translated() {
        let raw = |path: &str| {
            format!("GET {path} HTTP/1.1\\r\\nUser-Agent: httperf/0.9.0\\r\\nHost: h\\r\\n\\r\\n")
        };
        for (line, expected) in [
            (
                "--server h --port 81 --uri /x --rate 100 --num-conns 300 --num-calls 5 \
                 --timeout 5 --hog",
                format!(
                    "brunt -c 300 -t 1 --connection-rate 100 --queue 300 -n 1500 -T 5s --drain 1s \
                     --requests-per-connection 5 --spin off --raw '{}' http://h:81/",
                    raw("/x")
                ),
            ),
            (
                "--wlog y,f --num-calls 4 --server h --timeout 5",
                format!(
                    "brunt -c 1 -t 1 -n 4 -T 5s --drain 1s --requests-per-connection 4 --spin off \
                     --raw '{}{}' http://h/",
                    raw("/a"),
                    raw("/b")
                ),
            ),
        ] {
            let words = words(line);
            let options = Options::parse("httperf", &words).expect(line);
            let files = Files {
                list: Some(b"/a\0/b\0".to_vec()),
                ..Files::default()
            };
            let explained = explanation(&options, &files, NonZeroU32::MIN).expect(line);
            assert_eq!(explained.line, format!("{expected}\n"));
        }
    }
}
