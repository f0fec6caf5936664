//! The command line of nuttcp.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use brunt_load::{Plan, RequestSet, SocketOptions, Streams, Target};

use crate::Ending;
use crate::ending::ensure;
use crate::getopt::*;
use crate::libraries::at_least_1;

/// The version whose client brunt stands in for.
pub(super) const VERSION: &str = "6.1.2";
/// What nuttcp exits with where something is wrong.
const EXIT_WRONG: u8 = 1;
/// What is printed for `-h`, and where something is wrong.
const USAGE: &str = include_str!("usage.txt");
/// Streams at most.
const STREAMS_MAX: u32 = 128;
/// Time that streams are followed beyond the end of the load.
const DRAIN_LIMIT_NS: u64 = 3_000_000_000;
/// Time for the connections of the streams.
const SETUP_LIMIT_NS: u64 = 5_000_000_000;
/// Characters of an identifier.
const IDENTIFIER_MAX: usize = 40;
const UDP: &str = "brunt does not speak UDP";
const SERVER: &str = "brunt serve --tcp sink or source takes or sends streams";

/// The options.
pub fn table() -> Table<NuttcpOptions> {
    Style::Words.table(vec![
        end("-h", |_| Ending::printed(USAGE)),
        end("-V", |_| Ending::printed(&format!("nuttcp-{VERSION}\n"))),
        flag("-4", |o| o.is_ipv6 = Some(false)),
        flag("-6", |o| o.is_ipv6 = Some(true)),
        flag("-t", |o| o.is_receiver = false),
        flag("-r", |o| o.is_receiver = true),
        flag("-B", |_| {}),
        flag("-a", |_| {}),
        flag("-D", |o| o.is_nodelay = true),
        flag("-v", |o| o.is_verbose = true),
        flag("-b", |o| o.is_verbose = false),
        value("-l", |o, typed| {
            let (value, unit) = number(typed);
            let factor = match unit {
                'k' => 1_024.0,
                'm' => 1_048_576.0,
                _ => 1.0,
            };
            o.buffer_bytes = (value * factor) as u32;
            in_range(value, 1.0 / factor, f64::from(i32::MAX) / factor, "buflen")
        }),
        value("-ws", |o, typed| {
            window(typed, "srvrwin").map(|bytes| o.server_window_bytes = bytes)
        }),
        value("-wb", |o, typed| {
            o.sets_both_windows = true;
            o.take_window(typed)
        }),
        value("-w", |o, typed| o.take_window(typed)),
        value("-p", |o, typed| {
            port(typed, "port", 5_001).map(|port| o.port = port)
        }),
        value("-P", |o, typed| {
            port(typed, "ctlport", 5_000).map(|port| o.control_port = port)
        }),
        value("-M", |o, typed| {
            let (value, _) = number(typed);
            o.segment_bytes = NonZeroU32::new(value as u32);
            in_range(value, 0.0, 65_535.0, "datamss")
        }),
        value("-N", |o, typed| {
            let (value, _) = number(typed);
            o.streams = (value as u32).min(STREAMS_MAX);
            in_range(value, 1.0, f64::INFINITY, "nstream")
        }),
        flag("-Ru", |o| o.bits_per_s = None),
        typed("-Ri", |o| &mut o.bits_per_s, rate),
        typed("-R", |o| &mut o.bits_per_s, rate),
        value("-T", |o, typed| {
            seconds(typed, "timeout", 10.0).map(|s| o.timeout_s = s)
        }),
        value("-i", |o, typed| {
            seconds(typed, "interval", 1.0).map(|s| o.interval_s = s)
        }),
        any("-I", |o, typed| {
            let typed: String = typed.chars().take(IDENTIFIER_MAX).collect();
            o.identifier = format!("-{typed}");
        }),
        takes(Takes::AttachedArgument, value("-f", NuttcpOptions::format)),
        flag("-F", |o| o.is_flipped = true),
        refused("-n", "brunt measures for a time; give one with -T"),
        refused("-u", UDP),
        refused("-m", UDP),
        refused("-S", SERVER),
        refused("-1", SERVER),
        refused("-s", "brunt sends and receives nothing of use"),
        refused("-c", "brunt leaves the type of service as it is"),
        refused("-d", "brunt sets no SO_DEBUG"),
        refused("-x", "traceroute and nice do that"),
        value("--brunt-report", |o, typed| {
            o.brunt_report = Some(typed.into());
            ensure(!typed.is_empty(), || wrong(NO_FILE))
        }),
    ])
}
const NO_FILE: &str = "--brunt-report needs the name of a file";

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NuttcpOptions {
    /// Whether the server sends; else brunt does.
    is_receiver: bool,
    /// The server, for the control connection and for the streams.
    pub control_host: String,
    /// Where the streams go; as `control_host` unless another address was given.
    pub host: String,
    /// Port of the control connection.
    pub control_port: u16,
    /// Port of the first stream; those of others follow.
    pub port: u16,
    /// Streams; above 0.
    pub streams: u32,
    /// Length of the load, seconds.
    pub timeout_s: f64,
    /// Time from one line of the report to the next, seconds; 0 for none.
    pub interval_s: f64,
    /// Bits of payload per second, at most.
    pub bits_per_s: Option<NonZeroU64>,
    /// Bytes that the server reads or writes at a time.
    pub buffer_bytes: u32,
    /// Bytes of our socket's buffer; absent: the kernel's choice.
    pub window_bytes: Option<NonZeroU32>,
    /// Bytes of the server's socket buffer; absent: its kernel's choice.
    pub server_window_bytes: Option<NonZeroU32>,
    /// Whether windows are set for both directions.
    pub sets_both_windows: bool,
    /// Most bytes in a segment.
    pub segment_bytes: Option<NonZeroU32>,
    /// Whether small writes go out at once.
    pub is_nodelay: bool,
    /// `-4` or `-6`: whether the address is one of IPv6.
    pub is_ipv6: Option<bool>,
    /// `-F`: the receiver opens the connections, as brunt does in any case where it is that.
    pub is_flipped: bool,
    /// Whether much is printed.
    pub is_verbose: bool,
    /// What stands in each line of it.
    pub identifier: String,
    /// Whether the text is of keys and values.
    pub is_parsable: bool,
    /// Whether lines over time also have totals.
    pub has_running_total: bool,
    /// Whether segments sent again are left out.
    pub no_retransmits: bool,
    /// Whether the round trip is left out.
    pub no_rtt: bool,
    /// Where brunt's own record goes.
    pub brunt_report: Option<PathBuf>,
}

