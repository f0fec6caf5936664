//! How messages of WebSocket are exchanged.

use crate::protocol::Protocol;
use brunt_proto::messages::{Pattern, Template};
use serde::{Deserialize, Serialize};

use crate::protocol_spec::{Exchange, Term};
use crate::{HIDDEN, Secret, Withheld, Work};

/// How messages of WebSocket are exchanged. What they are stands in the plan's set of requests, and
/// the path of the upgrade in its target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSocketExchange {
    /// Header fields of the upgrade, beside those of the handshake.
    pub headers: Secret<Vec<(String, String)>>,
    /// Subprotocols that are offered, of which the server has to choose one.
    pub subprotocols: Vec<String>,
    /// Whether messages are binary, and no texts.
    pub is_binary: bool,
    /// How many messages answer one. With 0, it is done when it is sent.
    pub replies: u32,
    /// Which messages of the server answer one.
    pub matching: ReplyMatch,
    /// What opens each connection behind the upgrade, before its first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<WebSocketOpening>,
    /// Time from one ping on a connection to the next, nanoseconds; absent: none is sent.
    pub ping_interval_ns: Option<u64>,
    /// Seed of masks, keys of handshakes and of what is random in messages.
    pub seed: u64,
}

/// What is sent once on each connection, when it is upgraded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSocketOpening {
    /// What is sent.
    pub message: Secret<Template>,
    /// How many messages of the server, whatever they are, answer it; they are waited for.
    pub replies: u32,
}

/// Which messages of a server answer one that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyMatch {
    /// All messages that begin while it is in flight.
    #[default]
    Any,
    /// The messages that are equal to it.
    Echo,
    /// The messages that have these bytes in them.
    Containing(Pattern),
}

impl Exchange for WebSocketExchange {
    fn protocols(&self) -> &'static [Protocol] {
        &[Protocol::WEBSOCKET]
    }

    fn awaits_replies(&self) -> bool {
        self.replies > 0
    }

    fn may_mistake_pushes(&self) -> bool {
        self.matching != ReplyMatch::Echo
    }

    fn reply_pattern(&self) -> Option<&Pattern> {
        match &self.matching {
            ReplyMatch::Containing(pattern) => Some(pattern),
            ReplyMatch::Any | ReplyMatch::Echo => None,
        }
    }

    fn terms(&self, work: Work) -> Vec<Term> {
        let mut terms = Vec::new();
        if work != Work::Hold {
            let kind = if self.is_binary { "binary" } else { "text" };
            let replies = match (self.replies, self.matching == ReplyMatch::Echo) {
                (0, _) => "no replies".into(),
                (1, true) => "echoes awaited".into(),
                (1, false) => "one reply each".into(),
                (replies, true) => Term::Count(replies.into(), "echoes each"),
                (replies, false) => Term::Count(replies.into(), "replies each"),
            };
            terms.extend([kind.into(), replies]);
        }
        if self.opening.is_some() {
            terms.push("after a first one per connection".into());
        }
        let ping = self.ping_interval_ns;
        terms.extend(ping.map(|ns| Term::Time("a ping every", ns)));
        if !self.subprotocols.is_empty() {
            terms.push(format!("subprotocol {}", self.subprotocols.join(" or ")).into());
        }
        terms
    }

    fn seed(&self) -> Option<u64> {
        Some(self.seed)
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn withhold(&mut self) {
        let fields = self.headers.given();
        if fields.is_some_and(|fields| !fields.is_empty()) {
            let bytes = |(name, value): &(String, String)| name.len() + value.len();
            self.headers
                .withhold(|fields| fields.iter().map(bytes).sum());
        }
        if let Some(opening) = &mut self.opening {
            opening.message.withhold(Template::bytes_max);
        }
    }

    fn withheld(&self) -> Vec<Withheld> {
        let has_no_fields = self.headers.given().is_none();
        let has_no_names = self.subprotocols.iter().any(|name| name == HIDDEN);
        let fields = has_no_fields.then_some(Withheld::UpgradeFields);
        let names = has_no_names.then_some(Withheld::Subprotocols);
        let hidden = self.opening.iter().map(|opening| &opening.message);
        let hidden = hidden.filter(|message| message.given().is_none());
        let openings = hidden.map(|message| Withheld::Opening {
            bytes: message.bytes(Template::bytes_max),
        });
        fields.into_iter().chain(names).chain(openings).collect()
    }
}
