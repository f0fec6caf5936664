//! From tcpkali's options to a plan of brunt's.

use std::io;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;

use brunt_load::{
    ArrivalProcess, LoadModel, MessageExchange, MessageSpec, OpeningMessage, Plan, ReplyMatch,
    RequestOrder, RequestSet, Reuse, Schedule, SocketOptions, Target, WebSocketExchange,
};
use brunt_proto::messages::{Framing, Pattern, Template};

use super::expression::{MARKER, Sent, TemplateSource};
use super::options::{Rate, TcpkaliOptions, error};
use crate::Ending;
use crate::ending::ensure;
use crate::libraries::at_least_1;

/// Messages that may wait for a connection, at least and at most.
const QUEUE_LEAST: u64 = 1_000_000;
const QUEUE_MOST: u64 = 64_000_000;
/// A message without its reply is waited for that long.
const TIMEOUT_NS: u64 = 100_000_000_000;
const DRAIN_LIMIT_NS: u64 = 1_000_000_000;
/// What a connection writes at once where it sends as fast as it can, bytes.
const BATCH_BYTES: f64 = 65_536.0;
/// Messages that are written at once where something is filled in.
const BATCH_MESSAGES_MAX: f64 = 1_024.0;
/// Messages of WebSocket that are in flight at once where a connection sends as fast as it can.
const FRAMES_AT_ONCE: u32 = 64;
/// How often per second a connection writes where its bandwidth is limited.
const WRITES_PER_S: f64 = 20.0;
/// Connections per thread from which on one more makes little difference to each.
const CONNECTIONS_OF_A_THREAD: u32 = 20;
/// Messages that wait for their replies at once: on a connection, on all together, and bytes of
/// one connection's.
const IN_FLIGHT_MAX: f64 = 1_024.0;
const IN_FLIGHT_IN_ALL_MAX: f64 = 4e6;
const IN_FLIGHT_BYTES_MAX: f64 = 16e6;

/// What a run is, worked out of the options.
#[derive(Debug)]
struct Load {
    target: Target,
    /// Servers beside it.
    further_targets: Vec<Target>,
    sent: Sent,
    /// What ends a reply; absent where replies are not looked at.
    reply: Option<Pattern>,
    /// Messages per second, on all connections together; absent: as fast as can be.
    per_s: Option<f64>,
    /// How many messages are written as one.
    batch: u32,
}

impl Load {
    /// Whether nothing is sent again and again: connections are made and held.
    fn holds(&self) -> bool {
        self.sent.messages.is_empty()
    }
}

