//! What the kernel is asked by netlink: its list of TCP sockets at one local port, with their
//! addresses and what each has received (NETLINK_SOCK_DIAG), and the interface by which it sends to
//! an address (NETLINK_ROUTE).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice, netlink,
    recv, send, socket_with,
};

/// The kernel fills no more than this in one go.
const BUFFER_BYTES: usize = 32_768;
/// The kernel answers at once: it is not waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Constants of linux/netlink.h and linux/sock_diag.h.
const HEADER_BYTES: usize = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Sizes of linux/inet_diag.h: `struct inet_diag_req_v2`, and `struct inet_diag_msg` before its
/// attributes.
const REQUEST_BYTES: usize = 56;
const MESSAGE_BYTES: usize = 72;
const INET_DIAG_INFO: u16 = 2;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// Constants of linux/rtnetlink.h, and the size of its `struct rtmsg`.
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const ROUTE_BYTES: usize = 12;
/// States, and offsets into `struct tcp_info`, of linux/tcp.h.
const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;
const BYTES_RECEIVED_OFFSET: usize = 128;
const DATA_SEGMENTS_IN_OFFSET: usize = 152;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpSocket {
    /// Whether the socket listens; else it is a connection.
    pub(crate) listens: bool,
    pub(crate) family: AddressFamily,
    /// The address of the socket; IPv4 also where the socket is one of IPv6.
    pub(crate) local: IpAddr,
    /// What processes that hold it see of it.
    pub(crate) inode: u64,
    /// The kernel's name for it, which no other socket ever has.
    pub(crate) cookie: u64,
    /// Payload bytes received in order; 0 of one that listens.
    pub(crate) bytes_received: u64,
    /// Segments with payload received.
    pub(crate) segments_received: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Listed {
    Listening,
    Connections,
}

/// The families of TCP.
pub(crate) const FAMILIES: [AddressFamily; 2] = [AddressFamily::INET, AddressFamily::INET6];

/// Shows the sockets of this network namespace at a local port to `each`, those of some families,
/// one by one: a list of all of them would take memory. To list connections, the kernel goes
/// through all that there are, once for each family.
///
/// # Errors
///
/// The kernel refuses to list them, or there are more than `sockets_max`.
pub(crate) fn sockets_at(
    port: u16,
    listed: Listed,
    families: &[AddressFamily],
    sockets_max: usize,
    each: &mut dyn FnMut(TcpSocket),
) -> io::Result<()> {
    let mut count = 0;
    for &family in families {
        let netlink = ask(Some(netlink::SOCK_DIAG), &request(family, port, listed))?;
        let mut buffer = vec![0_u8; BUFFER_BYTES];
        let mut is_done = false;
        while !is_done {
            let (length, _) = recv(&netlink, buffer.as_mut_slice(), RecvFlags::empty())?;
            is_done = sockets_in(&buffer[..length.min(BUFFER_BYTES)], &mut |socket| {
                count += 1;
                each(socket);
            })?;
            if count > sockets_max {
                return Err(io::Error::other(format!(
                    "more than {sockets_max} connections are open at port {port}"
                )));
            }
        }
    }
    Ok(())
}

/// The name of the interface by which this machine sends to `remote`.
///
/// # Errors
///
/// There is no route, or the kernel does not say.
pub(crate) fn interface_to(remote: IpAddr) -> io::Result<String> {
    let netlink = ask(None, &route_request(remote))?;
    let mut buffer = vec![0_u8; BUFFER_BYTES];
    let (length, _) = recv(&netlink, buffer.as_mut_slice(), RecvFlags::empty())?;
    let index = interface_in(&buffer[..length.min(BUFFER_BYTES)])?;
    let index = index.ok_or_else(|| io::Error::other("the route has no interface"))?;
    Ok(netdevice::index_to_name(&netlink, index)?)
}

/// A request for the route to an address.
fn route_request(remote: IpAddr) -> Vec<u8> {
    let (family, address) = match remote {
        IpAddr::V4(ip) => (AddressFamily::INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AddressFamily::INET6, ip.octets().to_vec()),
    };
    let mut body = vec![0_u8; ROUTE_BYTES];
    body[0] = family.as_raw() as u8;
    body[1] = 8 * address.len() as u8;
    body.extend_from_slice(&((ATTRIBUTE_HEADER_BYTES + address.len()) as u16).to_ne_bytes());
    body.extend_from_slice(&RTA_DST.to_ne_bytes());
    body.extend_from_slice(&address);
    message(RTM_GETROUTE, NLM_F_REQUEST, &body)
}

/// The interface of the route in what the kernel sent.
fn interface_in(bytes: &[u8]) -> io::Result<Option<u32>> {
    let mut interface = None;
    each_message(bytes, &mut |kind, body| {
        if kind == RTM_NEWROUTE {
            let index = attribute(body.get(ROUTE_BYTES..)?, RTA_OIF)?;
            interface = index.and_then(|index| u32_at(index, 0));
        }
        Some(())
    })?;
    Ok(interface)
}

/// A netlink socket with a request sent; without a protocol, of NETLINK_ROUTE.
fn ask(protocol: Option<Protocol>, request: &[u8]) -> io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    let netlink = socket_with(family, SocketType::DGRAM, flags, protocol)?;
    set_socket_timeout(&netlink, Timeout::Recv, Some(PATIENCE))?;
    send(&netlink, request, SendFlags::empty())?;
    Ok(netlink)
}

