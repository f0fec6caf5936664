//! One UDP socket that a server shares among its clients, in a ring of its own.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use io_uring::cqueue;
use rustix::io::Errno;

use super::datagrams::BUFFER_HEADER_BYTES;
use super::ring::{Layout, Ring, Timespec};
use crate::backend::Payloads;
use crate::clock;
use crate::datagrams::{
    self, About, NAME_BYTES, RECEIVED_BYTES_MAX, RECEIVED_CONTROL_BYTES, SEGMENTS_MAX, SendEnd,
    SendMessage,
};
use crate::listener::DatagramListener;
use crate::transport::{Datagram, OutgoingDatagrams, ReceivedDatagrams};

/// Receive buffers. What is small touches only the first page of one.
const BUFFERS: u16 = 64;
const BUFFER_BYTES: usize =
    (BUFFER_HEADER_BYTES + NAME_BYTES + RECEIVED_CONTROL_BYTES + RECEIVED_BYTES_MAX)
        .next_multiple_of(4096);
/// The place of the socket in the ring's file table.
const PLACE: u32 = 0;
/// The operation that receives; sends have their number.
const RECEIVE: u64 = u64::MAX;

/// What is being sent, where the kernel finds it.
struct Sending {
    message: Box<SendMessage>,
    datagrams: OutgoingDatagrams,
    /// Bytes that were taken, and up to where the call in flight goes.
    taken: usize,
    part_end: usize,
}

/// A listener on io_uring.
pub struct UringListener {
    // Declared first: dropped before what it refers to.
    ring: Ring,
    sends: Vec<Option<Sending>>,
    /// Numbers without a send.
    free: Vec<usize>,
    #[expect(clippy::vec_box, reason = "a message goes into a send as it is")]
    messages: Vec<Box<SendMessage>>,
    _socket: Arc<OwnedFd>,
    completions: Vec<cqueue::Entry>,
    next: usize,
    /// Whether a receive is armed.
    is_armed: bool,
    /// The buffer that is shown, and where in it.
    received: Option<(u16, Range<usize>)>,
    about: About,
    segments_max: usize,
    payloads: Payloads,
    fault: Option<io::Error>,
}

impl UringListener {
    /// Listens on a socket of [`listen_udp`](crate::socket::listen_udp). The calling thread is the
    /// only one that may use it.
    ///
    /// # Errors
    ///
    /// The kernel refuses io_uring, or lacks what is needed.
    pub fn new(socket: Arc<OwnedFd>) -> io::Result<Self> {
        let layout = Layout {
            buffers: BUFFERS,
            buffer_bytes: BUFFER_BYTES,
            name_bytes: NAME_BYTES,
            control_bytes: RECEIVED_CONTROL_BYTES,
        };
        let mut ring = Ring::new(1, layout)?;
        ring.set_file(PLACE, socket.as_raw_fd())?;
        Ok(Self {
            ring,
            sends: Vec::new(),
            free: Vec::new(),
            messages: Vec::new(),
            _socket: socket,
            completions: Vec::new(),
            next: 0,
            is_armed: false,
            received: None,
            about: About::default(),
            segments_max: SEGMENTS_MAX,
            payloads: Payloads::default(),
            fault: None,
        })
    }

    /// Queues the next call for what is being sent under this number.
    fn queue_send(&mut self, number: usize) {
        let Some(sending) = &mut self.sends[number] else {
            return;
        };
        let part = datagrams::part_of(&sending.datagrams, sending.taken, self.segments_max);
        sending.part_end = part.end;
        let message: *const libc::msghdr = sending.message.point_to(&sending.datagrams, part);
        // SAFETY: the boxed message and the bytes are kept in `sends` until the completion comes.
        let outcome = unsafe { self.ring.send_message(PLACE, message, number as u64) };
        let outcome = outcome.and_then(|()| self.ring.submit_batch());
        self.remember(outcome);
    }

