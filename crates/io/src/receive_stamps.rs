//! The kernel's receive time stamps (SO_TIMESTAMPNS): reading them beside the bytes, and the
//! send calls of the slots that are stamped.
//!
//! A stamp is CLOCK_REALTIME at the moment at which the last byte of what is read reached the
//! kernel, whenever it is read. It comes as a control message (socket(7), cmsg(3)).

use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::backend::{SendCall, Slot};
use crate::socket;

/// Bytes of a control message that holds one stamp.
// SAFETY: the macro only computes with its argument.
pub const CONTROL_BYTES: usize =
    unsafe { libc::CMSG_SPACE(size_of::<libc::timespec>() as u32) } as usize;

/// Room for control messages, aligned as the kernel's header of them.
#[repr(C)]
union Control<const BYTES: usize> {
    bytes: [u8; BYTES],
    _header: libc::cmsghdr,
}

/// Reads from `socket`, without waiting if it is non-blocking, and gives the count of bytes and
/// their stamp in nanoseconds since 1970-01-01 UTC, where there is one.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<(usize, Option<i64>), Errno> {
    let (count, control) = receive_with::<CONTROL_BYTES>(socket, buffer, &mut [])?;
    Ok((count, stamp_in(&control)))
}

/// The same; gives the control messages. The sender's address is written to `name` where that is
/// not empty.
pub(crate) fn receive_with<const BYTES: usize>(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    name: &mut [u8],
) -> Result<(usize, [u8; BYTES]), Errno> {
    let mut control = Control { bytes: [0; BYTES] };
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let mut message = empty_message();
    if !name.is_empty() {
        message.msg_name = name.as_mut_ptr().cast();
        message.msg_namelen = name.len() as _;
    }
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = BYTES as _;
    // SAFETY: the message describes `buffer`, `name` and `control`, which outlive the call.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, 0) };
    if count < 0 {
        return Err(socket::last_errno());
    }
    // SAFETY: all bytes of the control buffer are initialised, as bytes; without a message they
    // are still 0.
    Ok((count as usize, unsafe { control.bytes }))
}

/// The header at the start of `control`.
fn header_in(control: &[u8]) -> Option<libc::cmsghdr> {
    if control.len() < size_of::<libc::cmsghdr>() {
        return None;
    }
    // SAFETY: a header fits, and any bytes are a valid one.
    Some(unsafe { std::ptr::read_unaligned(control.as_ptr().cast()) })
}

/// The control messages in `control`: level, type and data of each.
pub(crate) fn messages_in(control: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    let mut rest = control;
    std::iter::from_fn(move || {
        let header = header_in(rest)?;
        let length: usize = header.cmsg_len as _;
        let data = rest.get(data_start()..length)?;
        // SAFETY: the macro only computes with its argument.
        let space = unsafe { libc::CMSG_SPACE(data.len() as u32) } as usize;
        rest = rest.get(space..).unwrap_or_default();
        Some((header.cmsg_level, header.cmsg_type, data))
    })
}

/// Where the data of a control message begins.
pub(crate) fn data_start() -> usize {
    // SAFETY: the macro only computes with its argument.
    unsafe { libc::CMSG_LEN(0) as usize }
}

/// A message without name, bytes and control messages.
pub fn empty_message() -> libc::msghdr {
    // SAFETY: null pointers and lengths of 0 are a valid message.
    unsafe { std::mem::zeroed() }
}

/// The stamp in the control message at the start of `control`, nanoseconds since 1970-01-01 UTC.
pub fn stamp_in(control: &[u8]) -> Option<i64> {
    match messages_in(control).next()? {
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, data) => stamp_of(data),
        _ => None,
    }
}

/// The stamp that is the data of a control message.
pub(crate) fn stamp_of(data: &[u8]) -> Option<i64> {
    if data.len() < size_of::<libc::timespec>() {
        return None;
    }
    // SAFETY: there are as many bytes as it has, and any are a valid one.
    let stamp: libc::timespec = unsafe { std::ptr::read_unaligned(data.as_ptr().cast()) };
    let seconds_ns = (stamp.tv_sec as i64).checked_mul(1_000_000_000)?;
    seconds_ns.checked_add(stamp.tv_nsec as i64)
}

