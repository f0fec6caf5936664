//! What is known of the requests of a run without what may be secret in them.

use serde::{Deserialize, Serialize};

use crate::HIDDEN_QUERY;
use crate::request_spec::name_of;

/// Most methods of a list that are kept.
pub(crate) const METHODS_MAX: usize = 16;

/// A request, without what may be secret: of header fields the names alone, of the body its length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestOutline {
    /// Method, such as `GET`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names of its header fields, without those that brunt adds, in the order in which they are
    /// sent.
    pub header_names: Vec<String>,
    /// Length of its body, bytes.
    pub body_bytes: u64,
}

impl RequestOutline {
    /// What its figures stand under, as [`crate::RequestRef::name`].
    pub(crate) fn name(&self) -> String {
        name_of(&self.method, &self.path)
    }

    /// Leaves out its query.
    pub(crate) fn hide_query(&mut self) {
        if let Some((before, _)) = self.path.split_once('?') {
            self.path = format!("{before}{HIDDEN_QUERY}");
        }
    }
}

/// A list of requests or messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListOutline {
    /// How many it has.
    pub requests: u64,
    /// Whether some are sent more often than others, by their weights.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_weighted: bool,
    /// The methods of its requests, each once, or some of them where there are many; none of
    /// messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
}

/// What is sent, without what may be secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestsOutline {
    /// The request, or the first one of a list; null for messages.
    pub first: Option<RequestOutline>,
    /// What the first one is called, as it is shown: of a request its path, behind the method
    /// unless that is GET; of a message what was typed, cut short, or the name of its file.
    pub first_name: String,
    /// The list; null for a single request or message.
    pub list: Option<ListOutline>,
}

impl RequestsOutline {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        let one = usize::from(self.first.is_some() || !self.first_name.is_empty());
        let list = self.list.as_ref();
        list.map_or(one, |list| {
            usize::try_from(list.requests).unwrap_or(usize::MAX)
        })
    }

    /// The methods that are sent, each once; none for messages.
    pub fn methods(&self) -> Vec<&str> {
        match (&self.list, &self.first) {
            (Some(list), _) if !list.methods.is_empty() => {
                list.methods.iter().map(String::as_str).collect()
            }
            (_, Some(first)) => vec![&first.method],
            (_, None) => Vec::new(),
        }
    }
}

/// What a message is called in place of what was typed; they count from 1.
pub fn message_name(number: usize) -> String {
    format!("message {number}")
}
