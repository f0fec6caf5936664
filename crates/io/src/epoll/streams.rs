//! Byte streams: edge-triggered, read until less came than there was room for.

use std::os::fd::AsFd;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::{ConnectionState, DISCARD_BYTES_MAX, Epoll, EpollTransport};
use crate::backend::{self, Event, Peer, SendCall, Slot};
use crate::transport::Stream;
use crate::{clock, receive_stamps, socket};

impl EpollTransport for Stream {
    /// Edge-triggered for both directions: registered once, never changed.
    const INTEREST: EventFlags = EventFlags::IN
        .union(EventFlags::OUT)
        .union(EventFlags::RDHUP)
        .union(EventFlags::ET);

    type Instance = ();

    fn reaches(peer: &Peer) -> bool {
        matches!(peer, Peer::Tcp(_) | Peer::Unix(_))
    }

    fn push_out(instance: &mut Epoll, slot: Slot) {
        let Epoll {
            slots,
            payloads,
            events,
            send_calls,
            turn_written,
            ..
        } = instance;
        let connection = &mut slots[slot.0 as usize];
        let (Some(socket), Some((outgoing, taken))) = (&connection.socket, &mut connection.sending)
        else {
            return;
        };
        let bytes = payloads.bytes(outgoing);
        let outcome = loop {
            let from_ns = (connection.is_stamped && *taken == 0).then(clock::now_ns);
            match rustix::net::send(socket, &bytes[*taken..], SendFlags::NOSIGNAL) {
                Ok(count) => {
                    if let Some(from_ns) = from_ns {
                        let to_ns = clock::now_ns();
                        send_calls.note(slot, SendCall { from_ns, to_ns });
                    }
                    *taken += count;
                    *turn_written += count;
                    if *taken == bytes.len() {
                        break Event::Sent(slot);
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    connection.failed_bytes = bytes.len() - *taken;
                    break Event::SendFailed(slot, errno.raw_os_error());
                }
            }
        };
        if let Some((outgoing, _)) = connection.sending.take() {
            payloads.recycle::<Self>(outgoing);
        }
        match outcome {
            // The end of the connection is yet to be read, and what came before it.
            Event::SendFailed(_, errno)
                if backend::is_by_peer(errno)
                    && connection.state == ConnectionState::Open
                    && !connection.accepted =>
            {
                connection.failed = (errno != libc::EPIPE).then_some(outcome);
            }
            _ => events.push_back((connection.generation, outcome)),
        }
    }

    fn unsent_bytes(instance: &Epoll, slot: Slot) -> u64 {
        let connection = &instance.slots[slot.0 as usize];
        let left = match &connection.sending {
            Some((outgoing, taken)) => instance.payloads.bytes(outgoing).len() - taken,
            None => connection.failed_bytes,
        };
        left as u64
    }

    fn read(instance: &mut Epoll, slot: Slot) -> Option<Event> {
        let connection = &mut instance.slots[slot.0 as usize];
        if connection.state != ConnectionState::Open {
            return None;
        }
        let socket = connection.socket.as_ref()?;
        let discard_bytes = connection.discard_bytes.min(DISCARD_BYTES_MAX) as usize;
        loop {
            let outcome = if discard_bytes > 0 {
                socket::discard(socket.as_fd(), discard_bytes).map(|count| (count, None))
            } else if connection.has_receive_stamps {
                receive_stamps::receive(socket.as_fd(), &mut instance.buffer)
            } else {
                rustix::net::recv(socket, &mut instance.buffer[..], RecvFlags::empty())
                    .map(|(count, _)| (count, None))
            };
            return match outcome {
                Ok((0, _)) => {
                    connection.state = ConnectionState::Ended;
                    // The failed send took the error of the socket.
                    Some(connection.failed.take().unwrap_or(Event::Ended(slot)))
                }
                Ok((count, _)) if discard_bytes > 0 => {
                    instance.read = (count, discard_bytes);
                    instance.turn_bytes += count;
                    connection.discard_bytes -= count as u64;
                    Some(Event::Discarded(slot, count as u32))
                }
                Ok((count, stamp)) => {
                    instance.received = count;
                    instance.read = (count, instance.buffer.len());
                    instance.turn_bytes += count;
                    instance.received_stamp_ns =
                        stamp.map(|unix_ns| instance.real_time.on_run_clock(unix_ns));
                    Some(Event::Received(slot))
                }
                Err(Errno::AGAIN) => None,
                Err(Errno::INTR) => continue,
                Err(errno) => {
                    connection.state = ConnectionState::Ended;
                    Some(Event::ReceiveFailed(slot, errno.raw_os_error()))
                }
            };
        }
    }

    fn received(instance: &Epoll) -> &[u8] {
        &instance.buffer[..instance.received]
    }
}
