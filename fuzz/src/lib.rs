//! Fuzz targets: plain functions that take any bytes and panic when a rule is broken. They are of
//! the parsers of what strangers wrote: servers, clients, brokers and stored files.
//!
//! The tests run every target on stable over its committed inputs in `corpus/TARGET/` and over
//! mutations of them. `cargo xtask fuzz [TARGET]` runs them under libFuzzer. An input that broke a
//! rule goes, made small, into `corpus/TARGET/` with its repair. A new target is a row in
//! [`TARGETS`] and a few small inputs, malformed ones too.

mod fleet_message;
mod http1_reply;
mod message_scanner;
mod stored_run;
mod tls;

pub use tls::tls;

/// How large the pieces are that an input is cut into, where whole and cut give the same.
const PIECE_BYTES: [usize; 4] = [1, 2, 3, 7];

/// A fuzz target: returns, whatever the bytes, unless a rule is broken.
pub type Target = fn(&[u8]);

/// Every target with its name, which is that of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("buckets", brunt_record::fuzz_buckets),
    ("fleet_message", fleet_message::fleet_message),
    ("hpack", brunt_proto::http2::fuzz_hpack),
    ("http1_reply", http1_reply::http1_reply),
    ("http2_client", brunt_proto::http2::fuzz_http2),
    ("http3", brunt_proto::http3::fuzz_http3),
    ("message_scanner", message_scanner::message_scanner),
    ("page", brunt_probe::fuzz_page),
    ("qpack", brunt_proto::http3::fuzz_qpack),
    ("server_http2", brunt_server::fuzz_http2),
    ("server_request", brunt_server::fuzz_requests),
    ("stored_run", stored_run::stored_run),
    ("tls", tls),
    ("websocket", brunt_proto::websocket::fuzz_frames),
];
