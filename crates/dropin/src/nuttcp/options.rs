//! The command line of nuttcp.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use brunt_load::{Placement, Plan, RequestSet, SocketOptions, Stop, Streams, Target};

use super::usage::{USAGE, VERSION};
use crate::Ending;

/// What nuttcp exits with where something is wrong.
const EXIT_WRONG: u8 = 1;
/// Streams at most.
const STREAMS_MAX: u32 = 128;
/// Time that streams are followed beyond the end of the load.
const DRAIN_LIMIT_NS: u64 = 3_000_000_000;
/// Time for the connections of the streams.
const SETUP_LIMIT_NS: u64 = 5_000_000_000;
/// Characters of an identifier.
const IDENTIFIER_MAX: usize = 40;

/// Letters of options that are refused, and why.
const REFUSED: &[(&str, &str)] = &[
    ("n", "brunt measures for a time; give one with -T"),
    ("um", "brunt does not speak UDP"),
    (
        "S1",
        "brunt serve --tcp sink or source takes or sends streams",
    ),
    ("s", "brunt sends and receives nothing of use"),
    ("c", "brunt leaves the type of service as it is"),
    ("d", "brunt sets no SO_DEBUG"),
    ("x", "traceroute and nice do that"),
];

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Whether brunt sends; else the server does.
    pub transmits: bool,
    /// The server, for the control connection and for the streams.
    pub control_host: String,
    /// Where the streams go; as `control_host` unless another address was given.
    pub host: String,
    /// Port of the control connection.
    pub control_port: u16,
    /// Port of the first stream; those of others follow.
    pub port: u16,
    /// Streams.
    pub streams: NonZeroU32,
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
    /// Whether segments sent again are printed.
    pub has_retransmits: bool,
    /// Whether the round trip is printed.
    pub has_rtt: bool,
    /// Where brunt's own record goes.
    pub brunt_report: Option<PathBuf>,
}

fn wrong(line: String) -> Ending {
    Ending {
        code: EXIT_WRONG,
        stdout: String::new(),
        stderr: format!("{line}\n"),
    }
}

/// The argument of an option: attached, or the next word that is not an option.
fn argument(
    attached: &str,
    words: &mut std::iter::Peekable<std::slice::Iter<'_, String>>,
) -> String {
    match attached {
        "" => {
            let next = words.next_if(|word| !word.starts_with('-'));
            next.cloned().unwrap_or_default()
        }
        attached => attached.to_owned(),
    }
}