impl TcpkaliOptions {
    /// What the command line asks for.
    fn load(&self, source: &mut TemplateSource<'_>) -> Result<Load, Ending> {
        let targets = self.servers.iter().map(|server| {
            let target = if self.is_websocket {
                let scheme = if self.is_secure { "wss" } else { "ws" };
                Target::parse_websocket(&format!("{scheme}://{server}"), None)
            } else {
                Target::parse_tcp(server.split('/').next(), self.is_secure, None)
            };
            target.map_err(|reason| error(&format!("brunt: {reason}")))
        });
        let mut targets = targets.collect::<Result<Vec<_>, Ending>>()?;
        if targets.is_empty() {
            return Err(error("brunt: there is no server to load"));
        }
        let target = targets.remove(0);
        if self.is_secure && targets.iter().any(|other| other.host != target.host) {
            return Err(error(
                "brunt: --ssl: the servers of a run must have one name; load them one by one",
            ));
        }
        let sent = self.sent(source)?;
        let reply = self.reply_pattern(&sent)?;
        let connections = f64::from(self.connections);
        let frames = sent.messages.len() as f64;
        let (per_s, batch) = match self.rate {
            _ if sent.messages.is_empty() => (None, 1.0),
            // Each frame is a message.
            Rate::Messages(per_s) => (Some(per_s * frames * connections), 1.0),
            Rate::Bytes(bytes_per_s) => {
                let bytes = sent.bytes().max(1.0);
                let batch = (bytes_per_s / WRITES_PER_S).min(BATCH_BYTES) / bytes;
                let batch = batch.floor().clamp(1.0, batch_max(&sent));
                let per_s = bytes_per_s * frames * connections / bytes / batch;
                (Some(per_s), batch)
            }
            Rate::Unlimited if reply.is_some() => (None, 1.0),
            Rate::Unlimited => {
                let batch = (BATCH_BYTES / sent.bytes().max(1.0)).ceil();
                (None, batch.clamp(1.0, batch_max(&sent)))
            }
        };
        // Frames are not put together.
        let (per_s, batch) = if self.is_websocket {
            (per_s.map(|per_s| per_s * batch), 1.0)
        } else {
            (per_s, batch)
        };
        Ok(Load {
            target,
            further_targets: targets,
            batch: batch as u32,
            per_s,
            sent,
            reply,
        })
    }

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
        if let Some(workers) = self.workers.filter(|&workers| workers > cpus) {
            let plural = if cpus.get() == 1 { "" } else { "s" };
            return Err(error(&format!(
                "Value --workers={workers} is unreasonably large, only {cpus} CPU{plural} detected"
            )));
        }
        let load = self.load(&mut TemplateSource { read, seed })?;
        let protocol = if self.is_websocket {
            self.frames(&load, seed)?.into()
        } else {
            self.messages(&load, seed)?.into()
        };
        let set = self.message_set(&load)?;
        let mut plan = Plan::bare(load.target.clone(), set);
        plan.further_targets.clone_from(&load.further_targets);
        plan.traffic.reuse = self.reuse(&load)?;
        plan.connection.protocol = protocol;
        plan.traffic.pipeline = self.in_flight(&load);
        plan.load.connections = at_least_1(self.connections.into());
        plan.workers.count = self.threads(cpus, load.per_s.is_some());
        plan.connection.tls.insecure = true;
        plan.load.model = self.model_of(&load)?;
        plan.load.stop.duration_ns = Some(self.duration_ns);
        plan.limits.timeout_ns = TIMEOUT_NS;
        plan.load.drain_limit_ns = DRAIN_LIMIT_NS;
        plan.limits.setup_timeout_ns = Some(self.duration_ns);
        plan.limits.connect_timeout_ns = self.connect_timeout_ns;
        plan.connection.source_addresses.clone_from(&self.sources);
        plan.connection.sockets = SocketOptions {
            is_nodelay: self.nagle != Some(true),
            send_buffer_bytes: self.send_buffer,
            receive_buffer_bytes: self.receive_buffer,
            ..SocketOptions::default()
        };
        Ok(plan)
    }

    /// For how many messages a connection is used: as many as fit its lifetime.
    fn reuse(&self, load: &Load) -> Result<Reuse, Ending> {
        let Some(lifetime_s) = self.lifetime_s else {
            return Ok(Reuse::Unlimited);
        };
        let per_s = load.per_s.ok_or_else(|| {
            error(
                "brunt: --channel-lifetime: brunt ends a connection after a number of messages, \
                 which follows from their rate: give it with -r",
            )
        })?;
        let messages = (per_s / f64::from(self.connections) * lifetime_s).round() as u64;
        let messages = NonZeroU64::new(messages).unwrap_or(NonZeroU64::MIN);
        Ok(Reuse::Requests(messages))
    }

    /// Threads. Each takes an equal part of what is sent at a rate, so that it must have an equal
    /// part of the connections, or many.
    fn threads(&self, cpus: NonZeroU32, is_rated: bool) -> NonZeroU32 {
        let connections = self.connections;
        let most = self.workers.unwrap_or(cpus).get().min(connections);
        let is_even = |threads: &u32| {
            !is_rated
                || connections / most >= CONNECTIONS_OF_A_THREAD
                || connections.is_multiple_of(*threads)
        };
        let threads = (1..=most).rev().find(is_even);
        at_least_1(threads.unwrap_or(1).into())
    }

    /// What is sent, so many at once as are written as one.
    fn message_set(&self, load: &Load) -> Result<RequestSet, Ending> {
        if load.holds() {
            return Ok(RequestSet::nothing());
        }
        let numbered = (1..).zip(&load.sent.messages);
        let specs = numbered.map(|(number, message)| {
            let mut template = Template::default();
            (0..load.batch).for_each(|_| template.append(message));
            let name = format!("message {number}");
            MessageSpec { name, template }
        });
        let set = RequestSet::messages_in(RequestOrder::ConnectionTurns, specs.collect());
        set.ok_or_else(|| error("brunt: too many messages"))
    }

    fn messages(&self, load: &Load, seed: u64) -> Result<MessageExchange, Ending> {
        let marker = |count| {
            let pattern = load.reply.clone()?;
            Some(Framing::Marker { pattern, count })
        };
        let skipped = NonZeroU32::new(self.marker_skip).and_then(marker);
        if skipped.is_some() && load.sent.first.is_none() {
            return Err(error(
                "brunt: --latency-marker-skip leaves out the replies to the first message, and \
                 there is none: give it with -1",
            ));
        }
        Ok(MessageExchange {
            reply: marker(NonZeroU32::MIN).unwrap_or(Framing::None),
            opening: load.sent.first.clone().map(|message| OpeningMessage {
                message: message.into(),
                reply: skipped.unwrap_or(Framing::None),
            }),
            seed,
        })
    }

    fn frames(&self, load: &Load, seed: u64) -> Result<WebSocketExchange, Ending> {
        ensure(load.sent.first.is_none(), || {
            error(
                "brunt: -1 with --ws: brunt sends no first message over WebSocket; make it the \
                 first of several with -m",
            )
        })?;
        ensure(self.marker_skip == 0, || {
            error("brunt: --latency-marker-skip with --ws: there is no first message")
        })?;
        let headers = self.headers.iter().map(|header| {
            let line = format!("brunt: --header={header} has no colon behind its name");
            let split = header.split_once(':').ok_or_else(|| error(&line));
            split.map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        });
        Ok(WebSocketExchange {
            headers: headers.collect::<Result<Vec<_>, Ending>>()?.into(),
            subprotocols: Vec::new(),
            is_binary: load.sent.is_binary,
            replies: u32::from(load.reply.is_some()),
            matching: load
                .reply
                .clone()
                .map_or(ReplyMatch::Any, ReplyMatch::Containing),
            opening: None,
            ping_interval_ns: None,
            seed,
        })
    }

    /// Messages in flight per connection.
    fn in_flight(&self, load: &Load) -> NonZeroU32 {
        let connections = f64::from(self.connections);
        let most = match (load.per_s, &load.reply) {
            // Late replies hold up nothing.
            (Some(per_s), Some(_)) => {
                let late = per_s / connections * TIMEOUT_NS as f64 / 1e9;
                let room = IN_FLIGHT_IN_ALL_MAX / connections;
                let bytes = IN_FLIGHT_BYTES_MAX / load.sent.bytes().max(1.0);
                late.ceil().min(IN_FLIGHT_MAX).min(room).min(bytes) as u32
            }
            (None, None) if self.is_websocket && !load.holds() => FRAMES_AT_ONCE,
            _ => 1,
        };
        at_least_1(most.into())
    }

    fn model_of(&self, load: &Load) -> Result<LoadModel, Ending> {
        let connect_per_s = Some(self.connect_rate);
        if load.holds() {
            return Ok(LoadModel::Held { connect_per_s });
        }
        let Some(per_s) = load.per_s else {
            return Ok(LoadModel::Closed { connect_per_s });
        };
        let schedule = Schedule::constant_rate(ArrivalProcess::Constant, per_s, 0);
        let planned = (per_s * self.duration_ns as f64 / 1e9).ceil() as u64;
        let queue = planned.clamp(QUEUE_LEAST, QUEUE_MOST);
        Ok(LoadModel::Open {
            schedule: schedule.map_err(|reason| error(&format!("brunt: {reason}")))?,
            connections_max: at_least_1(self.connections.into()),
            queue_max: at_least_1(queue),
        })
    }
}

