//! The parts of a response time: what brunt itself took of it, and what server and network did.

use serde::{Deserialize, Serialize};

use crate::{Histogram, loglinear};

/// 16 buckets per doubling of the response time.
const BITS: u32 = 4;

/// The instants of one answered request on a connection with kernel stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instants {
    /// When the request was due; in a closed loop, when it was sent.
    pub due_ns: u64,
    /// When the connection that it took became free, by the kernel's stamp.
    pub free_ns: u64,
    /// Just before the system call that took the request.
    pub send_from_ns: u64,
    /// Just after that call.
    pub send_to_ns: u64,
    /// When the reply's last byte reached this machine, by the kernel's stamp.
    pub arrived_ns: u64,
    /// When brunt had taken the bytes from the kernel.
    pub received_ns: u64,
    /// When they were parsed.
    pub done_ns: u64,
}

/// The parts of one response time, nanoseconds. They add up to it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parts {
    /// Every connection was busy.
    pub wait_ns: u64,
    /// A connection was free, and brunt had not sent yet.
    pub lag_send_ns: u64,
    /// The system call of the send.
    pub send_ns: u64,
    /// Network and server.
    pub server_ns: u64,
    /// The reply waited in our socket's queue.
    pub lag_receive_ns: u64,
    /// Parsing.
    pub parse_ns: u64,
}

impl Parts {
    /// The parts of a response, and whether the kernel's stamp lay outside of what is possible and
    /// was moved into it.
    pub fn of(instants: &Instants) -> (Self, bool) {
        let Instants {
            due_ns,
            free_ns,
            send_from_ns,
            send_to_ns,
            arrived_ns,
            received_ns,
            done_ns,
        } = *instants;
        // The call may take the request late, but not before it was due.
        let send_from_ns = send_from_ns.clamp(due_ns, done_ns.max(due_ns));
        let done_ns = done_ns.max(send_from_ns);
        let available_ns = free_ns.clamp(due_ns, send_from_ns);
        let received_ns = received_ns.clamp(send_from_ns, done_ns);
        let was_moved = arrived_ns < send_from_ns || arrived_ns > received_ns;
        let arrived_ns = arrived_ns.clamp(send_from_ns, received_ns);
        // The reply may come before the call that sent the request returns.
        let sent_ns = send_to_ns.clamp(send_from_ns, arrived_ns);
        let parts = Self {
            wait_ns: available_ns - due_ns,
            lag_send_ns: send_from_ns - available_ns,
            send_ns: sent_ns - send_from_ns,
            server_ns: arrived_ns - sent_ns,
            lag_receive_ns: received_ns - arrived_ns,
            parse_ns: done_ns - received_ns,
        };
        (parts, was_moved)
    }

    /// The response time.
    pub fn response_ns(&self) -> u64 {
        self.each()
            .iter()
            .fold(0, |sum, &ns| sum.saturating_add(ns))
    }

    /// The same, in a type that cannot overflow, and brunt's own share of it.
    pub(crate) fn exact_sums(&self) -> (u128, u128) {
        let sum = |parts: &[u64]| parts.iter().copied().map(u128::from).sum();
        let own = [self.lag_send_ns, self.lag_receive_ns, self.parse_ns];
        (sum(&self.each()), sum(&own))
    }

    /// Whether a sum of parts has lost its exact value.
    pub(crate) fn is_saturated(&self) -> bool {
        self.each().contains(&u64::MAX)
    }

    /// Brunt's own share of it.
    pub fn own_ns(&self) -> u64 {
        self.lag_send_ns
            .saturating_add(self.lag_receive_ns)
            .saturating_add(self.parse_ns)
    }

    fn each(&self) -> [u64; 6] {
        [
            self.wait_ns,
            self.lag_send_ns,
            self.send_ns,
            self.server_ns,
            self.lag_receive_ns,
            self.parse_ns,
        ]
    }

    fn add(&mut self, other: &Self) {
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
        self.lag_send_ns = self.lag_send_ns.saturating_add(other.lag_send_ns);
        self.send_ns = self.send_ns.saturating_add(other.send_ns);
        self.server_ns = self.server_ns.saturating_add(other.server_ns);
        self.lag_receive_ns = self.lag_receive_ns.saturating_add(other.lag_receive_ns);
        self.parse_ns = self.parse_ns.saturating_add(other.parse_ns);
    }
}

/// The mean of each part over some requests, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanParts {
    /// How many requests.
    pub count: f64,
    /// Every connection was busy.
    pub wait_ns: f64,
    /// A connection was free, and brunt had not sent yet.
    pub lag_send_ns: f64,
    /// The system call of the send.
    pub send_ns: f64,
    /// Network and server.
    pub server_ns: f64,
    /// The reply waited in our socket's queue.
    pub lag_receive_ns: f64,
    /// Parsing.
    pub parse_ns: f64,
}

