//! Datagrams as the kernel takes and gives them: several at once, with their borders and marks in
//! control messages (udp(7), ip(7), ipv6(7), cmsg(3)).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::num::NonZeroU16;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::receive_stamps::{self, empty_message};
use crate::socket;
use crate::transport::{Ecn, OutgoingDatagrams, ReceivedDatagrams};

/// Datagrams that the kernel takes at once (UDP_MAX_SEGMENTS).
const SEGMENTS_MAX: usize = 64;
/// Bytes of them that it takes at once: those of the largest packet of IPv6 without its headers.
const SENT_BYTES_MAX: usize = 65_535 - 40 - 8;
/// Bytes that it gives at once, at most.
pub(crate) const RECEIVED_BYTES_MAX: usize = 65_535;

/// Bytes of the kernel's form of an address.
const NAME_BYTES: usize = size_of::<libc::sockaddr_in6>();

/// Bytes of a control message with so many bytes of data.
const fn space(bytes: usize) -> usize {
    // SAFETY: the macro only computes with its argument.
    unsafe { libc::CMSG_SPACE(bytes as u32) as usize }
}

/// Bytes of the control messages of what is received: a stamp, borders, a mark, and drops.
pub(crate) const RECEIVED_CONTROL_BYTES: usize =
    space(size_of::<libc::timespec>()) + 3 * space(size_of::<libc::c_int>());
/// Bytes of the control messages of what is sent: borders, and a mark for each version of IP.
const SENT_CONTROL_BYTES: usize = space(size_of::<u16>()) + 2 * space(size_of::<libc::c_int>());

/// What control messages say of received datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    /// Nanoseconds since 1970-01-01 UTC.
    pub(crate) stamp: Option<i64>,
    /// Bytes of each datagram; absent for a single one.
    pub(crate) segment_bytes: Option<NonZeroU16>,
    pub(crate) ecn: Option<Ecn>,
    /// Datagrams that the socket had no room for, so far.
    pub(crate) dropped: u32,
}

impl About {
    /// Reads the control messages of one receive.
    pub(crate) fn read(control: &[u8]) -> Self {
        let mut about = Self::default();
        for (level, kind, data) in receive_stamps::messages_in(control) {
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    about.stamp = receive_stamps::stamp_of(data);
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => about.dropped = number(data),
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let bytes = u16::try_from(number(data)).ok();
                    about.segment_bytes = bytes.and_then(NonZeroU16::new);
                }
                (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    // One byte, or a number that fits in one.
                    about.ecn = mark_in(number(data));
                }
                _ => {}
            }
        }
        about
    }

    /// The datagrams that came with it.
    pub(crate) fn show<'a>(&self, bytes: &'a [u8]) -> ReceivedDatagrams<'a> {
        ReceivedDatagrams {
            bytes,
            segment_bytes: self.segment_of(bytes.len()),
            ecn: self.ecn,
            dropped: self.dropped,
        }
    }

    /// Bytes of each of the datagrams that are `bytes` in all, at least 1.
    fn segment_of(&self, bytes: usize) -> NonZeroU16 {
        let whole = u16::try_from(bytes).ok().and_then(NonZeroU16::new);
        self.segment_bytes.or(whole).unwrap_or(NonZeroU16::MAX)
    }
}

/// An address in the kernel's form (ip(7), ipv6(7)).
fn address_in(name: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(name.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(name.get(2..4)?.try_into().ok()?);
    match libc::c_int::from(family) {
        libc::AF_INET => {
            let octets: [u8; 4] = name.get(4..8)?.try_into().ok()?;
            Some((Ipv4Addr::from(octets), port).into())
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = name.get(8..24)?.try_into().ok()?;
            let scope = u32::from_ne_bytes(name.get(24..28)?.try_into().ok()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(octets), port, 0, scope).into())
        }
        _ => None,
    }
}

/// A number of the machine's byte order, of 4 bytes or of 1.
fn number(data: &[u8]) -> u32 {
    match data {
        [a, b, c, d, ..] => u32::from_ne_bytes([*a, *b, *c, *d]),
        [byte, ..] => u32::from(*byte),
        [] => 0,
    }
}

/// The mark in a traffic class, or type of service (RFC 3168 section 5); absent for none.
fn mark_in(class: u32) -> Option<Ecn> {
    match class & 0b11 {
        0b01 => Some(Ecn::Capable1),
        0b10 => Some(Ecn::Capable0),
        0b11 => Some(Ecn::CongestionExperienced),
        _ => None,
    }
}

/// The traffic class that says so.
fn traffic_class(mark: Ecn) -> libc::c_int {
    match mark {
        Ecn::Capable1 => 0b01,
        Ecn::Capable0 => 0b10,
        Ecn::CongestionExperienced => 0b11,
    }
}

/// The part of `datagrams` from byte `from` on that goes in one call, or the next one of them.
pub(crate) fn part_of(
    datagrams: &OutgoingDatagrams,
    from: usize,
    is_one_by_one: bool,
) -> Range<usize> {
    let segment_bytes = usize::from(datagrams.segment_bytes.get());
    let segments_max = if is_one_by_one { 1 } else { SEGMENTS_MAX };
    let segments = segments_max.min(SENT_BYTES_MAX / segment_bytes).max(1);
    from..(from + segments * segment_bytes).min(datagrams.bytes.len())
}

