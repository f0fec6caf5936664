//! The rules of runs that failed on the server's side, and what to do about it.

use std::path::Path;

use brunt_load::protocol::{ByHand, Protocol};
use brunt_load::{RequestOutline, TlsSpec};
use brunt_record::{FailureKind, FailureScope, Run};

use super::SignalId as Id;
use super::advice;
use super::facts::{RunFacts, ratio};
use super::graded::{Decision, GradedSignals};
use super::words::shell_word;
use crate::units::short::{bytes, duration, number, percent};
use crate::units::{count, counted, plural};
use crate::{EndedStreams, NoSuccess, NoSuccessCause, NoSuccessPopulation, Outage, ServerFailure};

pub(super) fn no_success(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let found = facts.no_success?;
    let cause = cause_words(facts, &found);
    let because = if facts.run.is_streams() {
        format!("no byte was moved: {cause}")
    } else {
        format!("no {} succeeded: {cause}", facts.run.unit().one)
    };
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
    let [count, total] = [found.count, found.total].map(count);
    let mut which = if found.total == 1 {
        format!("the only {one}")
    } else if found.count == found.total {
        format!("all {total} {many}")
    } else {
        format!("{count} of {total} {many}")
    };
    if found.counted != NoSuccessPopulation::Issued {
        which.push_str(" since the window began");
    }
    let mostly = if found.is_uniform { "" } else { "mostly " };
    match found.cause {
        NoSuccessCause::Status(status) if found.is_uniform => {
            format!("{which} had status {status}")
        }
        NoSuccessCause::Status(status) => format!("{which} had error statuses, mostly {status}"),
        NoSuccessCause::Error => format!("{which} had an error for an answer"),
        NoSuccessCause::Failure(kind) => format!("{which} failed ({mostly}{})", kind.label()),
        NoSuccessCause::Unanswered => {
            let window = duration(facts.run.window_ns as f64);
            format!("{which} got no reply in a window of {window}")
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
    use NoSuccessCause as Cause;
    let run = facts.run;
    let speaks_tls = run.agents.iter().any(|agent| agent.speaks_tls);
    if speaks_tls || cause == Cause::Failure(Kind::TlsExpected) {
        return vec![tls_advice(&run.plan.target.url)];
    }
    if let Some(words) = unmatched(facts) {
        return vec![words];
    }
    let unit = run.unit().one;
    let log = format!("look into the server's log, and at one {unit}");
    let answered = format!("see whether one {unit} is answered");
    // What to look at with one exchange by hand, and what follows that.
    let (look, then) = match cause {
        Cause::Failure(Kind::TimedOut) => (answered.as_str(), "; a longer limit: -T"),
        Cause::Unanswered => (answered.as_str(), "; a longer run: -d"),
        _ => match words_on(run, cause) {
            Ok(advice) => return vec![advice.to_owned()],
            Err("") => (log.as_str(), ""),
            Err(look) => (look, ""),
        },
    };
    let mut advice = vec![format!("{look}: {}{then}", by_hand(run))];
    let asks_for_certificate = match cause {
        Cause::Status(status) => status / 100 == 4,
        Cause::Failure(kind) => is_of_handshake(kind),
        _ => false,
    };
    // Over TLS a server may ask for a certificate that brunt was not given.
    if asks_for_certificate && run.plan.tls().is_some_and(|tls| tls.identity.is_none()) {
        let words = "or, if the server asks for a certificate of the client: --cert and --key";
        advice.push(words.to_owned());
    }
    advice
}

/// What to do about requests that all end in `cause`. `Err`: what to look at by hand; empty where
/// that is the server's log.
fn words_on(run: &Run, cause: NoSuccessCause) -> Result<&'static str, &'static str> {
    use FailureKind as Kind;
    use NoSuccessCause as Cause;
    Ok(match cause {
        Cause::Status(401 | 403 | 407) if has_authorization(run) => {
            "the server refuses the Authorization that is sent: check -u, or that of -H"
        }
        Cause::Status(401 | 403 | 407) => {
            "send what the server asks for, such as -H 'Authorization: ...'"
        }
        Cause::Status(404 | 410) => {
            "check the path of the URL, the method (-m) and the Host header"
        }
        Cause::Status(405 | 501) => "another method: -m",
        Cause::Status(429 | 503) => {
            "the server turns requests away: raise its limit, or stay below it: -r RATE"
        }
        Cause::Status(409) if run.plan.requests.counts_numbers() => {
            "where the server had the numbers of {{seq}} before: --seq-from N, or {{uuid}}"
        }
        Cause::Status(400..=499) => {
            return Err("the server finds fault with the request: look at one reply");
        }
        Cause::Status(_) => return Err("look into the server's log, and at one reply"),
        Cause::Error => "look into the server's log, and at one reply",
        Cause::NothingSent => "a longer run (-d), or a higher rate",
        Cause::NothingMoved => {
            "see whether the server reads (--send) or sends without being asked (--receive)"
        }
        Cause::Failure(Kind::ConnectRefused) => {
            "start the server, or check host and port: nothing listens there"
        }
        Cause::Failure(Kind::ConnectTimedOut | Kind::ConnectUnreachable) => {
            "check host, port and firewall: nothing answers there"
        }
        Cause::Failure(Kind::ConnectNoPort | Kind::ConnectNoDescriptor) => {
            "raise net.ipv4.ip_local_port_range or ulimit -n"
        }
        Cause::Failure(Kind::OpeningRefused) => {
            "the server refuses what --first sends: try it by hand, as with redis-cli or websocat"
        }
        Cause::Failure(Kind::OtherProtocol) => "name the protocol: --http1 or --http2",
        Cause::Failure(kind) if is_of_handshake(kind) => {
            return Err("look into the server's log, and at one handshake");
        }
        Cause::Failure(kind) if kind.is_malformed() => run.protocol().malformed_advice,
        Cause::Failure(_) | Cause::Unanswered => return Err(""),
    })
}

fn is_of_handshake(kind: FailureKind) -> bool {
    use FailureKind::{HandshakeCut, HandshakeTimedOut};
    kind.is_of_tls() || matches!(kind, HandshakeTimedOut | HandshakeCut)
}

fn has_authorization(run: &Run) -> bool {
    let first = run.plan.requests.outline().first;
    let mut names = first.iter().flat_map(|first| &first.header_names);
    names.any(|name| name.eq_ignore_ascii_case("authorization"))
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
    let statuses = replies.iter();
    let statuses = statuses.filter(|&(status, _)| status / 100 == 4 && status != 429);
    let Some((status, _)) = statuses.max_by_key(|&(_, count)| count) else {
        return;
    };
    let remedy = advice_on(facts, NoSuccessCause::Status(status)).join("; ");
    let which = if replies.count(status) == refused {
        format!("had status {status}")
    } else {
        format!("had a status of 400 to 499, mostly {status}")
    };
    let share = percent(share);
    advice.insert(0, format!("{share} of the replies {which}: {remedy}"));
}

/// The advice where the server speaks TLS and brunt spoke clear text, with the URL to give.
fn tls_advice(url: &str) -> String {
    let secure = Protocol::ALL.iter().find_map(|protocol| {
        let [clear, secure] = protocol.schemes;
        let rest = url.strip_prefix(clear)?.strip_prefix(':')?;
        Some(format!("{secure}:{rest}"))
    });
    let secure = secure.unwrap_or_else(|| "https://...".to_owned());
    let secure = shell_word(&secure);
    format!("the server speaks TLS at that port: {secure}")
}

/// A command that shows one exchange with the server of `run`.
fn by_hand(run: &Run) -> String {
    let url = &run.plan.target.url;
    let address = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let authority = address.split('/').next().unwrap_or(address);
    let is_secure = run.plan.tls().is_some();
    let socket = run.plan.target.unix_socket.as_deref();
    match run.protocol().by_hand {
        ByHand::Curl if !is_plain_get(run) => {
            "the same command with -n 1 -c 1 --show-errors".to_owned()
        }
        ByHand::Curl => {
            let mut words = "curl -v".to_owned();
            if run.plan.tls().is_some_and(|tls| tls.insecure) {
                words.push_str(" -k");
            }
            if let Some(path) = socket {
                words = format!("{words} --unix-socket {}", path_word(path));
            }
            format!("{words} {}", shell_word(url))
        }
        ByHand::Websocat => format!("websocat -v {}", shell_word(url)),
        ByHand::Netcat if is_secure => format!("openssl s_client -connect {authority}"),
        ByHand::Netcat => match (socket, authority.rsplit_once(':')) {
            (Some(path), _) => format!("nc -U {}", path_word(path)),
            (None, Some((host, port))) => {
                format!("nc {} {port}", host.trim_matches(['[', ']']))
            }
            (None, None) => format!("nc {authority}"),
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
    let how = match (found.ended, found.reset) {
        (_, 0) => "ended",
        (0, _) => "reset",
        _ => "ended or reset",
    };
    let because = format!(
        "streams do not last: {} {how} in the window where {} to last as long as it; a stream \
         moved {} in {} on average",
        counted(found.all(), "was", "were"),
        counted(found.asked, "is", "are"),
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
        let because = silent_words(facts, found);
        let advice = vec![SILENT_ADVICE.to_owned()];
        return Some(graded.decision(because, [Id::ServerCpu], advice));
    }
    // Attempts that wait in a full queue, or for a port, say nothing of a server that is gone.
    let is_explained = graded.fails(Id::ClientLimits)
        || graded.fails(Id::AcceptQueue) && found.kind == Some(FailureKind::ConnectTimedOut);
    if is_explained || found.answered_throughout {
        return None;
    }
    let mut because = match found.outages.as_slice() {
        [] => missing_words(facts, found),
        [outage] => format!("the server was gone {}", when(*outage, facts)),
        [first, ..] => {
            let back = if found.is_down_at_end() {
                ", and it did not come back"
            } else {
                ""
            };
            format!(
                "the server was gone {} times for {} in all, first at {} of the window{back}",
                found.outages.len(),
                duration(found.down_ns(facts.run.window_ns) as f64),
                duration(first.from_ns as f64)
            )
        }
    };
    because.push_str(&format!("; {}", losses(facts, found)));
    let summary = &facts.summary;
    let unsent = summary.unsent.saturating_add(summary.arrivals.unsent);
    if let Some(asked) = facts.run.plan.stop.requests.filter(|_| unsent > 0) {
        let unit = facts.run.unit();
        let asked = counted(asked, unit.one, unit.many);
        let [answered, unsent] = [summary.population.recorded, unsent].map(count);
        because.push_str(&format!(
            "; of {asked} {answered} were answered and {unsent} never sent"
        ));
    }
    let advice = "look into the server's log for why it ended, and repeat".to_owned();
    Some(graded.decision(because, [Id::ServerCpu], vec![advice]))
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
    let failures = window.failures.iter();
    let of_requests = failures.filter(|(kind, _)| kind.scope() == FailureScope::Request);
    let (mut cut, mut ended) = (0.0, window.replies.total() as f64);
    for (kind, count) in of_requests {
        ended += count as f64;
        cut += if kind.is_cut() { count as f64 } else { 0.0 };
    }
    let share = ratio(cut, ended).filter(|&share| share > CUT_LEAST)?;
    let (share, many) = (percent(share), facts.run.unit().many);
    let because = format!(
        "the server closed or reset the connections of {share} of the {many} before they were \
         answered"
    );
    let fewer = if facts.is_open() {
        "--max-connections"
    } else {
        "-c"
    };
    let advice = advice::of_silent_closes(facts).unwrap_or_else(|| {
        let most = count(facts.summary.live.max.into());
        format!(
            "look into the server's log; where it takes fewer connections than {most} (nginx: \
             worker_connections), raise its limit, or open fewer: {fewer}"
        )
    });
    let decisive = [Id::ServerCpu, Id::WorkerIdle];
    Some(graded.decision(because, decisive, vec![advice]))
}

/// What to do about a server that answers nothing for a time.
const SILENT_ADVICE: &str =
    "look at what the server did then: its log, a pause of its runtime, a lock, a full disk";

/// When the server answered nothing, in words, and how fast it was before and after.
fn silent_words(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    let mut words = match found.silences.as_slice() {
        [silence] => format!("no reply {}", when_silent(*silence)),
        [first, ..] => format!(
            "no reply for {} in all, {} times, first {}",
            duration(found.down_ns(facts.run.window_ns) as f64),
            found.silences.len(),
            when_silent(*first)
        ),
        [] => String::new(),
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
    let open = number(open.floor());
    let advice =
        format!("raise the server's limit of connections, or ask for about {open} of them");
    let decisive = [Id::ServerCpu, Id::WorkerIdle];
    Some(graded.decision(because, decisive, vec![advice]))
}

/// When the server was gone, in words.
fn when(outage: Outage, facts: &RunFacts<'_>) -> String {
    let window_ns = facts.run.window_ns;
    let length = |until_ns: u64| duration(until_ns.saturating_sub(outage.from_ns) as f64);
    let from = duration(outage.from_ns as f64);
    match (outage.from_ns, outage.until_ns) {
        (0, Some(until_ns)) => format!("for the first {} of the window", length(until_ns)),
        (0, None) => "for the whole window".to_owned(),
        (_, Some(until_ns)) => {
            format!("for {}, from {from} of the window on", length(until_ns))
        }
        (_, None) => {
            let rest = length(window_ns);
            format!("from {from} of the window on, and did not come back in {rest}")
        }
    }
}

/// What failed in it, in words.
fn losses(facts: &RunFacts<'_>, found: &ServerFailure) -> String {
    let unit = facts.run.unit();
    let label = found.kind.map_or("", FailureKind::label);
    let failed = found.attempts_failed;
    let attempts = counted(failed, "attempt to connect", "attempts to connect");
    let mut words = format!("{attempts} failed ({label})");
    if found.requests_failed > 0 {
        let requests = counted(found.requests_failed, unit.one, unit.many);
        words = format!("{requests} and {words}");
    }
    if found.connections_opened > 0 {
        let opened = plural(found.connections_opened, "connection");
        words.push_str(&format!(", {opened} opened anew"));
    }
    words
}
