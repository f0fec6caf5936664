//! The kernel's list of TCP sockets at one local port, by netlink (NETLINK_SOCK_DIAG): addresses,
//! and what each has received.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// The kernel fills no more than this in one go.
const BUFFER_BYTES: usize = 32_768;
/// The kernel answers at once: it is not waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Constants of linux/netlink.h and linux/sock_diag.h.
pub(crate) const HEADER_BYTES: usize = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Sizes of linux/inet_diag.h: `struct inet_diag_req_v2`, and `struct inet_diag_msg` before its
/// attributes.
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
pub(crate) const MESSAGE_BYTES: usize = 72;
const INET_DIAG_INFO: u16 = 2;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// States, and offsets into `struct tcp_info`, of linux/tcp.h.
const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;
const BYTES_RECEIVED_OFFSET: usize = 128;
const DATA_SEGMENTS_IN_OFFSET: usize = 152;

/// One socket.
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

/// Which sockets are listed.
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
        let netlink = open()?;
        let request = request(family, port, listed);
        send(&netlink, &request, SendFlags::empty())?;
        let mut buffer = vec![0_u8; BUFFER_BYTES];
        let mut is_done = false;
        while !is_done {
            let (length, _) = recv(&netlink, buffer.as_mut_slice(), RecvFlags::empty())?;
            is_done = parse(&buffer[..length.min(BUFFER_BYTES)], &mut |socket| {
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

fn open() -> io::Result<OwnedFd> {
    let netlink = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    set_socket_timeout(&netlink, Timeout::Recv, Some(PATIENCE))?;
    Ok(netlink)
}

/// A request for all sockets of a family at a port, with TCP_INFO.
fn request(family: AddressFamily, port: u16, listed: Listed) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0_u8; REQUEST_BYTES];
    let mut put = |offset: usize, field: &[u8]| {
        bytes[offset..offset + field.len()].copy_from_slice(field);
    };
    put(0, &(REQUEST_BYTES as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    let states = match listed {
        Listed::Listening => 1_u32 << LISTEN,
        Listed::Connections => 1_u32 << ESTABLISHED,
    };
    put(16, &[family.as_raw() as u8, libc::IPPROTO_TCP as u8]);
    put(18, &[1 << (INET_DIAG_INFO - 1)]);
    put(20, &states.to_ne_bytes());
    put(24, &port.to_be_bytes());
    // INET_DIAG_NOCOOKIE: any.
    put(64, &[0xff; 8]);
    bytes
}

/// Shows the sockets of what the kernel sent in one go; whether that was the last.
pub(crate) fn parse(mut bytes: &[u8], each: &mut dyn FnMut(TcpSocket)) -> io::Result<bool> {
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
            SOCK_DIAG_BY_FAMILY => each(socket(body).ok_or_else(malformed)?),
            _ => {}
        }
        // Messages begin at multiples of four.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// A socket as `struct inet_diag_msg` and its attributes describe it.
fn socket(body: &[u8]) -> Option<TcpSocket> {
    let mut attributes = body.get(MESSAGE_BYTES..)?;
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
    while !attributes.is_empty() {
        let length = usize::from(u16_at(attributes, 0)?);
        let info = attributes.get(ATTRIBUTE_HEADER_BYTES..length)?;
        if u16_at(attributes, 2)? == INET_DIAG_INFO && !found.listens {
            found.bytes_received = u64_at(info, BYTES_RECEIVED_OFFSET)?;
            found.segments_received = u32_at(info, DATA_SEGMENTS_IN_OFFSET)?.into();
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
    fn message(family: i32, state: u8, local: &[u8], cookie: u64) -> Vec<u8> {
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
        wrapped(SOCK_DIAG_BY_FAMILY, &body)
    }

    fn wrapped(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&[0; 10]);
        bytes.extend_from_slice(body);
        bytes
    }

    fn parsed(bytes: &[u8]) -> io::Result<(bool, Vec<TcpSocket>)> {
        let mut sockets = Vec::new();
        let is_done = parse(bytes, &mut |socket| sockets.push(socket))?;
        Ok((is_done, sockets))
    }

    #[test]
    fn messages_are_sockets() {
        let mapped = Ipv4Addr::new(127, 0, 0, 1).to_ipv6_mapped().octets();
        let mut bytes = message(libc::AF_INET, ESTABLISHED, &[127, 0, 0, 1], 7);
        bytes.extend(message(libc::AF_INET6, LISTEN, &mapped, 8));
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
        bytes.extend(wrapped(NLMSG_DONE, &[0; 4]));
        assert!(parsed(&bytes).unwrap().0);
    }

    #[test]
    fn a_refusal_is_an_error() {
        let refusal = wrapped(NLMSG_ERROR, &(-libc::ENOENT).to_ne_bytes());
        let error = parsed(&refusal).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn what_is_cut_is_refused_or_shorter() {
        let mut bytes = message(libc::AF_INET, ESTABLISHED, &[127, 0, 0, 1], 7);
        let first = bytes.len();
        bytes.extend(message(libc::AF_INET, ESTABLISHED, &[127, 0, 0, 1], 8));
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
}
