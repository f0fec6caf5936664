//! How a set of requests or messages is stored: each of them or, where they may be secret, their
//! outline.

use serde::{Deserialize, Serialize};

use crate::request_set::Content;
use crate::request_spec::name_of;
use crate::{HIDDEN_QUERY, MessageSpec, RequestOrder, RequestSet, RequestSpec, RequestTable};

/// Why requests are no set.
const UNFIT: &str = "there is no request, or more than a set may have";

/// A set, as it is stored: one of `requests`, `messages` and `outline` is there.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredRequests {
    /// The order in which the requests are sent.
    order: RequestOrder,
    /// Whether figures are kept by request, though there is but one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_list: bool,
    /// Whether figures are kept under names without queries.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hides_queries: bool,
    /// How often each is sent, in relation to the others; absent where all are sent equally often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weights: Vec<u32>,
    /// The requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requests: Option<Vec<RequestSpec>>,
    /// The messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<MessageSpec>>,
    /// What is known of requests that were left out, since they may be secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outline: Option<RequestsOutline>,
}

impl From<RequestSet> for StoredRequests {
    fn from(set: RequestSet) -> Self {
        let mut stored = Self {
            order: set.order(),
            is_list: set.is_list() && set.count() == 1,
            hides_queries: set.hides_queries(),
            weights: set.weights(),
            requests: None,
            messages: None,
            outline: None,
        };
        match set.content() {
            Content::Requests(table) => {
                let requests = (0..table.count()).map(|index| table.request(index).to_spec());
                stored.requests = Some(requests.collect());
            }
            Content::Messages(messages) => stored.messages = Some(messages.clone()),
            Content::Outline(outline) => {
                stored.is_list = false;
                stored.outline = Some(outline.clone());
            }
        }
        stored
    }
}

impl TryFrom<StoredRequests> for RequestSet {
    type Error = &'static str;

    fn try_from(stored: StoredRequests) -> Result<Self, &'static str> {
        let StoredRequests {
            order,
            is_list,
            hides_queries,
            weights,
            requests,
            messages,
            outline,
        } = stored;
        let set = match (requests, messages, outline) {
            (Some(requests), None, None) => {
                let table = RequestTable::of(requests).ok_or(UNFIT)?;
                if table.count() == 1 && !is_list {
                    Some(Self::one(table.request(0).to_spec()))
                } else {
                    Self::list(table, order, hides_queries)
                }
            }
            (None, Some(messages), None) if messages.is_empty() => Some(Self::nothing()),
            (None, Some(messages), None) => Self::messages_in(order, messages),
            (None, None, Some(outline)) => Some(Self::outlined(outline, order)),
            _ => return Err("one of requests, messages and outline is needed"),
        };
        let set = set.ok_or(UNFIT)?;
        match weights.is_empty() {
            true => Ok(set),
            false => set.with_weights(&weights).ok_or("the weights fit no set"),
        }
    }
}

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
