//! The rules of runs that failed on the server's side, and what to do about it.

use super::SignalId;
use super::case::Case;
use super::weighed::{Decision, Weighed};
use super::words::{count, counted, duration, number};
use crate::{FailureKind, NoSuccess, NoSuccessCause, Outage, Protocol, ServerFailure};

pub(super) fn no_success(weighed: &Weighed<'_>) -> Option<Decision> {
    let case = weighed.case;
    let found = case.no_success?;
    let what = match case.run.is_streams() {
        true => "no byte was moved".to_owned(),
        false => format!("no {} succeeded", case.run.unit().one),
    };
    let because = format!("{what}: {}", cause_words(case, &found));
    Some(weighed.decision(because, [], advice_on(case, found.cause)))
}

/// What the requests ended in instead, in words.
fn cause_words(case: &Case<'_>, found: &NoSuccess) -> String {
    let unit = case.run.unit();
    let whole = found.count == found.total;
    let share = if whole {
        "all".to_owned()
    } else {
        format!("{} of", count(found.count))
    };
    let total = count(found.total);
    let of = |one: &str, many: &str| match found.total {
        1 => format!("the only {one}"),
        _ => format!("{share} {total} {many}"),
    };
    let (reply, replies) = if whole {
        ("reply", "replies")
    } else {
        (unit.one, unit.many)
    };
    match found.cause {
        NoSuccessCause::Status(status) => format!("{} had status {status}", of(reply, replies)),
        NoSuccessCause::Error => format!("{} had an error for an answer", of(reply, replies)),
        NoSuccessCause::Failure(kind) => {
            let (one, many) = match kind.scope() {
                crate::FailureScope::Request => (unit.one, unit.many),
                _ => ("attempt to connect", "attempts to connect"),
            };
            format!("{} failed ({})", of(one, many), kind.label())
        }
        NoSuccessCause::Unanswered => {
            let window_ns = case.run.window_ns as f64;
            format!(
                "{} got no reply in a window of {}",
                of(unit.one, unit.many),
                duration(window_ns)
            )
        }
        NoSuccessCause::NothingSent => "none was sent".to_owned(),
        NoSuccessCause::NothingMoved => {
            "none was acknowledged by the peer's kernel, and none came".to_owned()
        }
    }
}

/// What to do about requests that all end in `cause`.
fn advice_on(case: &Case<'_>, cause: NoSuccessCause) -> Vec<String> {
    use FailureKind as Kind;
    let advice = match cause {
        NoSuccessCause::Status(status) => match status {
            401 | 403 | 407 => "send what the server asks for, such as -H 'Authorization: ...'",
            404 | 410 => "check the path of the URL and the Host header",
            405 | 501 => "another method: -m",
            429 | 503 => {
                "the server turns requests away: raise its limit, or stay below it: -r RATE"
            }
            400..=499 => "the server finds fault with the request: look at one reply: curl -v URL",
            _ => "look into the server's log, and at one reply: curl -v URL",
        },
        NoSuccessCause::Error => "look into the server's log, and at one reply",
        NoSuccessCause::Failure(kind) => match kind {
            Kind::TlsExpected => "the server wants https: https://... in place of http://...",
            Kind::TimedOut => {
                "see whether one request is answered: curl -v URL; a longer limit: -T"
            }
            Kind::ConnectRefused => {
                "start the server, or check host and port: nothing listens there"
            }
            Kind::ConnectTimedOut | Kind::ConnectUnreachable => {
                "check host, port and firewall: nothing answers there"
            }
            Kind::ConnectNoPort | Kind::ConnectNoDescriptor => {
                "raise net.ipv4.ip_local_port_range or ulimit -n"
            }
            Kind::HandshakeTimedOut
            | Kind::HandshakeCut
            | Kind::TlsAlert
            | Kind::TlsCertificate
            | Kind::TlsFailed
            | Kind::TlsBroken => "look into the server's log, and at one handshake: curl -v URL",
            Kind::OtherProtocol => "name the protocol: --http1 or --http2",
            kind if kind.is_malformed() => match case.run.protocol() {
                Protocol::Http1 => "check the port: what answers there does not speak HTTP/1.1",
                Protocol::Http2 => "check the port: what answers there does not speak HTTP/2",
                Protocol::WebSocket => "check the URL: what answers there breaks WebSocket's rules",
                Protocol::Messages => {
                    "check port and --reply: what answers there is framed in another way"
                }
                Protocol::Streams => "check the port",
            },
            _ => "look into the server's log, and at one request: curl -v URL",
        },
        NoSuccessCause::Unanswered => {
            "see whether one request is answered: curl -v URL; a longer run: -d"
        }
        NoSuccessCause::NothingSent => "a longer run (-d), or a higher rate",
        NoSuccessCause::NothingMoved => {
            "see whether the server reads (--send) or sends without being asked (--receive)"
        }
    };
    vec![advice.to_owned()]
}

