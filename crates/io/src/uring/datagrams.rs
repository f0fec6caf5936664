//! Datagrams, as rings carry them: received with their control messages into buffers that hold all
//! that the kernel gives at once, and sent as messages.

use std::collections::VecDeque;
use std::io;

use io_uring::cqueue;

use super::{Filled, Operation, RING_FILES_MAX, Receiving, Uring, UringTransport, user_data};
use crate::backend::{Event, Peer, Slot};
use crate::datagrams::{
    About, RECEIVED_BYTES_MAX, RECEIVED_CONTROL_BYTES, SendEnd, SendMessage, part_of,
};
use crate::transport::{Datagram, OutgoingDatagrams, ReceivedDatagrams};

/// Bytes of the kernel's header of a received message.
const BUFFER_HEADER_BYTES: usize = 16;
/// Bytes of a line of the CPU's caches.
const LINE_BYTES: usize = 64;

/// Messages that are kept for further sends.
const SPARE_MESSAGES_MAX: usize = 256;

/// What a connection sends.
#[derive(Default)]
pub struct Sends {
    /// It has no completion yet.
    sending: Option<Sending>,
    /// The latest one, by its number in the ring.
    queued_number: u64,
    /// A silent send did not fit: none is silent any more.
    is_felt: bool,
}

/// What is being sent, where the kernel finds it.
pub struct Sending {
    message: Box<SendMessage>,
    datagrams: OutgoingDatagrams,
    /// Bytes that were taken, and up to where the call in flight goes.
    taken: usize,
    part_end: usize,
}

/// What is sent silently, where the kernel finds it until it has taken the submission: it never
/// waits with such a send.
struct Silent {
    ring: usize,
    /// The number in that ring.
    number: u64,
    message: Option<Box<SendMessage>>,
    datagrams: OutgoingDatagrams,
}

/// What all connections have for it.
#[derive(Default)]
pub struct Instance {
    /// Of the datagrams received last.
    about: About,
    /// A send call takes one datagram alone.
    is_one_by_one: bool,
    /// The oldest first.
    silent: VecDeque<Silent>,
    /// For further sends.
    #[expect(clippy::vec_box, reason = "a message goes into a send as it is")]
    messages: Vec<Box<SendMessage>>,
}

impl Instance {
    fn keep(&mut self, message: Box<SendMessage>) {
        if self.messages.len() < SPARE_MESSAGES_MAX {
            self.messages.push(message);
        }
    }
}

impl Uring<Datagram> {
    /// A backend of datagram sockets for about `slots` connections (more may be opened). The
    /// calling thread is the only one that may use it.
    ///
    /// # Errors
    ///
    /// As [`Uring::new`].
    pub fn of_datagrams(slots: u32) -> io::Result<Self> {
        Self::without_connections(slots, RING_FILES_MAX)
    }

    /// As [`Uring::of_datagrams`], with at most `files` connections (at least 1) per ring.
    ///
    /// # Errors
    ///
    /// As [`Uring::of_datagrams`].
    pub fn of_datagrams_with_ring_files(slots: u32, files: u32) -> io::Result<Self> {
        Self::without_connections(slots, files)
    }

    /// Queues the next send call for what is being sent.
    fn queue_send(&mut self, slot: Slot) {
        let (ring, place) = self.home(slot);
        let connection = &mut self.slots[slot.0 as usize];
        let Some(sending) = &mut connection.sends.sending else {
            return;
        };
        let part = part_of(&sending.datagrams, sending.taken, self.own.is_one_by_one);
        sending.part_end = part.end;
        let message: *const libc::msghdr = sending.message.point_to(&sending.datagrams, part);
        let data = user_data(Operation::Send, connection.generation, slot);
        // SAFETY: the boxed message and the bytes are kept in `sending`, and in `abandoned` after a
        // close, until the completion comes.
        let outcome = unsafe { self.rings[ring].send_message(place, message, data) };
        connection.sends.queued_number = self.rings[ring].last_number();
        if connection.is_stamped {
            self.rings[ring].stamp_send(slot);
        }
        self.queued(slot, ring, outcome);
    }

