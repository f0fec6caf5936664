//! How a set of requests or messages is stored: each of them or, where they may be secret, their
//! outline.

use std::fmt;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::request_outline::RequestsOutline;
use crate::request_set::Content;
use crate::{
    MessageSpec, RequestOrder, RequestSet, RequestSpec, RequestTable, RequestTableBuilder, bounded,
};

/// The most messages of a set, and the most weights.
const MOST: usize = RequestSet::REQUESTS_MAX;

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
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::list::<_, _, MOST>"
    )]
    weights: Vec<u32>,
    /// The requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requests: Option<StoredTable>,
    /// The messages.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::some_list::<_, _, MOST>"
    )]
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
            Content::Requests(table) => stored.requests = Some(StoredTable(table.clone())),
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
            (Some(StoredTable(table)), None, None) => match table.count() {
                1 if !is_list => Some(Self::one(table.request(0).to_spec())),
                _ => Self::list(table, order, hides_queries),
            },
            (None, Some(messages), None) if messages.is_empty() => Some(Self::nothing()),
            (None, Some(messages), None) => Self::messages_in(order, messages),
            (None, None, Some(outline)) => Some(Self::outlined(outline, order)),
            _ => return Err("one of requests, messages and outline is needed"),
        };
        let set = set.ok_or("there is no request, or more than a set may have")?;
        match weights.is_empty() {
            true => Ok(set),
            false => set.with_weights(&weights).ok_or("the weights fit no set"),
        }
    }
}

/// A table, stored as a list.
pub(crate) struct StoredTable(RequestTable);

impl Serialize for StoredTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let requests = (0..self.0.count()).map(|index| self.0.request(index).to_spec());
        serializer.collect_seq(requests)
    }
}

impl<'de> Deserialize<'de> for StoredTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(TableVisitor)
    }
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = StoredTable;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of requests")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<StoredTable, A::Error> {
        let mut table = RequestTableBuilder::default();
        while let Some(request) = access.next_element::<RequestSpec>()? {
            let pushed = table.push(request);
            pushed.map_err(|_| A::Error::custom("a list over the limit of requests or bytes"))?;
        }
        Ok(StoredTable(table.finish()))
    }
}
