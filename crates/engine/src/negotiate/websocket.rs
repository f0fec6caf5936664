//! Negotiation over WebSocket: the upgrade of a connection, which is closed again.

use brunt_load::WebSocketExchange;
use brunt_proto::http1::ReplyError;
use brunt_proto::{Limits, websocket};
use thiserror::Error;

use super::{NegotiateError, Negotiation};
use crate::protocol::offer_of;

/// The step that is WebSocket's own (RFC 6455 section 4).
const UPGRADE: &str = "the upgrade to WebSocket";
/// What the key of the one handshake before the run is made from.
const NONCE: [u8; 16] = *b"brunt negotiates";
/// The mask of the one frame that is sent before the run.
const ZERO_MASK: websocket::MaskKey = [0; 4];

/// Why WebSocket is not spoken with a server.
#[derive(Debug, Error)]
enum WebSocketError {
    /// The server does not agree to it.
    #[error(
        "{server} does not speak WebSocket at this URL: {reason}{}",
        advice(reason)
    )]
    Refused {
        server: String,
        reason: websocket::ClientError,
    },
    /// The upgrade cannot be asked for.
    #[error(transparent)]
    Offer(websocket::OfferError),
}

fn of(error: WebSocketError) -> NegotiateError {
    NegotiateError::Protocol(error.into())
}

/// What to type where a server refuses an upgrade, if that can be told.
fn advice(reason: &websocket::ClientError) -> &'static str {
    let (status, location) = match reason {
        websocket::ClientError::Handshake(websocket::HandshakeError::NotHttp(
            ReplyError::TlsAlert,
        )) => return "; use wss:// in place of ws://",
        websocket::ClientError::Handshake(websocket::HandshakeError::Refused {
            status,
            location,
        }) => (status, location),
        _ => return "",
    };
    match status {
        300..=399 if location.is_some() => "; redirects are not followed: give that URL",
        400 => "; where the server speaks TLS, use wss:// in place of ws://",
        401 => "; give credentials with -u USER:PASSWORD, or with -H",
        403 => "; a server that asks where a page is from wants -H 'Origin: https://HOST'",
        _ => "",
    }
}

impl Negotiation<'_> {
    /// Upgrades the connection to WebSocket, and says that it closes.
    pub(super) fn upgrade(&mut self, exchange: &WebSocketExchange) -> Result<(), NegotiateError> {
        let refused = |reason: websocket::ClientError| {
            of(WebSocketError::Refused {
                server: self.plan.target.authority.clone(),
                reason,
            })
        };
        let offer =
            offer_of(self.plan, exchange).map_err(|reason| of(WebSocketError::Offer(reason)))?;
        let limits = Limits::default();
        let settings = websocket::Settings {
            offer: &offer,
            limits: &limits,
        };
        let mut client = websocket::Client::default();
        let (mut out, mut received) = (Vec::new(), Vec::new());
        client.open(&offer, NONCE, &mut out);
        loop {
            self.exchange(&mut out, &mut received)
                .map_err(|error| self.failed(UPGRADE, error))?;
            let progress = client
                .receive(&received, settings, ZERO_MASK, &mut out, |_| {})
                .map_err(refused)?;
            if progress.event == Some(websocket::ClientEvent::Open) {
                client.close(Some(websocket::CloseCode::NORMAL), ZERO_MASK, &mut out);
                // It is closed anyway.
                let _ = self.link.send(&out, self.deadline);
                return Ok(());
            }
        }
    }
}
