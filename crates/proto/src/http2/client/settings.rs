//! What a client tells the server of itself, and holds itself and the server to.

use crate::http2::frame::{PAYLOAD_BYTES, Setting, WINDOW_BYTES};
use crate::http2::hpack::TABLE_BYTES;

/// Settings of a client (RFC 9113 sections 6.5.2 and 6.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ClientSettings {
    /// Flow-control window that each stream gets, bytes, at most 2^31 - 1. Brunt opens it again
    /// when half of it is used.
    pub stream_window_bytes: u32,
    /// Flow-control window of the connection, bytes, at most 2^31 - 1. Brunt opens it again when
    /// half of it is used. Every connection begins with 65,535 bytes. Where this window is smaller,
    /// brunt tells the server nothing until half of this window is left.
    pub connection_window_bytes: u32,
    /// Longest payload of a frame that is taken, 16,384 to 16,777,215.
    pub frame_bytes_max: u32,
    /// Size of the dynamic table that the server's field blocks may use.
    pub decoder_table_bytes: u32,
    /// Size of the dynamic table that ours use at most; the server may allow less, and more than
    /// 4,096 is never used.
    pub encoder_table_bytes: u32,
}

impl ClientSettings {
    /// What SETTINGS hold; what is the protocol's default is left out, but for the window.
    pub(super) fn frame(&self) -> Vec<Setting> {
        let mut settings = vec![
            Setting::EnablePush(0),
            Setting::InitialWindowSize(self.stream_window_bytes),
        ];
        if self.decoder_table_bytes != TABLE_BYTES {
            settings.push(Setting::HeaderTableSize(self.decoder_table_bytes));
        }
        if self.frame_bytes_max != PAYLOAD_BYTES {
            settings.push(Setting::MaxFrameSize(self.frame_bytes_max));
        }
        settings
    }

    /// The increment that raises the window of a new connection, bytes; `None`: it is not raised.
    pub(super) fn connection_increment_bytes(&self) -> Option<u32> {
        self.connection_window_bytes
            .checked_sub(WINDOW_BYTES)
            .filter(|&bytes| bytes > 0)
    }
}

impl Default for ClientSettings {
    /// Windows so large that no reply waits for us to open them, and else the protocol's defaults.
    fn default() -> Self {
        Self {
            stream_window_bytes: (1 << 30) - 1,
            connection_window_bytes: (1 << 30) - 1,
            frame_bytes_max: PAYLOAD_BYTES,
            decoder_table_bytes: TABLE_BYTES,
            encoder_table_bytes: TABLE_BYTES,
        }
    }
}