/// The stamped slots of a backend.
#[derive(Debug, Default)]
pub struct SendCalls {
    every: Option<NonZeroU32>,
    /// The latest call of each stamped slot, by slot number divided by `every`.
    latest: Vec<Option<SendCall>>,
}

impl SendCalls {
    /// Stamps the slots whose number is divisible by `every`.
    pub fn set_every(&mut self, every: Option<NonZeroU32>) {
        self.every = every;
        self.latest.clear();
    }

    /// Whether the slot is stamped.
    pub fn includes(&self, slot: Slot) -> bool {
        self.index(slot).is_some()
    }

    /// Whether the slot, just opened, is stamped; nothing is known of its send calls from now on.
    pub fn opened(&mut self, slot: Slot) -> bool {
        let Some(index) = self.index(slot) else {
            return false;
        };
        if self.latest.len() <= index {
            self.latest.resize(index + 1, None);
        }
        self.latest[index] = None;
        true
    }

    /// Notes the latest send call of an opened slot; of one that is not stamped, nothing.
    pub fn note(&mut self, slot: Slot, send_call: SendCall) {
        if let Some(latest) = self
            .index(slot)
            .and_then(|index| self.latest.get_mut(index))
        {
            *latest = Some(send_call);
        }
    }

    /// The latest send call of a stamped slot.
    pub fn latest(&self, slot: Slot) -> Option<SendCall> {
        *self.latest.get(self.index(slot)?)?
    }

    fn index(&self, slot: Slot) -> Option<usize> {
        let every = self.every?.get();
        slot.0
            .is_multiple_of(every)
            .then_some((slot.0 / every) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(level: i32, kind: i32, length: usize, sec: i64, ns: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&length.to_ne_bytes());
        bytes.extend_from_slice(&level.to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&sec.to_ne_bytes());
        bytes.extend_from_slice(&ns.to_ne_bytes());
        bytes
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn only_whole_stamps_are_stamps() {
        let (level, kind) = (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        let whole = control(level, kind, 32, 1_790_000_000, 123_456_789);
        assert_eq!(whole.len(), CONTROL_BYTES);
        assert_eq!(stamp_in(&whole), Some(1_790_000_000_123_456_789));
        for length in 0..whole.len() {
            assert_eq!(stamp_in(&whole[..length]), None, "{length}");
        }
        for other in [
            control(libc::IPPROTO_TCP, kind, 32, 1, 1),
            control(level, libc::SCM_RIGHTS, 32, 1, 1),
            control(level, kind, 31, 1, 1),
            control(level, kind, 0, 1, 1),
            control(level, kind, 32, i64::MAX, 1),
            vec![0; CONTROL_BYTES],
        ] {
            assert_eq!(stamp_in(&other), None, "{other:?}");
        }
    }

    const SEND_CALL: SendCall = SendCall {
        from_ns: 1,
        to_ns: 2,
    };

    #[test]
    fn one_slot_in_so_many_is_stamped() {
        for (every, stamped) in [(0, &[][..]), (1, &[0, 1, 2, 3, 4, 5, 6]), (3, &[0, 3, 6])] {
            let mut send_calls = SendCalls::default();
            send_calls.set_every(NonZeroU32::new(every));
            for number in (0..7).rev() {
                let slot = Slot(number);
                assert_eq!(send_calls.opened(slot), stamped.contains(&number));
                assert_eq!(send_calls.latest(slot), None);
                send_calls.note(slot, SEND_CALL);
            }
            for number in 0..7 {
                let known = send_calls.latest(Slot(number));
                assert_eq!(known, stamped.contains(&number).then_some(SEND_CALL));
            }
            assert!(!send_calls.opened(Slot(0)) || send_calls.latest(Slot(0)).is_none());
            assert_eq!(send_calls.latest(Slot(3_000)), None);
        }
    }
}
