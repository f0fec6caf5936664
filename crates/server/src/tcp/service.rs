//! What is done on a connection of raw TCP, and how that is typed.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use brunt_proto::messages::{ByteOrder, Framing, LengthField, unescape};
use thiserror::Error;

use crate::listeners::ListenAddress;
use crate::pace::Stall;
use crate::pattern;
use crate::route::body_bytes;

/// The largest reply, bytes.
const REPLY_BYTES_MAX: u64 = 16 << 20;

/// How raw TCP is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Where to listen.
    pub address: ListenAddress,
    /// What is done on each connection.
    pub service: TcpService,
    /// How long each answer waits after its message was noticed, nanoseconds; absent: not at all.
    pub delay_ns: Option<u64>,
    /// When nothing is read or sent.
    pub stall: Option<Stall>,
}

impl TcpOptions {
    /// The service at `address`, without delays.
    pub fn new(address: ListenAddress, service: TcpService) -> Self {
        Self {
            address,
            service,
            delay_ns: None,
            stall: None,
        }
    }

    /// Whether the parts fit together.
    ///
    /// # Errors
    ///
    /// The service has no answers that could be delayed.
    pub fn check(&self) -> Result<(), ParseTcpError> {
        if self.delay_ns.is_some() && !self.service.answers() {
            return Err(ParseTcpError(NOTHING_TO_DELAY.to_owned()));
        }
        Ok(())
    }
}

/// What is done on a connection. Typed as `echo`, `echo=FRAMING`, `sink`, `sink=FRAMING`, `source`
/// or `reply=FRAMING:REPLY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpService {
    /// What is read is sent back: at once, or message by message.
    Echo(Option<Framing>),
    /// What is read is thrown away, in the kernel where there are no messages to be counted.
    Sink(Option<Framing>),
    /// The letters a to z over and over are sent as fast as the peer takes them. What is read is
    /// thrown away.
    Source,
    /// Each message is answered.
    Reply {
        /// Where messages end.
        framing: Framing,
        /// The bytes that answer each message.
        reply: Vec<u8>,
    },
}

/// Why a text does not say what is done on a connection, or the parts of that do not fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ParseTcpError(String);

const NOTHING_TO_DELAY: &str = "a delay is one of answers: use it with echo or reply=";

impl TcpService {
    /// Where received messages end; absent where there are none.
    pub(super) fn framing(&self) -> Option<&Framing> {
        match self {
            Self::Echo(framing) | Self::Sink(framing) => framing.as_ref(),
            Self::Source => None,
            Self::Reply { framing, .. } => Some(framing),
        }
    }

    /// Whether what is read is answered.
    pub(super) fn answers(&self) -> bool {
        matches!(self, Self::Echo(_) | Self::Reply { .. })
    }
}

impl fmt::Display for TcpService {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Echo(Some(framing)) => write!(formatter, "echo={framing}"),
            Self::Sink(Some(framing)) => write!(formatter, "sink={framing}"),
            Self::Reply { framing, reply } => {
                write!(formatter, "reply={framing}, {} bytes", reply.len())
            }
            Self::Echo(None) => formatter.write_str("echo"),
            Self::Sink(None) => formatter.write_str("sink"),
            Self::Source => formatter.write_str("source"),
        }
    }
}

impl FromStr for TcpService {
    type Err = ParseTcpError;

    fn from_str(typed: &str) -> Result<Self, ParseTcpError> {
        let refused = |reason: &str| ParseTcpError(format!("`{typed}` {reason}"));
        let unknown = || {
            refused(
                "is none of echo, echo=FRAMING, sink, sink=FRAMING, source and \
                 reply=FRAMING:REPLY",
            )
        };
        let no_reply =
            || refused("has no reply: write reply=line:PONG\\n, or its length: reply=line:100");
        Ok(match typed.split_once('=') {
            None => match typed {
                "echo" => Self::Echo(None),
                "sink" => Self::Sink(None),
                "source" => Self::Source,
                "reply" => return Err(no_reply()),
                _ => return Err(unknown()),
            },
            Some(("echo", framing)) => Self::Echo(Some(received(framing)?)),
            Some(("sink", framing)) => Self::Sink(Some(received(framing)?)),
            Some(("reply", rest)) => {
                let (framing, reply) = rest
                    .split_once(':')
                    .filter(|(_, reply)| !reply.is_empty())
                    .ok_or_else(no_reply)?;
                let framing = received(framing)?;
                let reply = reply_bytes(&framing, reply)
                    .map_err(|reason| ParseTcpError(format!("the reply `{reply}`: {reason}")))?;
                Self::Reply { framing, reply }
            }
            Some(_) => return Err(unknown()),
        })
    }
}

/// A framing that says where a received message ends.
fn received(typed: &str) -> Result<Framing, ParseTcpError> {
    match typed.parse() {
        Ok(Framing::Echo | Framing::None) => Err(ParseTcpError(format!(
            "`{typed}` does not say where a received message ends: write line, fixed=N or another"
        ))),
        Ok(framing) => Ok(framing),
        Err(error) => Err(ParseTcpError(error.to_string())),
    }
}

