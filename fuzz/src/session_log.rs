//! Target: logs of sessions.

use brunt_load::sessions::fuzz_session_log;

/// Takes the input as a log of sessions.
pub fn session_log(data: &[u8]) {
    fuzz_session_log(data);
}
