//! Which way packets to the server go: loopback, or which network interface.

use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

use brunt_io::backend::Peer;

/// Flags of a route in /proc/net/route and /proc/net/ipv6_route (linux/route.h).
const FLAG_UP: u32 = 0x1;
const FLAG_GATEWAY: u32 = 0x2;
const FLAG_REJECT: u32 = 0x200;

/// The way to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A Unix socket.
    UnixSocket,
    /// The peer is on this machine.
    Loopback,
    /// A network interface, by its name.
    Interface(String),
    /// It could not be found out, for this reason.
    Unknown(String),
}

impl Way {
    /// To `peer`. Nothing is sent.
    pub(super) fn to(peer: &Peer) -> Self {
        let address = match peer {
            Peer::Unix(_) => return Self::UnixSocket,
            Peer::Tcp(address) | Peer::Udp(address) => address,
        };
        let (local, remote) = match ends(*address) {
            Ok(ends) => ends,
            Err(error) => return Self::Unknown(format!("no route to {}: {error}", address.ip())),
        };
        if remote.is_loopback() || local == remote {
            return Self::Loopback;
        }
        let read = |name: &str| fs::read_to_string(name).unwrap_or_default();
        let name = match (local, remote) {
            (IpAddr::V4(_), IpAddr::V4(_)) => {
                let routes = ipv4_routes(&read("/proc/net/route"));
                interface_of(&routes, local, remote)
            }
            _ => holder(&read("/proc/net/if_inet6"), local).or_else(|| {
                let routes = ipv6_routes(&read("/proc/net/ipv6_route"));
                interface_of(&routes, local, remote)
            }),
        };
        name.map_or_else(
            || Self::Unknown(format!("no route in /proc/net leads to {remote}")),
            Self::Interface,
        )
    }
}

/// Whether `address` is one of this machine's, in this network namespace.
pub(super) fn is_own(address: IpAddr) -> bool {
    ends(SocketAddr::new(address, 9)).is_ok_and(|(local, remote)| local == remote)
        || address.to_canonical().is_loopback()
}

/// The addresses of the two ends of a connection to `peer`, as the kernel would choose them.
fn ends(peer: SocketAddr) -> std::io::Result<(IpAddr, IpAddr)> {
    let any: SocketAddr = if peer.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    // To connect a UDP socket is to look up the route.
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    Ok((
        socket.local_addr()?.ip().to_canonical(),
        // Not what was asked for: 0.0.0.0 means this machine.
        socket.peer_addr()?.ip().to_canonical(),
    ))
}

/// A line of a routing table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RouteLine {
    /// The bits of the network's address, first bit highest.
    network: u128,
    prefix_bits: u32,
    metric: u32,
    /// Whether it leads to a network that is reached without a router.
    is_direct: bool,
    interface: String,
}

impl RouteLine {
    fn matches(&self, address: u128) -> bool {
        let differing = self.network ^ address;
        self.prefix_bits == 0 || differing >> (128 - self.prefix_bits.min(128)) == 0
    }
}

/// The interface on whose network the local address is; else the one of the best route to the
/// remote one: with several routing tables, only the main one can be read.
fn interface_of(routes: &[RouteLine], local: IpAddr, remote: IpAddr) -> Option<String> {
    let (local, remote) = (bits(local), bits(remote));
    let direct = |route: &&RouteLine| route.is_direct && route.prefix_bits > 0;
    best(routes.iter().filter(direct), local)
        .or_else(|| best(routes.iter(), remote))
        .map(|route| route.interface.clone())
}

/// The longest match, and of several the one with the lowest metric.
fn best<'a>(routes: impl Iterator<Item = &'a RouteLine>, address: u128) -> Option<&'a RouteLine> {
    routes
        .filter(|route| route.matches(address))
        .min_by_key(|route| (std::cmp::Reverse(route.prefix_bits), route.metric))
}

/// The bits of an address; those of an IPv4 address are the first 32.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// `/proc/net/route`; addresses are hexadecimal numbers in the machine's byte order.
fn ipv4_routes(text: &str) -> Vec<RouteLine> {
    let route_of = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().take(8).collect();
        let &[interface, network, _, flags, _, _, metric, mask] = &fields[..] else {
            return None;
        };
        let address = |field| {
            let number = u32::from_str_radix(field, 16).ok()?;
            Some(u32::from_be_bytes(number.to_ne_bytes()))
        };
        let flags = u32::from_str_radix(flags, 16).ok()?;
        is_usable(flags).then_some(RouteLine {
            network: u128::from(address(network)?) << 96,
            prefix_bits: address(mask)?.leading_ones(),
            metric: metric.parse().ok()?,
            is_direct: flags & FLAG_GATEWAY == 0,
            interface: interface.to_owned(),
        })
    };
    text.lines().skip(1).filter_map(route_of).collect()
}

/// `/proc/net/ipv6_route`: destination and source with prefix lengths, next hop, metric, reference
/// and use counts, flags, interface; numbers are hexadecimal.
fn ipv6_routes(text: &str) -> Vec<RouteLine> {
    let route_of = |line: &str| {
        let fields: Vec<_> = line.split_ascii_whitespace().take(10).collect();
        let &[network, prefix, _, _, _, metric, _, _, flags, interface] = &fields[..] else {
            return None;
        };
        let number = |field| u32::from_str_radix(field, 16).ok();
        let flags = number(flags)?;
        is_usable(flags).then_some(RouteLine {
            network: u128::from_str_radix(network, 16).ok()?,
            prefix_bits: number(prefix)?,
            metric: number(metric)?,
            is_direct: flags & FLAG_GATEWAY == 0,
            interface: interface.to_owned(),
        })
    };
    text.lines().filter_map(route_of).collect()
}