/// A message with its header.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    // The sequence number and the sender: the kernel gives the sender itself.
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(body);
    bytes
}

/// A request for all sockets of a family at a port, with TCP_INFO.
fn request(family: AddressFamily, port: u16, listed: Listed) -> Vec<u8> {
    let mut bytes = [0_u8; REQUEST_BYTES];
    let mut put = |offset: usize, field: &[u8]| {
        bytes[offset..offset + field.len()].copy_from_slice(field);
    };
    let states = match listed {
        Listed::Listening => 1_u32 << LISTEN,
        Listed::Connections => 1_u32 << ESTABLISHED,
    };
    put(0, &[family.as_raw() as u8, libc::IPPROTO_TCP as u8]);
    put(2, &[1 << (INET_DIAG_INFO - 1)]);
    put(4, &states.to_ne_bytes());
    put(8, &port.to_be_bytes());
    // INET_DIAG_NOCOOKIE: any.
    put(48, &[0xff; 8]);
    message(SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, &bytes)
}

/// Shows the sockets of what the kernel sent in one go; whether that was the last.
fn sockets_in(bytes: &[u8], each: &mut dyn FnMut(TcpSocket)) -> io::Result<bool> {
    each_message(bytes, &mut |kind, body| {
        if kind == SOCK_DIAG_BY_FAMILY {
            each(socket(body)?);
        }
        Some(())
    })
}