fn wrong(line: &str) -> Ending {
    Ending::error(line, EXIT_WRONG)
}

/// A number at the beginning of a text, as C's `atoi` and `sscanf` read it, and the last character.
fn number(text: &str) -> (f64, char) {
    let is_part = |digit: char| digit.is_ascii_digit() || digit == '.' || digit == '-';
    let end = text.find(|digit| !is_part(digit)).unwrap_or(text.len());
    let last = text.chars().last().unwrap_or('\0');
    (
        text[..end].parse().unwrap_or(0.0),
        last.to_ascii_lowercase(),
    )
}

fn window(text: &str, name: &str) -> Result<Option<NonZeroU32>, Ending> {
    let (value, unit) = number(text);
    let factor = match unit {
        'm' => 1_048_576.0,
        'g' => 1_073_741_824.0,
        'b' => 1.0,
        _ => 1_024.0,
    };
    let bytes = value * factor;
    let is_size = (0.0..=f64::from(i32::MAX)).contains(&bytes);
    ensure(is_size, || wrong(&format!("invalid {name} = {text}")))?;
    Ok(NonZeroU32::new(bytes as u32))
}

fn seconds(text: &str, name: &str, of_zero: f64) -> Result<f64, Ending> {
    let (value, unit) = number(text);
    ensure(value >= 0.0, || {
        wrong(&format!("invalid {name} = {value:.6}"))
    })?;
    let value = if value == 0.0 { of_zero } else { value };
    Ok(match unit {
        'm' => value * 60.0,
        'h' => value * 3_600.0,
        'd' => value * 86_400.0,
        _ => value,
    })
}

fn port(text: &str, name: &str, least: u16) -> Result<u16, Ending> {
    let (value, _) = number(text);
    in_range(value, least.into(), 65_535.0, name).map(|()| value as u16)
}

fn in_range(value: f64, least: f64, most: f64, name: &str) -> Result<(), Ending> {
    let is_in_range = (least..=most).contains(&value);
    ensure(is_in_range, || wrong(&format!("invalid {name} = {value}")))
}

