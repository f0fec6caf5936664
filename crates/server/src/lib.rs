//! The reference server with known answers: what `brunt serve` runs.
//!
//! A load generator is checked against a server whose behaviour is known exactly. This one answers
//! as fast as the kernel allows, or late, slowly, wrongly or not at all, as its path says, and
//! counts what it received and sent.
//!
//! Open `worker` first: the loop of one thread. `route` reads what a path asks for, `answer` is what
//! a request gets over any protocol.
//!
//! # Routes
//!
//! A query behind the path is ignored. `N` is a number; where it counts bytes it may have a suffix
//! k, m or g (powers of 1,024), up to 1 GiB. `TIME`, `SILENCE`, `PERIOD`, `FROM` and `TO` are
//! durations as on the command line ([`brunt_load::units::duration_ns`]: 500us, 1.5ms, 2s, 1m), up
//! to an hour. `RATE` is a whole number per second, as counts are typed there (5k), from 1 to 1g.
//! Bodies are the letters a to z, over and over ([`pattern_byte`]). HEAD gets
//! the head only. What is no route, or has parameters out of range, is answered with 404.
//!
//! - `/`: null answer: 200, `Content-Length: 0`, no other field
//! - `/bytes/N`: 200 with a body of N bytes
//! - `/chunked/N`: the same in chunks of 16 KiB, with the trailer field `Brunt-Length: N`; for
//!   HTTP/1.0 the body ends with the connection instead
//! - `/status/N`: status N (200 to 999), no body
//! - `/delay/TIME`: null answer TIME after the request's last byte was noticed (or, for pipelined
//!   requests, after the reply before was sent), never earlier
//! - `/stall/SILENCE/PERIOD`: null answer, but none in the first SILENCE of every PERIOD: requests
//!   that come in the silence are answered at its end, all at once. Periods are counted from the
//!   start of the process (its first reading of the clock), for all connections alike
//! - `/drift/FROM/TO/PERIOD`: null answer after a delay as that of `/delay`, which goes from FROM
//!   to TO in a straight line over PERIOD and stays there; PERIOD begins at the start of the
//!   process
//! - `/locked/TIME`: null answer after a turn of TIME. There is one turn at a time in the process,
//!   so requests queue behind each other; no CPU is used meanwhile
//! - `/compute/TIME`: null answer after TIME in which the worker was busy and did nothing else
//! - `/limit/RATE`: null answer to RATE requests per second, 429 with `Retry-After: 1` to the
//!   others. Counted over all workers of the process; as many as belong to 10 ms (at least one) may
//!   be answered in a burst
//! - `/limit/RATE/STATUS`: the same with another status (400 to 599)
//! - `/interim/N`: N interim replies (up to 1,000; 100 and 103 in turn), then a null answer
//! - `/close`: null answer with `Connection: close`, then closes. Over HTTP/2 and HTTP/3: GOAWAY,
//!   then the null answer; other streams that were opened before are answered, too
//! - `/http10` (HTTP/1.1 alone): HTTP/1.0 reply of 26 bytes that end with the connection
//! - `/http10-keepalive` (HTTP/1.1 alone): HTTP/1.0 reply of 26 bytes with a length and
//!   `Connection: keep-alive`
//! - `/never`: reads on and never answers
//! - `/reset`: ends the connection without an answer, by RST (on io_uring from Linux 6.7 on); over
//!   HTTP/3 by CONNECTION_CLOSE(H3_INTERNAL_ERROR)
//! - `/truncate/N`: promises N bytes, sends N/2 of them, closes; over HTTP/2 and HTTP/3 it resets
//!   the stream with INTERNAL_ERROR, or H3_INTERNAL_ERROR
//! - `/reset-stream`, `/reset-stream/CODE`: over HTTP/2 and HTTP/3, a reset of the stream instead
//!   of an answer, with the same or the error code CODE (a number, any of 32 bits)
//! - `/refuse`: over HTTP/2 and HTTP/3, a reset with REFUSED_STREAM or H3_REQUEST_REJECTED instead
//!   of an answer
//! - `/random-refuse/PERCENT`: over HTTP/2 and HTTP/3, null answer, but PERCENT of the requests are
//!   refused in this way, by a fixed sequence
//! - `/goaway`, `/goaway/CODE`: over HTTP/2 and HTTP/3, GOAWAY instead of an answer, with NO_ERROR
//!   or the error code CODE, which HTTP/3 has when the connection is closed; this request and later
//!   ones are not among those that it takes in. Streams before it are answered
//! - `/refuse-after/N`: null answer to the first N requests on this path in the process, then 503
//! - `/random-close/PERCENT`: null answer, but PERCENT of the requests find the connection closed
//!   without an answer, by a fixed sequence
//! - `/websocket` (HTTP/1.1 alone): an upgrade to WebSocket; each message comes back, see below
//! - `/websocket/ROUTE`: the same, but each message gets what a request gets on ROUTE
//! - `/counters`: JSON of [`Counters`], with how late the answers of `/delay`, `/stall`, `/drift`
//!   and `/locked` were; neither these requests nor their replies are counted
//! - `/routes`: this list as text
//!
//! # Raw TCP
//!
//! With [`ServeOptions::tcp`] the server has a second address, on which no HTTP is spoken: it
//! echoes what it reads ([`TcpService::Echo`]), throws it away, sends without end, or answers each
//! message with known bytes. Answers may be late ([`TcpOptions::delay_ns`], [`Stall`]). An answer
//! is due a delay after its message was noticed, whatever waits before it, and leaves in the order
//! of the messages. While 256 KiB of answers wait on a connection, nothing more is read from it.
//! `/counters` has what was received and sent, as `tcp`.
//!
//! # Time
//!
//! An instant at which an answer is due is computed once. A worker that sleeps until then is late
//! by as long as the kernel and the CPU need to wake up, commonly 50 µs and more; with
//! [`ServeOptions::spin`] it does not sleep, and is late by about a microsecond. [`Counters`] says
//! how late it was.
//!
//! # Requests
//!
//! HTTP/1.0 and HTTP/1.1, pipelined or not, with bodies of any length (skipped, never kept).
//! `Expect: 100-continue` is answered. Requests on one connection are answered in order, and each
//! is looked at when its turn has come. Malformed requests are answered with 400 and the connection
//! is closed; so is one whose head exceeds 64 KiB or 256 fields, and one with more than 1 MiB of
//! input waiting behind an unfinished reply.
//!
//! # Limits
//!
//! What waits in memory is bounded, for input ([`ServeOptions::input_bytes_max`]) and for output
//! ([`ServeOptions::output_bytes_max`]) alike: answers are made in pieces, as their clients take
//! them. In a turn a worker sends about 1 MiB of answers that take several pieces, however many
//! there are, and then looks at what has come. [`ServeOptions::idle_timeout_ns`] bounds what gets
//! nowhere.
//!
//! # HTTP/2
//!
//! A connection whose first bytes are the preface of HTTP/2 (RFC 9113 section 3.4) speaks it, in
//! clear text as over TLS. Streams do not wait for each other: a request is noticed when its last
//! byte came, each answer takes its own time, and bodies share the connection in turn, as the
//! client's windows allow. `/close`, `/goaway` and [`Http2Options::requests_max`] end a connection
//! with GOAWAY: streams that it takes in are answered, later ones are ignored, and the connection
//! is closed when the client leaves, or a second after the last answer. `/reset` and
//! `/random-close` end the connection with all of its streams.
//!
//! Malformed requests are answered with 400. What the RFC calls an error of a stream or of the
//! connection ends it with RST_STREAM or GOAWAY. Streams beyond [`Http2Options::streams_max`] are
//! refused. Where 64 KiB of answers wait for a send, up to 1 MiB of input waits for them; a client
//! that sends more is cut off with GOAWAY(ENHANCE_YOUR_CALM).
//!
//! # HTTP/3
//!
//! With [`ServeOptions::http3`] the server speaks HTTP/3, too, over UDP on the port of the others.
//! What is said of HTTP/2 is true of it, but that QUIC bounds what a client sends: its streams, its
//! windows, how long it idles.
//!
//! # WebSocket
//!
//! A message is looked at when the answer before it was sent, and echoed in the place of a null
//! answer: `/websocket/delay/1ms` echoes after 1 ms, `/websocket/stall/…` not in a silence. ROUTE
//! may be delay, stall, drift, locked, compute, never, reset, random-close, and besides:
//!
//! - `bytes/N`: a text of N bytes in place of the echo; `chunked/N` in frames of 16 KiB
//! - `interim/N`: N messages `push` before the echo
//! - `close`: the echo, then Close 1000
//! - `goaway/CODE`: Close with CODE (1001 without one) in place of the echo
//! - `truncate/N`: half of a frame of N bytes, then the end of the connection
//!
//! Messages, and those of `bytes` and `chunked`, have 1 MiB at most; a longer one is answered by
//! Close 1009. Pings are answered and closes, too; what breaks the protocol gets a Close with 1002
//! or 1007, and texts must be UTF-8. The first subprotocol that a client offers is chosen, and no
//! extension is spoken. A request that is no upgrade gets 426.
//!
//! # TLS
//!
//! With [`ServeOptions::tls`] the server speaks TLS 1.2 and 1.3, with a certificate of its own or a
//! given one. It offers h2 and http/1.1 (ALPN), and speaks whichever the client's first bytes show.

mod answer;
mod batch;
mod calendar;
mod connection;
mod count;
mod counters;
mod head;
mod hosted;
mod http1;
mod http2;
mod http3;
mod listeners;
mod offers;
mod pace;
mod pattern;
mod raw;
mod route;
#[cfg(test)]
mod scripted;
mod server;
mod streams;
mod tcp;
mod tls;
mod websocket;
mod worker;

pub use brunt_proto::tls::Version as TlsVersion;
pub use counters::Counters;
pub use hosted::Hosted;
#[cfg(any(test, feature = "fuzz"))]
pub use http1::fuzz::fuzz_requests;
pub use http2::Http2Options;
#[cfg(any(test, feature = "fuzz"))]
pub use http2::fuzz_http2;
pub use listeners::ListenAddress;
pub use pace::Stall;
pub use pattern::pattern_byte;
pub use raw::{RawAnswer, RawAnswers, RawBytes, RawEnding, RawPlace, set_raw_answers};
pub use route::ROUTES;
pub use server::{BackendKind, Running, ServeError, ServeOptions, start};
pub use tcp::{ParseTcpError, TcpCounters, TcpOptions, TcpService};
pub use tls::{Identity, IdentityError, TlsOptions};
