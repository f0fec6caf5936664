//! What a server names as its software, in the reply to one request before an experiment.

use std::num::NonZeroU32;

use anyhow::Result;
use brunt_load::{LoadModel, Plan, Stop, Watch};
use brunt_proto::http1::head_fields;
use brunt_record::RequestLog;

use crate::run::Keeping;
use crate::signals::Interrupts;

/// A reply that takes longer than this is not waited for.
const WAIT_NS: u64 = 2_000_000_000;
/// Longer names are truncated.
const CHARACTERS_MAX: usize = 100;

/// The `Server` field of the reply to one request of `plan`. Absent where it names none, without a
/// reply, over HTTP/2, and where messages are exchanged.
///
/// # Errors
///
/// As those of a run: there is no server, say.
pub(crate) fn software_of(interrupts: &Interrupts, plan: &Plan) -> Result<Option<String>> {
    if !plan.spoken.preferred().carries_http {
        return Ok(None);
    }
    let one = Plan {
        model: LoadModel::Closed {
            connect_per_s: None,
        },
        connections: NonZeroU32::MIN,
        workers: NonZeroU32::MIN,
        pipeline: NonZeroU32::MIN,
        stop: Stop {
            duration_ns: None,
            requests: Some(1),
        },
        warmup_ns: 0,
        halves_warmup: false,
        keeps_errors: false,
        logged_requests_max: 1,
        logged_responses_max: 1,
        timeout_ns: plan.timeout_ns.min(WAIT_NS),
        watch: Watch::Off,
        server_counter: None,
        ..plan.clone()
    };
    let mut log = RequestLog::default();
    let mut keeping = Keeping {
        shown: None,
        log: &mut log,
    };
    interrupts.round(one, &mut keeping)?;
    let first = log.responses().into_iter().next();
    Ok(first.and_then(|reply| named_in(&reply.head)))
}

/// What the `Server` field of a head says, without what does not print.
fn named_in(head: &[u8]) -> Option<String> {
    let (_, value) = head_fields(head).find(|(name, _)| name.eq_ignore_ascii_case(b"server"))?;
    let text = String::from_utf8_lossy(value);
    let printed = text.chars().filter(|character| !character.is_control());
    let text: String = printed.take(CHARACTERS_MAX).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_found_in_any_case() {
        for (head, named) in [
            (
                "HTTP/1.1 200 OK\r\nX: y\r\nSERVER:  nginx/1.22.1\r\n\r\n",
                Some("nginx/1.22.1"),
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", None),
            ("HTTP/1.1 200 OK\r\nServer: \r\n\r\n", None),
            (
                "HTTP/1.1 200 OK\r\nServer: a\tb\u{1b}[1m\r\n\r\n",
                Some("ab[1m"),
            ),
        ] {
            assert_eq!(named_in(head.as_bytes()).as_deref(), named, "{head:?}");
        }
        let long = format!("HTTP/1.1 200 OK\r\nServer: {}\r\n\r\n", "x".repeat(500));
        let named = named_in(long.as_bytes()).expect("it is there");
        assert_eq!(named.len(), CHARACTERS_MAX);
    }
}