/// A number at the beginning of a text, as C's `atoi` and `sscanf` read it, and the last character.
fn number(text: &str) -> (f64, char) {
    let end = text
        .find(|digit: char| !digit.is_ascii_digit() && digit != '.' && digit != '-')
        .unwrap_or(text.len());
    let value: f64 = text[..end].parse().unwrap_or(0.0);
    (
        value,
        text.chars().last().unwrap_or('\0').to_ascii_lowercase(),
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
    if !(0.0..=f64::from(i32::MAX)).contains(&bytes) {
        return Err(wrong(format!("invalid {name} = {text}")));
    }
    Ok(NonZeroU32::new(bytes as u32))
}

fn seconds(text: &str, name: &str, of_zero: f64) -> Result<f64, Ending> {
    let (value, unit) = number(text);
    if value < 0.0 {
        return Err(wrong(format!("invalid {name} = {value:.6}")));
    }
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
    let is_port = (f64::from(least)..=65_535.0).contains(&value);
    match is_port {
        true => Ok(value as u16),
        false => Err(wrong(format!("invalid {name} = {value}"))),
    }
}

/// What brunt does not do in nuttcp's place, and what does it.
fn unlike(option: &str, reason: &str) -> Ending {
    wrong(format!(
        "brunt: nuttcp's {option} is not supported: {reason}"
    ))
}

impl Options {
    /// Reads the words behind the program's name.
    ///
    /// # Errors
    ///
    /// Something is wrong, or is not done by brunt; usage or version are asked for.
    pub fn parse(words: &[String]) -> Result<Self, Ending> {
        if words.is_empty() {
            return Err(wrong(USAGE.trim_end().to_owned()));
        }
        let mut options = Self::default();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next_if(|word| word.starts_with('-') && word.len() > 1) {
            options.take(&word[1..], &mut words)?;
        }
        let host = words.next().ok_or_else(|| match options.transmits {
            true => wrong(USAGE.trim_end().to_owned()),
            false => unlike(
                "receiver without a host (the classic mode)",
                "brunt serve --tcp sink --tcp-listen 0.0.0.0:5001 receives",
            ),
        })?;
        if let Some(other) = words.next() {
            return Err(unlike(
                &format!("third party ({other})"),
                "run brunt nuttcp on that machine",
            ));
        }
        if options.is_flipped && options.transmits {
            let reason = "brunt opens the connections of its streams";
            return Err(unlike("-F with -t", reason));
        }
        (options.control_host, options.host) = match host.split_once('/') {
            Some((control, host)) => (control.to_owned(), host.to_owned()),
            None => (host.clone(), host.clone()),
        };
        let last = u32::from(options.port) + options.streams.get() - 1;
        if last > u32::from(u16::MAX) {
            return Err(wrong(format!("invalid port/nstream = {last}")));
        }
        Ok(options)
    }

    fn take(
        &mut self,
        option: &str,
        words: &mut std::iter::Peekable<std::slice::Iter<'_, String>>,
    ) -> Result<(), Ending> {
        let letter = option.chars().next().unwrap_or('\0');
        let attached = &option[letter.len_utf8()..];
        match (letter, attached) {
            ('h', _) => {
                return Err(Ending::printed(USAGE));
            }
            ('V', _) => {
                return Err(Ending {
                    code: 0,
                    stdout: format!("nuttcp-{VERSION}\n"),
                    stderr: String::new(),
                });
            }
            ('-', name) if name.starts_with("brunt-report") => {
                let file = match name.split_once('=') {
                    Some((_, file)) => file.to_owned(),
                    None => argument("", words),
                };
                if file.is_empty() {
                    return Err(wrong("--brunt-report needs the name of a file".to_owned()));
                }
                self.brunt_report = Some(file.into());
            }
            ('4', _) => self.is_ipv6 = Some(false),
            ('6', _) => self.is_ipv6 = Some(true),
            ('t', _) => self.transmits = true,
            ('r', _) => self.transmits = false,
            ('B' | 'a', _) => {}
            ('D', _) => self.is_nodelay = true,
            ('v', _) => self.is_verbose = true,
            ('b', _) => self.is_verbose = false,
            ('l', _) => {
                let (value, unit) = number(&argument(attached, words));
                let factor = match unit {
                    'k' => 1_024.0,
                    'm' => 1_048_576.0,
                    _ => 1.0,
                };
                if !(1.0..=f64::from(i32::MAX)).contains(&(value * factor)) {
                    return Err(wrong(format!("invalid buflen = {value}")));
                }
                self.buffer_bytes = (value * factor) as u32;
            }
            ('w', _) if attached.starts_with('s') => {
                let text = argument(&attached[1..], words);
                self.server_window_bytes = window(&text, "srvrwin")?;
            }
            ('w', _) => {
                let (is_both, rest) = match attached.strip_prefix('b') {
                    Some(rest) => (true, rest),
                    None => (false, attached),
                };
                self.sets_both_windows |= is_both;
                let text = argument(rest, words);
                if !text.is_empty() {
                    self.window_bytes = window(&text, "sendwin")?;
                    self.server_window_bytes = self.server_window_bytes.or(self.window_bytes);
                }
            }
            ('p', _) => self.port = port(&argument(attached, words), "port", 5_001)?,
            ('P', _) => self.control_port = port(&argument(attached, words), "ctlport", 5_000)?,
            ('M', _) => {
                let (value, _) = number(&argument(attached, words));
                if !(0.0..=65_535.0).contains(&value) {
                    return Err(wrong(format!("invalid datamss = {value}")));
                }
                self.segment_bytes = NonZeroU32::new(value as u32);
            }
            ('N', _) => {
                let (value, _) = number(&argument(attached, words));
                if value < 1.0 {
                    return Err(wrong(format!("invalid nstream = {value}")));
                }
                let count = (value as u32).clamp(1, STREAMS_MAX);
                self.streams = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
            }
            ('R', _) => self.take_rate(attached, words)?,
            ('T', _) => self.timeout_s = seconds(&argument(attached, words), "timeout", 10.0)?,
            ('i', _) => self.interval_s = seconds(&argument(attached, words), "interval", 1.0)?,
            ('I', _) => {
                let text = argument(attached, words);
                let text: String = text.chars().take(IDENTIFIER_MAX).collect();
                self.identifier = format!("-{text}");
            }
            ('f', format) => match format {
                "parse" => self.is_parsable = true,
                "runningtotal" => self.has_running_total = true,
                "-retrans" => self.has_retransmits = false,
                "rtt" => self.has_rtt = true,
                "-rtt" => self.has_rtt = false,
                // Of UDP, and of versions.
                "xmitstats" | "-drops" | "-percentloss" | "-beta" => {}
                _ => return Err(wrong(format!("invalid format option \"{format}\""))),
            },
            ('F', _) => self.is_flipped = true,
            (letter, _) => {
                let refused = REFUSED.iter().find(|(letters, _)| letters.contains(letter));
                return Err(match refused {
                    Some((_, reason)) => unlike(&format!("-{letter}"), reason),
                    None => wrong(USAGE.trim_end().to_owned()),
                });
            }
        }
        Ok(())
    }

    fn take_rate(
        &mut self,
        attached: &str,
        words: &mut std::iter::Peekable<std::slice::Iter<'_, String>>,
    ) -> Result<(), Ending> {
        if attached.starts_with('u') {
            self.bits_per_s = None;
            return Ok(());
        }
        let text = argument(attached.strip_prefix('i').unwrap_or(attached), words);
        let (value, unit) = number(&text);
        if unit == 'p' {
            return Err(unlike("-R of packets", "give it in bits: -R100m"));
        }
        let factor = match unit {
            'm' => 1e6,
            'g' => 1e9,
            _ => 1e3,
        };
        self.bits_per_s = NonZeroU64::new((value * factor).max(0.0) as u64);
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
                .map_err(|reason| wrong(format!("{typed}: {reason}")))
        };
        let mut plan = Plan::new(target(self.port)?, RequestSet::nothing());
        plan.further_targets = (1..self.streams.get() as u16)
            .map(|further| target(self.port + further))
            .collect::<Result<_, _>>()?;
        plan.spoken = Streams {
            sends: self.transmits,
            receives: !self.transmits,
            paced_bits_per_s: self.bits_per_s.filter(|_| self.transmits),
            is_arranged: true,
        }
        .into();
        plan.connections = self.streams;
        plan.workers = NonZeroU32::MIN;
        plan.placement = Placement::Given;
        plan.stop = Stop {
            duration_ns: Some((self.timeout_s * 1e9) as u64),
            requests: None,
        };
        plan.warmup_ns = 0;
        plan.halves_warmup = false;
        plan.setup_timeout_ns = Some(SETUP_LIMIT_NS);
        plan.drain_limit_ns = DRAIN_LIMIT_NS;
        let of = |is_ours: bool| {
            self.window_bytes
                .filter(|_| is_ours || self.sets_both_windows)
        };
        plan.sockets = SocketOptions {
            is_nodelay: self.is_nodelay,
            send_buffer_bytes: of(self.transmits),
            receive_buffer_bytes: of(!self.transmits),
            segment_bytes: self.segment_bytes,
            ..SocketOptions::default()
        };
        Ok(plan)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            transmits: true,
            control_host: String::new(),
            host: String::new(),
            control_port: 5_000,
            port: 5_001,
            streams: NonZeroU32::MIN,
            timeout_s: 10.0,
            interval_s: 0.0,
            bits_per_s: None,
            buffer_bytes: 65_536,
            window_bytes: None,
            server_window_bytes: None,
            sets_both_windows: false,
            segment_bytes: None,
            is_nodelay: false,
            is_ipv6: None,
            is_flipped: false,
            is_verbose: false,
            identifier: String::new(),
            is_parsable: false,
            has_running_total: false,
            has_retransmits: true,
            has_rtt: true,
            brunt_report: None,
        }
    }
}

