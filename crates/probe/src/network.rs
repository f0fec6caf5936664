//! Readings of the way to the server: the interface, the TCP counters, tracked connections.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use brunt_io::backend::Peer;
use brunt_record::{Conntrack, NetworkEvidence, Route, TcpCounters};
use procfs::net::DeviceStatus;

use super::route::Way;

/// Why there is no first reading.
const NOT_READ: &str = "it was not read at first";
/// What there is of each interface, in a folder of its name.
const INTERFACES: &str = "/sys/class/net";

/// Reads the network at the edges of one window: [`Self::begin`], then [`Self::end`].
#[derive(Debug)]
pub(crate) struct NetworkReader {
    way: Way,
    /// What `--link-speed` says.
    link_bits_per_s: Option<u64>,
    tcp: Result<TcpCounters, String>,
    interface: Result<DeviceStatus, String>,
    conntrack_drops: Option<u64>,
}

impl NetworkReader {
    /// A reader of the network that connections to `peer` use.
    pub(crate) fn new(peer: &Peer, link_bits_per_s: Option<u64>) -> Self {
        Self {
            way: Way::to(peer),
            link_bits_per_s,
            tcp: Err(NOT_READ.to_owned()),
            interface: Err(NOT_READ.to_owned()),
            conntrack_drops: None,
        }
    }

    /// The first reading.
    pub(crate) fn begin(&mut self) {
        self.tcp = read_tcp();
        if let Way::Interface(name) = &self.way {
            self.interface = read_interface(name);
        }
        self.conntrack_drops = conntrack_drops();
    }

    /// The last reading. What could not be read is added to `missing`.
    pub(crate) fn end(self, missing: &mut BTreeMap<String, String>) -> NetworkEvidence {
        let mut miss = |field: &str, reason: String| {
            missing.insert(format!("network.{field}"), reason);
        };
        let tcp = if self.way == Way::UnixSocket {
            Err("a Unix socket does without TCP".to_owned())
        } else {
            self.tcp.and_then(|start| Ok(read_tcp()?.since(&start)))
        };
        let tcp = tcp.map_err(|reason| miss("tcp", reason)).ok();
        let conntrack = read_conntrack(self.conntrack_drops)
            .map_err(|reason| miss("conntrack", reason))
            .ok()
            .flatten();
        let time_wait = read("/proc/net/sockstat")
            .and_then(|text| {
                time_wait(&text).ok_or_else(|| "/proc/net/sockstat has no `TCP: ... tw`".to_owned())
            })
            .map_err(|reason| miss("time_wait", reason))
            .ok();
        let route = match self.way {
            Way::UnixSocket => Ok(Route::UnixSocket),
            Way::Loopback => Ok(Route::Loopback),
            Way::Unknown(reason) => Err(reason),
            Way::Interface(name) => {
                let start = self.interface;
                let readings = start.and_then(|start| Ok((start, read_interface(&name)?)));
                readings.map(|(start, end)| Route::Interface {
                    link_bits_per_s: self
                        .link_bits_per_s
                        .map_or_else(|| driver_bits_per_s(INTERFACES.as_ref(), &name), Ok)
                        .map_err(|reason| miss("route.link_bits_per_s", reason))
                        .ok(),
                    was_given: self.link_bits_per_s.is_some(),
                    received_bytes: end.recv_bytes.saturating_sub(start.recv_bytes),
                    sent_bytes: end.sent_bytes.saturating_sub(start.sent_bytes),
                    dropped_packets: dropped(&end).saturating_sub(dropped(&start)),
                    name,
                })
            }
        };
        let route = route.unwrap_or_else(|reason| {
            miss("route", reason);
            Route::Unknown
        });
        NetworkEvidence {
            route,
            tcp,
            conntrack,
            time_wait,
        }
    }
}

fn read(name: &str) -> Result<String, String> {
    fs::read_to_string(name).map_err(|error| format!("{name}: {error}"))
}

fn read_interface(name: &str) -> Result<DeviceStatus, String> {
    let mut interfaces = procfs::net::dev_status().map_err(|error| error.to_string())?;
    let status = interfaces.remove(name);
    status.ok_or_else(|| format!("{name} is not in /proc/net/dev"))
}

/// Packets dropped, both ways.
fn dropped(status: &DeviceStatus) -> u64 {
    status.recv_drop.saturating_add(status.sent_drop)
}

/// The speed of a link as its driver says it. Devices made of software, such as `veth`, have one
/// too, made up, and are not believed.
fn driver_bits_per_s(interfaces: &Path, name: &str) -> Result<u64, String> {
    let folder = interfaces.join(name);
    let unknown = |why: &str| format!("{why}; --link-speed gives the speed of {name}");
    if !folder.join("device").exists() {
        return Err(unknown("it is not a hardware device"));
    }
    let megabits = fs::read_to_string(folder.join("speed"))
        .ok()
        .and_then(|text| text.trim().parse::<i64>().ok())
        .and_then(|megabits| u64::try_from(megabits).ok())
        // What a driver that does not know has been seen to say: -1, 0, or -1 without the sign.
        .filter(|&megabits| megabits > 0 && megabits < u64::from(u32::MAX))
        .ok_or_else(|| unknown("its driver does not say"))?;
    Ok(megabits.saturating_mul(1_000_000))
}

