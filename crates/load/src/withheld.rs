//! What a plan that is stored leaves out, since it may be secret, and what it then lacks to be run.

use thiserror::Error;

use crate::request_set::{Content, RequestOutline, message_name};
use crate::{
    HIDDEN, MessageSpec, Plan, PlanFile, ProtocolSpec, RequestRef, RequestSet, Target, TlsSpec,
    redact_queries,
};

/// Most requests or messages that are stored one by one; of more there is an outline.
const STORED_REQUESTS_MAX: usize = 1_000;

/// Most bytes of a file with roots that are stored.
const STORED_ROOTS_BYTES_MAX: usize = 256 << 10;

impl Plan {
    /// This plan without what may be secret, as it is stored. It lacks values of header fields,
    /// bodies, first messages, private keys, texts of messages that are not shown, and queries that
    /// the URL does not show. Of more than a thousand requests it holds an outline.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut plan = self.clone();
        let shown = self.urls();
        plan.traffic.requests = if self.traffic.requests.count() > STORED_REQUESTS_MAX {
            RequestSet::outlined(
                self.traffic.requests.outline(),
                self.traffic.requests.order(),
            )
        } else {
            self.traffic.requests.without_secrets(&shown)
        };
        plan.targets_mut().for_each(Target::hide_query);
        // What was said of TLS has no effect on a load in clear text.
        if plan.tls().is_none() {
            plan.connection.tls = TlsSpec::default();
        }
        if let Some(exchange) = plan.connection.protocol.exchange_mut() {
            exchange.withhold();
        }
        if let Some(PlanFile::Content { bytes, .. }) = &plan.connection.tls.roots
            && bytes.len() > STORED_ROOTS_BYTES_MAX
        {
            let roots = plan.connection.tls.roots.iter_mut();
            roots.for_each(PlanFile::withhold);
        }
        if let Some(identity) = &mut plan.connection.tls.identity {
            identity.certificate.withhold();
            identity.key.withhold();
        }
        plan
    }

    /// Leaves out, beside that, what only `--redact` hides: queries, and what was typed as a
    /// message.
    pub fn redact(&mut self) {
        for target in self.targets_mut() {
            *target = target.clone().redacted();
            target.hide_query();
        }
        self.traffic.requests = self.traffic.requests.redacted();
        if let ProtocolSpec::WebSocket(exchange) = &mut self.connection.protocol {
            let subprotocols = exchange.subprotocols.iter_mut();
            subprotocols.for_each(|name| HIDDEN.clone_into(name));
        }
    }

    /// Whether nothing is left out of it, so that it can be run.
    ///
    /// # Errors
    ///
    /// The parts that are missing.
    pub fn check_complete(&self) -> Result<(), WithheldParts> {
        let mut parts = Vec::new();
        if self.traffic.requests.is_withheld() {
            let outline = self.traffic.requests.outline();
            let (header_names, body_bytes) = outline.first.map_or_else(Default::default, |first| {
                (first.header_names, first.body_bytes)
            });
            parts.push(Withheld::Requests {
                first: outline.first_name,
                header_names,
                body_bytes,
            });
        }
        let counter = self.observation.server_counter.iter();
        let counter = counter.map(|counter| &counter.target);
        let hidden = self
            .targets()
            .chain(counter)
            .filter(|target| target.is_query_hidden());
        parts.extend(hidden.map(|target| Withheld::Query {
            url: redact_queries(&target.url),
        }));
        parts.extend(self.connection.protocol.withheld());
        let hidden = self
            .connection
            .tls
            .files()
            .filter(|file| file.is_withheld());
        parts.extend(hidden.map(|file| Withheld::File { name: file.name() }));
        if parts.is_empty() {
            Ok(())
        } else {
            Err(WithheldParts(parts))
        }
    }

    /// The servers that it names, to be changed: those of the load, and those of pages that are
    /// read beside it.
    fn targets_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        let counter = self
            .observation
            .server_counter
            .iter_mut()
            .map(|counter| &mut counter.target);
        std::iter::once(&mut self.target)
            .chain(&mut self.further_targets)
            .chain(counter)
    }
}