/// Whether the messages of the plan are marked with their instants.
pub fn has_markers(plan: &Plan) -> bool {
    let mut pattern = plan.connection.protocol.reply_pattern().into_iter();
    pattern.any(|pattern| pattern.bytes() == MARKER.as_bytes())
}

/// Most messages that are written as one.
fn batch_max(sent: &Sent) -> f64 {
    let mut messages = sent.messages.iter();
    if messages.all(|message| message.as_constant().is_some()) {
        BATCH_BYTES
    } else {
        BATCH_MESSAGES_MAX
    }
}

#[cfg(test)]
mod tests {
    use brunt_load::{ProtocolSpec, Work};

    use super::*;
    use crate::getopt::tests::words;

    fn plan(line: &str) -> Result<Plan, Ending> {
        let words = words(line);
        let options = TcpkaliOptions::parse("tcpkali", &words)?;
        let cpus = NonZeroU32::new(4).expect("not 0");
        options.plan(cpus, 7, &mut |path| match path.to_str() {
            Some("file") => Ok(b"of \\n a file{seq}".to_vec()),
            _ => Err(io::Error::from_raw_os_error(2)),
        })
    }

    fn sent(plan: &Plan) -> Vec<String> {
        let messages = plan.traffic.requests.messages().iter();
        messages
            .map(|message| message.template.to_string())
            .collect()
    }

