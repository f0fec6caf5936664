//! What is known of the requests of a run without what may be secret in them.

use serde::{Deserialize, Serialize};

use crate::request_set::Content;
use crate::{HIDDEN_QUERY, MessageSpec, RequestRef, RequestSet, bounded};

/// Most header fields of a request whose names are kept.
const HEADERS_MAX: usize = 10_000;
/// Most methods of a list that are kept.
const METHODS_MAX: usize = 16;

/// A request, without what may be secret: of header fields the names alone, of the body its length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestOutline {
    /// Method, such as `GET`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names of its header fields, without those that brunt adds, in the order in which they are
    /// sent.
    #[serde(deserialize_with = "bounded::list::<_, _, HEADERS_MAX>")]
    pub header_names: Vec<String>,
    /// Length of its body, bytes.
    pub body_bytes: u64,
}

impl RequestOutline {
    pub(crate) fn of(request: RequestRef<'_>) -> Self {
        Self {
            method: request.method.to_owned(),
            path: request.path.to_owned(),
            header_names: request
                .headers
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
            body_bytes: request.body.len() as u64,
        }
    }

    /// What its figures stand under, as [`RequestRef::name`].
    fn name(&self) -> String {
        match &*self.method {
            "GET" => self.path.clone(),
            method => format!("{method} {}", self.path),
        }
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListOutline {
    /// How many it has.
    pub requests: u64,
    /// Whether some are sent more often than others, by their weights.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_weighted: bool,
    /// The methods of its requests, each once, or some of them where there are many; none of
    /// messages.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::list::<_, _, METHODS_MAX>"
    )]
    pub methods: Vec<String>,
}

/// What is sent, without what may be secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    pub(crate) fn of(set: &RequestSet) -> Self {
        let methods = set.methods().into_iter().take(METHODS_MAX);
        Self {
            first: set.first_outline(),
            first_name: set.first_name(),
            list: set.is_list().then(|| ListOutline {
                requests: set.count() as u64,
                is_weighted: set.is_weighted(),
                methods: methods.map(str::to_owned).collect(),
            }),
        }
    }

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

impl RequestSet {
    /// The same without what may be secret: as they are where nothing is, else their outline.
    /// `shown` are texts in which a query is seen anyway; the names of the requests are others.
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
            Content::Requests(_) => self.requests().any(|it| it.path.contains('?')),
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