impl MeanParts {
    /// The mean response time.
    pub fn response_ns(&self) -> f64 {
        self.wait_ns + self.send_ns + self.server_ns + self.own_ns()
    }

    /// Brunt's own share of it.
    pub fn own_ns(&self) -> f64 {
        self.lag_send_ns + self.lag_receive_ns + self.parse_ns
    }
}

/// The requests whose response times fall into one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Bucket {
    /// Number of the bucket: 16 per doubling of the response time.
    index: u32,
    /// How many requests.
    pub(crate) count: u64,
    /// Sums of their parts.
    pub(crate) sums: Parts,
}

impl Bucket {
    /// The response times that it holds: from the first to under the second, nanoseconds.
    pub(crate) fn edges_ns(&self) -> (u64, u64) {
        let edge = |index: u32| loglinear::lowest(index as usize, BITS);
        (edge(self.index), edge(self.index.saturating_add(1)))
    }
}

/// The parts of many response times, by response time, so that those of a tail can be told.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Split {
    /// Brunt's own share of each response time.
    pub own: Histogram,
    /// Filled buckets in order of response time, some 6 % wide; at most 976.
    buckets: Vec<Bucket>,
}

impl Split {
    /// Adds the parts of one response.
    pub fn record(&mut self, parts: &Parts) {
        self.own.record(parts.own_ns());
        let bucket = self.bucket(loglinear::index(parts.response_ns(), BITS) as u32);
        bucket.count += 1;
        bucket.sums.add(parts);
    }

    /// The buckets that hold something, by response time.
    pub(crate) fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// How many responses were split.
    pub fn count(&self) -> u64 {
        self.own.count()
    }

    /// Adds the responses of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.own.merge(&other.own);
        for theirs in &other.buckets {
            let bucket = self.bucket(theirs.index);
            bucket.count = bucket.count.saturating_add(theirs.count);
            bucket.sums.add(&theirs.sums);
        }
    }

    /// The mean parts of all responses. Absent without one.
    pub fn mean(&self) -> Option<MeanParts> {
        self.slowest(self.count() as f64)
    }

    /// The mean parts of the responses above the `q`-quantile (0 to 1) of response time. Absent
    /// when fewer than one response lies there.
    pub fn tail(&self, q: f64) -> Option<MeanParts> {
        self.slowest(self.count() as f64 * (1.0 - q.clamp(0.0, 1.0)))
    }

    /// The mean parts of the `wanted` slowest responses. Of the bucket in which the line is
    /// drawn, a share is taken.
    fn slowest(&self, wanted: f64) -> Option<MeanParts> {
        if wanted.is_nan() || wanted < 1.0 {
            return None;
        }
        let mut mean = MeanParts::default();
        for bucket in self.buckets.iter().rev() {
            let taken = (wanted - mean.count).min(bucket.count as f64);
            if taken <= 0.0 {
                break;
            }
            let share = taken / bucket.count as f64 / wanted;
            mean.count += taken;
            mean.wait_ns += bucket.sums.wait_ns as f64 * share;
            mean.lag_send_ns += bucket.sums.lag_send_ns as f64 * share;
            mean.send_ns += bucket.sums.send_ns as f64 * share;
            mean.server_ns += bucket.sums.server_ns as f64 * share;
            mean.lag_receive_ns += bucket.sums.lag_receive_ns as f64 * share;
            mean.parse_ns += bucket.sums.parse_ns as f64 * share;
        }
        Some(mean)
    }

    fn bucket(&mut self, index: u32) -> &mut Bucket {
        let place = match self
            .buckets
            .binary_search_by_key(&index, |bucket| bucket.index)
        {
            Ok(place) => place,
            Err(place) => {
                let empty = Bucket {
                    index,
                    ..Bucket::default()
                };
                self.buckets.insert(place, empty);
                place
            }
        };
        &mut self.buckets[place]
    }
}

/// What a stored split says, before it is believed: looking buckets up relies on their order.
#[derive(Deserialize)]
struct Stored {
    own: Histogram,
    buckets: Vec<Bucket>,
}

impl<'de> Deserialize<'de> for Split {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { own, buckets } = Stored::deserialize(deserializer)?;
        let refuse = |words: String| Err(serde::de::Error::custom(words));
        if !buckets.is_sorted_by(|a, b| a.index < b.index) {
            return refuse("the buckets of a split are out of order or given twice".to_owned());
        }
        let most = loglinear::count(u64::MAX, BITS);
        if let Some(last) = buckets.last().filter(|last| last.index as usize >= most) {
            return refuse(format!("a split has no bucket {}", last.index));
        }
        if let Some(empty) = buckets.iter().find(|bucket| bucket.count == 0) {
            return refuse(format!("bucket {} of a split is empty", empty.index));
        }
        let held: u128 = buckets.iter().map(|bucket| u128::from(bucket.count)).sum();
        if held != u128::from(own.count()) {
            return refuse(format!("a split of {} responses holds {held}", own.count()));
        }
        Ok(Self { own, buckets })
    }
}
