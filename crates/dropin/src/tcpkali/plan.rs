//! From tcpkali's options to a plan of brunt's.

use std::io;
use std::num::NonZeroU32;
use std::path::Path;

use brunt_load::{
    ArrivalProcess, LoadModel, MessageExchange, MessageSpec, OpeningMessage, Placement, Plan,
    RequestOrder, RequestSet, Schedule, Spoken, Stop, Target, TlsSpec,
};
use brunt_proto::messages::{Framing, Pattern, Template, escape};

use super::expression::{Piece, pieces};
use super::number::error;
use super::options::{Content, Message, Options};
use crate::Ending;

/// Messages that may wait for a connection, at least and at most.
const QUEUE_LEAST: u64 = 1_000_000;
const QUEUE_MOST: u64 = 64_000_000;
/// A message without its reply is waited for that long.
const TIMEOUT_NS: u64 = 10_000_000_000;
const DRAIN_LIMIT_NS: u64 = 1_000_000_000;

impl Options {
    /// The plan that does what the command line asks for, on a machine with so many CPUs. `read`
    /// gives the content of files, `seed` is that of what is random.
    ///
    /// # Errors
    ///
    /// There is no such load, or a file cannot be read.
    pub fn plan(
        &self,
        cpus: NonZeroU32,
        seed: u64,
        read: &mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Plan, Ending> {
        let refused = |reason: &dyn std::fmt::Display| error(&format!("brunt: {reason}"));
        let target = Target::parse_tcp(Some(&self.server), self.is_secure, None);
        let target = target.map_err(|reason| refused(&reason))?;
        let mut specs = Vec::with_capacity(self.messages.len());
        for (number, message) in (1..).zip(&self.messages) {
            specs.push(MessageSpec {
                name: format!("message {number}"),
                template: template(&[message], read)?,
            });
        }
        let set = RequestSet::messages_in(RequestOrder::Turns, specs);
        let set = set.ok_or_else(|| error("brunt: too many messages"))?;
        let opening = match &self.first[..] {
            [] => None,
            first => Some(OpeningMessage {
                message: template(&first.iter().collect::<Vec<_>>(), read)?,
                reply: Framing::None,
            }),
        };
        let reply = match &self.marker {
            None => Framing::None,
            Some(marker) => marker_framing(marker)?,
        };
        let mut plan = Plan::new(target, set);
        plan.spoken = Spoken::Messages(MessageExchange {
            reply,
            opening,
            seed,
        });
        plan.connections = self.connections;
        plan.workers = self.threads(cpus).min(self.connections);
        plan.placement = Placement::Given;
        plan.oversubscribe = true;
        plan.tls = TlsSpec {
            insecure: true,
            ..TlsSpec::default()
        };
        plan.model = self.model(seed)?;
        plan.stop = Stop {
            duration_ns: Some(self.duration_ns),
            requests: None,
        };
        plan.warmup_ns = 0;
        plan.halves_warmup = false;
        plan.timeout_ns = TIMEOUT_NS;
        plan.drain_limit_ns = DRAIN_LIMIT_NS;
        plan.setup_timeout_ns = self.duration_ns;
        plan.connect_timeout_ns = self.connect_timeout_ns;
        plan.source_addresses.clone_from(&self.sources);
        Ok(plan)
    }

    fn model(&self, seed: u64) -> Result<LoadModel, Ending> {
        let (Some(per_s), Some(planned)) = (self.rate_in_all(), self.planned()) else {
            return Ok(LoadModel::Closed {
                connect_per_s: Some(self.connect_rate),
            });
        };
        let schedule = Schedule::constant_rate(ArrivalProcess::Constant, per_s, seed);
        let queue = planned.get().clamp(QUEUE_LEAST, QUEUE_MOST);
        Ok(LoadModel::Open {
            schedule: schedule.map_err(|reason| error(&format!("brunt: {reason}")))?,
            connections_max: self.connections,
            queue_max: NonZeroU32::new(queue as u32).unwrap_or(NonZeroU32::MIN),
        })
    }
}

/// The messages, one behind the other.
fn template(
    messages: &[&Message],
    read: &mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
) -> Result<Template, Ending> {
    let mut text = String::new();
    for message in messages {
        let content = match &message.content {
            Content::Typed(typed) => typed.clone().into_bytes(),
            Content::File(path) => {
                read(path).map_err(|reason| error(&format!("{}: {reason}", path.display())))?
            }
        };
        let pieces = pieces(&content, message.unescapes);
        for piece in pieces.map_err(|reason| error(&reason.to_string()))? {
            match piece {
                // Every brace, since one may begin a word that is filled in.
                Piece::Bytes(bytes) => text.push_str(&escape(&bytes).replace('{', "\\{")),
                Piece::Connection => text.push_str("{conn}"),
            }
        }
    }
    if text.is_empty() {
        return Err(error("brunt: a message has no bytes"));
    }
    Template::parse(&text).map_err(|reason| error(&format!("brunt: {reason}")))
}

/// A reply that ends with these octets.
fn marker_framing(marker: &Message) -> Result<Framing, Ending> {
    let Content::Typed(typed) = &marker.content else {
        return Err(error("--latency-marker: Failed to parse expression"));
    };
    let found = pieces(typed.as_bytes(), marker.unescapes);
    let pattern = match &found.map_err(|reason| error(&reason.to_string()))?[..] {
        [Piece::Bytes(bytes)] => Pattern::new(bytes),
        _ => {
            return Err(error(
                "--latency-marker: Non-trivial expressions are not supported",
            ));
        }
    };
    Ok(Framing::Marker {
        pattern: pattern.ok_or_else(|| error("brunt: --latency-marker has 1 to 1024 bytes"))?,
        count: NonZeroU32::MIN,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, Ending> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let options = Options::parse("tcpkali", &words)?;
        let cpus = NonZeroU32::new(4).expect("not 0");
        options.plan(cpus, 7, &mut |_| Ok(b"of \\n a file{seq}".to_vec()))
    }

    fn sent(plan: &Plan) -> Vec<String> {
        let messages = plan.requests.messages().iter();
        messages
            .map(|message| message.template.to_string())
            .collect()
    }

    #[test]
    fn the_plan_is_what_the_options_say() {
        let flood = plan("-c 3 -T2 -em PING\\n -f file host:80").expect("good");
        assert_eq!((flood.connections.get(), flood.workers.get()), (3, 3));
        assert_eq!(flood.stop.duration_ns, Some(2_000_000_000));
        assert_eq!(sent(&flood), ["PING\\n", "of \\n a file\\{seq}"]);
        assert!(
            matches!(flood.model, LoadModel::Closed { connect_per_s: Some(rate) } if rate == 100.0)
        );
        let rated =
            plan("-c10 -r50 -w1 -m \\{connection.uid}{seq} -1 a -1 b --latency-marker ok h:1")
                .expect("good");
        assert_eq!(rated.model.schedule().map(Schedule::rate_max), Some(500.0));
        assert_eq!(sent(&rated), ["{conn}\\{seq}"]);
        let Spoken::Messages(exchange) = &rated.spoken else {
            panic!("messages are spoken");
        };
        assert_eq!(exchange.reply.to_string(), "marker=ok");
        let opening = exchange.opening.as_ref().expect("a first message");
        assert_eq!(
            (opening.message.to_string().as_str(), &opening.reply),
            ("ab", &Framing::None)
        );
        let raw = plan("-m a\\n h:1").expect("good");
        assert_eq!(sent(&raw), ["a\\\\n"]);
    }

    #[test]
    fn what_is_no_load_is_refused() {
        for (line, says) in [
            ("-m \\{re[a-z]} h:1", "brunt: the expression"),
            (
                "-m a --latency-marker \\{connection.uid} h:1",
                "--latency-marker: Non-trivial",
            ),
            ("-m a h", "brunt: "),
            ("-r5 h:1", "--message-rate parameter makes no sense"),
            (
                "-m a -c 1000 -T 1 h:1",
                "1000 connections can not be opened at a rate 100 within",
            ),
            ("-m a -l 80 h:1", "brunt: -l:"),
            ("-m a --ws h:1", "brunt: WebSocket"),
            ("-m a --statsd h:1", "brunt: this option of tcpkali"),
            ("-m a -c0 h:1", "Expecting --connections > 0"),
            ("-m a --nagle=x h:1", "Expecting --nagle"),
            (
                "-m a --latency-percentiles 5,x h:1",
                "--latency-percentiles: 5,x: Failed",
            ),
            ("-m a", "Expecting target <host:port>"),
        ] {
            let ending = plan(line).expect_err(line);
            assert!(ending.stderr.starts_with(says), "{line}: {ending:?}");
            assert_eq!(ending.code, 64, "{line}");
        }
        let help = plan("--help").expect_err("printed");
        assert!(help.stdout.starts_with("Usage: tcpkali "), "{help:?}");
        assert_eq!(plan("--version").expect_err("printed").code, 0);
    }
}
