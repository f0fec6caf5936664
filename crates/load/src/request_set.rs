//! What is sent: one request or message or a list of them, in which order, and under which names.

use std::collections::HashMap;

use crate::MessageSpec;
use crate::arrivals::draw;

/// What one request holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSpec {
    /// Method, such as `GET`.
    pub method: String,
    /// Path and query, as sent.
    pub path: String,
    /// Header fields, in the order in which they are sent.
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    pub body: Vec<u8>,
    /// Its bytes in HTTP/1, one whole request, where they are given: they are sent exactly so, and
    /// the other parts say what they mean.
    pub text: Option<Vec<u8>>,
}

impl RequestSpec {
    /// A request with the method GET, and no header fields of its own.
    pub fn get(path: &str) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            text: None,
        }
    }

    /// What its figures stand under: the path, behind the method unless that is GET.
    pub fn name(&self) -> String {
        if self.method == "GET" {
            self.path.clone()
        } else {
            format!("{} {}", self.method, self.path)
        }
    }
}

/// The number of a request or message in its set, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// What a set is of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Requests(Vec<RequestSpec>),
    Messages(Vec<MessageSpec>),
}

/// In which order the requests of a list are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestOrder {
    /// One after the other, over and over. Each worker begins at another place of the list.
    #[default]
    Turns,
    /// The same on each connection by itself, which begins with the first one.
    ConnectionTurns,
    /// Each time a random one, all equally likely.
    Random {
        /// Seed of the random numbers.
        seed: u64,
    },
}

impl RequestOrder {
    /// Its name, as typed and printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns | Self::ConnectionTurns => "turns",
            Self::Random { .. } => "random",
        }
    }
}

/// The requests or messages of a run: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSet {
    content: Content,
    order: RequestOrder,
    /// What figures are kept under; empty for a set of one request, whose figures are the run's.
    names: Vec<String>,
    /// Per request, the place of its name.
    name_of: Vec<u32>,
}

impl RequestSet {
    /// Most requests of a list: a stored run with a record for each stays readable.
    pub const REQUESTS_MAX: usize = 1 << 18;

    /// One request, over and over.
    pub fn one(request: RequestSpec) -> Self {
        Self {
            content: Content::Requests(vec![request]),
            order: RequestOrder::Turns,
            names: Vec::new(),
            name_of: Vec::new(),
        }
    }

    /// A list, with figures by what `name` gives. Absent where it is empty or has more than
    /// [`RequestSet::REQUESTS_MAX`].
    pub fn list(
        requests: Vec<RequestSpec>,
        order: RequestOrder,
        name: impl Fn(&RequestSpec) -> String,
    ) -> Option<Self> {
        let names = requests.iter().map(name).collect();
        Self::named(Content::Requests(requests), order, names)
    }

    /// Messages, one or several, with figures by name where there are several. Absent where there
    /// is none, or more than [`RequestSet::REQUESTS_MAX`].
    pub fn messages_in(order: RequestOrder, messages: Vec<MessageSpec>) -> Option<Self> {
        if messages.len() == 1 {
            return Some(Self {
                content: Content::Messages(messages),
                order,
                names: Vec::new(),
                name_of: Vec::new(),
            });
        }
        let names = messages
            .iter()
            .map(|message| message.name.clone())
            .collect();
        Self::named(Content::Messages(messages), order, names)
    }

    /// A list with these names, one for each.
    fn named(content: Content, order: RequestOrder, names_of: Vec<String>) -> Option<Self> {
        if names_of.is_empty() || names_of.len() > Self::REQUESTS_MAX {
            return None;
        }
        let mut names = Vec::new();
        let mut places = HashMap::new();
        let name_of = names_of
            .into_iter()
            .map(|name| {
                *places.entry(name.clone()).or_insert_with(|| {
                    names.push(name);
                    names.len() as u32 - 1
                })
            })
            .collect();
        Some(Self {
            content,
            order,
            names,
            name_of,
        })
    }

