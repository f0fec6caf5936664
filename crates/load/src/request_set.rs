//! What is sent: one request or message or a list of them, in which order, and under which names.

use std::collections::HashMap;
use std::sync::Arc;

use brunt_proto::holes::TextWithHoles;
use serde::{Deserialize, Serialize};

use crate::arrivals::draw;
use crate::request_spec::{RequestRef, RequestSpec, name_of};
use crate::request_table::RequestTable;
use crate::{HIDDEN_QUERY, MessageSpec};

/// The number of a request or message in its set, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// What a set consists of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Requests(RequestTable),
    Messages(Vec<MessageSpec>),
    /// What is known of requests or messages that were left out, since they may be secret.
    Outline(RequestsOutline),
}

/// The order in which the requests of a list are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestOrder {
    /// In turn, over and over. Each worker begins at another place of the list.
    #[default]
    Turns,
    /// In turn, over and over, on each connection by itself. Each connection begins with the first
    /// request.
    ConnectionTurns,
    /// Each time a random one, all equally likely.
    Random {
        /// Seed of the random numbers.
        seed: u64,
    },
}

impl RequestOrder {
    /// The name of the order, as typed and printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns | Self::ConnectionTurns => "turns",
            Self::Random { .. } => "random",
        }
    }
}

/// The requests or messages of a run: at least one. Copies share what they hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    try_from = "crate::request_set::StoredRequests",
    into = "crate::request_set::StoredRequests"
)]
pub struct RequestSet {
    content: Arc<Content>,
    order: RequestOrder,
    /// The turns of requests with weights; absent where all are sent equally often.
    turns: Option<Turns>,
    names: Arc<Names>,
}

/// What figures are kept under; nothing for a set of one request, whose figures are the run's.
#[derive(Debug, Default, PartialEq, Eq)]
struct Names {
    /// The first request of each name: the name is a part of what the set holds of it.
    firsts: Vec<u32>,
    /// Per request, the place of its name.
    name_of: Arc<[u32]>,
    /// Whether names have no queries, though requests do.
    hides_queries: bool,
}

impl Names {
    /// The names of requests, one after the other.
    fn of<'a>(all: impl Iterator<Item = &'a str>) -> Self {
        let mut firsts = Vec::new();
        let mut places = HashMap::new();
        let name_of = all.zip(0..).map(|(name, request)| {
            *places.entry(name).or_insert_with(|| {
                firsts.push(request);
                firsts.len() as u32 - 1
            })
        });
        let name_of = name_of.collect();
        firsts.shrink_to_fit();
        Self {
            firsts,
            name_of,
            hides_queries: false,
        }
    }
}

/// The name of a request, without its query if that is hidden.
fn shown(name: &str, hides_queries: bool) -> &str {
    let without_query = name.split('?').next().filter(|_| hides_queries);
    without_query.unwrap_or(name)
}

impl RequestSet {
    /// Most requests of a list: a stored run with a record for each stays readable.
    pub const REQUESTS_MAX: usize = RequestTable::REQUESTS_MAX;
    /// Most bytes of all requests of a list together, as they are sent: positions have 32 bits.
    pub const BYTES_MAX: usize = RequestTable::BYTES_MAX;
    /// Most turns of a round of requests with weights: what the weights add up to, divided by what
    /// they have in common.
    pub const TURNS_MAX: u64 = Turns::MAX;

    /// One request, over and over.
    pub fn one(request: RequestSpec) -> Self {
        Self::unnamed(
            Content::Requests(RequestTable::one(request)),
            RequestOrder::Turns,
        )
    }

    /// What is known of requests that were left out.
    pub(crate) fn outlined(outline: RequestsOutline, order: RequestOrder) -> Self {
        Self::unnamed(Content::Outline(outline), order)
    }

    fn unnamed(content: Content, order: RequestOrder) -> Self {
        Self {
            content: Arc::new(content),
            order,
            turns: None,
            names: Arc::default(),
        }
    }