fn is_usable(flags: u32) -> bool {
    flags & FLAG_UP != 0 && flags & FLAG_REJECT == 0
}

/// The interface that holds an address, by `/proc/net/if_inet6`: address, index, prefix length,
/// scope, flags, name.
fn holder(if_inet6: &str, local: IpAddr) -> Option<String> {
    if_inet6.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let address = u128::from_str_radix(fields.next()?, 16).ok()?;
        let name = fields.nth(4)?;
        (local == IpAddr::V6(Ipv6Addr::from_bits(address))).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a little-endian machine writes it.
    const IPV4: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
wlan0\t0001A8C0\t00000000\t0001\t0\t0\t600\t00FFFFFF\t0\t0\t0
tun0\t0000000A\t010200C0\t0003\t0\t0\t50\t000000FF\t0\t0\t0
dead0\t0000100A\t00000000\t0201\t0\t0\t0\t0000FFFF\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
short0\t000011AC
";
    const IPV6: &str = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 \
     00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
     fd000000000000000000000000000001 00000400 00000003 00000000 00000003     eth1
00000000000000000000000000000001 80 00000000000000000000000000000000 00 \
     00000000000000000000000000000000 00000000 00000004 00000000 80200001       lo
00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
     00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn the_interface_towards_an_address_is_found() {
        for (routes, local, remote, interface) in [
            (ipv4_routes(IPV4), "192.0.2.9", "192.0.2.77", Some("eth0")),
            (ipv4_routes(IPV4), "192.0.2.9", "198.51.100.1", Some("eth0")),
            // The local address says which of two default routes it is.
            (
                ipv4_routes(IPV4),
                "192.168.1.4",
                "198.51.100.1",
                Some("wlan0"),
            ),
            (
                ipv4_routes(IPV4),
                "172.17.0.1",
                "172.17.0.3",
                Some("docker0"),
            ),
            // An address on no network: the routes alone decide, by length and then by metric.
            (ipv4_routes(IPV4), "203.0.113.5", "10.16.0.1", Some("tun0")),
            (
                ipv4_routes(IPV4),
                "203.0.113.5",
                "198.51.100.1",
                Some("eth0"),
            ),
            (ipv4_routes("Iface\n"), "192.0.2.9", "192.0.2.77", None),
            (ipv6_routes(IPV6), "fd00::2", "fd00::9", Some("eth0")),
            (ipv6_routes(IPV6), "fd01::2", "2001:db8::9", Some("eth1")),
            (ipv6_routes("x y z"), "fd01::2", "2001:db8::9", None),
        ] {
            let found = interface_of(&routes, address(local), address(remote));
            assert_eq!(found.as_deref(), interface, "{local} {remote}");
        }
    }

    #[test]
    fn rejecting_and_damaged_lines_are_left_out() {
        assert_eq!(ipv4_routes(IPV4).len(), 6);
        assert_eq!(ipv6_routes(IPV6).len(), 3);
        let routes = ipv6_routes(IPV6);
        assert_eq!(routes[0].prefix_bits, 64);
        assert!(routes[0].is_direct && !routes[1].is_direct);
    }

    #[test]
    fn prefixes_of_any_length_match() {
        for (network, prefix_bits, remote, matches) in [
            ("0.0.0.0", 0, "255.255.255.255", true),
            ("10.1.0.0", 16, "10.1.255.255", true),
            ("10.1.0.0", 16, "10.2.0.0", false),
            ("10.1.2.3", 32, "10.1.2.3", true),
            ("10.1.2.3", 32, "10.1.2.2", false),
            ("fd00::1", 128, "fd00::1", true),
            ("fd00::1", 128, "fd00::2", false),
            ("fd00::1", 900, "fd00::1", true),
        ] {
            let route = RouteLine {
                network: bits(address(network)),
                prefix_bits,
                metric: 0,
                is_direct: true,
                interface: String::new(),
            };
            assert_eq!(
                route.matches(bits(address(remote))),
                matches,
                "{network} {remote}"
            );
        }
    }

    #[test]
    fn an_address_has_a_holder() {
        let table = "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n\
            fd000000000000000000000000000002 05 40 00 82     eth1\nshort 04\n";
        for (local, name) in [
            ("fd00::2", Some("eth1")),
            ("fe80::fc:ff:fe00:1", Some("eth0")),
            ("fd00::3", None),
        ] {
            assert_eq!(holder(table, address(local)).as_deref(), name, "{local}");
        }
    }

    #[test]
    fn this_machine_is_reached_by_loopback() {
        let tcp = |text: &str| Peer::Tcp(text.parse().expect("an address"));
        for peer in ["127.0.0.1:80", "127.9.9.9:80", "0.0.0.0:80"] {
            assert_eq!(Way::to(&tcp(peer)), Way::Loopback, "{peer}");
        }
        assert_eq!(Way::to(&Peer::Unix("/run/a".into())), Way::UnixSocket);
        for (text, own) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("192.0.2.255", false),
        ] {
            assert_eq!(is_own(address(text)), own, "{text}");
        }
    }
}
