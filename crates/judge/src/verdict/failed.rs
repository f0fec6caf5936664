//! The rules of runs that failed on the server's side, and what to do about it.

use std::path::Path;

use brunt_load::{RequestOutline, TlsSpec};
use brunt_protocols::{ByHand, Protocol};
use brunt_record::{FailureKind, FailureScope, Run};

use super::SignalId;
use super::advice;
use super::facts::{RunFacts, ratio};
use super::graded::{Decision, GradedSignals};
use super::words::shell_word;
use crate::units::short::{bytes, duration, number, percent};
use crate::units::{count, counted};
use crate::{EndedStreams, NoSuccess, NoSuccessCause, NoSuccessPopulation, Outage, ServerFailure};

pub(super) fn no_success(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = facts.no_success?;
    let what = match facts.run.is_streams() {
        true => "no byte was moved".to_owned(),
        false => format!("no {} succeeded", facts.run.unit().one),
    };
    let because = format!("{what}: {}", cause_words(facts, &found));
    Some(graded.decision(because, [], advice_on(facts, found.cause)))
}

/// What the requests ended in instead, in words: of one population, which is named where it is not
/// that of the row of the requests.
fn cause_words(facts: &RunFacts<'_>, found: &NoSuccess) -> String {
    let unit = facts.run.unit();
    let (one, many) = match found.counted {
        NoSuccessPopulation::Issued | NoSuccessPopulation::Ended => (unit.one, unit.many),
        NoSuccessPopulation::Attempts => ("attempt to connect", "attempts to connect"),
    };
    let whole = found.count == found.total;
    let which = match (found.total, whole) {
        (1, _) => format!("the only {one}"),
        (total, true) => format!("all {} {many}", count(total)),
        (total, false) => format!("{} of {} {many}", count(found.count), count(total)),
    };
    let which = match found.counted {
        NoSuccessPopulation::Issued => which,
        NoSuccessPopulation::Ended | NoSuccessPopulation::Attempts => {
            format!("{which} since the window began")
        }
    };
    match found.cause {
        NoSuccessCause::Status(status) if found.is_uniform => {
            format!("{which} had status {status}")
        }
        NoSuccessCause::Status(status) => format!("{which} had error statuses, mostly {status}"),
        NoSuccessCause::Error => format!("{which} had an error for an answer"),
        NoSuccessCause::Failure(kind) if found.is_uniform => {
            format!("{which} failed ({})", kind.label())
        }
        NoSuccessCause::Failure(kind) => format!("{which} failed (mostly {})", kind.label()),
        NoSuccessCause::Unanswered => {
            let window_ns = facts.run.window_ns as f64;
            format!(
                "{which} got no reply in a window of {}",
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
fn advice_on(facts: &RunFacts<'_>, cause: NoSuccessCause) -> Vec<String> {
    use FailureKind as Kind;
    if facts.run.agents.iter().any(|agent| agent.speaks_tls) {
        return vec![tls_advice(&facts.run.plan.target.url)];
    }
    if let Some(words) = unmatched(facts) {
        return vec![words];
    }
    let by_hand = by_hand(facts.run);
    let look = |before: &str| format!("{before}: {by_hand}");
    let advice = match cause {
        NoSuccessCause::Status(status) => match status {
            401 | 403 | 407 if has_authorization(facts.run) => {
                "the server refuses the Authorization that is sent: check -u, or that of -H"
            }
            401 | 403 | 407 => "send what the server asks for, such as -H 'Authorization: ...'",
            404 | 410 => "check the path of the URL, the method (-m) and the Host header",
            405 | 501 => "another method: -m",
            429 | 503 => {
                "the server turns requests away: raise its limit, or stay below it: -r RATE"
            }
            409 if facts.run.plan.requests.counts_numbers() => {
                "where the server had the numbers of {{seq}} before: --seq-from N, or {{uuid}}"
            }
            400..=499 => {
                let mut advice = vec![look(
                    "the server finds fault with the request: look at one reply",
                )];
                advice.extend(certificate_advice(facts.run));
                return advice;
            }
            _ => return vec![look("look into the server's log, and at one reply")],
        },
        NoSuccessCause::Error => "look into the server's log, and at one reply",
        NoSuccessCause::Failure(kind) => match kind {
            Kind::TlsExpected => return vec![tls_advice(&facts.run.plan.target.url)],
            Kind::TimedOut => {
                let one = look(&format!(
                    "see whether one {} is answered",
                    facts.run.unit().one
                ));
                return vec![format!("{one}; a longer limit: -T")];
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
            | Kind::TlsBroken => {
                let mut advice = vec![look("look into the server's log, and at one handshake")];
                advice.extend(certificate_advice(facts.run));
                return advice;
            }
            Kind::OpeningRefused => {
                "the server refuses what --first sends: try it by hand, as with redis-cli or \
                 websocat"
            }
            Kind::OtherProtocol => "name the protocol: --http1 or --http2",
            kind if kind.is_malformed() => facts.run.protocol().malformed_advice,
            _ => {
                let unit = facts.run.unit().one;
                return vec![look(&format!(
                    "look into the server's log, and at one {unit}"
                ))];
            }
        },
        NoSuccessCause::Unanswered => {
            let one = look(&format!(
                "see whether one {} is answered",
                facts.run.unit().one
            ));
            return vec![format!("{one}; a longer run: -d")];
        }
        NoSuccessCause::NothingSent => "a longer run (-d), or a higher rate",
        NoSuccessCause::NothingMoved => {
            "see whether the server reads (--send) or sends without being asked (--receive)"
        }
    };
    vec![advice.to_owned()]
}

fn has_authorization(run: &Run) -> bool {
    let first = run.plan.requests.outline().first;
    let mut names = first.iter().flat_map(|first| &first.header_names);
    names.any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// Over TLS a server may ask for a certificate that brunt was not given.
fn certificate_advice(run: &Run) -> Option<String> {
    let tls = run.plan.tls()?;
    let words = "or, if the server asks for a certificate of the client: --cert and --key";
    tls.identity.is_none().then(|| words.to_owned())
}

/// Whether curl, called with the URL and little else, sends the same request.
fn is_plain_get(run: &Run) -> bool {
    let outline = run.plan.requests.outline();
    let is_plain = |it: &RequestOutline| {
        it.method == "GET" && it.header_names.is_empty() && it.body_bytes == 0
    };
    let is_one = outline.list.is_none() && !run.is_generated();
    let has_roots = |tls: &TlsSpec| tls.roots.is_some() || !tls.roots_der.is_empty();
    // Without TLS, and over QUIC, curl would speak HTTP/1.1.
    let is_spoken = match run.plan.tls() {
        Some(tls) => !has_roots(tls) && tls.identity.is_none(),
        None => run.protocol() == Protocol::HTTP1,
    };
    is_one
        && is_spoken
        && run.protocol() != Protocol::HTTP3
        && outline.first.as_ref().is_some_and(is_plain)
}

/// What came in place of replies, where messages have to match.
fn unmatched(facts: &RunFacts<'_>) -> Option<String> {
    let window = &facts.summary.window;
    let mut messages = facts.run.workers().filter_map(|it| it.unexpected.as_ref());
    let message = messages.next().filter(|_| window.pushes > 0)?;
    Some(format!(
        "look at what came: --reply-match matched none of {}, such as {message}",
        counted(window.pushes, "message", "messages")
    ))
}

/// Where most replies say that the request is at fault, that comes before any advice on the load.
/// A server that turns requests away for their rate (429) has a signal of its own.
pub(super) fn add_of_client_errors(facts: &RunFacts<'_>, advice: &mut Vec<String>) {
    let replies = &facts.summary.window.replies;
    let refused = replies.class(4).saturating_sub(replies.count(429_u16));
    let share = ratio(refused as f64, replies.total() as f64);
    let Some(share) = share.filter(|&share| share > CLIENT_ERRORS_MOST) else {
        return;
    };
    let statuses = replies
        .iter()
        .filter(|&(status, _)| status / 100 == 4 && status != 429);
    let Some((status, _)) = statuses.max_by_key(|&(_, count)| count) else {
        return;
    };
    let remedy = advice_on(facts, NoSuccessCause::Status(status)).join("; ");
    let which = if replies.count(status) == refused {
        format!("had status {status}")
    } else {
        format!("had a status of 400 to 499, mostly {status}")
    };
    advice.insert(
        0,
        format!("{} of the replies {which}: {remedy}", percent(share)),
    );
}

/// The advice where the server speaks TLS and brunt spoke clear text, with the URL to give.
fn tls_advice(url: &str) -> String {
    let secure = Protocol::ALL.iter().find_map(|protocol| {
        let [clear, secure] = protocol.schemes;
        let rest = url.strip_prefix(clear)?.strip_prefix(':')?;
        Some(format!("{secure}:{rest}"))
    });
    let secure = secure.unwrap_or_else(|| "https://...".to_owned());
    format!(
        "the server speaks TLS at that port: {}",
        shell_word(&secure)
    )
}

/// A command that shows one exchange with the server of `run`.
fn by_hand(run: &Run) -> String {
    let url = &run.plan.target.url;
    let address = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let authority = address.split('/').next().unwrap_or(address);
    let is_secure = run.plan.tls().is_some();
    match run.protocol().by_hand {
        ByHand::Curl if !is_plain_get(run) => {
            "the same command with -n 1 -c 1 --show-errors".to_owned()
        }
        ByHand::Curl => {
            let mut words = vec!["curl -v".to_owned()];
            let is_insecure = run.plan.tls().is_some_and(|tls| tls.insecure);
            words.extend(is_insecure.then(|| "-k".to_owned()));
            let socket = run.plan.target.unix_socket.as_deref();
            words.extend(socket.map(|path| format!("--unix-socket {}", path_word(path))));
            words.push(shell_word(url));
            words.join(" ")
        }
        ByHand::Websocat => format!("websocat -v {}", shell_word(url)),
        ByHand::Netcat if is_secure => {
            format!("openssl s_client -connect {authority}")
        }
        ByHand::Netcat => match &run.plan.target.unix_socket {
            Some(path) => format!("nc -U {}", path_word(path)),
            None => match authority.rsplit_once(':') {
                Some((host, port)) => {
                    format!("nc {} {port}", host.trim_matches(['[', ']']))
                }
                None => format!("nc {authority}"),
            },
        },
    }
}

/// A path that a shell takes as it is.
fn path_word(path: &Path) -> String {
    shell_word(&path.to_string_lossy())
}

/// Streams are to last as long as the load: what was moved on some that do not is what brunt's
/// and the server's buffers held.
pub(super) fn streams_ended(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = EndedStreams::of(facts.run).filter(|it| !it.do_last())?;
    let EndedStreams {
        ended,
        reset,
        asked,
        ..
    } = found;
    let how = match (ended, reset) {
        (_, 0) => "ended",
        (0, _) => "reset",
        _ => "ended or reset",
    };
    let because = format!(
        "streams do not last: {} {how} in the window where {} to last as long as it; a stream \
         moved {} in {} on average",
        counted(found.all(), "was", "were"),
        counted(asked, "is", "are"),
        bytes(found.bytes_mean),
        duration(found.life_ns_mean),
    );
    let advice = "check that the server reads (--send) or sends (--receive) as long as the run \
                  lasts, as brunt serve --tcp sink does: what it has not read when it closes was \
                  acknowledged all the same";
    Some(graded.decision(because, [], vec![advice.to_owned()]))
}

pub(super) fn server_failed(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = facts.server_failure.as_ref()?;
    if !found.silences.is_empty() {
        return Some(graded.decision(
            silent_words(facts, found),
            [SignalId::ServerCpu],
            vec![SILENT_ADVICE.to_owned()],
        ));
    }
    // Attempts that wait in a full queue, or for a port, say nothing of a server that is gone.
    let is_explained = graded.fails(SignalId::ClientLimits)
        || graded.fails(SignalId::AcceptQueue) && found.kind == Some(FailureKind::ConnectTimedOut);
    if is_explained || found.answered_throughout {
        return None;
    }
    let mut because = match found.outages.as_slice() {
        [] => missing_words(facts, found),
        [outage] => format!("the server was gone {}", when(*outage, facts)),
        [first, ..] => {
            let down_ns = found.down_ns(facts.run.window_ns) as f64;
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
    because.push_str(&format!("; {}", losses(facts, found)));
    if let Some(asked) = facts.run.plan.stop.requests {
        let unsent = facts
            .summary
            .unsent
            .saturating_add(facts.summary.arrivals.unsent);
        if unsent > 0 {
            let answered = facts.summary.population.recorded;
            because.push_str(&format!(
                "; of {} {} were answered and {} never sent",
                counted(asked, facts.run.unit().one, facts.run.unit().many),
                count(answered),
                count(unsent)
            ));
        }
    }
    let advice = "look into the server's log for why it ended, and repeat".to_owned();
    Some(graded.decision(because, [SignalId::ServerCpu], vec![advice]))
}

/// Share of the replies with a status of 400 to 499 from which on they are most of them.
const CLIENT_ERRORS_MOST: f64 = 0.5;

/// Share of the requests whose connections the server cut, from which on it has failed.
const CUT_LEAST: f64 = 0.1;

/// A server that throws so many requests away gives the others what it could not give to all. What
/// it costs brunt to connect again says nothing about brunt either.
pub(super) fn requests_cut(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let window = &facts.summary.window;
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0_u64, u64::saturating_add);
    let of_requests = || {
        let failures = window.failures.iter();
        failures.filter(|(kind, _)| kind.scope() == FailureScope::Request)
    };
    let cut = sum(&mut of_requests().filter_map(|(kind, count)| kind.is_cut().then_some(count)));
    let failed = sum(&mut of_requests().map(|(_, count)| count));
    let ended = failed.saturating_add(window.replies.total());
    let share = ratio(cut as f64, ended as f64).filter(|&share| share > CUT_LEAST)?;
    let because = format!(
        "the server closed or reset the connections of {} of the {} before they were answered",
        percent(share),
        facts.run.unit().many
    );
    let fewer = match facts.is_open() {
        true => "--max-connections",
        false => "-c",
    };
    let advice = advice::of_silent_closes(facts).unwrap_or_else(|| {
        format!(
            "look into the server's log; where it takes fewer connections than {} (nginx: \
             worker_connections), raise its limit, or open fewer: {fewer}",
            count(facts.summary.live.max.into())
        )
    });
    Some(graded.decision(
        because,
        [SignalId::ServerCpu, SignalId::WorkerIdle],
        vec![advice],
    ))
}

/// What to do about a server that answers nothing for a time.
const SILENT_ADVICE: &str =
    "look at what the server did then: its log, a pause of its runtime, a lock, a full disk";

/// When the server answered nothing, in words, and how fast it was before and after.
fn silent_words(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    let mut words = match found.silences.as_slice() {
        [silence] => format!("no reply {}", when_silent(*silence)),
        silences => format!(
            "no reply for {} in all, {} times, first {}",
            duration(found.down_ns(facts.run.window_ns) as f64),
            silences.len(),
            silences
                .first()
                .map_or(String::new(), |it| when_silent(*it))
        ),
    };
    words.push_str(", with requests in flight");
    let unit = facts.run.unit();
    for (stretch, side) in [(&found.before, "before"), (&found.after, "after")] {
        if let Some(stretch) = stretch {
            let per_s = number(stretch.successes_per_s);
            words.push_str(&format!("; {per_s} {} {side}", unit.per_s));
        }
    }
    words
}

/// `from 4.0 s on`, `from 4.0 s to 9.0 s of the window`.
fn when_silent(silence: Outage) -> String {
    let from = duration(silence.from_ns as f64);
    match silence.until_ns {
        Some(until_ns) => format!("from {from} to {} of the window", duration(until_ns as f64)),
        None => format!("from {from} of the window on"),
    }
}

/// How many connections the server did not take, in words.
fn missing_words(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    format!(
        "the server did not take all connections: {} of {} were missing on average",
        number(found.missing_mean),
        count(facts.summary.live.asked.into())
    )
}

/// A server that takes no more connections, and answers on those that it took as before, has not
/// failed: their number is what limits.
pub(super) fn connections_refused(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = facts.server_failure.as_ref()?;
    if !found.answered_throughout {
        return None;
    }
    let because = format!(
        "{}; it answered on the others throughout; {}",
        missing_words(facts, found),
        losses(facts, found)
    );
    let open = f64::from(facts.summary.live.asked) - found.missing_mean;
    let advice = format!(
        "raise the server's limit of connections, or ask for about {} of them",
        number(open.floor())
    );
    Some(graded.decision(
        because,
        [SignalId::ServerCpu, SignalId::WorkerIdle],
        vec![advice],
    ))
}

/// When the server was gone, in words.
fn when(outage: Outage, facts: &RunFacts<'_>) -> String {
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
            let rest_ns = facts.run.window_ns.saturating_sub(from_ns);
            format!(
                "from {from} of the window on, and did not come back in {}",
                duration(rest_ns as f64)
            )
        }
    }
}

/// What failed in it, in words.
fn losses(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    let unit = facts.run.unit();
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
        let requests = counted(found.requests_failed, unit.one, unit.many);
        words = format!("{requests} and {words}");
    }
    if found.connections_opened > 0 {
        let opened = counted(found.connections_opened, "connection", "connections");
        words.push_str(&format!(", {opened} opened anew"));
    }
    words
}
