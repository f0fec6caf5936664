//! The kernel's account of one TCP connection (TCP_INFO, SIOCINQ).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The parts of `struct tcp_info` (linux/tcp.h) that brunt uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Payload bytes received in order (`tcpi_bytes_received`).
    pub bytes_received: u64,
    /// Payload bytes that wait in the receive queue.
    pub bytes_unread: u64,
    /// Smallest round trip seen (`tcpi_min_rtt`), nanoseconds; absent before the first.
    pub min_rtt_ns: Option<u64>,
}

/// Offsets into `struct tcp_info`. The kernel only ever appends to it.
const MIN_RTT_OFFSET: usize = 148;
const BYTES_RECEIVED_OFFSET: usize = 128;
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
    let mut wide = [0; 8];
    wide.copy_from_slice(&bytes[BYTES_RECEIVED_OFFSET..BYTES_RECEIVED_OFFSET + 8]);
    let mut narrow = [0; 4];
    narrow.copy_from_slice(&bytes[MIN_RTT_OFFSET..MIN_RTT_OFFSET + 4]);
    let min_rtt_us = u32::from_ne_bytes(narrow);
    Ok(TcpInfo {
        bytes_received: u64::from_ne_bytes(wide),
        bytes_unread: 0,
        min_rtt_ns: (min_rtt_us != u32::MAX).then(|| u64::from(min_rtt_us) * 1_000),
    })
}