    /// A send call ended.
    fn sent(&mut self, number: usize, result: i32) {
        let Some(Some(sending)) = self.sends.get_mut(number) else {
            return;
        };
        let part_bytes = sending.part_end - sending.taken;
        let are_several = part_bytes > sending.datagrams.segment_bytes.get().into();
        let outcome = match result {
            0.. => Ok(()),
            _ => Err(Errno::from_raw_os_error(-result)),
        };
        match SendEnd::of(outcome, are_several) {
            SendEnd::Taken => sending.taken = sending.part_end,
            SendEnd::OneByOne => self.segments_max = 1,
            SendEnd::Again => {}
            SendEnd::Failed(_) => sending.taken = sending.datagrams.bytes.len(),
        }
        if sending.taken < sending.datagrams.bytes.len() {
            return self.queue_send(number);
        }
        if let Some(sending) = self.sends[number].take() {
            self.free.push(number);
            self.messages.push(sending.message);
            self.payloads.recycle::<Datagram>(sending.datagrams);
        }
    }

    /// What a completed receive brought; from whom.
    fn arrived(&mut self, entry: &cqueue::Entry) -> Option<SocketAddr> {
        self.is_armed &= cqueue::more(entry.flags());
        let buffer = cqueue::buffer_select(entry.flags())?;
        let length = entry.result().max(0) as usize;
        let message = self.ring.message_from(buffer, length, About::read);
        // A datagram without bytes says nothing.
        match message.filter(|(bytes, ..)| !bytes.is_empty()) {
            Some((bytes, about, Some(from))) => {
                self.received = Some((buffer, bytes));
                self.about = about;
                Some(from)
            }
            _ => {
                self.ring.buffers.put_back(buffer);
                None
            }
        }
    }

    fn release_received(&mut self) {
        if let Some((buffer, _)) = self.received.take() {
            self.ring.buffers.put_back(buffer);
        }
    }

    fn remember(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.fault.get_or_insert(error);
        }
    }
}

impl DatagramListener for UringListener {
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn send(&mut self, to: SocketAddr, datagrams: OutgoingDatagrams) {
        let mut message = self.messages.pop().unwrap_or_default();
        message.address_to(Some(to));
        let sending = Sending {
            message,
            datagrams,
            taken: 0,
            part_end: 0,
        };
        let number = self.free.pop().unwrap_or(self.sends.len());
        if number == self.sends.len() {
            self.sends.push(None);
        }
        self.sends[number] = Some(sending);
        self.queue_send(number);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.release_received();
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if !self.is_armed {
            self.ring.receive_messages(PLACE, RECEIVE)?;
            self.is_armed = true;
        }
        let left_ns = until_ns.map(|until_ns| until_ns.saturating_sub(clock::now_ns()));
        match left_ns {
            Some(0) => self.ring.submit_and_run()?,
            _ if self.ring.has_completions() => self.ring.submit_and_run()?,
            left_ns => {
                let timeout = left_ns.map(|ns| {
                    Timespec::new()
                        .sec(ns / 1_000_000_000)
                        .nsec((ns % 1_000_000_000) as u32)
                });
                self.ring.submit_and_wait(timeout)?;
            }
        }
        self.completions.clear();
        self.next = 0;
        self.ring.drain(&mut self.completions);
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<SocketAddr> {
        self.release_received();
        while let Some(entry) = self.completions.get(self.next).cloned() {
            self.next += 1;
            match entry.user_data() {
                RECEIVE => {
                    if let from @ Some(_) = self.arrived(&entry) {
                        return from;
                    }
                }
                number => self.sent(number as usize, entry.result()),
            }
        }
        None
    }

    fn received(&self) -> ReceivedDatagrams<'_> {
        let bytes = self.received.as_ref().map_or(&[][..], |(buffer, bytes)| {
            &self.ring.buffers.filled(*buffer, bytes.end)[bytes.start..]
        });
        self.about.show(bytes)
    }
}
