//! What is spoken over the connections of a run.

use brunt_proto::messages::{Framing, Template};

use crate::HttpChoice;

/// What is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// HTTP.
    Http(HttpChoice),
    /// Messages over TCP, whose replies come in their order.
    Messages(MessageExchange),
}

impl Spoken {
    /// Which HTTP; absent where it is something else.
    pub fn http(&self) -> Option<HttpChoice> {
        match self {
            Self::Http(http) => Some(*http),
            Self::Messages(_) => None,
        }
    }
}

impl From<HttpChoice> for Spoken {
    fn from(http: HttpChoice) -> Self {
        Self::Http(http)
    }
}

/// How messages are exchanged. What they are stands in the plan's set of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageExchange {
    /// Where the reply to a message ends; nowhere, where a message is done when it is sent.
    pub reply: Framing,
    /// What opens each connection, before its first message.
    pub opening: Option<OpeningMessage>,
    /// Seed of what is random in messages.
    pub seed: u64,
}

/// What is sent once on each connection, when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningMessage {
    /// What is sent.
    pub message: Template,
    /// Where its reply ends, which is waited for; nowhere, where there is none.
    pub reply: Framing,
}

/// One of the messages of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSpec {
    /// What its figures stand under.
    pub name: String,
    /// What is sent.
    pub template: Template,
}