    fn exchange(plan: &Plan) -> &MessageExchange {
        match &plan.connection.protocol {
            ProtocolSpec::Messages(exchange) => exchange,
            other => panic!("{other:?}"),
        }
    }

    fn per_s(plan: &Plan) -> Option<f64> {
        plan.load.model.schedule().map(Schedule::rate_max)
    }

    #[test]
    fn messages_follow_one_another_as_fast_as_a_connection_takes_them() {
        let flood = plan("-c 3 -T2 -em PING\\n -f file host:80/path").expect("good");
        assert_eq!(
            (flood.load.connections.get(), flood.workers.count.get()),
            (3, 3)
        );
        assert_eq!(flood.load.stop.duration_ns, Some(2_000_000_000));
        let batch = flood.traffic.requests.messages()[0].template.bytes_max();
        assert!((65_536..65_560).contains(&batch), "{batch}");
        let sent = &sent(&flood)[0];
        assert!(
            sent.starts_with("PING\\nof \\n a file\\{seq}PING\\nof"),
            "{sent}"
        );
        assert!(
            matches!(flood.load.model, LoadModel::Closed { connect_per_s: Some(rate) } if rate == 100.0)
        );
        assert_eq!(exchange(&flood).reply, Framing::None);
        assert!(!has_markers(&flood));
        // What is filled in is another in each of them.
        let text = plan("-m \\{re[ab]} h:1").expect("good");
        let sent = text.traffic.requests.messages()[0].template.to_string();
        assert_eq!(sent, "{text:[ab]}".repeat(1_024));
    }

    #[test]
    fn rates_are_of_all_connections_together() {
        let rated =
            plan("-c10 -r50 -w1 -m \\{connection.uid}{seq} -m x -1 a -1 b --latency-marker ok h:1")
                .expect("good");
        assert_eq!(per_s(&rated), Some(500.0));
        assert_eq!(sent(&rated), ["{conn+1}\\{seq}x"]);
        let exchange = exchange(&rated);
        assert_eq!(exchange.reply.to_string(), "marker=ok");
        let opening = exchange.opening.as_ref().expect("a first message");
        assert_eq!(
            (&opening.message, &opening.reply),
            (&Template::constant(b"ab".to_vec()).into(), &Framing::None)
        );
        assert_eq!(rated.traffic.pipeline.get(), 1_024);
        for (line, threads) in [
            ("-c 3 -r1 -m a h:1", 3),
            ("-c 6 -r1 -m a h:1", 3),
            ("-c 7 -r1 -m a h:1", 1),
            ("-c 8 -r1 -m a h:1", 4),
            ("-c 99 -r1 -m a h:1", 4),
            ("-c 7 -m a h:1", 4),
        ] {
            assert_eq!(
                plan(line).expect(line).workers.count.get(),
                threads,
                "{line}"
            );
        }
        let bytes = plan("-c10 -m 12345 --channel-bandwidth-upstream 10kBps h:1").expect("good");
        // 100 messages, 20 times a second.
        assert_eq!(
            bytes.traffic.requests.messages()[0].template.bytes_max(),
            500
        );
        assert_eq!(per_s(&bytes), Some(200.0));
    }