impl RequestSet {
    /// This set without what may be secret: the requests as they are where they hold no secret,
    /// else their outline. `shown` are texts that show a query anyway, beside the names of the
    /// requests.
    #[must_use]
    pub(crate) fn without_secrets(&self, shown: &str) -> Self {
        let is_shown = |query: &str, name: &str| shown.contains(query) || name.contains(query);
        let shows_query = |request: RequestRef<'_>, name: &str| {
            let query = request.path.split_once('?');
            query.is_none_or(|(_, query)| is_shown(query, name))
        };
        let is_open = match self.content() {
            Content::Requests(_) => self.requests().zip(0..).all(|(request, at)| {
                request.headers.is_empty()
                    && request.body.is_empty()
                    && request.text.is_none()
                    && shows_query(request, self.name(at).unwrap_or_default())
            }),
            // What was typed is shown as it was typed, unless it is long.
            Content::Messages(messages) => messages
                .iter()
                .all(|MessageSpec { name, template }| *name == template.to_string()),
            Content::Outline(_) => true,
        };
        if is_open {
            return self.clone();
        }
        let mut outline = self.outline();
        if let Some(first) = self.first()
            && !shows_query(first, self.name(0).unwrap_or_default())
        {
            outline
                .first
                .iter_mut()
                .for_each(RequestOutline::hide_query);
            outline.first_name = outline.first.iter().map(RequestOutline::name).collect();
        }
        Self::outlined(outline, self.order())
    }

    /// The outline without queries, and without what was typed as a message; as they are where they
    /// have neither.
    #[must_use]
    pub(crate) fn redacted(&self) -> Self {
        let has_queries = match self.content() {
            Content::Requests(_) => self.requests().any(|request| request.path.contains('?')),
            Content::Messages(messages) => !messages.is_empty(),
            Content::Outline(_) => true,
        };
        if !has_queries {
            return self.clone();
        }
        let mut outline = self.outline();
        match &mut outline.first {
            Some(first) => {
                first.hide_query();
                outline.first_name = first.name();
            }
            None if outline.first_name.is_empty() => {}
            None => outline.first_name = message_name(1),
        }
        Self::outlined(outline, self.order())
    }
}

/// A part that was left out of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Withheld {
    /// The requests or messages.
    #[error("{} (`Traffic::requests`)", requests_in_words(first, header_names, *body_bytes))]
    Requests {
        /// What the first one is called.
        first: String,
        /// Names of its header fields.
        header_names: Vec<String>,
        /// Length of its body, bytes.
        body_bytes: u64,
    },
    /// The query of a target.
    #[error("the query of {url} (`Target::path`)")]
    Query {
        /// The URL without it.
        url: String,
    },
    /// What opens each connection.
    #[error("the first message of each connection, of {bytes} bytes (`OpeningMessage::message`)")]
    Opening {
        /// Bytes of the message, at most.
        bytes: u64,
    },
    /// Header fields of the upgrade to WebSocket.
    #[error("header fields of the upgrade to WebSocket (`WebSocketExchange::headers`)")]
    UpgradeFields,
    /// Subprotocols of WebSocket.
    #[error("the subprotocols of WebSocket (`WebSocketExchange::subprotocols`)")]
    Subprotocols,
    /// A file.
    #[error("what is in the file {name} (`TlsSpec`)")]
    File {
        /// Path of the file, as typed.
        name: String,
    },
}

fn requests_in_words(first: &str, header_names: &[String], body_bytes: u64) -> String {
    let mut words = format!("the requests or messages, of which `{first}` is the first");
    if !header_names.is_empty() {
        words += &format!(", with values of {}", header_names.join(", "));
    }
    if body_bytes > 0 {
        words += &format!(", with a body of {body_bytes} bytes");
    }
    words
}

/// The parts that were left out of a plan, which cannot be run without them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the plan was stored without what may be secret; put back what is missing: {}",
    in_words(.0)
)]
pub struct WithheldParts(pub Vec<Withheld>);

fn in_words(parts: &[Withheld]) -> String {
    let parts: Vec<String> = parts.iter().map(Withheld::to_string).collect();
    parts.join("; ")
}
