//! WebSocket (RFC 6455): the handshake, and frames at any split of the input; messages are counted
//! but not kept.

mod client;
mod frame;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod reader;
#[cfg(test)]
mod tests;

pub use client::{ACCEPT_BYTES, ClientEvent, Offer, Settings, WebSocketClient, accept_of, is_key};
pub use frame::{
    CONTROL_BYTES_MAX, ClientError, CloseCode, Fault, HandshakeError, MaskKey, OfferError, Opcode,
    frame_head_bytes, mask, put_close, put_frame, put_head,
};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_frames;
pub use reader::{FrameEvent, Kind, Piece, ReadProgress, Reader, Rules, Side};
