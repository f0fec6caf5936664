//! Messages of a fleet: what its agents and its coordinator read from a broker.

use brunt_fleet::{Assembly, FromAgent, Job, MESSAGE_BYTES_MAX, ToAgent};

/// Takes the input as a message in either direction, and as a subject. What is accepted reads back
/// as the same, and a chunk makes nothing larger than itself.
pub(crate) fn fleet_message(data: &[u8]) {
    if let Ok((session, message)) = ToAgent::decode(data) {
        let again = ToAgent::decode(&message.encode(&session)).expect("it was written");
        assert_eq!(again, (session, message.clone()));
        if let ToAgent::Plan { chunk, .. } = message {
            let whole = Assembly::default().take(&chunk, MESSAGE_BYTES_MAX as u64);
            let bytes = whole.ok().flatten().map_or(0, |whole| whole.len());
            assert!(bytes <= data.len());
        }
    }
    if let Ok((session, message)) = FromAgent::decode(data) {
        let again = FromAgent::decode(&message.encode(session.as_ref()));
        let again = again.expect("what was written can be read");
        assert_eq!(again, (session, message));
    }
    let subject = String::from_utf8_lossy(data);
    let job: Job = "a".parse().expect("a name");
    if let Some(agent) = job.agent_on(&subject) {
        assert_eq!(job.from_agent(&agent), subject);
    }
}
