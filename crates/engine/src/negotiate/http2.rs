//! Negotiation over HTTP/2: the exchange of SETTINGS, in which the server says how many streams it
//! allows.

use std::fmt;

use brunt_io::blocking::LinkError;
use brunt_io::clock;
use brunt_proto::Limits;
use brunt_proto::http2::{
    Client, ConnectionError, KnownHead, Progress, Request, RequestError, Template,
};
use thiserror::Error;

use super::{NegotiateError, Negotiation, TLS};

/// The step that is HTTP/2's own (RFC 9113 section 3.4).
const SETTINGS: &str = "the exchange of HTTP/2 settings";
/// Bytes of a server's answer that are kept to see what it speaks in place of HTTP/2.
const ANSWER_BYTES_MAX: usize = 16;
/// First two bytes of an alert in TLS (RFC 8446 section 5.1).
const TLS_ALERT: &[u8] = &[21, 3];

/// Why HTTP/2 is not spoken with a server.
#[derive(Debug, Error)]
enum Http2Error {
    /// HTTP/2 was asked for in clear text, and the server answers by something else.
    #[error(
        "{server} does not speak HTTP/2 in clear text ({instead}); leave out --http2, or use \
         https://"
    )]
    NotInClearText { server: String, instead: Instead },
    /// HTTP/2 was negotiated, and the server breaks its rules.
    #[error("{server} chose HTTP/2 and sends something else ({reason}); use --http1")]
    Broken {
        server: String,
        reason: ConnectionError,
    },
    /// The server takes no requests.
    #[error(
        "{server} allows no requests in HTTP/2 (its SETTINGS_MAX_CONCURRENT_STREAMS is 0); use \
         --http1"
    )]
    NoStreams { server: String },
    /// The request cannot be put into HTTP/2.
    #[error("the request cannot be sent in HTTP/2: {0}")]
    Request(RequestError),
}

fn of(error: Http2Error) -> NegotiateError {
    NegotiateError::Protocol(error.into())
}

/// What came in place of HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Instead {
    /// A reply in HTTP/1.
    Http1,
    /// The end of the connection.
    End,
    /// Something else than a reply or the end.
    Other(ConnectionError),
}

impl fmt::Display for Instead {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http1 => formatter.write_str("it answers in HTTP/1.1"),
            Self::End => formatter.write_str("it closes the connection"),
            Self::Other(ConnectionError::NotHttp2) => {
                formatter.write_str("it sends something else")
            }
            Self::Other(error) => error.fmt(formatter),
        }
    }
}

impl Negotiation<'_> {
    /// Sends the client's first frames of HTTP/2 and waits for the server's. Gives how many
    /// requests may be in flight.
    pub(super) fn exchange_settings(&mut self, is_tls: bool) -> Result<u32, NegotiateError> {
        let target = &self.plan.target;
        // The client reads replies by what was asked. Nothing is.
        let template = Template::new(&Request {
            method: "GET",
            scheme: target.scheme.name(),
            authority: &target.authority,
            path: "/",
            headers: &[],
            body: &[],
        });
        let template = template.map_err(|reason| of(Http2Error::Request(reason)))?;
        let (limits, mut known) = (Limits::default(), KnownHead::default());
        let mut client = Client::new(self.plan.streams.get(), self.plan.http2);
        let (mut frames, mut received, mut answer) = (Vec::new(), Vec::new(), Vec::new());
        client.open(&mut frames);
        loop {
            self.exchange(&mut frames, &mut received)
                .map_err(|error| self.no_settings(is_tls, &answer, error))?;
            let room = ANSWER_BYTES_MAX - answer.len();
            answer.extend_from_slice(&received[..received.len().min(room)]);
            let mut rest = &received[..];
            loop {
                let now_ns = clock::now_ns();
                let outcome = client.receive(
                    rest,
                    now_ns,
                    std::slice::from_ref(&template),
                    &limits,
                    &mut known,
                    &mut frames,
                );
                let Progress { consumed, event } =
                    outcome.map_err(|error| self.other_than_http2(is_tls, &answer, error))?;
                if client.is_ready() {
                    let allowed = client.peer_streams_max().unwrap_or(u32::MAX);
                    return match allowed {
                        0 => Err(of(Http2Error::NoStreams {
                            server: self.server(),
                        })),
                        _ => Ok(allowed),
                    };
                }
                rest = &rest[consumed..];
                if event.is_none() {
                    break;
                }
            }
        }
    }

    /// The connection ended, or the time was up, before the server's SETTINGS came.
    fn no_settings(&self, is_tls: bool, answer: &[u8], error: LinkError) -> NegotiateError {
        if !is_tls && let Some(error) = self.known_answer(answer) {
            return error;
        }
        match error {
            LinkError::Lost(_) if !is_tls => of(Http2Error::NotInClearText {
                server: self.server(),
                instead: Instead::End,
            }),
            // It refuses the client: see `listen_for_refusal`.
            LinkError::Tls(_) => self.failed(TLS, error),
            _ => self.failed(SETTINGS, error),
        }
    }

    /// The server's first frames are none.
    fn other_than_http2(
        &self,
        is_tls: bool,
        answer: &[u8],
        reason: ConnectionError,
    ) -> NegotiateError {
        let server = self.server();
        if is_tls {
            return of(Http2Error::Broken { server, reason });
        }
        let instead = Instead::Other(reason);
        self.known_answer(answer)
            .unwrap_or_else(|| of(Http2Error::NotInClearText { server, instead }))
    }

    /// What a server speaks that answers HTTP/2 in clear text like this, if it is to be seen.
    fn known_answer(&self, answer: &[u8]) -> Option<NegotiateError> {
        let server = self.server();
        if answer.starts_with(TLS_ALERT) {
            Some(NegotiateError::IsTls { server })
        } else if answer.starts_with(b"HTTP/1.") {
            let instead = Instead::Http1;
            Some(of(Http2Error::NotInClearText { server, instead }))
        } else {
            None
        }
    }
}