fn read_tcp() -> Result<TcpCounters, String> {
    let (snmp, netstat) = (read("/proc/net/snmp")?, read("/proc/net/netstat")?);
    let tcp = Counters::parse(&snmp, "Tcp").ok_or("/proc/net/snmp has no `Tcp`")?;
    let extended =
        Counters::parse(&netstat, "TcpExt").ok_or("/proc/net/netstat has no `TcpExt`")?;
    Ok(tcp_counters(&tcp, &extended))
}

fn tcp_counters(tcp: &Counters<'_>, extended: &Counters<'_>) -> TcpCounters {
    let syn_retransmits = extended.get("TCPSynRetrans");
    let prunes = ["PruneCalled", "RcvPruned", "TCPRcvQDrop", "TCPBacklogDrop"];
    TcpCounters {
        segments_received: tcp.get("InSegs"),
        segments_sent: tcp.get("OutSegs"),
        // The kernel's counter has the repeated connection requests in it, which are told apart
        // here: they point at a full accept queue, not at the network.
        segments_retransmitted: tcp.get("RetransSegs").saturating_sub(syn_retransmits),
        segments_out_of_order: extended.get("TCPOFOQueue"),
        syn_retransmits,
        zero_windows_advertised: extended.get("TCPToZeroWindowAdv"),
        receive_prunes: prunes.iter().map(|name| extended.get(name)).sum(),
        listen_overflows: extended.get("ListenOverflows"),
    }
}

/// One group of `/proc/net/snmp` or `/proc/net/netstat`: a line of names, then a line of values,
/// each after the name of the group and a colon. Kernels differ in which names there are.
struct Counters<'a> {
    names: &'a str,
    values: &'a str,
}

impl<'a> Counters<'a> {
    fn parse(text: &'a str, group: &str) -> Option<Self> {
        let mut lines = text.lines().filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            (name == group).then_some(rest)
        });
        Some(Self {
            names: lines.next()?,
            values: lines.next()?,
        })
    }

    /// A counter's value; 0 where the kernel does not keep it.
    fn get(&self, name: &str) -> u64 {
        self.names
            .split_ascii_whitespace()
            .zip(self.values.split_ascii_whitespace())
            .find(|(known, _)| *known == name)
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(0)
    }
}

/// TCP sockets of this network namespace in TIME_WAIT; absent where the kernel does not say.
pub fn time_wait_sockets() -> Option<u64> {
    time_wait(&fs::read_to_string("/proc/net/sockstat").ok()?)
}

/// TCP sockets in TIME_WAIT, by `/proc/net/sockstat`: `TCP: inuse 1 orphan 0 tw 0 ...`.
fn time_wait(sockstat: &str) -> Option<u64> {
    let tcp = sockstat
        .lines()
        .find_map(|line| line.strip_prefix("TCP: "))?;
    let mut fields = tcp.split_ascii_whitespace();
    fields.find(|&field| field == "tw")?;
    fields.next()?.parse().ok()
}