/// The bytes of a reply that was typed as its length, or as a text with escapes.
fn reply_bytes(framing: &Framing, typed: &str) -> Result<Vec<u8>, String> {
    if !typed.starts_with(|first: char| first.is_ascii_digit()) {
        return unescape(typed).map_err(|error| error.to_string());
    }
    let letters = body_bytes(typed).filter(|bytes| *bytes <= REPLY_BYTES_MAX);
    let letters = letters.ok_or_else(|| {
        "a length is a number, perhaps with k or m, up to 16m; write a digit that begins a text \
         as \\x30 to \\x39"
            .to_owned()
    })?;
    framed(framing, letters).ok_or_else(|| "its length does not fit into its field".to_owned())
}

/// A message of so many letters, framed.
fn framed(framing: &Framing, letters: u64) -> Option<Vec<u8>> {
    let mut reply = Vec::new();
    if let Framing::Length(field) = framing {
        write_length(*field, letters, &mut reply)?;
    }
    pattern::write_pattern(&mut reply, 0, letters);
    match framing {
        Framing::Line => reply.push(b'\n'),
        Framing::Delimiter(pattern) => reply.extend_from_slice(pattern.bytes()),
        Framing::Marker { pattern, count } => {
            for _ in 0..count.get() {
                reply.extend_from_slice(pattern.bytes());
            }
        }
        Framing::Resp => {
            let length = format!("${letters}\r\n");
            reply.splice(..0, length.into_bytes());
            reply.extend_from_slice(b"\r\n");
        }
        Framing::Fixed(_)
        | Framing::Length(_)
        | Framing::UntilClose
        | Framing::Echo
        | Framing::None => {}
    }
    (!reply.is_empty()).then_some(reply)
}

/// Appends what precedes so many bytes; absent where the field cannot say it.
fn write_length(field: LengthField, behind: u64, out: &mut Vec<u8>) -> Option<()> {
    let value = i64::try_from(behind).ok()? - i64::from(field.adjust);
    let bytes = usize::from(field.bytes);
    if !(0..1_i64 << (8 * bytes)).contains(&value) {
        return None;
    }
    out.resize(usize::from(field.offset), 0);
    match field.order {
        ByteOrder::Big => out.extend_from_slice(&value.to_be_bytes()[8 - bytes..]),
        ByteOrder::Little => out.extend_from_slice(&value.to_le_bytes()[..bytes]),
    }
    Some(())
}

impl FromStr for Stall {
    type Err = ParseTcpError;

    fn from_str(typed: &str) -> Result<Self, ParseTcpError> {
        let parts = typed.split_once('/');
        let stall = parts.and_then(|(silence, period)| Self::of(silence, period));
        stall.ok_or_else(|| {
            ParseTcpError(format!(
                "`{typed}` is no SILENCE/PERIOD such as 100ms/1s, the first not longer than the \
                 second"
            ))
        })
    }
}

/// Groups of answers that may wait on one connection before no more is read.
const GROUPS_MAX: usize = 1_024;
/// Bytes of answers that may wait on one connection before no more is read.
const WAITING_BYTES_MAX: u64 = 256 * 1024;

/// Answers that become due together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    /// When the answers are due; 0: at once.
    at_ns: u64,
    answers: u64,
    bytes: u64,
}

/// The answers that wait.
#[derive(Debug, Default)]
pub(super) struct Answers {
    groups: VecDeque<Group>,
    bytes: u64,
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) answers: u64,
    pub(super) bytes: u64,
}