/// How a send call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendEnd {
    /// All was taken, or is lost on this machine, as it might be later: it is larger than what the
    /// interface carries, or a queue is full.
    Taken,
    /// The socket has no room for now.
    Again,
    /// The kernel or the interface takes no several at once.
    OneByOne,
    /// With this error number.
    Failed(i32),
}

impl SendEnd {
    /// Of a call with several datagrams, or with one, and its error number, or 0 or less.
    pub(crate) fn of(errno: i32, are_several: bool) -> Self {
        match errno {
            ..=0 | libc::EMSGSIZE | libc::ENOBUFS => Self::Taken,
            libc::EAGAIN | libc::EINTR => Self::Again,
            libc::EIO | libc::EINVAL if are_several => Self::OneByOne,
            errno => Self::Failed(errno),
        }
    }
}

/// What a send call is given. Its parts point to each other.
pub(crate) struct SendMessage {
    header: libc::msghdr,
    /// To whom, on a socket that is not connected.
    to: Option<socket2::SockAddr>,
    part: libc::iovec,
    control: ControlMessages,
}

/// Control messages of what is sent, aligned as their headers.
#[repr(C, align(8))]
struct ControlMessages {
    bytes: [u8; SENT_CONTROL_BYTES],
    used: usize,
}

impl Default for SendMessage {
    fn default() -> Self {
        Self {
            header: empty_message(),
            to: None,
            part: libc::iovec {
                iov_base: std::ptr::null_mut(),
                iov_len: 0,
            },
            control: ControlMessages {
                bytes: [0; SENT_CONTROL_BYTES],
                used: 0,
            },
        }
    }
}

impl SendMessage {
    /// Has it go to this address; absent on a connected socket.
    pub(crate) fn address_to(&mut self, to: Option<SocketAddr>) {
        self.to = to.map(Into::into);
    }

    /// The message that sends this part of `datagrams`. It points to them and into itself.
    pub(crate) fn point_to(
        &mut self,
        datagrams: &OutgoingDatagrams,
        part: Range<usize>,
    ) -> &libc::msghdr {
        let are_several = part.len() > usize::from(datagrams.segment_bytes.get());
        let bytes = &datagrams.bytes[part];
        self.control.used = 0;
        if are_several {
            let segment_bytes = datagrams.segment_bytes.get();
            self.control
                .put(libc::SOL_UDP, libc::UDP_SEGMENT, segment_bytes);
        }
        if let Some(ecn) = datagrams.ecn {
            // Each version of IP passes over the other's.
            let class = traffic_class(ecn);
            self.control.put(libc::IPPROTO_IP, libc::IP_TOS, class);
            self.control
                .put(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class);
        }
        (self.header.msg_name, self.header.msg_namelen) = match &self.to {
            Some(to) => (to.as_ptr().cast_mut().cast(), to.len()),
            None => (std::ptr::null_mut(), 0),
        };
        self.part.iov_base = bytes.as_ptr().cast_mut().cast();
        self.part.iov_len = bytes.len();
        self.header.msg_iov = &raw mut self.part;
        self.header.msg_iovlen = 1;
        self.header.msg_control = match self.control.used {
            0 => std::ptr::null_mut(),
            _ => (&raw mut self.control.bytes).cast(),
        };
        self.header.msg_controllen = self.control.used as _;
        &self.header
    }
}

impl ControlMessages {
    fn put<T: Copy>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
        let at = self.used;
        self.used += space(size_of::<T>());
        let place = &mut self.bytes[at..self.used];
        // SAFETY: zeros are a valid header.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_level = level;
        header.cmsg_type = kind;
        // SAFETY: the macro only computes with its argument.
        header.cmsg_len = unsafe { libc::CMSG_LEN(size_of::<T>() as u32) } as _;
        let data_at = receive_stamps::data_start();
        // SAFETY: `place` has the room of a header and, behind it, of the value.
        unsafe {
            std::ptr::write_unaligned(place.as_mut_ptr().cast(), header);
            std::ptr::write_unaligned(place.as_mut_ptr().add(data_at).cast(), value);
        }
    }
}

/// Sends `datagrams` from byte `taken` on, to `to` on a socket that is not connected. Gives the
/// error number of the call that failed, 0 for none; absent where the socket has no room for all.
pub(crate) fn send_all(
    socket: BorrowedFd<'_>,
    to: Option<SocketAddr>,
    datagrams: &OutgoingDatagrams,
    taken: &mut usize,
    is_one_by_one: &mut bool,
) -> Option<i32> {
    let mut message = SendMessage::default();
    message.address_to(to);
    while *taken < datagrams.bytes.len() {
        let part = part_of(datagrams, *taken, *is_one_by_one);
        let are_several = part.len() > datagrams.segment_bytes.get().into();
        let end = part.end;
        let header: *const libc::msghdr = message.point_to(datagrams, part);
        // SAFETY: the message and what it points to live until the call returns.
        let count = unsafe { libc::sendmsg(socket.as_raw_fd(), header, libc::MSG_NOSIGNAL) };
        let errno = match count {
            0.. => 0,
            _ => socket::last_errno().raw_os_error(),
        };
        match SendEnd::of(errno, are_several) {
            SendEnd::Taken => *taken = end,
            SendEnd::OneByOne => *is_one_by_one = true,
            SendEnd::Again => return None,
            SendEnd::Failed(errno) => return Some(errno),
        }
    }
    Some(0)
}

