//! Which processes of this machine hold the socket that listens at the target's address.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Cursor, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use brunt_io::backend::Peer;
use procfs::net::TcpNetEntries;
use procfs::{FromBufReadSI, current_system_info};

use super::proc_files;
use crate::netlink::{FAMILIES, Listed, TcpSocket, sockets_at};

/// Descriptors of one process that are looked at, lowest first: servers open their listening
/// sockets early.
const DESCRIPTORS_MAX: usize = 4_096;
/// Lines of a table of sockets that are looked at. Of TCP's the listening ones come first.
pub(crate) const LINES_MAX: usize = 65_536;
/// Programs that listen for a service that runs in a container.
const FORWARDERS: [&str; 5] = [
    "docker-proxy",
    "rootlessport",
    "slirp4netns",
    "pasta",
    "pasta.avx2",
];
/// Programs that hold listening sockets for services that they start: the system's, or a user's.
const ACTIVATORS: [&str; 2] = ["systemd", "init"];

/// The processes that hold the listening socket, lowest id first, without brunt itself; or in words
/// why they are not found.
pub(super) fn listening_pids(peer: &Peer) -> Result<Vec<u32>, String> {
    let inodes = match peer {
        Peer::Tcp(address) => best_matches(&tcp_listeners(address.port()), *address),
        Peer::Udp(address) => {
            let mut listeners = udp_sockets("/proc/net/udp");
            listeners.extend(udp_sockets("/proc/net/udp6"));
            best_matches(&listeners, *address)
        }
        Peer::Unix(path) => unix_listeners(path),
    };
    let place = match peer {
        Peer::Tcp(address) => format!("port {}", address.port()),
        Peer::Udp(address) => format!("UDP port {}", address.port()),
        Peer::Unix(path) => path.display().to_string(),
    };
    if inodes.is_empty() {
        return Err(format!(
            "no socket of this network namespace listens on {place} (the server is in a container, \
             perhaps); --watch PID names its process"
        ));
    }

    let own = std::process::id();
    let mut holders = Vec::new();
    let mut unreadable = 0_u32;
    let mut is_own = false;
    for pid in proc_files::pids() {
        match holds(pid, &inodes) {
            Some(true) if pid == own => is_own = true,
            Some(true) => holders.push(pid),
            Some(false) => {}
            None => unreadable += 1,
        }
    }
    holders.sort_unstable();
    let named: Vec<_> = holders
        .into_iter()
        .filter_map(|pid| Some((pid, proc_files::name(pid)?)))
        .collect();
    match without_helpers(named) {
        Ok(pids) if !pids.is_empty() => Ok(pids),
        Ok(_) if is_own => Err(format!("brunt itself listens on {place}")),
        Ok(_) if unreadable > 0 => Err(format!(
            "the process that listens on {place} is another user's and may not be looked into; \
             run brunt as that user or as root, or name the process with --watch PID"
        )),
        Ok(_) => Err(format!(
            "the process that listens on {place} is not to be seen from here (it is in another \
             container, perhaps); --watch PID names it where it is"
        )),
        Err(helper) => Err(format!(
            "{helper} listens on {place} for another process; --watch PID names the server's"
        )),
    }
}

/// A socket that takes what is sent to its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listener {
    bound: SocketAddr,
    inode: u64,
}

/// The sockets that listen at a port; where the kernel does not list them, those at other ports
/// too.
fn tcp_listeners(port: u16) -> Vec<Listener> {
    let mut found = Vec::new();
    let mut add = |socket: TcpSocket| {
        found.push(Listener {
            bound: SocketAddr::new(socket.local, port),
            inode: socket.inode,
        });
    };
    if sockets_at(port, Listed::Listening, &FAMILIES, LINES_MAX, &mut add).is_ok() {
        return found;
    }
    // One without these lists (CONFIG_INET_DIAG) has tables, which take long where connections
    // are many.
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
    let files = tables.filter_map(|table| File::open(table).ok());
    files
        .flat_map(|file| parse_tcp(BufReader::new(file)))
        .collect()
}

/// The unconnected sockets of a table, whose columns are those of TCP: they get what others send to
/// them.
fn udp_sockets(table: &str) -> Vec<Listener> {
    const TCP_CLOSE: &str = "07";
    let table = File::open(table).map(BufReader::new);
    table.map_or(Vec::new(), |table| entries(table, TCP_CLOSE, false))
}

/// The listening sockets at the start of a table: those of connections, which may be many, follow.
pub(crate) fn parse_tcp(table: impl BufRead) -> Vec<Listener> {
    const TCP_LISTEN: &str = "0A";
    entries(table, TCP_LISTEN, true)
}

