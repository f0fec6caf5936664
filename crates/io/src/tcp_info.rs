//! The kernel's account of one TCP connection (TCP_INFO, SIOCINQ).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The parts of `struct tcp_info` (linux/tcp.h) that brunt uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Payload bytes received in order (`tcpi_bytes_received`, which counts the end of the peer's
    /// side as one byte).
    pub bytes_received: u64,
    /// The peer ended its side (`tcpi_state`): one of the bytes received is no payload.
    pub is_ended_by_peer: bool,
    /// Payload bytes that wait in the receive queue.
    pub bytes_unread: u64,
    /// Payload bytes that the peer's kernel acknowledged (`tcpi_bytes_acked`, without the
    /// connection request and, since Linux 4.19, the end of our side, which it counts as one byte
    /// each).
    pub bytes_acked: u64,
    /// Payload bytes that were given to the kernel and that the peer has not acknowledged, whether
    /// sent or not (`tcpi_notsent_bytes`, and `tcpi_bytes_sent` less those sent again and those
    /// acknowledged); before Linux 4.19 those not sent alone.
    pub bytes_unacknowledged: u64,
    /// Payload bytes sent again (`tcpi_bytes_retrans`); 0 before Linux 4.19.
    pub bytes_retransmitted: u64,
    /// Bytes per second that the path delivered lately (`tcpi_delivery_rate`); 0 before Linux 4.9.
    pub delivery_bytes_per_s: u64,
    /// Smoothed round trip (`tcpi_rtt`), nanoseconds; 0 before the first.
    pub smoothed_rtt_ns: u64,
    /// Smallest round trip seen (`tcpi_min_rtt`), nanoseconds; absent before the first.
    pub min_rtt_ns: Option<u64>,
    /// Segments with payload sent, with those sent again (`tcpi_data_segs_out`).
    pub segments_sent: u64,
    /// Segments sent again (`tcpi_total_retrans`), 0 while no payload was (`tcpi_bytes_retrans`):
    /// the kernel counts connection requests sent again with them. Where payload was sent again
    /// too, and before Linux 4.19, these are included.
    pub segments_retransmitted: u64,
    /// Segments with payload received (`tcpi_data_segs_in`).
    pub segments_received: u64,
    /// Segments received out of order (`tcpi_rcv_ooopack`); 0 before Linux 5.4.
    pub segments_out_of_order: u64,
    /// Time with something to send or unacknowledged (`tcpi_busy_time`), nanoseconds; 0 before
    /// Linux 4.10, as the two that follow.
    pub busy_ns: u64,
    /// The part of `busy_ns` in which the peer's receive window held sending up
    /// (`tcpi_rwnd_limited`), nanoseconds.
    pub receive_window_limited_ns: u64,
    /// The part of `busy_ns` in which the size of the send buffer held sending up
    /// (`tcpi_sndbuf_limited`), nanoseconds.
    pub send_buffer_limited_ns: u64,
    /// Round trip as the receiver of bulk data sees it (`tcpi_rcv_rtt`), nanoseconds; absent
    /// before any was seen.
    pub receive_rtt_ns: Option<u64>,
}

/// States of a connection whose peer has ended its side (net/tcp_states.h): TIME_WAIT, CLOSE_WAIT,
/// LAST_ACK and CLOSING.
const STATES_ENDED_BY_PEER: [u8; 4] = [6, 8, 9, 11];

/// Offsets into `struct tcp_info`. The kernel only ever appends to it.
const RTT_OFFSET: usize = 68;
const RECEIVE_RTT_OFFSET: usize = 92;
const TOTAL_RETRANS_OFFSET: usize = 100;
const BYTES_ACKED_OFFSET: usize = 120;
const BYTES_RECEIVED_OFFSET: usize = 128;
const NOT_SENT_OFFSET: usize = 144;
const MIN_RTT_OFFSET: usize = 148;
const DATA_SEGMENTS_IN_OFFSET: usize = 152;
const DATA_SEGMENTS_OUT_OFFSET: usize = 156;
const DELIVERY_RATE_OFFSET: usize = 160;
const BUSY_TIME_OFFSET: usize = 168;
const RWND_LIMITED_OFFSET: usize = 176;
const SNDBUF_LIMITED_OFFSET: usize = 184;
const BYTES_SENT_OFFSET: usize = 200;
const BYTES_RETRANS_OFFSET: usize = 208;
const OUT_OF_ORDER_OFFSET: usize = 224;
/// How often a reading is repeated while bytes come in.
const READ_ATTEMPTS: u32 = 3;

