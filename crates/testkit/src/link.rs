//! One simulated connection: what brunt's side, the wire and the server's side hold of it.

use std::collections::VecDeque;
use std::rc::Rc;

use brunt_io::backend::Slot;

use super::counts::SimCounts;
use super::message::{Message, Scanner};
use super::piece::Piece;
use super::request::ReceivedRequest;
use super::streams::stream::Stream;
use super::tls::ServerTls;

/// The name of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(u32);

/// How brunt's side stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Client {
    #[default]
    Connecting,
    Open,
    /// No more bytes will come, or there was never a connection.
    Ended,
    Closed,
}

/// How the server's side stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Server {
    /// The server has not accepted the connection.
    #[default]
    Absent,
    Open,
    /// The server has ended its side, and reads what still comes.
    Ending,
    Closed,
}

#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) slot: Option<Slot>,
    pub(super) client: Client,
    /// When brunt closed the connection.
    pub(super) closed_ns: Option<u64>,
    /// A send is not yet taken in full.
    pub(super) sending: bool,
    pub(super) scanner: Scanner,
    /// Messages on their way to the server.
    pub(super) in_flight: VecDeque<Message>,
    pub(super) server: Server,
    /// The server's side of TLS.
    pub(super) tls: Option<Box<ServerTls>>,
    /// Both sides of the stream, where the connection carries one.
    pub(super) stream: Option<Box<Stream>>,
    /// Requests that wait for their turn on this connection.
    pub(super) pending: VecDeque<ReceivedRequest>,
    /// The request whose turn it is.
    pub(super) serving: Option<ReceivedRequest>,
    /// Messages that wait for their turn or have it, oldest first.
    pub(super) messages: VecDeque<Rc<[u8]>>,
    pub(super) answered: u64,
    /// Requests whose turn has come so far; to the reference server, parts that reached it.
    pub(super) turns: u64,
    /// The server will not answer any more.
    pub(super) is_silent: bool,
    /// When the latest piece arrives at brunt's side: pieces never overtake each other.
    pub(super) last_arrival_ns: u64,
    /// What has arrived at brunt's side and is not yet taken, and when.
    pub(super) arrivals: VecDeque<(u64, Piece)>,
    /// Bytes that the reference server has sent.
    pub(super) bytes_put: u64,
    /// The server's latest send is not complete before brunt has taken some of these bytes.
    pub(super) holds_server: bool,
    pub(super) bytes_arrived: u64,
    pub(super) bytes_taken: u64,
    /// Bytes that arrive next and that brunt does not look at.
    pub(super) discard_bytes: u64,
}

impl Link {
    /// Bytes of the reference server that brunt has not taken.
    pub(super) fn bytes_on_their_way(&self) -> u64 {
        self.bytes_put - self.bytes_taken
    }

    /// Throws away what has arrived of the bytes that brunt does not look at; gives their number.
    pub(super) fn discard(&mut self, counts: &mut SimCounts) -> u64 {
        let before = self.discard_bytes;
        while let Some((_, piece)) = self.arrivals.front_mut() {
            let Piece::Bytes {
                start,
                end,
                completes,
                ..
            } = piece
            else {
                break;
            };
            let taken = self.discard_bytes.min(u64::from(*end - *start));
            *start += taken as u32;
            self.discard_bytes -= taken;
            if *start < *end {
                break;
            }
            counts.completed(*completes);
            self.arrivals.pop_front();
        }
        let taken = before - self.discard_bytes;
        self.bytes_taken += taken;
        counts.bytes_delivered += taken;
        taken
    }

    /// Turns to the next request, if there is one and nothing hinders the server.
    pub(super) fn take_turn(&mut self) -> bool {
        if self.serving.is_some() || self.is_silent || self.server != Server::Open {
            return false;
        }
        self.serving = self.pending.pop_front();
        self.turns += u64::from(self.serving.is_some());
        self.serving.is_some()
    }
}

/// All connections there ever were, by their names.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Option<Box<Link>>>);

impl Links {
    pub(super) fn add(&mut self, link: Link) -> LinkId {
        self.0.push(Some(Box::new(link)));
        LinkId(self.0.len() as u32 - 1)
    }

    /// The connection of this name, while it lasts.
    pub(super) fn get(&self, id: LinkId) -> Option<&Link> {
        self.0[id.0 as usize].as_deref()
    }

    /// The connection of this name, to change it, while it lasts.
    pub(super) fn get_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.0[id.0 as usize].as_deref_mut()
    }

    pub(super) fn remove(&mut self, id: LinkId) {
        self.0[id.0 as usize] = None;
    }

    /// The names of all connections.
    pub(super) fn ids(&self) -> Vec<LinkId> {
        let names = (0..).map(LinkId).zip(&self.0);
        let lasting = names.filter(|(_, link)| link.is_some());
        lasting.map(|(id, _)| id).collect()
    }
}