/// The sockets of a table that are in this state, which may come first.
fn entries(table: impl BufRead, state: &str, come_first: bool) -> Vec<Listener> {
    let is_wanted = |line: &String| line.split_ascii_whitespace().nth(3) == Some(state);
    let mut lines = table.lines().map_while(Result::ok);
    let mut text = lines.next().unwrap_or_default();
    let lines = lines.take_while(|line| !come_first || is_wanted(line));
    for line in lines.filter(is_wanted).take(LINES_MAX) {
        text.push('\n');
        text.push_str(&line);
    }
    let entries = TcpNetEntries::from_buf_read(Cursor::new(text), current_system_info());
    let entries = entries.map_or(Vec::new(), |entries| entries.0).into_iter();
    let listeners = entries.map(|entry| Listener {
        bound: entry.local_address,
        inode: entry.inode,
    });
    listeners.collect()
}

/// The inodes of the sockets that get connections to `address`: bound to the very address, else to
/// all of its family, else to all of both families.
pub(crate) fn best_matches(listeners: &[Listener], mut address: SocketAddr) -> BTreeSet<u64> {
    // To connect to no address in particular is to connect to this machine.
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    let rank = |listener: &&Listener| {
        let bound = listener.bound;
        if bound.port() != address.port() {
            return None;
        }
        if bound.ip().to_canonical() == address.ip().to_canonical() {
            return Some(0);
        }
        match (bound.ip(), address.ip()) {
            (IpAddr::V4(ip), IpAddr::V4(_)) if ip.is_unspecified() => Some(1),
            (IpAddr::V6(ip), IpAddr::V6(_)) if ip.is_unspecified() => Some(1),
            (IpAddr::V6(ip), IpAddr::V4(_)) if ip.is_unspecified() => Some(2),
            _ => None,
        }
    };
    let best = listeners.iter().filter_map(|one| rank(&one)).min();
    listeners
        .iter()
        .filter(|listener| best.is_some() && rank(listener) == best)
        .map(|listener| listener.inode)
        .collect()
}

fn unix_listeners(path: &Path) -> BTreeSet<u64> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    File::open("/proc/net/unix").map_or(BTreeSet::new(), |file| {
        parse_unix(BufReader::new(file), &absolute)
    })
}

/// The inodes of the sockets that listen at `path`. A server may have bound a relative one, of
/// which the table has no more than was given.
pub(crate) fn parse_unix(table: impl BufRead, path: &Path) -> BTreeSet<u64> {
    /// `__SO_ACCEPTCON`.
    const LISTENING: u32 = 1 << 16;
    table
        .split(b'\n')
        .map_while(Result::ok)
        .skip(1)
        .take(LINES_MAX)
        .filter_map(|line| {
            // Num: RefCount Protocol Flags Type St Inode Path; the path may have spaces.
            let line = String::from_utf8_lossy(&line);
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let flags = u32::from_str_radix(fields.get(3)?, 16).ok()?;
            let inode = fields.get(6)?;
            let (_, bound) = line.split_once(&format!(" {inode} "))?;
            let bound = Path::new(bound);
            let is_here = bound == path || (bound.is_relative() && path.ends_with(bound));
            (flags & LISTENING != 0 && is_here).then_some(inode.parse().ok()?)
        })
        .collect()
}

/// Whether a process holds one of these sockets; `None`: it may not be looked into.
fn holds(pid: u32, inodes: &BTreeSet<u64>) -> Option<bool> {
    let folder = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    for entry in folder.take(DESCRIPTORS_MAX).flatten() {
        match fs::read_link(entry.path()) {
            Ok(link) if socket_inode(&link).is_some_and(|inode| inodes.contains(&inode)) => {
                return Some(true);
            }
            // Some may list the folder and see nothing in it.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
            // It may have been closed meanwhile.
            Ok(_) | Err(_) => {}
        }
    }
    Some(false)
}

/// The number in `socket:[N]`.
pub(crate) fn socket_inode(link: &Path) -> Option<u64> {
    let number = link.to_str()?.strip_prefix("socket:[")?;
    number.strip_suffix(']')?.parse().ok()
}