    /// A list, with figures by method and path; `hides_queries`: without the query. Absent where it
    /// is empty.
    pub fn list(table: RequestTable, order: RequestOrder, hides_queries: bool) -> Option<Self> {
        if table.count() == 0 {
            return None;
        }
        let names = (0..table.count()).map(|index| shown(table.name(index), hides_queries));
        let mut all = (0..table.count()).map(|index| table.name(index));
        let names = Names {
            hides_queries: hides_queries && all.any(|name| name.contains('?')),
            ..Names::of(names)
        };
        Some(Self {
            names: Arc::new(names),
            ..Self::unnamed(Content::Requests(table), order)
        })
    }

    /// This set with each request sent as often as its weight says, in relation to the others:
    /// exactly so in turns, on average at random. Absent where a round of turns would be longer
    /// than [`RequestSet::TURNS_MAX`], or where there is not one weight of at least 1 for each
    /// request.
    pub fn with_weights(self, weights: &[u32]) -> Option<Self> {
        if weights.len() != self.count() || weights.contains(&0) {
            return None;
        }
        let turns = if weights.iter().all(|weight| *weight == weights[0]) {
            None
        } else {
            Some(Turns::of(weights)?)
        };
        Some(Self { turns, ..self })
    }

    /// A list of these requests.
    pub fn of(requests: Vec<RequestSpec>, order: RequestOrder) -> Option<Self> {
        Self::list(RequestTable::of(requests)?, order, false)
    }

    /// Messages, one or several, with figures by name where there are several. Absent where there
    /// is none, or more than [`RequestSet::REQUESTS_MAX`].
    pub fn messages_in(order: RequestOrder, messages: Vec<MessageSpec>) -> Option<Self> {
        if messages.is_empty() || messages.len() > Self::REQUESTS_MAX {
            return None;
        }
        if messages.len() == 1 {
            return Some(Self::unnamed(Content::Messages(messages), order));
        }
        Some(Self {
            names: Arc::new(Names::of(messages.iter().map(|message| &*message.name))),
            ..Self::unnamed(Content::Messages(messages), order)
        })
    }

    /// No message at all: nothing is ever due.
    pub fn nothing() -> Self {
        Self::unnamed(Content::Messages(Vec::new()), RequestOrder::Turns)
    }

    /// How many requests or messages there are.
    pub fn count(&self) -> usize {
        match &*self.content {
            Content::Requests(requests) => requests.count(),
            Content::Messages(messages) => messages.len(),
            Content::Outline(outline) => outline.count(),
        }
    }

    /// An outline of the requests or messages, without what may be secret.
    pub fn outline(&self) -> RequestsOutline {
        if let Content::Outline(outline) = &*self.content {
            return outline.clone();
        }
        let methods = self.methods().into_iter().take(METHODS_MAX);
        RequestsOutline {
            first: self.first_outline(),
            first_name: self.first_name(),
            list: self.is_list().then(|| ListOutline {
                requests: self.count() as u64,
                is_weighted: self.is_weighted(),
                methods: methods.map(str::to_owned).collect(),
            }),
        }
    }

    /// The outline of the first request; absent where messages are sent.
    pub fn first_outline(&self) -> Option<RequestOutline> {
        match &*self.content {
            Content::Outline(outline) => outline.first.clone(),
            _ => self.first().map(|first| RequestOutline {
                method: first.method.to_owned(),
                path: first.path.to_owned(),
                header_names: first.headers.iter().map(|(name, _)| name.clone()).collect(),
                body_bytes: first.body_bytes(),
            }),
        }
    }

    /// Whether the requests were left out, since they may be secret. Their outline is what is left.
    pub fn is_withheld(&self) -> bool {
        matches!(&*self.content, Content::Outline(_))
    }