/// The table of tracked connections; none where connections are not tracked.
fn read_conntrack(drops_before: Option<u64>) -> Result<Option<Conntrack>, String> {
    let number = |name: &str| -> Result<Option<u64>, String> {
        let name = format!("/proc/sys/net/netfilter/nf_conntrack_{name}");
        match fs::read_to_string(&name) {
            Ok(text) => text
                .trim()
                .parse()
                .map(Some)
                .map_err(|error| format!("{name}: {error}")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{name}: {error}")),
        }
    };
    let Some((entries, entries_max)) = number("count")?.zip(number("max")?) else {
        return Ok(None);
    };
    let dropped = conntrack_drops().zip(drops_before);
    Ok(Some(Conntrack {
        entries,
        entries_max,
        dropped_packets: dropped.map_or(0, |(now, before)| now.saturating_sub(before)),
    }))
}

fn conntrack_drops() -> Option<u64> {
    sum_conntrack_drops(&fs::read_to_string("/proc/net/stat/nf_conntrack").ok()?)
}

/// Packets dropped, and entries thrown out early to make room, summed over all CPUs: a line of
/// names, then a line of hexadecimal numbers per CPU. Failed insertions are not added: where they
/// lose a packet, it is among the dropped ones.
fn sum_conntrack_drops(stat: &str) -> Option<u64> {
    let mut lines = stat.lines();
    let names: Vec<_> = lines.next()?.split_ascii_whitespace().collect();
    let place = |name| names.iter().position(|&known| known == name);
    let places = [place("drop")?, place("early_drop")?];
    let of_cpu = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        places.iter().fold(0_u64, |sum, &place| {
            let number = fields
                .get(place)
                .and_then(|field| u64::from_str_radix(field, 16).ok());
            sum.saturating_add(number.unwrap_or(0))
        })
    };
    Some(lines.map(of_cpu).fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "\
Ip: Forwarding DefaultTTL InReceives
Ip: 2 64 841255759
IcmpMsg: InType3
IcmpMsg: 3
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn InSegs OutSegs RetransSegs InErrs
Tcp: 1 200 120000 -1 841255702 841353262 10153 0
";
    const NETSTAT: &str = "\
TcpExt: PruneCalled RcvPruned ListenOverflows ListenDrops TCPBacklogDrop TCPOFOQueue \
         TCPToZeroWindowAdv TCPSynRetrans TCPRcvQDrop
TcpExt: 51 2 744 745 3 1039 130811 3009 43
IpExt: InNoRoutes
IpExt: 0
";

    #[test]
    fn tcp_counters_are_read_by_name() {
        let tcp = Counters::parse(SNMP, "Tcp").expect("a group");
        let extended = Counters::parse(NETSTAT, "TcpExt").expect("a group");
        let expected = TcpCounters {
            segments_received: 841_255_702,
            segments_sent: 841_353_262,
            segments_retransmitted: 10_153 - 3_009,
            segments_out_of_order: 1_039,
            syn_retransmits: 3_009,
            zero_windows_advertised: 130_811,
            receive_prunes: 51 + 2 + 3 + 43,
            listen_overflows: 744,
        };
        assert_eq!(tcp_counters(&tcp, &extended), expected);
    }

    #[test]
    fn counters_of_other_kernels_are_read_as_far_as_they_go() {
        for (text, name, value) in [
            ("Tcp: A B C\nTcp: 1 2 3\n", "C", Some(3)),
            ("Tcp: A B C\nTcp: 1 2\n", "C", Some(0)),
            ("Tcp: A B C\nTcp: 1 -1 3\n", "B", Some(0)),
            ("Tcp: A\nTcp: 18446744073709551616\n", "A", Some(0)),
            ("Tcp: A\nTcp: 7\n", "D", Some(0)),
            ("Tcp:\nTcp:\n", "A", Some(0)),
            ("Tcp: A B C\n", "A", None),
            ("TcpExt: A\nTcpExt: 1\n", "A", None),
            ("", "A", None),
        ] {
            let found = Counters::parse(text, "Tcp").map(|counters| counters.get(name));
            assert_eq!(found, value, "{text:?}");
        }
    }

    #[test]
    fn changes_are_never_negative() {
        let counters = |segments_sent, listen_overflows| TcpCounters {
            segments_sent,
            listen_overflows,
            ..TcpCounters::default()
        };
        assert_eq!(counters(9, 1).since(&counters(4, 3)), counters(5, 0));
    }

    #[test]
    fn time_wait_is_read() {
        for (text, sockets) in [
            (
                "sockets: used 21\nTCP: inuse 1 orphan 0 tw 28231 alloc 1 mem 159\nUDP: inuse 0\n",
                Some(28_231),
            ),
            ("TCP: inuse 1 orphan 0 tw", None),
            ("TCP: inuse 1\nUDP: tw 4\n", None),
            ("", None),
        ] {
            assert_eq!(time_wait(text), sockets, "{text:?}");
        }
    }

    #[test]
    fn dropped_packets_of_tracked_connections_are_summed() {
        let names = "entries  clashres found new insert insert_failed drop early_drop icmp_error\n";
        for (lines, drops) in [
            ("00000010  0 0 0 0 00000007 0000000a 00000001 0\n", Some(11)),
            (
                "10 0 0 0 0 7 0000000a 00000001 0\n10 0 0 0 0 7 000000ff 00000000 0\n",
                Some(266),
            ),
            ("10 0 0 0 0 7 x\n\n", Some(0)),
            ("", Some(0)),
        ] {
            assert_eq!(
                sum_conntrack_drops(&format!("{names}{lines}")),
                drops,
                "{lines:?}"
            );
        }
        assert_eq!(sum_conntrack_drops("entries found\n1 2\n"), None);
        assert_eq!(sum_conntrack_drops(""), None);
    }

    #[test]
    fn only_the_speed_of_hardware_is_believed() {
        let real_or_none = driver_bits_per_s(Path::new("/sys/class/net"), "lo");
        let reason = real_or_none.expect_err("made of software");
        assert!(
            reason.contains("--link-speed") && reason.contains("lo"),
            "{reason}"
        );
    }

    #[test]
    fn a_unix_socket_has_no_tcp() {
        let mut reader = NetworkReader::new(&Peer::Unix("/run/a".into()), Some(1));
        reader.begin();
        let mut missing = BTreeMap::new();
        let evidence = reader.end(&mut missing);
        assert_eq!((evidence.route, evidence.tcp), (Route::UnixSocket, None));
        assert!(missing.contains_key("network.tcp"));
    }
}