    #[test]
    fn markers_are_instants() {
        for line in [
            "-r3 -m a\\{message.marker} h:1",
            "-r3 --message-marker -m a h:1",
        ] {
            let plan = plan(line).expect(line);
            assert_eq!(
                exchange(&plan).reply.to_string(),
                "marker=TCPKaliMsgTS-",
                "{line}"
            );
            assert!(has_markers(&plan));
        }
        let marked = plan("-r3 -m \\{message.marker}! h:1").expect("good");
        assert_eq!(sent(&marked), ["TCPKaliMsgTS-{nowhex}.!"]);
        let skips = plan("-r3 -m a -1 b --latency-marker c --latency-marker-skip 2 h:1");
        let skips = skips.expect("good");
        let opening = exchange(&skips).opening.as_ref().expect("a first message");
        assert_eq!(opening.reply.to_string(), "marker=c*2");
    }

    #[test]
    fn frames_are_messages_of_their_own() {
        let ws = plan(
            "--ws -c2 -r10 -m a\\{ws.text_\"b\"}c -H X-A:_b h:1/chat"
                .replace('_', " ")
                .as_str(),
        );
        assert!(ws.is_err(), "words end at blanks");
        let ws = plan("--ws -c2 -r10 -m a\\{ws.text\"b\"}c -m \\{re[x]} -H X-A:b h:1/chat");
        let ws = ws.expect("good");
        assert_eq!(sent(&ws), ["a", "b", "c", "{text:[x]}"]);
        assert_eq!(per_s(&ws), Some(80.0));
        assert_eq!(ws.target.url, "ws://h:1/chat");
        let ProtocolSpec::WebSocket(exchange) = &ws.connection.protocol else {
            panic!("{:?}", ws.connection.protocol);
        };
        let headers = vec![("X-A".to_owned(), "b".to_owned())];
        assert_eq!(exchange.headers, headers.into());
        assert_eq!((exchange.replies, exchange.is_binary), (0, false));
        let marked = plan("--ws --ssl -m \\{ws.binary\"b\"} --latency-marker b h:1").expect("good");
        let ProtocolSpec::WebSocket(exchange) = &marked.connection.protocol else {
            panic!("{:?}", marked.connection.protocol);
        };
        assert!(exchange.is_binary && exchange.replies == 1);
        assert!(matches!(exchange.matching, ReplyMatch::Containing(_)));
        assert_eq!(marked.target.url, "wss://h:1/");
        let flood = plan("--ws -m a h:1").expect("good");
        assert_eq!(flood.traffic.pipeline.get(), 64);
        // Without --ws, what is spelt out is bytes.
        let raw = plan("-r1 -m \\{ws.ping} h:1").expect("good");
        assert_eq!(sent(&raw), ["\\x89\\x80\\0\\0\\0\\0"]);
    }

    #[test]
    fn connections_without_messages_are_held() {
        let held = plan("-c 100 -T 5m h:1").expect("good");
        assert!(held.work() == Work::Hold && held.traffic.requests.messages().is_empty());
        assert_eq!(held.load.model.connect_per_s(), Some(100.0));
        let first = plan("-1 login --ssl h:1").expect("good");
        assert!(first.work() == Work::Hold && exchange(&first).opening.is_some());
        assert!(plan("--ws h:1").expect("good").work() == Work::Hold);
        assert_eq!(held.load.stop.duration_ns, Some(300_000_000_000));
    }

