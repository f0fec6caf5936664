//! Why a request cannot be encoded in the protocol of the run.

use brunt_load::Plan;
use brunt_proto::quic::TransportError;
use brunt_proto::websocket::OfferError;
use brunt_proto::{http1, http2, http3};
use thiserror::Error;

use super::verbatim::VerbatimError;

/// Why messages of WebSocket cannot be exchanged.
#[derive(Debug, Error)]
pub enum WebSocketError {
    /// The upgrade cannot be offered.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// A text is none.
    #[error("the message {0} is not UTF-8, as a text has to be; send it with --binary")]
    NotUtf8(String),
}

/// Why a request cannot be encoded.
#[derive(Debug, Error)]
pub enum EncodeError {
    /// HTTP/1.1 cannot carry a request.
    #[error("{}{reason}", of_list(*.number))]
    Http1 {
        /// The number of the request in its list, from 1; absent where there is no list.
        number: Option<usize>,
        /// Why not.
        reason: http1::RequestError,
    },
    /// HTTP/2 cannot carry a request.
    #[error("{}{reason}", of_list(*.number))]
    Http2 {
        /// The number of the request in its list, from 1; absent where there is no list.
        number: Option<usize>,
        /// Why not.
        reason: http2::RequestError,
    },
    /// HTTP/3 cannot carry a request.
    #[error("{}{reason}", of_list(*.number))]
    Http3 {
        /// The number of the request in its list, from 1; absent where there is no list.
        number: Option<usize>,
        /// Why not.
        reason: http3::RequestError,
    },
    /// QUIC cannot be spoken as the plan has TLS.
    #[error(transparent)]
    Quic(#[from] TransportError),
    /// HTTP/3 is spoken in clear text nowhere.
    #[error("HTTP/3 is over TLS alone; give an https URL")]
    Http3InClearText,
    /// The bytes that are given for one are not those of one request.
    #[error("{}the text of the request: {reason}", of_list(*.number))]
    Text {
        /// The number of the message in its list, from 1; absent where there is no list.
        number: Option<usize>,
        /// Why not.
        reason: VerbatimError,
    },
    /// Messages that cannot be exchanged.
    #[error(transparent)]
    Messages(#[from] MessagesError),
    /// Messages of WebSocket that cannot be exchanged.
    #[error(transparent)]
    WebSocket(#[from] WebSocketError),
    /// All requests together have too many bytes.
    #[error("the requests of the list have more than 1 GiB in all; split it")]
    TooLarge,
}

/// Why messages cannot be exchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MessagesError {
    /// A message is empty.
    #[error("the message {0} is empty; a message has at least one byte")]
    Empty(String),
    /// Several messages, or several in flight, share a connection whose end ends the reply.
    #[error(
        "replies that end with their connection need one message per connection, and one at a \
         time; use --no-keepalive, and leave out --depth"
    )]
    SharedConnection,
    /// The reply to what opens a connection would end it.
    #[error("the reply to --first cannot end with its connection; give another --first-reply")]
    OpeningUntilClose,
}

fn of_list(number: Option<usize>) -> String {
    number.map_or(String::new(), |number| {
        format!("request {number} of the list: ")
    })
}

/// The number that a list's request has for people; absent where there is no list.
pub(super) fn number_in_list(plan: &Plan, index: usize) -> Option<usize> {
    (plan.requests.requests().len() > 1).then_some(index + 1)
}
