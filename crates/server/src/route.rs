//! Which path asks for what: the routes of the reference server and their parameters.

use brunt_load::units;
use brunt_proto::websocket::CloseCode;

use crate::listeners::Protocol;
use crate::pace::{Drift, Limit, Stall, duration_ns};
use crate::raw::{self, RawAnswers};

/// The largest body that a route sends, bytes.
pub(crate) const BODY_BYTES_MAX: u64 = 1 << 30;
/// The most interim replies before one answer.
pub(crate) const INTERIM_MAX: u16 = 1_000;

/// The longest message of WebSocket that is echoed or sent, bytes.
pub(crate) const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// The highest rate of `/limit`, answers per second.
pub(crate) const RATE_PER_S_MAX: u64 = 1_000_000_000;

/// Every route: its path pattern and what it does, one per line.
pub const ROUTES: &str = include_str!("routes.txt");

/// The method of a request, as counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Method(u8);

impl Method {
    pub(crate) const GET: Self = Self(0);
    pub(crate) const HEAD: Self = Self(1);
    /// One without a name of its own.
    pub(crate) const OTHER: Self = Self(7);

    /// Names by index, as in the counters.
    pub(crate) const NAMES: [&'static str; 8] = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "other",
    ];

    /// The method of this name.
    pub(crate) fn of(name: &str) -> Self {
        let index = Self::NAMES.iter().position(|known| *known == name);
        index.map_or(Self::OTHER, |index| Self(index as u8))
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Route {
    #[default]
    Null,
    Bytes(u64),
    Chunked(u64),
    Status(u16),
    /// So many nanoseconds.
    Delay(u64),
    Stall(Stall),
    Drift(Drift),
    Locked(u64),
    Compute(u64),
    Limit(Limit),
    Interim(u16),
    Close,
    Http10,
    Http10KeepAlive,
    Never,
    Reset,
    Truncate(u64),
    /// The stream is reset with this error code; absent for that of a fault.
    ResetStream(Option<u32>),
    Refuse,
    /// So many percent.
    RandomRefuse(u16),
    /// The connection takes no more requests, for this error code; absent for none.
    GoAway(Option<u32>),
    Raw(RawAnswers),
    /// So many requests are answered; those on equal paths are counted together.
    RefuseAfter(u64),
    RandomClose(u16),
    /// What its messages get is in its path: [`Route::of_messages`].
    WebSocket,
    Counters,
    Routes,
    Unknown,
}

impl Route {
    /// The route of a request target (RFC 9112 section 3.2: origin or absolute form). What is
    /// unknown, or has parameters out of range, is `Unknown`.
    pub(crate) fn of(target: &str) -> Self {
        let path = path(target);
        if path == "/" {
            return Self::Null;
        }
        let route = path.strip_prefix('/').and_then(Self::named);
        route.unwrap_or_else(|| raw::answers(path).map_or(Self::Unknown, Self::Raw))
    }

    /// Whether the protocol can express it; to the other one it is no route.
    pub(crate) fn exists_in(self, protocol: Protocol) -> bool {
        if protocol == Protocol::WebSocket {
            return self.answers_messages();
        }
        match self {
            Self::ResetStream(_) | Self::Refuse | Self::RandomRefuse(_) | Self::GoAway(_) => {
                matches!(protocol, Protocol::Http2 | Protocol::Http3)
            }
            Self::Http10 | Self::Http10KeepAlive | Self::WebSocket => protocol == Protocol::Http1,
            _ => true,
        }
    }

    /// What messages get on a path of `/websocket`; absent where it is none.
    pub(crate) fn of_messages(target: &str) -> Option<Self> {
        let route = match path(target).strip_prefix("/websocket")? {
            "" => Self::Null,
            "/" => return None,
            rest => Self::of(rest),
        };
        route.answers_messages().then_some(route)
    }

    /// Whether messages of WebSocket can get it.
    fn answers_messages(self) -> bool {
        match self {
            Self::Null
            | Self::Delay(_)
            | Self::Stall(_)
            | Self::Drift(_)
            | Self::Locked(_)
            | Self::Compute(_)
            | Self::Interim(_)
            | Self::Close
            | Self::Never
            | Self::Reset
            | Self::RandomClose(_) => true,
            Self::Bytes(bytes) | Self::Chunked(bytes) | Self::Truncate(bytes) => {
                bytes <= MESSAGE_BYTES_MAX
            }
            Self::GoAway(code) => code.is_none_or(|code| code == 0 || close_code(code).is_some()),
            Self::Raw(answers) => answers.websocket.is_some(),
            _ => false,
        }
    }

    fn named(path: &str) -> Option<Self> {
        if path.starts_with("websocket") {
            return Self::of_messages(&format!("/{path}")).map(|_| Self::WebSocket);
        }
        let (mut parts, mut length) = ([""; 4], 0);
        for part in path.split('/') {
            *parts.get_mut(length)? = part;
            length += 1;
        }
        let limit = |rate, status| {
            let per_s = rate_per_s(rate)?;
            Some(Self::Limit(Limit { per_s, status }))
        };
        Some(match parts[..length] {
            ["bytes", bytes] => Self::Bytes(body_bytes(bytes)?),
            ["chunked", bytes] => Self::Chunked(body_bytes(bytes)?),
            ["status", status] => Self::Status(within(status, 200, 999)?),
            ["delay", time] => Self::Delay(duration_ns(time)?),
            ["stall", silence, period] => Self::Stall(Stall::of(silence, period)?),
            ["drift", from, to, period] => Self::Drift(Drift::of(from, to, period)?),
            ["locked", time] => Self::Locked(duration_ns(time)?),
            ["compute", time] => Self::Compute(duration_ns(time)?),
            ["limit", rate] => limit(rate, 429)?,
            ["limit", rate, status] => limit(rate, within(status, 400, 599)?)?,
            ["interim", count] => Self::Interim(within(count, 0, INTERIM_MAX)?),
            ["close"] => Self::Close,
            ["http10"] => Self::Http10,
            ["http10-keepalive"] => Self::Http10KeepAlive,
            ["never"] => Self::Never,
            ["reset"] => Self::Reset,
            ["truncate", bytes] => Self::Truncate(body_bytes(bytes).filter(|bytes| *bytes > 0)?),
            ["reset-stream"] => Self::ResetStream(None),
            ["reset-stream", code] => Self::ResetStream(Some(error_code(code)?)),
            ["refuse"] => Self::Refuse,
            ["random-refuse", percent] => Self::RandomRefuse(within(percent, 0, 100)?),
            ["goaway"] => Self::GoAway(None),
            ["goaway", code] => Self::GoAway(Some(error_code(code)?)),
            ["refuse-after", after] => Self::RefuseAfter(count(after)?),
            ["random-close", percent] => Self::RandomClose(within(percent, 0, 100)?),
            ["counters"] => Self::Counters,
            ["routes"] => Self::Routes,
            _ => return None,
        })
    }
}

/// The code of a Close frame, where a number is one.
pub(crate) fn close_code(number: u32) -> Option<CloseCode> {
    u16::try_from(number).ok().and_then(CloseCode::of)
}

/// The path of a request target, without the query.
fn path(target: &str) -> &str {
    let path = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    path.split('?').next().unwrap_or(path)
}

/// A number of digits only, so that neither a sign nor a blank passes.
pub(crate) fn count(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

fn within(text: &str, least: u16, most: u16) -> Option<u16> {
    let value = u16::try_from(count(text)?).ok()?;
    (least..=most).contains(&value).then_some(value)
}

/// An error code of HTTP/2 or HTTP/3 as a number, known or not.
fn error_code(text: &str) -> Option<u32> {
    u32::try_from(count(text)?).ok()
}

/// A number of bytes, with the suffixes k, m and g for powers of 1,024.
pub(crate) fn body_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        b'g' | b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    count(digits)?
        .checked_mul(unit)
        .filter(|bytes| *bytes <= BODY_BYTES_MAX)
}

/// A rate per second, with the suffixes of counts on the command line.
fn rate_per_s(text: &str) -> Option<u64> {
    units::count(text)
        .ok()
        .filter(|per_s| (1..=RATE_PER_S_MAX).contains(per_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::DURATION_NS_MAX;

    #[test]
    fn targets_name_routes() {
        let limit = |per_s, status| Route::Limit(Limit { per_s, status });
        let cases = [
            ("/", Route::Null),
            ("/?x=1", Route::Null),
            ("http://host:80", Route::Null),
            ("http://host:80/bytes/3?q", Route::Bytes(3)),
            ("/bytes/0", Route::Bytes(0)),
            ("/bytes/10k", Route::Bytes(10_240)),
            ("/bytes/1g", Route::Bytes(1 << 30)),
            ("/chunked/2m", Route::Chunked(2 << 20)),
            ("/status/200", Route::Status(200)),
            ("/status/999", Route::Status(999)),
            ("/delay/500us", Route::Delay(500_000)),
            ("/delay/1.5ms", Route::Delay(1_500_000)),
            ("/delay/2", Route::Delay(2_000_000_000)),
            ("/delay/60m", Route::Delay(DURATION_NS_MAX)),
            (
                "/stall/100ms/1s",
                Route::Stall(Stall {
                    silence_ns: 100_000_000,
                    period_ns: 1_000_000_000,
                }),
            ),
            (
                "/drift/1ms/3ms/2s",
                Route::Drift(Drift {
                    from_ns: 1_000_000,
                    to_ns: 3_000_000,
                    period_ns: 2_000_000_000,
                }),
            ),
            ("/locked/200us", Route::Locked(200_000)),
            ("/compute/20us", Route::Compute(20_000)),
            ("/limit/5k", limit(5_000, 429)),
            ("/limit/1/503", limit(1, 503)),
            ("/interim/1000", Route::Interim(1_000)),
            ("/close", Route::Close),
            ("/http10", Route::Http10),
            ("/http10-keepalive", Route::Http10KeepAlive),
            ("/never", Route::Never),
            ("/reset", Route::Reset),
            ("/truncate/10", Route::Truncate(10)),
            ("/reset-stream", Route::ResetStream(None)),
            ("/reset-stream/8", Route::ResetStream(Some(8))),
            ("/refuse", Route::Refuse),
            ("/random-refuse/5", Route::RandomRefuse(5)),
            ("/goaway", Route::GoAway(None)),
            ("/goaway/4294967295", Route::GoAway(Some(u32::MAX))),
            ("/refuse-after/7", Route::RefuseAfter(7)),
            ("/random-close/100", Route::RandomClose(100)),
            ("/websocket", Route::WebSocket),
            ("/websocket?x", Route::WebSocket),
            ("/websocket/delay/1ms", Route::WebSocket),
            ("/websocket/goaway/1008", Route::WebSocket),
            ("/counters", Route::Counters),
            ("/routes", Route::Routes),
        ];
        for (target, route) in cases {
            assert_eq!(Route::of(target), route, "{target}");
        }
    }

    #[test]
    fn what_is_unknown_or_out_of_range_is_no_route() {
        let targets = "
            * x // /x
            /bytes /bytes/ /bytes/x /bytes/-1 /bytes/+1 /bytes/1g1 /bytes/2g
            /bytes/99999999999999999999 /bytes/1/2 /status/199 /status/1000
            /delay/ /delay/ms /delay/5x /delay/-5s /delay/61m /delay/1e300h
            /stall/1s /stall/2s/1s /stall/0s/0s /stall/1s/1s/1s
            /drift/1s/1s /drift/1s/1s/0s /drift/1s/1s/1s/1s
            /locked/ /locked/61m /compute/-1s /compute/1s/1s
            /limit/0 /limit/1.5 /limit/2g /limit/5/399 /limit/5/600 /limit/5/429/x
            /interim/1001 /close/x /truncate/0 /reset-stream/x /reset-stream/4294967296
            /refuse/1 /random-refuse/101 /goaway/-1 /refuse-after/1/close /random-close/101
            /counters/x /websocket/ /websockets /websocket/x /websocket/websocket
            /websocket/status/200 /websocket/counters /websocket/bytes/2m
            /websocket/goaway/999 /websocket/refuse-after/1";
        for target in targets.split_whitespace().chain([""]) {
            assert_eq!(Route::of(target), Route::Unknown, "{target}");
        }
    }

    #[test]
    fn every_route_is_documented() {
        let documentation = include_str!("lib.rs");
        for pattern in ROUTES.lines().filter_map(|line| line.split(' ').next()) {
            assert!(documentation.contains(&format!("`{pattern}`")), "{pattern}");
        }
    }
}