    /// No message at all: nothing is ever due.
    pub fn nothing() -> Self {
        Self {
            content: Content::Messages(Vec::new()),
            order: RequestOrder::Turns,
            names: Vec::new(),
            name_of: Vec::new(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        match &self.content {
            Content::Requests(requests) => requests.len(),
            Content::Messages(messages) => messages.len(),
        }
    }

    /// The first request; absent where messages are sent.
    pub fn first(&self) -> Option<&RequestSpec> {
        self.requests().first()
    }

    /// What the first one is called; empty where there is none.
    pub fn first_name(&self) -> String {
        match &self.content {
            Content::Requests(requests) => requests[0].name(),
            Content::Messages(messages) => messages
                .first()
                .map_or_else(String::new, |it| it.name.clone()),
        }
    }

    /// All requests, by their numbers; none where messages are sent.
    pub fn requests(&self) -> &[RequestSpec] {
        match &self.content {
            Content::Requests(requests) => requests,
            Content::Messages(_) => &[],
        }
    }

    /// All messages, by their numbers; none where requests are sent.
    pub fn messages(&self) -> &[MessageSpec] {
        match &self.content {
            Content::Requests(_) => &[],
            Content::Messages(messages) => messages,
        }
    }

    /// In which order they are sent.
    pub fn order(&self) -> RequestOrder {
        self.order
    }

    /// What figures are kept under, each name once; empty for a set of one request.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Per request, the place of its name in [`RequestSet::names`]; empty like that.
    pub fn name_of(&self) -> &[u32] {
        &self.name_of
    }

    /// What one of `workers` workers sends.
    pub fn source(&self, worker: u32, workers: u32) -> RequestSource {
        // Where there is none, none is ever taken.
        let count = (self.count() as u32).max(1);
        match self.order {
            RequestOrder::Turns => {
                let begin = u64::from(count) * u64::from(worker) / u64::from(workers.max(1));
                RequestSource::Turns {
                    next: begin as u32 % count,
                    count,
                }
            }
            RequestOrder::ConnectionTurns => RequestSource::ConnectionTurns { count },
            RequestOrder::Random { seed } => RequestSource::Random {
                seed: draw(seed, FAR + u64::from(worker)),
                drawn: 0,
                count,
            },
        }
    }
}

/// Far from the numbers that arrivals and think times take from the same seed.
const FAR: u64 = 1 << 41;

/// The requests of one worker, one after the other, without end.
#[derive(Clone, Debug)]
pub enum RequestSource {
    /// In turns.
    Turns {
        /// The one that comes next.
        next: u32,
        /// How many there are.
        count: u32,
    },
    /// In turns on each connection by itself.
    ConnectionTurns {
        /// How many there are.
        count: u32,
    },
    /// At random; the same seed gives the same ones everywhere.
    Random {
        /// This worker's seed.
        seed: u64,
        /// How many were drawn.
        drawn: u64,
        /// How many there are.
        count: u32,
    },
}

impl RequestSource {
    /// The next one to send, on a connection on which so many were sent before.
    #[inline]
    pub fn next_id(&mut self, sent: u64) -> RequestId {
        match self {
            Self::ConnectionTurns { count } => RequestId((sent % u64::from(*count)) as u32),
            Self::Turns { next, count } => {
                let id = *next;
                *next = if id + 1 == *count { 0 } else { id + 1 };
                RequestId(id)
            }
            Self::Random { seed, drawn, count } => {
                let number = draw(*seed, *drawn);
                *drawn += 1;
                RequestId(((u128::from(number) * u128::from(*count)) >> 64) as u32)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&str], order: RequestOrder) -> RequestSet {
        let requests = paths.iter().map(|path| RequestSpec::get(path)).collect();
        RequestSet::list(requests, order, RequestSpec::name).expect("not empty")
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
        assert!(one.names().is_empty());
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
        let mut other = RequestSpec::get("/a");
        other.headers.push(("x".to_owned(), "y".to_owned()));
        let mut post = RequestSpec::get("/a");
        post.method = "POST".to_owned();
        let requests = vec![RequestSpec::get("/a"), RequestSpec::get("/b"), other, post];
        let list = |requests| RequestSet::list(requests, RequestOrder::Turns, RequestSpec::name);
        let set = list(requests).expect("not empty");
        assert_eq!(set.names(), ["/a", "/b", "POST /a"]);
        assert_eq!(set.name_of(), [0, 1, 0, 2]);
        assert_eq!(list(Vec::new()), None);
    }
}
