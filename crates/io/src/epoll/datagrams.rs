//! Datagrams: level-triggered, so that one receive per wake-up is enough and nobody is read for
//! longer than others.

use std::os::fd::AsFd;

use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

use super::{ConnectionState, Epoll, EpollTransport, token};
use crate::backend::{Event, Peer, SendCall, Slot};
use crate::clock;
use crate::datagrams::{self, About};
use crate::transport::{Datagram, ReceivedDatagrams};

/// What an instance has for datagrams.
#[derive(Debug, Default)]
pub struct Instance {
    /// Of those received last.
    about: About,
    /// A send call takes one datagram alone.
    is_one_by_one: bool,
}

impl Epoll<Datagram> {
    /// An instance for datagrams, without sockets.
    ///
    /// # Errors
    ///
    /// No descriptor is free.
    pub fn of_datagrams() -> std::io::Result<Self> {
        Self::without_sockets()
    }
}

impl EpollTransport for Datagram {
    const INTEREST: EventFlags = EventFlags::IN;

    type Instance = Instance;

    fn reaches(peer: &Peer) -> bool {
        matches!(peer, Peer::Udp(_))
    }

    fn push_out(instance: &mut Epoll<Self>, slot: Slot) {
        let Epoll {
            epoll,
            slots,
            payloads,
            events,
            send_calls,
            turn_written,
            own,
            ..
        } = instance;
        let connection = &mut slots[slot.0 as usize];
        let (Some(socket), Some((datagrams, taken))) =
            (&connection.socket, &mut connection.sending)
        else {
            return;
        };
        let from_ns = (connection.is_stamped && *taken == 0).then(clock::now_ns);
        let (before, socket_fd) = (*taken, socket.as_fd());
        let sent = datagrams::send_all(socket_fd, None, datagrams, taken, &mut own.is_one_by_one);
        *turn_written += *taken - before;
        let outcome = sent.map(|errno| match errno {
            0 => Event::Sent(slot),
            errno => Event::SendFailed(slot, errno),
        });
        if let Some(from_ns) = from_ns {
            let to_ns = clock::now_ns();
            send_calls.note(slot, SendCall { from_ns, to_ns });
        }
        if connection.awaits_room != outcome.is_none() {
            connection.awaits_room = outcome.is_none();
            let interest = if connection.awaits_room {
                Self::INTEREST.union(EventFlags::OUT)
            } else {
                Self::INTEREST
            };
            let data = token(connection.generation, slot);
            // What the kernel lacks the memory to watch stays unsent, as if it were lost.
            let _ = epoll::modify(epoll, socket, data, interest);
        }
        if let Some(outcome) = outcome {
            if let Some((datagrams, _)) = connection.sending.take() {
                payloads.recycle::<Self>(datagrams);
            }
            events.push_back((connection.generation, outcome));
        }
    }

    fn read(instance: &mut Epoll<Self>, slot: Slot) -> Option<Event> {
        let connection = &mut instance.slots[slot.0 as usize];
        if connection.state != ConnectionState::Open {
            return None;
        }
        let socket = connection.socket.as_ref()?;
        match datagrams::receive(socket.as_fd(), &mut instance.buffer) {
            // A datagram without bytes says nothing.
            Ok((0, _)) | Err(Errno::AGAIN | Errno::INTR) => None,
            Ok((count, about)) => {
                instance.received = count;
                instance.turn_bytes += count;
                let stamp = about.stamp.filter(|_| connection.has_receive_stamps);
                instance.received_stamp_ns =
                    stamp.map(|unix_ns| instance.real_time.on_run_clock(unix_ns));
                instance.own.about = about;
                Some(Event::Received(slot))
            }
            Err(errno) => {
                connection.state = ConnectionState::Ended;
                // It would be ready for ever.
                let _ = epoll::delete(&instance.epoll, socket);
                Some(Event::ReceiveFailed(slot, errno.raw_os_error()))
            }
        }
    }

    fn received(instance: &Epoll<Self>) -> ReceivedDatagrams<'_> {
        instance
            .own
            .about
            .show(&instance.buffer[..instance.received])
    }
}
