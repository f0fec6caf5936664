//! Target: frames of WebSocket.

/// Takes the first byte as who reads, how strictly and in which pieces, and the others as frames,
/// whole and in pieces: the pieces must not matter, every byte must be accounted for, and what is
/// written must come back.
pub fn websocket(data: &[u8]) {
    brunt_proto::websocket::fuzz_frames(data);
}