    /// Queues the send of a single datagram, which completes only if it fails.
    fn queue_silent_send(&mut self, slot: Slot, datagrams: OutgoingDatagrams) {
        self.release_silent();
        let (ring, place) = self.home(slot);
        let generation = self.slots[slot.0 as usize].generation;
        let data = user_data(Operation::SilentSend, generation, slot);
        let whole = 0..datagrams.bytes.len();
        let mut message = None;
        let outcome = if datagrams.ecn.is_some() {
            let message = message.insert(self.own.messages.pop().unwrap_or_default());
            let header: *const libc::msghdr = message.point_to(&datagrams, whole);
            // SAFETY: the boxed message and the bytes are kept in `silent` until the kernel has
            // taken the submission.
            unsafe { self.rings[ring].send_message_silently(place, header, data) }
        } else {
            // SAFETY: the same.
            unsafe { self.rings[ring].send_silently(place, &datagrams.bytes, data) }
        };
        let number = self.rings[ring].last_number();
        self.slots[slot.0 as usize].sends.queued_number = number;
        self.own.silent.push_back(Silent {
            ring,
            number,
            message,
            datagrams,
        });
        self.queued(slot, ring, outcome);
    }

    /// Takes back what silent sends pointed to that the kernel has taken.
    fn release_silent(&mut self) {
        while let Some(oldest) = self.own.silent.front()
            && self.rings[oldest.ring].has_taken(oldest.number)
            && let Some(taken) = self.own.silent.pop_front()
        {
            self.payloads.recycle::<Datagram>(taken.datagrams);
            if let Some(message) = taken.message {
                self.own.keep(message);
            }
        }
    }

    /// What the failure of a silent send means to the caller. What the socket has no room for is
    /// lost, as it might be later on the way.
    fn silent_send_failed(&mut self, slot: Slot, result: i32) -> Option<Event> {
        match SendEnd::of(-result, false) {
            SendEnd::Failed(errno) => Some(Event::SendFailed(slot, errno)),
            SendEnd::Again => {
                self.slots[slot.0 as usize].sends.is_felt = true;
                None
            }
            SendEnd::Taken | SendEnd::OneByOne => None,
        }
    }
}

impl UringTransport for Datagram {
    /// An odd number of lines: what is small lies at the start of its buffer, and the starts of all
    /// buffers find places in the caches beside each other.
    const BUFFER_BYTES: usize = (BUFFER_HEADER_BYTES + RECEIVED_CONTROL_BYTES + RECEIVED_BYTES_MAX)
        .next_multiple_of(LINE_BYTES)
        | LINE_BYTES;
    const CONTROL_BYTES: usize = RECEIVED_CONTROL_BYTES;

    type Sends = Sends;
    type Abandoned = Sending;
    type Instance = Instance;

    fn reaches(peer: &Peer) -> bool {
        matches!(peer, Peer::Udp(_))
    }

    fn arm_receive(uring: &mut Uring<Self>, slot: Slot) {
        let (ring, place) = uring.home(slot);
        let connection = &mut uring.slots[slot.0 as usize];
        connection.receiving = Receiving::Many;
        let data = user_data(Operation::Receive, connection.generation, slot);
        let outcome = uring.rings[ring].receive_messages(place, data);
        uring.queued(slot, ring, outcome);
    }