/// Bits per second; absent without a limit.
fn rate(text: &str) -> Result<Option<NonZeroU64>, Ending> {
    let (value, unit) = number(text);
    let factor = match unit {
        'p' => return Err(unlike("-R of packets", "give it in bits: -R100m")),
        'm' => 1e6,
        'g' => 1e9,
        _ => 1e3,
    };
    Ok(NonZeroU64::new((value * factor).max(0.0) as u64))
}

/// What brunt does not do, and what does it.
fn unlike(what: &str, reason: &str) -> Ending {
    wrong(&format!("brunt: {what} is not supported: {reason}"))
}

impl NuttcpOptions {
    /// Reads the words behind the program's name.
    ///
    /// # Errors
    ///
    /// Something is wrong, or is not done by brunt; usage or version are asked for.
    pub fn parse(words: &[String]) -> Result<Self, Ending> {
        let mut options = Self {
            control_port: 5_000,
            port: 5_001,
            streams: 1,
            timeout_s: 10.0,
            buffer_bytes: 65_536,
            ..Self::default()
        };
        let operands = table().read(words, &mut options);
        let operands = operands.map_err(|found| match found {
            Wrong::Ends(ending) => ending,
            Wrong::Refused(line) => wrong(&line),
            Wrong::NoArgument(_) => wrong(NO_FILE),
            Wrong::NoOption(_) | Wrong::Name(_) => wrong(USAGE.trim_end()),
        })?;
        let host = match &operands[..] {
            [host] => host,
            [_, other, ..] => {
                let what = format!("third party ({other})");
                return Err(unlike(&what, "run brunt nuttcp on that machine"));
            }
            [] if options.is_receiver => {
                return Err(unlike(
                    "receiver without a host (the classic mode)",
                    "brunt serve --tcp sink --tcp-listen 0.0.0.0:5001 receives",
                ));
            }
            [] => return Err(wrong(USAGE.trim_end())),
        };
        ensure(!options.is_flipped || !options.transmits(), || {
            unlike("-F with -t", "brunt opens the connections of its streams")
        })?;
        let (control, host) = host.split_once('/').unwrap_or((host, host));
        (options.control_host, options.host) = (control.to_owned(), host.to_owned());
        let last = u32::from(options.port) + options.streams - 1;
        ensure(last <= u16::MAX.into(), || {
            wrong(&format!("invalid port/nstream = {last}"))
        })?;
        Ok(options)
    }

    /// Whether brunt sends; else the server does.
    pub fn transmits(&self) -> bool {
        !self.is_receiver
    }

    fn format(&mut self, typed: &str) -> Result<(), Ending> {
        match typed {
            "parse" => self.is_parsable = true,
            "runningtotal" => self.has_running_total = true,
            "-retrans" => self.no_retransmits = true,
            "rtt" => self.no_rtt = false,
            "-rtt" => self.no_rtt = true,
            // Of UDP, and of versions.
            "xmitstats" | "-drops" | "-percentloss" | "-beta" => {}
            _ => return Err(wrong(&format!("invalid format option \"{typed}\""))),
        }
        Ok(())
    }

    fn take_window(&mut self, typed: &str) -> Result<(), Ending> {
        if !typed.is_empty() {
            self.window_bytes = window(typed, "sendwin")?;
            self.server_window_bytes = self.server_window_bytes.or(self.window_bytes);
        }
        Ok(())
    }

