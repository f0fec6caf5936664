//! Fuzz targets: plain functions that take any bytes and panic when a rule is broken.
//!
//! The tests run every target on stable over its committed inputs in `corpus/TARGET/` and over
//! mutations of them. Under libFuzzer, with what it finds kept out of the repository:
//!
//! ```text
//! mkdir -p fuzz/libfuzzer/corpus/TARGET
//! cargo +nightly fuzz run --fuzz-dir fuzz/libfuzzer TARGET \
//!     fuzz/libfuzzer/corpus/TARGET fuzz/corpus/TARGET -- -max_total_time=60
//! ```
//!
//! An input that broke a rule goes, made small, into `corpus/TARGET/` with its repair. A new
//! target is:
//!
//! 1. a file here with one public function, named like the target, and its row in [`TARGETS`];
//! 2. `libfuzzer/fuzz_targets/TARGET.rs`, one line, and its `[[bin]]` in `libfuzzer/Cargo.toml`;
//! 3. a few small inputs in `corpus/TARGET/`, malformed ones too.
//!
//! The tests fail when one of the three is missing.

mod ab_options;
mod alt_svc;
mod calibration;
mod cgroup;
mod control_message;
mod counter_page;
mod fleet_message;
mod gcannon_options;
mod h2load_options;
mod hdr_v2;
mod hpack;
mod http1_reply;
mod http1_request;
mod http2_client;
mod http3;
mod message_scanner;
mod message_text;
mod oha_options;
mod page;
mod pem;
mod placeholders;
mod prometheus;
mod qpack;
mod request_list;
mod request_text;
mod resp_reply;
mod server_http2;
mod server_request;
mod session_log;
mod socket_tables;
mod stored_run;
mod tcpkali_options;
mod tls;
mod typed_text;
mod websocket;
mod weighttp_options;
mod wrk_options;
mod zrk_options;

pub use ab_options::ab_options;
pub use alt_svc::alt_svc;
pub use calibration::calibration;
pub use cgroup::cgroup;
pub use control_message::control_message;
pub use counter_page::counter_page;
pub use fleet_message::fleet_message;
pub use gcannon_options::gcannon_options;
pub use h2load_options::h2load_options;
pub use hdr_v2::hdr_v2;
pub use hpack::hpack;
pub use http1_reply::http1_reply;
pub use http1_request::http1_request;
pub use http2_client::http2_client;
pub use http3::http3;
pub use message_scanner::message_scanner;
pub use message_text::message_text;
pub use oha_options::oha_options;
pub use page::page;
pub use pem::pem;
pub use placeholders::placeholders;
pub use prometheus::prometheus;
pub use qpack::qpack;
pub use request_list::request_list;
pub use request_text::request_text;
pub use resp_reply::resp_reply;
pub use server_http2::server_http2;
pub use server_request::server_request;
pub use session_log::session_log;
pub use socket_tables::socket_tables;
pub use stored_run::stored_run;
pub use tcpkali_options::tcpkali_options;
pub use tls::tls;
pub use typed_text::typed_text;
pub use websocket::websocket;
pub use weighttp_options::weighttp_options;
pub use wrk_options::wrk_options;
pub use zrk_options::zrk_options;

/// A fuzz target: returns, whatever the bytes, unless a rule is broken.
pub type Target = fn(&[u8]);

/// Every target with its name, which is that of its function, its corpus and its libFuzzer binary.
pub const TARGETS: &[(&str, Target)] = &[
    ("ab_options", ab_options),
    ("alt_svc", alt_svc),
    ("calibration", calibration),
    ("cgroup", cgroup),
    ("control_message", control_message),
    ("counter_page", counter_page),
    ("fleet_message", fleet_message),
    ("gcannon_options", gcannon_options),
    ("h2load_options", h2load_options),
    ("hdr_v2", hdr_v2),
    ("hpack", hpack),
    ("http1_reply", http1_reply),
    ("http1_request", http1_request),
    ("http2_client", http2_client),
    ("http3", http3),
    ("message_scanner", message_scanner),
    ("message_text", message_text),
    ("oha_options", oha_options),
    ("page", page),
    ("pem", pem),
    ("placeholders", placeholders),
    ("prometheus", prometheus),
    ("qpack", qpack),
    ("request_list", request_list),
    ("request_text", request_text),
    ("resp_reply", resp_reply),
    ("server_http2", server_http2),
    ("server_request", server_request),
    ("session_log", session_log),
    ("socket_tables", socket_tables),
    ("stored_run", stored_run),
    ("tcpkali_options", tcpkali_options),
    ("tls", tls),
    ("typed_text", typed_text),
    ("websocket", websocket),
    ("weighttp_options", weighttp_options),
    ("wrk_options", wrk_options),
    ("zrk_options", zrk_options),
];