    fn translate_receive(
        uring: &mut Uring<Self>,
        entry: &cqueue::Entry,
        slot: Slot,
        is_current: bool,
    ) -> Option<Event> {
        let result = entry.result();
        let ring = uring.completions_ring;
        let mut is_shown = false;
        if let Some(buffer) = cqueue::buffer_select(entry.flags()) {
            let length = result.max(0) as usize;
            let message = if is_current {
                uring.rings[ring].message(buffer, length, About::read)
            } else {
                None
            };
            // A datagram without bytes says nothing.
            match message.filter(|(bytes, _)| !bytes.is_empty()) {
                None => uring.rings[ring].buffers.put_back(buffer),
                Some((bytes, about)) => {
                    is_shown = true;
                    let has_stamps = uring.slots[slot.0 as usize].has_receive_stamps;
                    let stamp = about.stamp.filter(|_| has_stamps);
                    uring.received_stamp_ns =
                        stamp.map(|unix_ns| uring.real_time.on_run_clock(unix_ns));
                    uring.own.about = about;
                    uring.received = Some(Filled {
                        ring,
                        buffer,
                        bytes,
                    });
                }
            }
        }
        if !is_current {
            return None;
        }
        let (turn, is_armed) = (uring.turn, cqueue::more(entry.flags()));
        let connection = &mut uring.slots[slot.0 as usize];
        let again = (slot, connection.generation);
        if !is_armed {
            connection.receiving = Receiving::No;
        }
        if result >= 0 {
            connection.received_turn = turn;
            if is_shown {
                uring.rearmed_next = (!is_armed).then_some(again);
                return Some(Event::Received(slot));
            }
            if !is_armed {
                Self::arm_receive(uring, slot);
            }
            return None;
        }
        if result != -libc::ENOBUFS {
            return Some(Event::ReceiveFailed(slot, -result));
        }
        // All buffers were in use: whoever had some of them takes its turn after those that had
        // none.
        if connection.received_turn == turn {
            uring.rearmed_last.push(again);
        } else {
            Self::arm_receive(uring, slot);
        }
        None
    }

    fn received(uring: &Uring<Self>) -> ReceivedDatagrams<'_> {
        uring.own.about.show(uring.shown())
    }

    fn send(uring: &mut Uring<Self>, slot: Slot, outgoing: OutgoingDatagrams) {
        let message = uring.own.messages.pop().unwrap_or_default();
        uring.slots[slot.0 as usize].sends.sending = Some(Sending {
            message,
            datagrams: outgoing,
            taken: 0,
            part_end: 0,
        });
        uring.queue_send(slot);
    }

    fn send_quietly(uring: &mut Uring<Self>, slot: Slot, outgoing: OutgoingDatagrams) -> bool {
        let connection = &uring.slots[slot.0 as usize];
        let is_one = outgoing.bytes.len() <= outgoing.segment_bytes.get().into();
        let is_silent = is_one && !connection.is_stamped && !connection.sends.is_felt;
        if is_silent {
            uring.queue_silent_send(slot, outgoing)
        } else {
            Self::send(uring, slot, outgoing)
        }
        is_silent
    }

    fn sent(uring: &mut Uring<Self>, slot: Slot, result: i32, is_silent: bool) -> Option<Event> {
        if is_silent {
            return uring.silent_send_failed(slot, result);
        }
        let sends = &mut uring.slots[slot.0 as usize].sends;
        let sending = sends.sending.as_mut()?;
        let are_several =
            sending.part_end - sending.taken > sending.datagrams.segment_bytes.get().into();
        let event = match SendEnd::of(-result, are_several) {
            SendEnd::Taken if sending.part_end == sending.datagrams.bytes.len() => {
                Event::Sent(slot)
            }
            SendEnd::Failed(errno) => Event::SendFailed(slot, errno),
            end => {
                match end {
                    SendEnd::Taken => sending.taken = sending.part_end,
                    SendEnd::OneByOne => uring.own.is_one_by_one = true,
                    SendEnd::Again | SendEnd::Failed(_) => {}
                }
                uring.queue_send(slot);
                return None;
            }
        };
        if let Some(sending) = sends.sending.take() {
            uring.own.keep(sending.message);
            uring.payloads.recycle::<Self>(sending.datagrams);
        }
        Some(event)
    }

    fn is_send_put_off(uring: &Uring<Self>, slot: Slot) -> bool {
        let (ring, _) = uring.home(slot);
        let number = uring.slots[slot.0 as usize].sends.queued_number;
        !uring.rings[ring].has_taken(number)
    }

    fn abandon_sends(uring: &mut Uring<Self>, slot: Slot, data: u64) -> bool {
        let sends = std::mem::take(&mut uring.slots[slot.0 as usize].sends);
        let is_sending = sends.sending.is_some();
        if let Some(sending) = sends.sending {
            uring.abandoned.insert(data, sending);
        }
        is_sending
    }

    fn buffer_of_abandoned(abandoned: Sending) -> OutgoingDatagrams {
        abandoned.datagrams
    }
}