    #[test]
    fn servers_are_several_and_connections_end() {
        let several = plan("-m a h:1 i:2/path").expect("good");
        assert_eq!(several.target.url, "tcp://h:1");
        let further: Vec<&str> = several
            .further_targets
            .iter()
            .map(|target| target.url.as_str())
            .collect();
        assert_eq!(further, ["tcp://i:2"]);
        let short = plan("-m a -c 4 -r 10 --channel-lifetime 2s h:1").expect("good");
        assert_eq!(
            short.traffic.reuse,
            Reuse::Requests(NonZeroU64::new(20).expect("not 0"))
        );
    }

    #[test]
    fn sockets_are_as_the_options_say() {
        let plan = plan("-m a --nagle on --rcvbuf 64k --sndbuf 1m h:1").expect("good");
        assert!(!plan.connection.sockets.is_nodelay);
        assert_eq!(
            plan.connection.sockets.receive_buffer_bytes,
            NonZeroU32::new(65_536)
        );
        assert_eq!(
            plan.connection.sockets.send_buffer_bytes,
            NonZeroU32::new(1_048_576)
        );
    }

    #[test]
    fn what_is_no_load_is_refused() {
        for (line, says) in [
            (
                "-m a --latency-marker \\{connection.uid} h:1",
                "brunt: --latency-marker",
            ),
            (
                "-m a --latency-marker \\{x} h:1",
                "--latency-marker: Failed",
            ),
            ("-m a h", "brunt: "),
            ("-r5 h:1", "--message-rate parameter makes no sense"),
            (
                "--latency-marker x h:1",
                "--latency-marker is given, but no messages",
            ),
            (
                "-m a -c 1000 -T 1 h:1",
                "1000 connections can not be opened at a rate 100 within",
            ),
            ("-l 80", "brunt: -l is not supported: `brunt serve"),
            ("--statsd h:1", "brunt: --statsd is not supported"),
            (
                "-m a --channel-lifetime 1 h:1",
                "brunt: --channel-lifetime: brunt ends",
            ),
            (
                "-m a --ssl h:1 i:1",
                "brunt: --ssl: the servers of a run must",
            ),
            ("-m a --ws -1 b h:1", "brunt: -1 with --ws"),
            (
                "-m a -H X:y h:1",
                "--header option ignored without --websocket",
            ),
            ("-m a --ws -H X h:1", "brunt: --header=X has no colon"),
            ("--ws -m \\{raw\"x\"} h:1", "brunt: \\{raw}"),
            ("--ws -m \\{ws.ping} h:1", "brunt: of the frames"),
            (
                "--ws -m a\\{ws.binary\"b\"} h:1",
                "brunt: the messages of a run",
            ),
            (
                "-m a --latency-marker b --latency-marker-skip 1 h:1",
                "brunt: --latency-marker-skip",
            ),
            (
                "-m a --latency-marker b --message-marker h:1",
                "--message-marker: --latency",
            ),
            (
                "-m a -w 5 h:1",
                "Value --workers=5 is unreasonably large, only 4 CPUs",
            ),
            ("-m a -ws h:1", "Expected -w <N> (--workers) or --ws"),
            ("-m a --server x:1 h:1", "brunt: --server is not supported"),
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
        for (line, says, code) in [
            ("-m \\{re h:1", "Parse error in the expression", 1),
            ("-f none h:1", "none: No such file or directory\n", 65),
            ("-m \\{<none>} h:1", "Can't open \"none\": No such file", 1),
        ] {
            let ending = plan(line).expect_err(line);
            assert!(ending.stderr.starts_with(says), "{line}: {ending:?}");
            assert_eq!(ending.code, code, "{line}");
        }
        let help = plan("--help").expect_err("printed");
        assert!(help.stdout.starts_with("Usage: tcpkali "), "{help:?}");
        assert_eq!(plan("--version").expect_err("printed").code, 0);
    }
}