/// Receives once, without waiting if the socket is non-blocking; gives the count of bytes.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<(usize, About), Errno> {
    let (count, control) =
        receive_stamps::receive_with::<RECEIVED_CONTROL_BYTES>(socket, buffer, &mut [])?;
    Ok((count, About::read(&control)))
}

/// The same; gives the sender, too.
pub(crate) fn receive_from(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> Result<(usize, About, Option<SocketAddr>), Errno> {
    let mut name = [0; NAME_BYTES];
    let (count, control) =
        receive_stamps::receive_with::<RECEIVED_CONTROL_BYTES>(socket, buffer, &mut name)?;
    Ok((count, About::read(&control), address_in(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagrams(bytes: usize, segment_bytes: u16) -> OutgoingDatagrams {
        OutgoingDatagrams {
            bytes: vec![0; bytes],
            segment_bytes: NonZeroU16::new(segment_bytes).expect("not 0"),
            ecn: None,
        }
    }

    #[test]
    fn marks_are_two_bits_of_the_traffic_class() {
        for mark in [Ecn::Capable0, Ecn::Capable1, Ecn::CongestionExperienced] {
            let class = traffic_class(mark) as u32;
            assert_eq!(mark_in(class | 0b1011_1000), Some(mark));
        }
        assert_eq!(mark_in(0b1011_1000), None);
    }

    #[test]
    fn a_send_takes_as_many_whole_datagrams_as_the_kernel_does() {
        for (bytes, segment_bytes, is_one_by_one, ends) in [
            (100, 100, false, &[100][..]),
            (100, 200, false, &[100]),
            (250, 100, false, &[250]),
            (250, 100, true, &[100, 200, 250]),
            (65 * 10, 10, false, &[640, 650]),
            (150_000, 1_500, false, &[64_500, 129_000, 150_000]),
            (130_000, 65_000, false, &[65_000, 130_000]),
            (65_535, 65_535, false, &[65_535]),
        ] {
            let datagrams = datagrams(bytes, segment_bytes);
            let mut from = 0;
            for &end in ends {
                assert_eq!(part_of(&datagrams, from, is_one_by_one), from..end);
                from = end;
            }
            assert_eq!(from, bytes);
        }
    }

    #[test]
    fn what_is_too_large_is_lost_and_other_errors_are_told() {
        for (errno, are_several, end) in [
            (0, true, SendEnd::Taken),
            (libc::EMSGSIZE, false, SendEnd::Taken),
            (libc::ENOBUFS, true, SendEnd::Taken),
            (libc::EAGAIN, false, SendEnd::Again),
            (libc::EIO, true, SendEnd::OneByOne),
            (libc::EIO, false, SendEnd::Failed(libc::EIO)),
            (
                libc::ECONNREFUSED,
                true,
                SendEnd::Failed(libc::ECONNREFUSED),
            ),
        ] {
            assert_eq!(SendEnd::of(errno, are_several), end);
        }
    }

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        for address in ["192.0.2.1:443", "[2001:db8::1]:65535", "[fe80::1%3]:1"] {
            let address: SocketAddr = address.parse().expect("an address");
            let name = socket2::SockAddr::from(address);
            // SAFETY: as many bytes are initialised as it says.
            let bytes = unsafe {
                std::slice::from_raw_parts(name.as_ptr().cast::<u8>(), name.len() as usize)
            };
            assert_eq!(address_in(bytes), Some(address));
            for length in 0..8 {
                assert_eq!(address_in(&bytes[..length]), None);
            }
        }
        assert_eq!(address_in(&[0; NAME_BYTES]), None);
    }

    #[test]
    fn control_messages_are_read_as_they_are_written() {
        let mut control = ControlMessages {
            bytes: [0; SENT_CONTROL_BYTES],
            used: 0,
        };
        control.put(libc::SOL_UDP, libc::UDP_GRO, 1_200_i32);
        control.put(libc::IPPROTO_IP, libc::IP_TOS, 0b1011_1011_u8);
        control.put(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 7_u32);
        let whole = About {
            stamp: None,
            segment_bytes: NonZeroU16::new(1_200),
            ecn: Some(Ecn::CongestionExperienced),
            dropped: 7,
        };
        assert_eq!(About::read(&control.bytes[..control.used]), whole);
        for length in 0..control.used {
            // Whatever is cut off says nothing.
            About::read(&control.bytes[..length]);
        }
        assert_eq!(About::read(&[]), About::default());
        assert_eq!(whole.segment_of(3_000).get(), 1_200);
        assert_eq!(About::default().segment_of(3_000).get(), 3_000);
    }
}