pub(super) fn server_failed(weighed: &Weighed<'_>) -> Option<Decision> {
    let case = weighed.case;
    let found = case.server_failure.as_ref()?;
    // Attempts that wait in a full queue, or for a port, say nothing of a server that is gone.
    let is_explained = weighed.fails(SignalId::ClientLimits)
        || weighed.fails(SignalId::AcceptQueue) && found.kind == Some(FailureKind::ConnectTimedOut);
    if is_explained || found.answered_throughout {
        return None;
    }
    let mut because = match found.outages.as_slice() {
        [] => missing_words(case, found),
        [outage] => format!("the server was gone {}", when(*outage, case)),
        [first, ..] => {
            let down_ns = found.down_ns(case.run.window_ns) as f64;
            let back = if found.is_down_at_end() {
                ", and it did not come back"
            } else {
                ""
            };
            format!(
                "the server was gone {} times for {} in all, first at {} of the window{back}",
                found.outages.len(),
                duration(down_ns),
                duration(first.from_ns as f64)
            )
        }
    };
    because.push_str(&format!("; {}", losses(found)));
    if let Some(asked) = case.run.plan.stop.requests {
        let unsent = case
            .summary
            .unsent
            .saturating_add(case.summary.arrivals.unsent);
        if unsent > 0 {
            let answered = case.summary.population.recorded;
            because.push_str(&format!(
                "; of {} {} were answered and {} never sent",
                counted(asked, case.run.unit().one, case.run.unit().many),
                count(answered),
                count(unsent)
            ));
        }
    }
    let advice = "look into the server's log for why it ended, and repeat".to_owned();
    Some(weighed.decision(because, [SignalId::ServerCpu], vec![advice]))
}

/// How many connections the server did not take, in words.
fn missing_words(case: &Case<'_>, found: &ServerFailure) -> String {
    format!(
        "the server did not take all connections: {} of {} were missing on average",
        number(found.missing_mean),
        count(case.summary.live.asked.into())
    )
}

/// A server that takes no more connections, and answers on those that it took as before, has not
/// failed: their number is what limits.
pub(super) fn connections_refused(weighed: &Weighed<'_>) -> Option<Decision> {
    let case = weighed.case;
    let found = case.server_failure.as_ref()?;
    if !found.answered_throughout {
        return None;
    }
    let because = format!(
        "{}; it answered on the others throughout; {}",
        missing_words(case, found),
        losses(found)
    );
    let open = f64::from(case.summary.live.asked) - found.missing_mean;
    let advice = format!(
        "raise the server's limit of connections, or ask for about {} of them",
        number(open.floor())
    );
    Some(weighed.decision(
        because,
        [SignalId::ServerCpu, SignalId::WorkerIdle],
        vec![advice],
    ))
}

/// When the server was gone, in words.
fn when(outage: Outage, case: &Case<'_>) -> String {
    let from = duration(outage.from_ns as f64);
    match (outage.from_ns, outage.until_ns) {
        (0, Some(until_ns)) => {
            format!("for the first {} of the window", duration(until_ns as f64))
        }
        (0, None) => "for the whole window".to_owned(),
        (from_ns, Some(until_ns)) => format!(
            "for {}, from {from} of the window on",
            duration((until_ns - from_ns) as f64)
        ),
        (from_ns, None) => {
            let rest_ns = case.run.window_ns.saturating_sub(from_ns);
            format!(
                "from {from} of the window on, and did not come back in {}",
                duration(rest_ns as f64)
            )
        }
    }
}

/// What failed in it, in words.
fn losses(found: &ServerFailure) -> String {
    let label = found.kind.map_or("", FailureKind::label);
    let mut words = format!(
        "{} failed ({label})",
        counted(
            found.attempts_failed,
            "attempt to connect",
            "attempts to connect"
        )
    );
    if found.requests_failed > 0 {
        let requests = counted(found.requests_failed, "request", "requests");
        words = format!("{requests} and {words}");
    }
    if found.connections_opened > 0 {
        let opened = counted(found.connections_opened, "connection", "connections");
        words.push_str(&format!(", {opened} opened anew"));
    }
    words
}
