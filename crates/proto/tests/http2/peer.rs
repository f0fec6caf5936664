//! A client of ours and a server of the `h2` crate on a pipe in memory.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::slice::from_ref;
use std::sync::{Arc, Mutex};

use brunt_proto::Limits;
use brunt_proto::http2::frame::ErrorCode;
use brunt_proto::http2::{
    Client, ClientSettings, Event, KnownHead, Reply, StreamFailure, Template,
};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

type Body = Cursor<Vec<u8>>;

/// Bytes that the pipe takes in each direction: so many that neither side ever waits for the other
/// to read.
const PIPE_BYTES: usize = 256 << 20;

/// A stream of numbers, the same for the same seed.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u32) -> Self {
        Self(seed.into())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// How the server answers a request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Bytes of the body, as they are given to the server.
    pub(crate) pieces: Vec<usize>,
    pub(crate) interim: u32,
    pub(crate) has_trailers: bool,
    /// The stream is reset: after its head or at once, and for what.
    pub(crate) reset: Option<(bool, Reason)>,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            pieces: Vec::new(),
            interim: 0,
            has_trailers: false,
            reset: None,
        }
    }
}

/// What the server saw of a request.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) uri: String,
    /// Sorted.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// A connection to be used.
pub(crate) struct Talk {
    pub(crate) template: Template,
    pub(crate) requests: u32,
    pub(crate) depth: u32,
    /// Gives the answer on a stream, by the stream's identifier.
    pub(crate) answer: fn(u32) -> Answer,
    pub(crate) server: h2::server::Builder,
    /// The server ends the connection gracefully with this request.
    pub(crate) graceful_end_after: Option<u32>,
    /// The server ends the connection at once with this request.
    pub(crate) abrupt_end_after: Option<u32>,
}

/// The outcomes, by the streams' identifiers.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) replies: BTreeMap<u32, Reply>,
    pub(crate) failures: BTreeMap<u32, StreamFailure>,
    pub(crate) go_aways: Vec<ErrorCode>,
    /// Requests.
    pub(crate) sent: u32,
    /// Streams without an outcome when the connection ended.
    pub(crate) abandoned: u32,
    pub(crate) in_flight_max: u32,
    pub(crate) seen: BTreeMap<u32, Seen>,
}

type AllSeen = Arc<Mutex<BTreeMap<u32, Seen>>>;

impl Talk {
    pub(crate) fn run(self) -> Outcome {
        let seen = AllSeen::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut outcome = runtime.block_on(async {
            let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
            let server = Server {
                answer: self.answer,
                builder: self.server.clone(),
                graceful_end_after: self.graceful_end_after,
                abrupt_end_after: self.abrupt_end_after,
                seen: Arc::clone(&seen),
            };
            let server = tokio::spawn(server.run(theirs));
            let outcome = self.use_client(ours).await;
            server.await.unwrap();
            outcome
        });
        drop(runtime);
        outcome.seen = std::mem::take(&mut seen.lock().unwrap());
        outcome
    }

