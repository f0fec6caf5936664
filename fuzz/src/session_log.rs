//! Target: logs of sessions.

use brunt_load::sessions::SessionLog;

/// Takes the input as a log of sessions: it is read or refused, and what is read is in order.
pub fn session_log(data: &[u8]) {
    let Ok(log) = SessionLog::parse(data) else {
        return;
    };
    let lines = data.split(|&byte| byte == b'\n').count();
    let mut latest = 0;
    for request in log.requests() {
        assert!(latest < request.line && request.line <= lines);
        latest = request.line;
        assert!(!request.request.path.is_empty() && !request.request.method.is_empty());
        let is_space = |byte: u8| byte.is_ascii_whitespace() || byte == 0x0b;
        assert!(!request.request.path.bytes().any(is_space));
        assert!(request.request.body.len() < data.len());
    }
    for session in &log.sessions {
        assert!(!session.bursts.is_empty());
        for burst in &session.bursts {
            assert!((1..=SessionLog::BURST_MAX).contains(&burst.requests.len()));
        }
    }
}