    /// Whether the set has several requests, or one of a list.
    pub fn is_list(&self) -> bool {
        match &*self.content {
            Content::Outline(outline) => outline.list.is_some(),
            _ => !self.names.firsts.is_empty(),
        }
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// The weight of each request, where they have any: how many turns of a round are its own.
    pub(crate) fn weights(&self) -> Vec<u32> {
        let Some(turns) = &self.turns else {
            return Vec::new();
        };
        let mut weights = vec![0; self.count()];
        turns.0.iter().for_each(|&turn| weights[turn as usize] += 1);
        weights
    }

    /// The first request; absent where messages are sent, and where they were left out.
    pub fn first(&self) -> Option<RequestRef<'_>> {
        self.requests().next()
    }

    /// The name of the first request; empty where there is none.
    pub fn first_name(&self) -> String {
        match &*self.content {
            Content::Requests(requests) => requests.request(0).name(),
            Content::Outline(outline) => outline.first_name.clone(),
            Content::Messages(messages) => messages
                .first()
                .map_or_else(String::new, |message| message.name.clone()),
        }
    }

    /// All requests, by their numbers; none where messages are sent.
    pub fn requests(&self) -> impl Iterator<Item = RequestRef<'_>> {
        let table = match &*self.content {
            Content::Requests(table) => Some(table),
            Content::Messages(_) | Content::Outline(_) => None,
        };
        let numbered = table.map(|table| (0..table.count()).map(|index| table.request(index)));
        numbered.into_iter().flatten()
    }

    /// All messages, by their numbers; none where requests are sent.
    pub fn messages(&self) -> &[MessageSpec] {
        match &*self.content {
            Content::Requests(_) | Content::Outline(_) => &[],
            Content::Messages(messages) => messages,
        }
    }

    /// Whether numbers of a sequence are filled into some of them.
    pub fn counts_numbers(&self) -> bool {
        self.requests()
            .any(|request| request.has_text(TextWithHoles::counts))
    }

    /// Whether random numbers or UUIDs are filled into some of them each time they are sent.
    pub fn draws_numbers(&self) -> bool {
        self.requests()
            .any(|request| request.has_text(TextWithHoles::draws))
    }

    /// The order in which the requests are sent.
    pub fn order(&self) -> RequestOrder {
        self.order
    }

    /// This set with the seed of `other`, where both orders are random.
    #[must_use]
    pub(crate) fn with_seed_of(mut self, other: RequestOrder) -> Self {
        if let (RequestOrder::Random { seed }, RequestOrder::Random { seed: theirs }) =
            (&mut self.order, other)
        {
            *seed = theirs;
        }
        self
    }

    /// Whether some are sent more often than others.
    pub fn is_weighted(&self) -> bool {
        match &*self.content {
            Content::Outline(outline) => outline.list.as_ref().is_some_and(|list| list.is_weighted),
            _ => self.turns.is_some(),
        }
    }

    /// What figures are kept under, each name once; none for a set of one request.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names
            .firsts
            .iter()
            .map(|first| self.name_by_number(*first))
    }

    /// The name of a request, by its number; absent for a set of one request.
    pub fn name(&self, request: u32) -> Option<&str> {
        self.names.name_of.get(request as usize)?;
        Some(self.name_by_number(request))
    }

    fn name_by_number(&self, request: u32) -> &str {
        match &*self.content {
            Content::Requests(table) => {
                shown(table.name(request as usize), self.names.hides_queries)
            }
            Content::Messages(messages) => &messages[request as usize].name,
            // What was left out has no names.
            Content::Outline(_) => "",
        }
    }

    /// The methods of all requests, each once; none where messages are sent.
    pub fn methods(&self) -> Vec<&str> {
        match &*self.content {
            Content::Requests(table) => table.methods(),
            Content::Messages(_) => Vec::new(),
            Content::Outline(outline) => outline.methods(),
        }
    }

    /// Per request, the place of its name among [`RequestSet::names`]; empty where there are no
    /// names.
    pub fn name_of(&self) -> &Arc<[u32]> {
        &self.names.name_of
    }

    /// Bytes that a list takes in memory; 0 for a single request.
    pub fn held_bytes(&self) -> u64 {
        let Names {
            firsts, name_of, ..
        } = &*self.names;
        if firsts.is_empty() {
            return 0;
        }
        let held = match &*self.content {
            Content::Requests(table) => table.held_bytes(),
            Content::Messages(messages) => size_of_val(&messages[..]),
            Content::Outline(_) => 0,
        };
        let names = size_of_val(&firsts[..]) + size_of_val(&name_of[..]);
        let turns = self.turns.as_ref().map_or(0, Turns::held_bytes);
        (held + names + turns) as u64
    }

    /// What one of `workers` workers sends.
    pub fn source(&self, worker: u32, workers: u32) -> RequestSource {
        let turns = self.turns.clone();
        // Where there is none, none is ever taken.
        let count = turns
            .as_ref()
            .map_or(self.count() as u32, |turns| turns.0.len() as u32)
            .max(1);
        let draws = match self.order {
            RequestOrder::Turns => {
                let begin = u64::from(count) * u64::from(worker) / u64::from(workers.max(1));
                Draws::Turns {
                    next: begin as u32 % count,
                }
            }
            RequestOrder::ConnectionTurns => Draws::ConnectionTurns,
            RequestOrder::Random { seed } => Draws::Random {
                seed: draw(seed, FAR + u64::from(worker)),
                drawn: 0,
            },
        };
        RequestSource {
            draws,
            count,
            turns,
        }
    }
}