/// The words behind the program's name as a report may show them: none is secret.
pub fn shown(words: &[String]) -> Vec<String> {
    words.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn parse(line: &str) -> Result<Options, Ending> {
        let words = words(line);
        Options::parse(&words)
    }

    #[test]
    fn options_are_read_attached_and_apart() {
        let plain = parse("host").expect("good");
        assert_eq!((plain.transmits, plain.timeout_s), (true, 10.0));
        assert_eq!((plain.control_port, plain.port), (5_000, 5_001));
        let line = "-r -T2m -i -N4 -p 6001 -P6000 -w 512 -ws2m -M1000 -R1.5g -l8k -D -v -fparse \
                    -f-rtt -Iname ctl/host";
        let all = parse(line).expect("good");
        assert!(!all.transmits && all.is_verbose && all.is_parsable && !all.has_rtt);
        assert_eq!((all.timeout_s, all.interval_s), (120.0, 1.0));
        assert_eq!(
            (all.control_port, all.port, all.streams.get()),
            (6_000, 6_001, 4)
        );
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
        assert_eq!(plan.connections.get(), 3);
        assert_eq!(plan.stop.duration_ns, Some(2_000_000_000));
        assert_eq!(plan.sockets.send_buffer_bytes, NonZeroU32::new(64 << 10));
        assert_eq!(plan.sockets.receive_buffer_bytes, None);
    }
}
