//! How messages over TCP are exchanged.

use crate::protocol::Protocol;
use brunt_proto::messages::{Framing, Pattern, Template};
use serde::{Deserialize, Serialize};

use crate::protocol_spec::{Exchange, Term};
use crate::{Secret, Withheld, Work};

/// How messages are exchanged. What they are stands in the plan's set of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageExchange {
    /// Where the reply to a message ends; nowhere, where a message is done when it is sent.
    pub reply: Framing,
    /// What opens each connection, before its first message.
    pub opening: Option<OpeningMessage>,
    /// Seed of what is random in messages.
    pub seed: u64,
}

/// What is sent once on each connection, when it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpeningMessage {
    /// What is sent.
    pub message: Secret<Template>,
    /// Where its reply ends, which is waited for; nowhere, where there is none.
    pub reply: Framing,
}

/// One of the messages of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSpec {
    /// What its figures stand under.
    pub name: String,
    /// What is sent.
    pub template: Template,
}

impl OpeningMessage {
    /// Bytes that it has at most when it is sent.
    pub fn bytes_max(&self) -> u64 {
        self.message.bytes(Template::bytes_max)
    }
}

impl Exchange for MessageExchange {
    fn protocols(&self) -> &'static [Protocol] {
        &[Protocol::MESSAGES]
    }

    fn awaits_replies(&self) -> bool {
        self.reply != Framing::None
    }

    fn may_mistake_pushes(&self) -> bool {
        self.reply != Framing::Echo
    }

    fn reply_pattern(&self) -> Option<&Pattern> {
        match &self.reply {
            Framing::Marker { pattern, .. } => Some(pattern),
            _ => None,
        }
    }

    fn terms(&self, work: Work) -> Vec<Term> {
        let mut terms = Vec::new();
        if work != Work::Hold {
            terms.push(match &self.reply {
                Framing::None => "no replies".into(),
                reply => format!("replies {reply}").into(),
            });
        }
        terms.extend(self.opening.as_ref().map(|opening| match &opening.reply {
            Framing::None => "after a first one per connection".into(),
            reply => format!("after a first one per connection, reply {reply}").into(),
        }));
        terms
    }

    fn seed(&self) -> Option<u64> {
        Some(self.seed)
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn withhold(&mut self) {
        if let Some(opening) = &mut self.opening {
            opening.message.withhold(Template::bytes_max);
        }
    }

    fn withheld(&self) -> Vec<Withheld> {
        let hidden = self.opening.iter();
        let hidden = hidden.filter(|opening| opening.message.given().is_none());
        let bytes = hidden.map(OpeningMessage::bytes_max);
        bytes.map(|bytes| Withheld::Opening { bytes }).collect()
    }
}