/// Far from the numbers that arrivals and think times take from the same seed.
const FAR: u64 = 1 << 41;

/// The requests of one worker, one after the other, without end.
#[derive(Clone, Debug)]
pub struct RequestSource {
    draws: Draws,
    /// How many turns there are: one of each request, or as many as its weight says.
    count: u32,
    /// Which request each turn is of, where requests have weights.
    turns: Option<Turns>,
}

#[derive(Clone, Debug)]
enum Draws {
    /// In turn.
    Turns {
        /// The turn that comes next.
        next: u32,
    },
    /// In turn on each connection by itself.
    ConnectionTurns,
    /// At random; the same seed gives the same requests everywhere.
    Random {
        /// This worker's seed.
        seed: u64,
        /// How many were drawn.
        drawn: u64,
    },
}

impl RequestSource {
    /// The next request to send on a connection on which `sent` requests were sent before.
    #[inline]
    pub fn next_id(&mut self, sent: u64) -> RequestId {
        let count = self.count;
        let turn = match &mut self.draws {
            Draws::ConnectionTurns => (sent % u64::from(count)) as u32,
            Draws::Turns { next } => {
                let turn = *next;
                *next = if turn + 1 == count { 0 } else { turn + 1 };
                turn
            }
            Draws::Random { seed, drawn } => {
                let number = draw(*seed, *drawn);
                *drawn += 1;
                ((u128::from(number) * u128::from(count)) >> 64) as u32
            }
        };
        let turns = self.turns.as_ref();
        RequestId(turns.map_or(turn, |turns| turns.0[turn as usize]))
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

/// The order of one round, in which each request has as many turns as its weight says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turns(Arc<[u32]>);

impl Turns {
    /// Most turns of a round.
    pub(super) const MAX: u64 = 1 << 20;

    /// The round of requests with these weights, each at least 1: the turns of each are as far
    /// apart as they can be. Absent where there would be more than [`Turns::MAX`], whatever the
    /// weights have in common.
    pub(super) fn of(weights: &[u32]) -> Option<Self> {
        let common = weights.iter().copied().reduce(divisor).unwrap_or(1).max(1);
        let shares = weights.iter().map(|&weight| u64::from(weight / common));
        let all: u64 = shares.clone().sum();
        if all > Self::MAX {
            return None;
        }
        // The turns of a request stand in the middles of as many equal parts of the round.
        let mut turns: Vec<(u64, u32)> = Vec::with_capacity(all as usize);
        for (request, share) in shares.enumerate() {
            let middle = |turn: u64| (((2 * turn + 1) as u128) << 40) / u128::from(2 * share);
            turns.extend((0..share).map(|turn| (middle(turn) as u64, request as u32)));
        }
        turns.sort_unstable();
        Some(Self(
            turns.into_iter().map(|(_, request)| request).collect(),
        ))
    }

    /// Bytes that it takes in memory, at most: while it is made, each turn has its place, too.
    pub(super) fn held_bytes(&self) -> usize {
        self.0.len() * (size_of::<u32>() + size_of::<(u64, u32)>())
    }
}

/// The greatest common divisor.
fn divisor(mut one: u32, mut other: u32) -> u32 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

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
            hides_queries: set.names.hides_queries,
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
        if weights.is_empty() {
            Ok(set)
        } else {
            set.with_weights(&weights).ok_or("the weights fit no set")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RequestTableBuilder;

    fn set(paths: &[&str], order: RequestOrder) -> RequestSet {
        let requests = paths.iter().map(|path| RequestSpec::get(path)).collect();
        RequestSet::of(requests, order).expect("not empty")
    }

    fn ids(source: &mut RequestSource, count: usize) -> Vec<u32> {
        (0..count as u64)
            .map(|sent| source.next_id(sent).0)
            .collect()
    }

    #[test]
    fn workers_take_turns_from_different_places() {
        let set = set(&["/a", "/b", "/c", "/d"], RequestOrder::Turns);
        assert_eq!(ids(&mut set.source(0, 2), 6), [0, 1, 2, 3, 0, 1]);
        assert_eq!(ids(&mut set.source(1, 2), 6), [2, 3, 0, 1, 2, 3]);
        assert_eq!(ids(&mut set.source(2, 3), 3), [2, 3, 0]);
        let one = RequestSet::one(RequestSpec::get("/"));
        assert_eq!(ids(&mut one.source(3, 4), 3), [0, 0, 0]);
        assert_eq!(one.names().len(), 0);
    }

    #[test]
    fn each_connection_may_take_turns_of_its_own() {
        let set = set(&["/a", "/b", "/c"], RequestOrder::ConnectionTurns);
        let mut source = set.source(1, 2);
        let sent = [0, 1, 0, 2, 3, 1];
        assert_eq!(sent.map(|sent| source.next_id(sent).0), [0, 1, 0, 2, 0, 1]);
    }

    #[test]
    fn more_workers_than_requests_find_one_each() {
        let set = set(&["/a", "/b"], RequestOrder::Turns);
        for worker in 0..7 {
            assert!(set.source(worker, 7).next_id(0).0 < 2);
        }
    }

    #[test]
    fn random_requests_are_all_alike_and_follow_from_the_seed() {
        let set = set(&["/a", "/b", "/c"], RequestOrder::Random { seed: 7 });
        let drawn = ids(&mut set.source(0, 2), 30_000);
        assert_eq!(drawn, ids(&mut set.source(0, 2), 30_000));
        assert_ne!(drawn, ids(&mut set.source(1, 2), 30_000));
        for id in 0..3 {
            let count = drawn.iter().filter(|&&other| other == id).count();
            // Five standard deviations.
            assert!((9_590..10_410).contains(&count), "{id}: {count}");
        }
    }

    #[test]
    fn equal_names_share_their_figures() {
        let mut other = RequestSpec::get("/a?c");
        other.headers.push(("x".to_owned(), "y".to_owned()));
        let mut post = RequestSpec::get("/a?b");
        post.method = "POST".to_owned();
        let requests = [RequestSpec::get("/a"), RequestSpec::get("/b"), other, post];
        let list = |requests: &[RequestSpec], hides_queries| {
            let mut table = RequestTableBuilder::default();
            for request in requests {
                table.push(request.clone()).expect("there is room");
            }
            RequestSet::list(table.finish(), RequestOrder::Turns, hides_queries)
        };
        let set = list(&requests, true).expect("not empty");
        assert_eq!(set.names().collect::<Vec<_>>(), ["/a", "/b", "POST /a"]);
        assert_eq!(set.name_of()[..], [0, 1, 0, 2]);
        assert_eq!((set.name(2), set.name(4)), (Some("/a"), None));
        assert_eq!(set.methods(), ["GET", "POST"]);
        let set = list(&requests, false).expect("not empty");
        let names = ["/a", "/b", "/a?c", "POST /a?b"];
        assert_eq!(set.names().collect::<Vec<_>>(), names);
        let specs: Vec<_> = set.requests().map(RequestRef::to_spec).collect();
        assert_eq!(specs, requests);
        assert_eq!(list(&[], false), None);
    }

    #[test]
    fn weights_are_exact_in_turns_and_shares_at_random() {
        let weighted = |order, weights: &[u32]| {
            let paths: Vec<String> = (0..weights.len()).map(|at| format!("/{at}")).collect();
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            set(&paths, order).with_weights(weights)
        };
        let weights = [6, 3, 1];
        let turns = weighted(RequestOrder::Turns, &weights).expect("few");
        assert!(turns.is_weighted());
        for (worker, workers) in [(0, 1), (0, 3), (2, 3)] {
            let drawn = ids(&mut turns.source(worker, workers), 70);
            for (id, weight) in (0..).zip(weights) {
                let count = drawn.iter().filter(|&&other| other == id).count();
                assert_eq!(count, 7 * weight as usize, "{id}");
            }
        }
        let random = weighted(RequestOrder::Random { seed: 7 }, &weights).expect("few");
        let drawn = ids(&mut random.source(1, 2), 100_000);
        for (id, weight) in (0..).zip(weights) {
            let count = drawn.iter().filter(|&&other| other == id).count() as f64;
            let share = f64::from(weight) / 10.0;
            let deviation = (100_000.0 * share * (1.0 - share)).sqrt();
            assert!(
                (count - 100_000.0 * share).abs() < 5.0 * deviation,
                "{id}: {count}"
            );
        }
        let equal = weighted(RequestOrder::Turns, &[4, 4]).expect("few");
        assert!(!equal.is_weighted());
        assert_eq!(weighted(RequestOrder::Turns, &[0, 1]), None);
        assert_eq!(weighted(RequestOrder::Turns, &[1, u32::MAX]), None);
    }

    fn turns(weights: &[u32]) -> Vec<u32> {
        let turns = Turns::of(weights).expect("few");
        turns.0.to_vec()
    }

    #[test]
    fn turns_are_exact_and_far_apart() {
        assert_eq!(turns(&[1, 1, 1]), [0, 1, 2]);
        assert_eq!(turns(&[7]), [0]);
        assert_eq!(turns(&[5, 1, 1]), [0, 0, 0, 1, 2, 0, 0]);
        assert_eq!(turns(&[3, 1]), [0, 0, 1, 0]);
        assert_eq!(turns(&[200, 100]), [0, 1, 0]);
        for weights in [&[9, 3, 1][..], &[1, 1_000, 7], &[2, 2, 5, 11]] {
            let turns = turns(weights);
            let all: u32 = weights.iter().sum();
            assert_eq!(turns.len(), all as usize);
            for (request, &weight) in weights.iter().enumerate() {
                // Of any beginning of the round each has its share, but for one turn.
                let mut had = 0_u32;
                for (at, &turn) in (1_u32..).zip(&turns) {
                    had += u32::from(turn as usize == request);
                    let due = f64::from(at) * f64::from(weight) / f64::from(all);
                    assert!(
                        (f64::from(had) - due).abs() <= 1.0 + 1e-9,
                        "{weights:?} {request} {at}"
                    );
                }
                assert_eq!(had, weight);
            }
        }
    }

    #[test]
    fn rounds_are_bounded() {
        assert!(Turns::of(&[u32::MAX, 1]).is_none());
        assert_eq!(turns(&[u32::MAX, u32::MAX]), [0, 1]);
        let most = Turns::MAX as u32;
        let turns = Turns::of(&[most - 1, 1]).expect("as many as can be");
        assert_eq!(turns.0.len() as u32, most);
        assert!(Turns::of(&[most, 1]).is_none());
    }
}
