//! The settings that brunt sends to the server in HTTP/2, as typed.

use brunt_proto::http2::ClientSettings;
use clap::Args;

/// Bytes that a window has at most (RFC 9113 section 6.9.1).
const WINDOW_BYTES_MAX: i64 = (1 << 31) - 1;

/// Settings of HTTP/2; what is absent is brunt's own.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "TLS, HTTP/2 and HTTP/3")]
pub(crate) struct Http2Arguments {
    /// Receive window of each stream in HTTP/2 [default: 1 GiB, so that no reply waits for brunt]
    #[arg(long, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(0..=WINDOW_BYTES_MAX))]
    h2_stream_window: Option<u32>,
    /// Receive window of the whole connection in HTTP/2; one under 65535, with which every
    /// connection begins, is kept to after that [default: 1 GiB]
    #[arg(long, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(0..=WINDOW_BYTES_MAX))]
    h2_window: Option<u32>,
    /// Longest payload of a frame that the server may send in HTTP/2 [default: 16384]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32)
          .range(16_384..=ClientSettings::FRAME_BYTES_MAX as i64))]
    h2_frame: Option<u32>,
    /// Table that the server may compress its header fields with in HTTP/2 [default: 4096]
    #[arg(long, value_name = "BYTES")]
    h2_table: Option<u32>,
    /// Table that brunt compresses its header fields with in HTTP/2, at most; the server may allow
    /// less [default: 4096]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=4_096))]
    h2_encoder_table: Option<u32>,
}

impl Http2Arguments {
    /// The settings with what was typed.
    pub(crate) fn settings(&self) -> ClientSettings {
        let usual = ClientSettings::default();
        ClientSettings {
            stream_window_bytes: self.h2_stream_window.unwrap_or(usual.stream_window_bytes),
            connection_window_bytes: self.h2_window.unwrap_or(usual.connection_window_bytes),
            frame_bytes_max: self.h2_frame.unwrap_or(usual.frame_bytes_max),
            decoder_table_bytes: self.h2_table.unwrap_or(usual.decoder_table_bytes),
            encoder_table_bytes: self.h2_encoder_table.unwrap_or(usual.encoder_table_bytes),
        }
    }

    /// The first option given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--h2-stream-window", self.h2_stream_window),
            ("--h2-window", self.h2_window),
            ("--h2-frame", self.h2_frame),
            ("--h2-table", self.h2_table),
            ("--h2-encoder-table", self.h2_encoder_table),
        ];
        let option = given.into_iter().find(|(_, bytes)| bytes.is_some());
        option.map(|(option, _)| option)
    }
}