    /// Sends the requests and takes the responses, in reads of all sizes.
    async fn use_client(&self, mut io: DuplexStream) -> Outcome {
        let limits = Limits {
            head_bytes: 1 << 20,
            ..Limits::default()
        };
        let mut client = Client::new(self.depth, ClientSettings::default());
        let mut known = KnownHead::default();
        let mut outcome = Outcome::default();
        // The stream at each place.
        let mut streams = vec![0; self.depth as usize];
        let (mut received, mut settled) = (0, 0);
        let mut sizes = Numbers::new(1);
        let mut buffer = vec![0; 1 << 17];
        let mut out = Vec::new();
        client.open(&mut out);
        loop {
            io.write_all(&out).await.unwrap();
            out.clear();
            if client.wants_resume() {
                client.resume(from_ref(&self.template), &mut out);
                continue;
            }
            let may_send = outcome.sent < self.requests && client.depth() > 0;
            if client.is_ready() && client.in_flight() == 0 && !may_send {
                break;
            }
            let size_bits = 1 + sizes.below(16);
            let size = 1 + sizes.below(1 << size_bits);
            let bytes = io.read(&mut buffer[..size]).await.unwrap();
            if bytes == 0 {
                break;
            }
            let mut rest = &buffer[..bytes];
            received += bytes as u64;
            loop {
                let progress = client
                    .receive(
                        rest,
                        0,
                        from_ref(&self.template),
                        &limits,
                        &mut known,
                        &mut out,
                    )
                    .unwrap();
                rest = &rest[progress.consumed..];
                match progress.event {
                    None => break,
                    Some(Event::Ready) => {}
                    Some(Event::GoAway { code }) => outcome.go_aways.extend(code),
                    Some(Event::Reply { place, reply }) => {
                        settled += reply.head_bytes + reply.body_bytes;
                        let earlier = outcome.replies.insert(streams[place as usize], reply);
                        assert_eq!(earlier, None);
                    }
                    Some(Event::Failed {
                        place,
                        why,
                        discarded_bytes,
                    }) => {
                        settled += discarded_bytes;
                        let earlier = outcome.failures.insert(streams[place as usize], why);
                        assert_eq!(earlier, None);
                    }
                }
                while outcome.sent < self.requests && client.in_flight() < client.depth() {
                    let place = client.request(from_ref(&self.template), 0, &mut out);
                    streams[place as usize] = 2 * outcome.sent + 1;
                    outcome.sent += 1;
                }
                outcome.in_flight_max = outcome.in_flight_max.max(client.in_flight());
            }
            settled += client.take_overhead();
            assert_eq!(received, settled + client.pending_bytes());
        }
        while client.abandon().is_some() {
            outcome.abandoned += 1;
        }
        outcome
    }
}

struct Server {
    answer: fn(u32) -> Answer,
    builder: h2::server::Builder,
    graceful_end_after: Option<u32>,
    abrupt_end_after: Option<u32>,
    seen: AllSeen,
}

impl Server {
    async fn run(self, io: DuplexStream) {
        let mut connection = self.builder.handshake::<_, Body>(io).await.unwrap();
        let mut requests = 0;
        while let Some(accepted) = connection.accept().await {
            let (request, respond) = match accepted {
                Ok(accepted) => accepted,
                // The client left, or was sent away.
                Err(error) if error.is_io() || self.abrupt_end_after.is_some() => return,
                Err(error) => panic!("the server refuses what it got: {error}"),
            };
            requests += 1;
            let answer = (self.answer)(respond.stream_id().as_u32());
            tokio::spawn(handle(request, respond, answer, Arc::clone(&self.seen)));
            if self.graceful_end_after == Some(requests) {
                connection.graceful_shutdown();
            }
            if self.abrupt_end_after == Some(requests) {
                connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            }
        }
    }
}

/// Takes a request as a whole, and answers it. What fails here does so since the connection ended,
/// or is missed by the client.
async fn handle(
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Body>,
    answer: Answer,
    all_seen: AllSeen,
) {
    let stream = respond.stream_id().as_u32();
    let (head, mut stream_body) = request.into_parts();
    let mut body = Vec::new();
    while let Some(Ok(piece)) = stream_body.data().await {
        body.extend_from_slice(&piece);
        let _ = stream_body.flow_control().release_capacity(piece.len());
    }
    let mut headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    headers.sort();
    let seen = Seen {
        method: head.method.to_string(),
        uri: head.uri.to_string(),
        headers,
        body,
    };
    all_seen.lock().unwrap().insert(stream, seen);
    let _ = send(&mut respond, answer);
}

fn send(respond: &mut SendResponse<Body>, answer: Answer) -> Result<(), h2::Error> {
    if let Some((false, reason)) = answer.reset {
        respond.send_reset(reason);
        return Ok(());
    }
    for _ in 0..answer.interim {
        let interim = http::Response::builder().status(103).header("link", "x");
        respond.send_informational(interim.body(()).unwrap())?;
    }
    let mut head = http::Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        head = head.header(name, value);
    }
    let is_whole = answer.pieces.is_empty() && !answer.has_trailers && answer.reset.is_none();
    let mut body = respond.send_response(head.body(()).unwrap(), is_whole)?;
    if let Some((_, reason)) = answer.reset {
        body.send_reset(reason);
        return Ok(());
    }
    for (at, piece) in answer.pieces.iter().enumerate() {
        let is_last = at + 1 == answer.pieces.len() && !answer.has_trailers;
        body.send_data(Cursor::new(vec![b'x'; *piece]), is_last)?;
    }
    if answer.has_trailers {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-checksum", http::HeaderValue::from_static("1"));
        body.send_trailers(trailers)?;
    }
    Ok(())
}