/// Shows the messages, (kind, body), of what the kernel sent in one go; whether the last one ends a
/// list. What gives nothing is malformed.
fn each_message(
    mut bytes: &[u8],
    each: &mut dyn FnMut(u16, &[u8]) -> Option<()>,
) -> io::Result<bool> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a netlink message is malformed");
    if bytes.is_empty() {
        return Err(malformed());
    }
    while !bytes.is_empty() {
        let length = u32_at(bytes, 0).ok_or_else(malformed)? as usize;
        let message = bytes.get(..length).ok_or_else(malformed)?;
        let body = message.get(HEADER_BYTES..).ok_or_else(malformed)?;
        match u16_at(message, 4).ok_or_else(malformed)? {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = u32_at(body, 0).ok_or_else(malformed)? as i32;
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            kind => each(kind, body).ok_or_else(malformed)?,
        }
        // Messages begin at multiples of four.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// A socket as `struct inet_diag_msg` and its attributes describe it.
fn socket(body: &[u8]) -> Option<TcpSocket> {
    let attributes = body.get(MESSAGE_BYTES..)?;
    let local: [u8; 16] = *body.get(8..)?.first_chunk()?;
    let family = AddressFamily::from_raw(body[0].into());
    let local = if family == AddressFamily::INET {
        Ipv4Addr::from(*local.first_chunk::<4>()?).into()
    } else {
        Ipv6Addr::from(local).to_canonical()
    };
    let mut found = TcpSocket {
        listens: body[1] == LISTEN,
        family,
        local,
        inode: u32_at(body, 68)?.into(),
        cookie: u64_at(body, 44)?,
        bytes_received: 0,
        segments_received: 0,
    };
    if let Some(info) = attribute(attributes, INET_DIAG_INFO)?
        && !found.listens
    {
        found.bytes_received = u64_at(info, BYTES_RECEIVED_OFFSET)?;
        found.segments_received = u32_at(info, DATA_SEGMENTS_IN_OFFSET)?.into();
    }
    Some(found)
}

/// The first attribute of a kind, where there is one; nothing where they are malformed.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<Option<&[u8]>> {
    let mut found = None;
    while !attributes.is_empty() {
        let length = usize::from(u16_at(attributes, 0)?);
        let data = attributes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        if u16_at(attributes, 2)? == wanted {
            found = found.or(Some(data));
        }
        attributes = attributes
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Some(found)
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message about a connection with 1,000 bytes and 10 segments received.
    fn about(family: i32, state: u8, local: &[u8], cookie: u64) -> Vec<u8> {
        let mut info = vec![0_u8; 160];
        info[BYTES_RECEIVED_OFFSET..][..8].copy_from_slice(&1_000_u64.to_ne_bytes());
        info[DATA_SEGMENTS_IN_OFFSET..][..4].copy_from_slice(&10_u32.to_ne_bytes());
        let mut body = vec![0_u8; MESSAGE_BYTES];
        body[0] = family as u8;
        body[1] = state;
        body[8..][..local.len()].copy_from_slice(local);
        body[44..52].copy_from_slice(&cookie.to_ne_bytes());
        body[68..72].copy_from_slice(&9_u32.to_ne_bytes());
        // An attribute of one byte that is nobody's matter comes first.
        body.extend_from_slice(&5_u16.to_ne_bytes());
        body.extend_from_slice(&[6, 0, 7, 0, 0, 0]);
        body.extend_from_slice(&164_u16.to_ne_bytes());
        body.extend_from_slice(&INET_DIAG_INFO.to_ne_bytes());
        body.extend_from_slice(&info);
        message(SOCK_DIAG_BY_FAMILY, 0, &body)
    }

    fn parsed(bytes: &[u8]) -> io::Result<(bool, Vec<TcpSocket>)> {
        let mut sockets = Vec::new();
        let is_done = sockets_in(bytes, &mut |socket| sockets.push(socket))?;
        Ok((is_done, sockets))
    }

    #[test]
    fn messages_are_sockets() {
        let mapped = Ipv4Addr::new(127, 0, 0, 1).to_ipv6_mapped().octets();
        let mut bytes = about(libc::AF_INET, ESTABLISHED, &[127, 0, 0, 1], 7);
        bytes.extend(about(libc::AF_INET6, LISTEN, &mapped, 8));
        let connection = TcpSocket {
            listens: false,
            family: AddressFamily::INET,
            local: Ipv4Addr::LOCALHOST.into(),
            inode: 9,
            cookie: 7,
            bytes_received: 1_000,
            segments_received: 10,
        };
        let listener = TcpSocket {
            listens: true,
            family: AddressFamily::INET6,
            cookie: 8,
            bytes_received: 0,
            segments_received: 0,
            ..connection
        };
        let (is_done, sockets) = parsed(&bytes).unwrap();
        assert_eq!((is_done, sockets), (false, vec![connection, listener]));
        bytes.extend(message(NLMSG_DONE, 0, &[0; 4]));
        assert!(parsed(&bytes).unwrap().0);
    }

    #[test]
    fn a_refusal_is_an_error() {
        let refusal = message(NLMSG_ERROR, 0, &(-libc::ENOENT).to_ne_bytes());
        let error = parsed(&refusal).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn what_is_cut_is_refused_or_shorter() {
        let mut bytes = about(libc::AF_INET, ESTABLISHED, &[127, 0, 0, 1], 7);
        let first = bytes.len();
        bytes.extend(about(libc::AF_INET, ESTABLISHED, &[127, 0, 0, 1], 8));
        for length in 0..bytes.len() {
            match parsed(&bytes[..length]) {
                Ok((is_done, sockets)) => {
                    assert!(
                        length == first && !is_done && sockets.len() == 1,
                        "{length}"
                    );
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{length}"),
            }
        }
        // A length of nothing would never end.
        assert!(parsed(&[0; 64]).is_err());
    }

    #[test]
    fn a_route_has_an_interface() {
        let mut body = vec![0; ROUTE_BYTES];
        for (kind, value) in [(RTA_DST, 1_u32), (RTA_OIF, 7)] {
            body.extend_from_slice(&8_u16.to_ne_bytes());
            body.extend_from_slice(&kind.to_ne_bytes());
            body.extend_from_slice(&value.to_ne_bytes());
        }
        let route = message(RTM_NEWROUTE, 0, &body);
        assert_eq!(interface_in(&route).unwrap(), Some(7));
        let without = message(RTM_NEWROUTE, 0, &body[..ROUTE_BYTES]);
        assert_eq!(interface_in(&without).unwrap(), None);
        for length in 0..route.len() {
            assert!(interface_in(&route[..length]).is_err(), "{length}");
        }
        let refusal = message(NLMSG_ERROR, 0, &(-libc::ENETUNREACH).to_ne_bytes());
        let error = interface_in(&refusal).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENETUNREACH));
        for address in ["127.0.0.1", "::1"] {
            let name = interface_to(address.parse().unwrap());
            assert!(name.is_ok_and(|name| name == "lo"), "{address}");
        }
    }
}
