//! WebSocket (RFC 6455): the handshake, and frames at any split of the input; messages are counted
//! but not kept.

mod client;
mod fault;
mod frame;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
mod handshake;
mod reader;
#[cfg(test)]
mod tests;

pub use client::{Client, ClientEvent, ClientProgress, Settings};
pub use fault::{ClientError, CloseCode, Fault, HandshakeError, OfferError};
pub use frame::{
    CONTROL_BYTES_MAX, MaskKey, Opcode, frame_head_bytes, mask, put_close, put_frame, put_head,
};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_frames;
pub use handshake::{ACCEPT_BYTES, Offer, accept_of, is_key};
pub use reader::{Event, Kind, Piece, Progress, Reader, Rules, Side};