impl TcpInfo {
    /// Reads the account of `socket`.
    ///
    /// # Errors
    ///
    /// The socket is not TCP, the kernel is older than 4.9, or bytes kept coming in between the
    /// readings, so that they do not go together.
    pub fn read(socket: BorrowedFd<'_>) -> io::Result<Self> {
        for _ in 0..READ_ATTEMPTS {
            let before = read_kernel(socket)?;
            let bytes_unread = rustix::io::ioctl_fionread(socket)?;
            let after = read_kernel(socket)?;
            if before.bytes_received == after.bytes_received {
                return Ok(Self {
                    bytes_unread,
                    ..after
                });
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Reads the account of a connection on which bytes keep coming in. The bytes that wait in the
    /// receive queue are read last, and include those that came since the rest was read.
    ///
    /// # Errors
    ///
    /// The socket is not TCP, or the kernel is older than 4.9.
    pub fn read_moving(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let info = read_kernel(socket)?;
        Ok(Self {
            bytes_unread: rustix::io::ioctl_fionread(socket)?,
            ..info
        })
    }
}

fn read_kernel(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0_u8; 256];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the pointer and length describe `bytes`, which outlives the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    if (length as usize) < MIN_RTT_OFFSET + 4 {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "TCP_INFO is too short",
        ));
    }
    Ok(parse(&bytes[..length as usize]))
}