impl Answers {
    /// Adds answers of so many bytes in all that are due at this instant, or, if that is later,
    /// with the one before; 0: at once.
    pub(super) fn push(&mut self, at_ns: u64, answers: u64, bytes: u64) {
        self.bytes += bytes;
        if let Some(last) = self.groups.back_mut()
            && last.at_ns >= at_ns
        {
            last.answers += answers;
            last.bytes += bytes;
            return;
        }
        self.groups.push_back(Group {
            at_ns,
            answers,
            bytes,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether so many wait that nothing more should be read.
    pub(super) fn is_full(&self) -> bool {
        self.groups.len() >= GROUPS_MAX || self.bytes >= WAITING_BYTES_MAX
    }

    /// Answers that wait.
    pub(super) fn count(&self) -> u64 {
        self.groups.iter().map(|group| group.answers).sum()
    }

    /// When the next answer is due; 0: at once.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.groups.front().map(|group| group.at_ns)
    }

    /// Takes answers that are due at `now_ns`, `answers_max` of them at most where they are alike,
    /// which is what a limit needs. `late` learns of those that had to wait for an instant: their
    /// number, and how late they are.
    pub(super) fn take(
        &mut self,
        now_ns: u64,
        answers_max: u64,
        mut late: impl FnMut(u64, u64),
    ) -> Due {
        let mut due = Due::default();
        while let Some(group) = self.groups.front_mut()
            && group.at_ns <= now_ns
            && due.answers < answers_max
        {
            let answers = group.answers.min(answers_max - due.answers);
            let bytes = if answers == group.answers {
                group.bytes
            } else {
                group.bytes / group.answers * answers
            };
            due.answers += answers;
            due.bytes += bytes;
            if group.at_ns > 0 {
                late(answers, now_ns - group.at_ns);
            }
            group.answers -= answers;
            group.bytes -= bytes;
            if group.answers == 0 {
                self.groups.pop_front();
            }
        }
        self.bytes -= due.bytes;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_read() {
        let all = "echo sink source echo=line sink=len32be-4";
        for typed in all.split_whitespace() {
            let service: TcpService = typed.parse().expect(typed);
            assert_eq!(service.to_string(), typed);
        }
        for (typed, reply) in [
            ("reply=line:PONG\\r\\n", &b"PONG\r\n"[..]),
            ("reply=line:a:b", b"a:b"),
            ("reply=line:3", b"abc\n"),
            ("reply=delim=\\x3a\\x3b:2", b"ab:;"),
            ("reply=fixed=64:28", b"abcdefghijklmnopqrstuvwxyzab"),
            ("reply=marker=OK*2:1", b"aOKOK"),
            ("reply=len32be:2", b"\x00\x00\x00\x02ab"),
            ("reply=len16le@2+1:2", b"\x00\x00\x01\x00ab"),
            ("reply=len16be-2:2", b"\x00\x04ab"),
            ("reply=len8:0", b"\x00"),
            ("reply=until-close:\\x31", b"1"),
        ] {
            match typed.parse() {
                Ok(TcpService::Reply { reply: bytes, .. }) => assert_eq!(bytes, reply, "{typed}"),
                other => panic!("{typed}: {other:?}"),
            }
        }
        let long: TcpService = "reply=line:1m".parse().expect("a reply");
        assert_eq!(long.to_string(), "reply=line, 1048577 bytes");
    }

    #[test]
    fn what_is_no_service_is_refused() {
        let all = r"
            echoes echo= echo=echo sink=none source=0
            reply reply=line reply=line: reply=line:17m reply=line:1x reply=line:\q
            reply=len8:256 reply=len8+9:8 reply=fixed=4:0 drain drain=1";
        for typed in all.split_whitespace().chain([""]) {
            assert!(typed.parse::<TcpService>().is_err(), "{typed}");
        }
    }

    #[test]
    fn stalls_are_read() {
        let stall = Stall {
            silence_ns: 100,
            period_ns: 1_000,
        };
        assert_eq!("100ns/1us".parse(), Ok(stall));
        for (at_ns, end_ns) in [(0, 100), (99, 100), (100, 100), (999, 999), (1_000, 1_100)] {
            assert_eq!(stall.end_ns(at_ns), end_ns);
        }
        for typed in ["", "1ms", "1ms/0ms", "2ms/1ms", "1ms/1ms/1ms"] {
            assert!(typed.parse::<Stall>().is_err(), "{typed}");
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let options = |service: &str| {
            let address = ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
            TcpOptions::new(address, service.parse().expect(service))
        };
        let mut sink = options("sink");
        sink.delay_ns = Some(1);
        assert_eq!(
            sink.check(),
            Err(ParseTcpError(NOTHING_TO_DELAY.to_owned()))
        );
        let mut echo = options("echo=line");
        echo.delay_ns = Some(1);
        assert_eq!(echo.check(), Ok(()));
    }

    #[test]
    fn answers_come_when_they_are_due_and_in_order() {
        let mut answers = Answers::default();
        answers.push(10, 1, 5);
        answers.push(10, 2, 10);
        // One that would be due before another waits for it.
        answers.push(5, 1, 5);
        answers.push(20, 1, 5);
        assert_eq!((answers.next_ns(), answers.count()), (Some(10), 5));
        let mut late = Vec::new();
        let mut take = |now_ns, max| {
            let due = answers.take(now_ns, max, |count, ns| late.push((count, ns)));
            (due.answers, due.bytes)
        };
        assert_eq!(take(9, 9), (0, 0));
        assert_eq!(take(12, 3), (3, 15));
        assert_eq!(take(12, 3), (1, 5));
        assert_eq!(take(25, 3), (1, 5));
        assert_eq!(late, [(3, 2), (1, 2), (1, 5)]);
        assert!(answers.is_empty());
        assert_eq!(answers.bytes, 0);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut answers = Answers::default();
        answers.push(0, 1, WAITING_BYTES_MAX - 1);
        assert!(!answers.is_full());
        answers.push(0, 1, 1);
        assert!(answers.is_full());
        let mut answers = Answers::default();
        for at_ns in 1..=GROUPS_MAX as u64 {
            assert!(!answers.is_full());
            answers.push(at_ns, 1, 1);
        }
        assert!(answers.is_full());
    }
}