/// The servers among the holders of a socket: not those that only pass connections on, or hold it
/// for a service. The name of such a one, where there are no others.
fn without_helpers(holders: Vec<(u32, String)>) -> Result<Vec<u32>, String> {
    let is_helper = |(_, name): &(u32, String)| {
        FORWARDERS.contains(&name.as_str()) || ACTIVATORS.contains(&name.as_str())
    };
    let helper = holders.iter().find(|holder| is_helper(holder)).cloned();
    let pids: Vec<_> = holders
        .iter()
        .filter(|holder| !is_helper(holder))
        .map(|(pid, _)| *pid)
        .collect();
    match helper {
        Some((_, name)) if pids.is_empty() => Err(name),
        _ => Ok(pids),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1
   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 102 1
   2: 0200007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 103 1
   3: 0100007F:A1B2 0100007F:1F90 01 00000000:00000000 00:00000000 00000000    33        0 104 1
   4: 0100007F:1F99 00000000:0000 0A 00000000:00000000 00:00000000 00000000    33        0 105 1
";
    const TCP6: &str = "\
  sl  local_address                         remote_address                        \
  st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:1F91 00000000000000000000000000000000:0000 \
   0A 00000000:00000000 00:00000000 00000000     0        0 201 1
   1: 00000000000000000000000001000000:1F92 00000000000000000000000000000000:0000 \
   0A 00000000:00000000 00:00000000 00000000     0        0 202 1
   2: 0000000000000000FFFF00000100007F:1F93 00000000000000000000000000000000:0000 \
   0A 00000000:00000000 00:00000000 00000000     0        0 203 1
";

    #[test]
    fn the_socket_bound_most_closely_gets_the_connections() {
        let mut listeners = parse_tcp(Cursor::new(TCP));
        // What follows the first connection is not looked at.
        assert_eq!(listeners.len(), 3);
        listeners.extend(parse_tcp(Cursor::new(TCP6)));
        for (address, inodes) in [
            ("127.0.0.1:8080", vec![102]),
            ("10.0.0.1:8080", vec![101]),
            ("0.0.0.0:8080", vec![102]),
            ("[::1]:8080", vec![]),
            ("127.0.0.2:8081", vec![103]),
            ("127.0.0.1:8081", vec![201]),
            ("[::1]:8081", vec![201]),
            ("[::1]:8082", vec![202]),
            ("[::2]:8082", vec![]),
            ("127.0.0.1:8083", vec![203]),
            ("127.0.0.1:8084", vec![]),
        ] {
            let found = best_matches(&listeners, address.parse().unwrap());
            assert_eq!(found.into_iter().collect::<Vec<_>>(), inodes, "{address}");
        }
    }

    #[test]
    fn tables_that_are_none_have_no_listeners() {
        for text in [
            "",
            "header only\n",
            "header\n 0: x y 0A\n",
            "h\n1 2 3 0A 5 6 7 8 9 10\n",
        ] {
            assert!(parse_tcp(Cursor::new(text)).is_empty(), "{text}");
        }
    }

    #[test]
    fn unix_sockets_by_their_path() {
        const UNIX: &str = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 18110 /run/app/app.sock
0000000000000000: 00000003 00000000 00000000 0001 03 18111 /run/app/app.sock
0000000000000000: 00000002 00000000 00010000 0001 01  9000 /run/with space
0000000000000000: 00000002 00000000 00010000 0001 01 18112 app.sock
0000000000000000: 00000003 00000000 00000000 0002 01 18113
0000000000000000: 00000002 00000000 00010000 0001 01 18114 @app
";
        for (path, inodes) in [
            ("/run/app/app.sock", vec![18_110, 18_112]),
            ("/run/with space", vec![9_000]),
            ("/run/app", vec![]),
            ("/run/with", vec![]),
        ] {
            let found = parse_unix(Cursor::new(UNIX), Path::new(path));
            assert_eq!(found.into_iter().collect::<Vec<_>>(), inodes, "{path}");
        }
        assert!(parse_unix(Cursor::new("h\nx\n1 2 3 zz 5 6 7 /p\n"), Path::new("/p")).is_empty());
    }

    #[test]
    fn links_of_sockets() {
        for (link, inode) in [
            ("socket:[123]", Some(123)),
            ("socket:[]", None),
            ("pipe:[123]", None),
            ("/var/log/x", None),
        ] {
            assert_eq!(socket_inode(Path::new(link)), inode, "{link}");
        }
    }

    #[test]
    fn helpers_are_not_the_server() {
        let case = |holders: &[(u32, &str)]| {
            without_helpers(
                holders
                    .iter()
                    .map(|&(pid, name)| (pid, name.to_owned()))
                    .collect(),
            )
        };
        assert_eq!(case(&[(1, "systemd"), (70, "app")]), Ok(vec![70]));
        assert_eq!(case(&[(1, "systemd")]), Err("systemd".to_owned()));
        assert_eq!(case(&[(812, "systemd")]), Err("systemd".to_owned()));
        assert_eq!(case(&[(812, "systemd"), (900, "app")]), Ok(vec![900]));
        assert_eq!(case(&[(1, "nginx"), (7, "nginx")]), Ok(vec![1, 7]));
        assert_eq!(
            case(&[(50, "docker-proxy")]),
            Err("docker-proxy".to_owned())
        );
        assert_eq!(case(&[]), Ok(vec![]));
    }
}