/// Takes the fields out of what the kernel wrote. What an older kernel does not have is 0.
fn parse(bytes: &[u8]) -> TcpInfo {
    let wide = |offset: usize| {
        let field = bytes.get(offset..).and_then(|rest| rest.first_chunk());
        field.map_or(0, |field| u64::from_ne_bytes(*field))
    };
    let narrow = |offset: usize| {
        let field = bytes.get(offset..).and_then(|rest| rest.first_chunk());
        field.map_or(0, |field| u32::from_ne_bytes(*field))
    };
    let has_bytes_retrans = bytes.len() >= BYTES_RETRANS_OFFSET + 8;
    let segments_retransmitted = if has_bytes_retrans && wide(BYTES_RETRANS_OFFSET) == 0 {
        0
    } else {
        narrow(TOTAL_RETRANS_OFFSET)
    };
    let ns_of = |us: u64| us.saturating_mul(1_000);
    let mut bytes_acked = wide(BYTES_ACKED_OFFSET).saturating_sub(1);
    let sent_once = wide(BYTES_SENT_OFFSET).saturating_sub(wide(BYTES_RETRANS_OFFSET));
    if has_bytes_retrans {
        // The end of our side is acknowledged behind all payload.
        bytes_acked = bytes_acked.min(sent_once);
    }
    let on_the_way = sent_once.saturating_sub(bytes_acked);
    let (min_rtt_us, receive_rtt_us) = (narrow(MIN_RTT_OFFSET), narrow(RECEIVE_RTT_OFFSET));
    TcpInfo {
        bytes_received: wide(BYTES_RECEIVED_OFFSET),
        is_ended_by_peer: bytes
            .first()
            .is_some_and(|state| STATES_ENDED_BY_PEER.contains(state)),
        bytes_unread: 0,
        bytes_acked,
        bytes_unacknowledged: u64::from(narrow(NOT_SENT_OFFSET)) + on_the_way,
        bytes_retransmitted: wide(BYTES_RETRANS_OFFSET),
        delivery_bytes_per_s: wide(DELIVERY_RATE_OFFSET),
        smoothed_rtt_ns: ns_of(narrow(RTT_OFFSET).into()),
        min_rtt_ns: (min_rtt_us != u32::MAX).then(|| ns_of(min_rtt_us.into())),
        segments_sent: narrow(DATA_SEGMENTS_OUT_OFFSET).into(),
        segments_retransmitted: segments_retransmitted.into(),
        segments_received: narrow(DATA_SEGMENTS_IN_OFFSET).into(),
        segments_out_of_order: narrow(OUT_OF_ORDER_OFFSET).into(),
        busy_ns: ns_of(wide(BUSY_TIME_OFFSET)),
        receive_window_limited_ns: ns_of(wide(RWND_LIMITED_OFFSET)),
        send_buffer_limited_ns: ns_of(wide(SNDBUF_LIMITED_OFFSET)),
        receive_rtt_ns: (receive_rtt_us != 0).then(|| ns_of(receive_rtt_us.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_from_their_places() {
        let mut bytes = [0_u8; 256];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = (place % 7) as u8;
        }
        bytes[MIN_RTT_OFFSET..MIN_RTT_OFFSET + 4].copy_from_slice(&21_u32.to_ne_bytes());
        bytes[BUSY_TIME_OFFSET..BUSY_TIME_OFFSET + 8].copy_from_slice(&9_u64.to_ne_bytes());
        bytes[BYTES_SENT_OFFSET..BYTES_SENT_OFFSET + 8].fill(0xff);
        let info = parse(&bytes);
        assert_eq!(info.min_rtt_ns, Some(21_000));
        assert_eq!(info.busy_ns, 9_000);
        let narrow = |first: u8| u32::from_ne_bytes([0, 1, 2, 3].map(|next| (first + next) % 7));
        assert_eq!(info.smoothed_rtt_ns, u64::from(narrow(5)) * 1_000);
        let wide = |first: u8| {
            u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|place| (first + place) % 7))
        };
        assert_eq!(info.bytes_acked, wide(1) - 1);
        assert_eq!(info.delivery_bytes_per_s, wide(6));
        assert_eq!(info.bytes_retransmitted, wide(5));
        assert_eq!(
            info.segments_out_of_order,
            u64::from(u32::from_ne_bytes([0, 1, 2, 3]))
        );
        bytes[RECEIVE_RTT_OFFSET..RECEIVE_RTT_OFFSET + 4].fill(0);
        bytes[MIN_RTT_OFFSET..MIN_RTT_OFFSET + 4].fill(0xff);
        let info = parse(&bytes);
        assert_eq!((info.min_rtt_ns, info.receive_rtt_ns), (None, None));
    }

    #[test]
    fn what_is_not_acknowledged_waits_here_or_is_on_its_way() {
        let mut bytes = [0_u8; 256];
        for (offset, value) in [
            (BYTES_SENT_OFFSET, 10_000_u64),
            (BYTES_RETRANS_OFFSET, 1_000),
            // One of them is the connection request.
            (BYTES_ACKED_OFFSET, 4_001),
        ] {
            bytes[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[NOT_SENT_OFFSET..NOT_SENT_OFFSET + 4].copy_from_slice(&70_u32.to_ne_bytes());
        let info = parse(&bytes);
        assert_eq!(
            (info.bytes_acked, info.bytes_unacknowledged),
            (4_000, 5_070)
        );
    }

    #[test]
    fn the_end_of_our_side_is_no_payload() {
        // (acknowledged, with the connection request; payload of it)
        for (acked, payload) in [(9_000, 8_999), (9_001, 9_000), (9_002, 9_000)] {
            let mut bytes = [0_u8; 256];
            for (offset, value) in [(BYTES_SENT_OFFSET, 9_000_u64), (BYTES_ACKED_OFFSET, acked)] {
                bytes[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
            }
            assert_eq!(parse(&bytes).bytes_acked, payload, "{acked}");
        }
    }

    #[test]
    fn connection_requests_sent_again_are_no_payload_sent_again() {
        for (length, bytes_retrans, total_retrans, segments) in [
            (256, 0_u64, 2_u32, 0),
            (256, 1_448, 2, 2),
            (256, 0, 0, 0),
            // Linux before 4.19 does not report it.
            (BYTES_RETRANS_OFFSET, 0, 2, 2),
        ] {
            let mut bytes = [0_u8; 256];
            bytes[TOTAL_RETRANS_OFFSET..TOTAL_RETRANS_OFFSET + 4]
                .copy_from_slice(&total_retrans.to_ne_bytes());
            bytes[BYTES_RETRANS_OFFSET..BYTES_RETRANS_OFFSET + 8]
                .copy_from_slice(&bytes_retrans.to_ne_bytes());
            assert_eq!(
                parse(&bytes[..length]).segments_retransmitted,
                segments,
                "{length} {bytes_retrans} {total_retrans}"
            );
        }
    }

    #[test]
    fn a_peer_that_ended_its_side_is_known_by_the_state() {
        // ESTABLISHED, SYN_SENT, FIN_WAIT2, TIME_WAIT, CLOSE, CLOSE_WAIT, LAST_ACK, CLOSING
        for (state, is_ended) in [
            (1, false),
            (2, false),
            (5, false),
            (6, true),
            (7, false),
            (8, true),
            (9, true),
            (11, true),
        ] {
            let mut bytes = [0; 256];
            bytes[0] = state;
            assert_eq!(parse(&bytes).is_ended_by_peer, is_ended, "{state}");
        }
    }

    #[test]
    fn a_short_account_of_an_older_kernel_has_less() {
        let info = parse(&[1; MIN_RTT_OFFSET + 4]);
        assert_ne!(info.bytes_received, 0);
        assert_eq!((info.segments_sent, info.busy_ns), (0, 0));
    }
}