    /// The streams of the load, to the server at `address` (of IPv6 without brackets).
    ///
    /// # Errors
    ///
    /// The address cannot be one.
    pub fn plan(&self, address: std::net::IpAddr) -> Result<Plan, Ending> {
        let target = |port: u16| {
            let at = std::net::SocketAddr::new(address, port);
            let typed = at.to_string();
            Target::parse_tcp(Some(&typed), false, None)
                .map_err(|reason| wrong(&format!("{typed}: {reason}")))
        };
        let mut plan = Plan::bare(target(self.port)?, RequestSet::nothing());
        plan.further_targets = (1..self.streams as u16)
            .map(|further| target(self.port + further))
            .collect::<Result<_, _>>()?;
        plan.connection.protocol = Streams {
            sends: self.transmits(),
            receives: !self.transmits(),
            paced_bits_per_s: self.bits_per_s.filter(|_| self.transmits()),
            is_arranged: true,
        }
        .into();
        plan.load.connections = at_least_1(self.streams.into());
        plan.load.stop.duration_ns = Some((self.timeout_s * 1e9) as u64);
        plan.limits.setup_timeout_ns = Some(SETUP_LIMIT_NS);
        plan.load.drain_limit_ns = DRAIN_LIMIT_NS;
        let both = self.window_bytes.filter(|_| self.sets_both_windows);
        let (send, receive) = if self.transmits() {
            (self.window_bytes, both)
        } else {
            (both, self.window_bytes)
        };
        plan.connection.sockets = SocketOptions {
            is_nodelay: self.is_nodelay,
            send_buffer_bytes: send,
            receive_buffer_bytes: receive,
            segment_bytes: self.segment_bytes,
            ..SocketOptions::default()
        };
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn parse(line: &str) -> Result<NuttcpOptions, Ending> {
        let words = words(line);
        NuttcpOptions::parse(&words)
    }

    #[test]
    fn options_are_read_attached_and_apart() {
        let plain = parse("host").expect("good");
        assert_eq!((plain.transmits(), plain.timeout_s), (true, 10.0));
        assert_eq!((plain.control_port, plain.port), (5_000, 5_001));
        let line = "-r -T2m -i -N4 -p 6001 -P6000 -w 512 -ws2m -M1000 -R1.5g -l8k -D -v -fparse \
                    -f-rtt -Iname ctl/host";
        let all = parse(line).expect("good");
        assert!(!all.transmits() && all.is_verbose && all.is_parsable && all.no_rtt);
        assert_eq!((all.timeout_s, all.interval_s), (120.0, 1.0));
        assert_eq!((all.control_port, all.port, all.streams), (6_000, 6_001, 4));
        let bytes = |window: Option<NonZeroU32>| window.map(NonZeroU32::get);
        assert_eq!(bytes(all.window_bytes), Some(512 << 10));
        assert_eq!(bytes(all.server_window_bytes), Some(2 << 20));
        assert_eq!(all.bits_per_s.map(NonZeroU64::get), Some(1_500_000_000));
        assert_eq!(
            (all.buffer_bytes, bytes(all.segment_bytes)),
            (8_192, Some(1_000))
        );
        assert_eq!(
            (all.control_host.as_str(), all.host.as_str()),
            ("ctl", "host")
        );
        assert_eq!(all.identifier, "-name");
        assert_eq!(parse("-T0 h").expect("good").timeout_s, 10.0);
        assert_eq!(parse("-T0.5 h").expect("good").timeout_s, 0.5);
    }

    #[test]
    fn what_is_wrong_or_not_done_ends_with_1() {
        for (line, part) in [
            ("-u h", "brunt does not speak UDP"),
            ("-n100 h", "give one with -T"),
            ("-S", "brunt serve --tcp sink"),
            ("-s h", "-s is not supported"),
            ("-F h", "-F with -t is not supported"),
            ("-p80 h", "invalid port = 80"),
            ("-N0 h", "invalid nstream = 0"),
            ("-T-1 h", "invalid timeout = -1.000000"),
            ("-fnosuch h", "invalid format option \"nosuch\""),
            ("-r", "classic mode"),
            ("h third", "third party"),
            ("-N3 -p65534 h", "invalid port/nstream"),
            ("-t", "Usage"),
            ("-Z h", "Usage"),
            ("", "Usage"),
        ] {
            let ending = parse(line).expect_err(line);
            assert_eq!(ending.code, 1, "{line}");
            assert!(ending.stderr.contains(part), "{line}: {}", ending.stderr);
        }
        for line in ["-h", "-V"] {
            assert_eq!(parse(line).expect_err(line).code, 0);
        }
    }

    #[test]
    fn streams_go_to_ports_of_their_own() {
        let options = parse("-N3 -T2 -w64 h").expect("good");
        let plan = options.plan([127, 0, 0, 1].into()).expect("a plan");
        let ports: Vec<u16> = std::iter::once(&plan.target)
            .chain(&plan.further_targets)
            .map(|target| target.port)
            .collect();
        assert_eq!(ports, [5_001, 5_002, 5_003]);
        assert_eq!(plan.load.connections.get(), 3);
        assert_eq!(plan.load.stop.duration_ns, Some(2_000_000_000));
        assert_eq!(
            plan.connection.sockets.send_buffer_bytes,
            NonZeroU32::new(64 << 10)
        );
        assert_eq!(plan.connection.sockets.receive_buffer_bytes, None);
    }
}
