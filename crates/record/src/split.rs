//! The parts of a response time: what brunt itself took of it, and what server and network did.

use serde::{Deserialize, Serialize};

use crate::merged::{Merge, merge_fields, merges, sum};
use crate::{Histogram, loglinear};

/// 16 buckets per doubling of the response time.
const BITS: u32 = 4;

/// The instants of one answered request on a connection with kernel stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instants {
    /// When the request was due; in a closed loop, when it was sent.
    pub due_ns: u64,
    /// When the connection that it took would have been free, had brunt taken no time for the
    /// requests before it.
    pub free_ns: u64,
    /// Just before the system call that took the request.
    pub send_from_ns: u64,
    /// Just after that call.
    pub send_to_ns: u64,
    /// When the reply's last byte reached this machine, by the kernel's stamp: that of the last
    /// byte that was read with it, which may be of a later reply.
    pub arrived_ns: u64,
    /// When brunt had taken the bytes from the kernel and, over TLS, decrypted them.
    pub received_ns: u64,
    /// When the bytes were parsed.
    pub done_ns: u64,
}

/// The parts of one response time, nanoseconds. They add up to it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Every connection was busy, and would have been without brunt's lateness; in HTTP/2, every
    /// stream of every connection.
    pub wait_ns: u64,
    /// A connection was free, or would have been had brunt been on time with the requests before,
    /// and brunt had not sent yet. Framing and encrypting is part of it.
    pub lag_send_ns: u64,
    /// The system call of the send.
    pub send_ns: u64,
    /// Network and server.
    pub server_ns: u64,
    /// The reply waited in our socket's queue, and was decrypted.
    pub lag_receive_ns: u64,
    /// Parsing.
    pub parse_ns: u64,
}

merges!(Parts: wait_ns lag_send_ns send_ns server_ns lag_receive_ns parse_ns);

/// Where a stamp of the kernel lay that is outside of what is possible for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// The stamp lies before the send: what came was there before it was asked for, or the wall
    /// clock was set.
    BeforeSend,
    /// The stamp lies after the bytes were read: the wall clock was set.
    AfterReceipt,
}

impl Parts {
    /// The parts of a response, and where the kernel's stamp lay if that is outside of what is
    /// possible: it is moved into it.
    pub fn of(instants: &Instants) -> (Self, Option<Misplaced>) {
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
        let misplaced = if arrived_ns < send_from_ns {
            Some(Misplaced::BeforeSend)
        } else if arrived_ns > received_ns {
            Some(Misplaced::AfterReceipt)
        } else {
            None
        };
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
        (parts, misplaced)
    }

    /// The response time.
    pub fn response_ns(&self) -> u64 {
        sum(&self.each())
    }

    /// The response time and brunt's own share of it, nanoseconds, in a type that cannot overflow.
    pub fn exact_sums(&self) -> (u128, u128) {
        let exact = |parts: &[u64]| parts.iter().copied().map(u128::from).sum();
        let own = [self.lag_send_ns, self.lag_receive_ns, self.parse_ns];
        (exact(&self.each()), exact(&own))
    }

    /// Whether a sum of parts has lost its exact value.
    pub fn is_saturated(&self) -> bool {
        self.each().contains(&u64::MAX)
    }

    /// Brunt's own share of it.
    pub fn own_ns(&self) -> u64 {
        sum(&[self.lag_send_ns, self.lag_receive_ns, self.parse_ns])
    }

    /// The rest of it: what it would have been with a brunt that takes no time.
    pub fn rest_ns(&self) -> u64 {
        sum(&[self.wait_ns, self.send_ns, self.server_ns])
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

    /// Brunt's own part of it as a share; absent where nothing was measured.
    pub fn own_share(&self) -> Option<f64> {
        let (own_ns, response_ns) = (self.own_ns(), self.response_ns());
        let share = own_ns / response_ns;
        (response_ns > 0.0 && share.is_finite()).then_some(share)
    }

    /// Brunt's own part of it.
    pub fn own_ns(&self) -> f64 {
        self.lag_send_ns + self.lag_receive_ns + self.parse_ns
    }
}

/// The requests whose response times fall into one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Number of the bucket: 16 per doubling of the response time.
    index: u32,
    /// How many requests.
    pub count: u64,
    /// Sums of their parts.
    pub sums: Parts,
}

impl Bucket {
    /// The response times that it holds: from the first to under the second, nanoseconds.
    pub fn edges_ns(&self) -> (u64, u64) {
        let edge = |index: u32| loglinear::lowest(index as usize, BITS);
        (edge(self.index), edge(self.index.saturating_add(1)))
    }
}

/// The parts of many response times, by response time, so that those of a tail can be told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredSplit")]
pub struct Split {
    /// Brunt's own share of each response time.
    pub own: Histogram,
    /// The rest of each: what it would have been with a brunt that takes no time.
    pub rest: Histogram,
    /// Filled buckets in order of response time, some 6 % wide; at most 976.
    buckets: Vec<Bucket>,
}

/// Responses that a tail needs for its parts to be told.
const TAIL_RESPONSES_LEAST: f64 = 30.0;

/// Too few responses lie in a tail for its parts to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too few responses with kernel stamps ({responses}, need {needed})")]
pub struct TooFewInTail {
    /// Responses whose parts are known, in the tail or not.
    pub responses: u64,
    /// How many there need to be.
    pub needed: u64,
}

impl Split {
    /// Adds the parts of one response.
    pub fn record(&mut self, parts: &Parts) {
        self.own.record(parts.own_ns());
        self.rest.record(parts.rest_ns());
        let bucket = self.bucket(loglinear::index(parts.response_ns(), BITS) as u32);
        bucket.count += 1;
        bucket.sums.merge(parts);
    }

    /// The buckets that hold something, by response time.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// How many responses were split.
    pub fn count(&self) -> u64 {
        self.own.count()
    }

    /// Adds the responses of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.own.merge(&other.own);
        self.rest.merge(&other.rest);
        for theirs in &other.buckets {
            let bucket = self.bucket(theirs.index);
            merge_fields!(bucket, theirs: count sums);
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

    /// The mean parts of the responses that take about as long as the `q`-quantile (0 to 1) of
    /// response time: those within 6 % of it. Absent without one.
    pub fn around(&self, q: f64) -> Option<MeanParts> {
        let rank = self.count() as f64 * q.clamp(0.0, 1.0);
        let mut below = 0.0;
        let bucket = self.buckets.iter().find(|bucket| {
            below += bucket.count as f64;
            below >= rank
        })?;
        let only = Self {
            buckets: vec![*bucket],
            ..Self::default()
        };
        only.slowest(bucket.count as f64)
    }

    /// [`Split::tail`], where enough responses lie there: the parts of fewer than 30 are chance.
    pub fn known_tail(&self, q: f64) -> Result<MeanParts, TooFewInTail> {
        let above = 1.0 - q.clamp(0.0, 1.0);
        let too_few = TooFewInTail {
            responses: self.count(),
            // 30 / (1 - 0.9) is not 300 in floating point.
            needed: (TAIL_RESPONSES_LEAST / above - 1e-6).ceil() as u64,
        };
        if too_few.responses < too_few.needed {
            return Err(too_few);
        }
        self.tail(q).ok_or(too_few)
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
struct StoredSplit {
    own: Histogram,
    rest: Histogram,
    buckets: Vec<Bucket>,
}

impl TryFrom<StoredSplit> for Split {
    type Error = String;

    fn try_from(stored: StoredSplit) -> Result<Self, String> {
        let StoredSplit { own, rest, buckets } = stored;
        if !buckets.is_sorted_by(|a, b| a.index < b.index) {
            return Err("the buckets of a split are out of order or given twice".to_owned());
        }
        let is_none = |last: &&Bucket| last.edges_ns().0 == u64::MAX;
        if let Some(last) = buckets.last().filter(is_none) {
            return Err(format!("a split has no bucket {}", last.index));
        }
        if let Some(empty) = buckets.iter().find(|bucket| bucket.count == 0) {
            return Err(format!("bucket {} of a split is empty", empty.index));
        }
        let held: u128 = buckets.iter().map(|bucket| u128::from(bucket.count)).sum();
        if held != u128::from(own.count()) || own.count() != rest.count() {
            return Err(format!(
                "a split of {} own shares and {} rests holds {held} responses",
                own.count(),
                rest.count()
            ));
        }
        Ok(Self { own, rest, buckets })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn instants(ns: [u64; 7]) -> Instants {
        let [
            due_ns,
            free_ns,
            send_from_ns,
            send_to_ns,
            arrived_ns,
            received_ns,
            done_ns,
        ] = ns;
        Instants {
            due_ns,
            free_ns,
            send_from_ns,
            send_to_ns,
            arrived_ns,
            received_ns,
            done_ns,
        }
    }

    fn parts(ns: [u64; 6]) -> Parts {
        let [
            wait_ns,
            lag_send_ns,
            send_ns,
            server_ns,
            lag_receive_ns,
            parse_ns,
        ] = ns;
        Parts {
            wait_ns,
            lag_send_ns,
            send_ns,
            server_ns,
            lag_receive_ns,
            parse_ns,
        }
    }

    fn split_of(all: &[Parts]) -> Split {
        let mut split = Split::default();
        all.iter().for_each(|parts| split.record(parts));
        split
    }

    #[test]
    fn the_parts_of_a_tail_need_thirty_responses_in_it() {
        let part = parts([0, 1, 2, 90, 3, 4]);
        for (q, needed) in [(0.99, 3_000), (0.9, 300), (0.5, 60), (0.0, 30)] {
            let mut split = split_of(&vec![part; needed as usize - 1]);
            let too_few = TooFewInTail {
                responses: needed - 1,
                needed,
            };
            assert_eq!(split.known_tail(q), Err(too_few), "{q}");
            split.record(&part);
            let tail = split.known_tail(q).expect("enough");
            assert!((tail.count - 30.0).abs() < 1e-6, "{q}: {tail:?}");
            assert!((tail.own_ns() - 8.0).abs() < 1e-6, "{q}: {tail:?}");
        }
        for q in [1.0, 7.0, f64::NAN] {
            assert!(split_of(&vec![part; 100]).known_tail(q).is_err(), "{q}");
        }
    }

    fn stored(split: &Split) -> serde_json::Value {
        serde_json::to_value(split).expect("a split serialises")
    }

    #[test]
    fn parts_lie_between_the_instants() {
        // (due, free, send from, send to, arrived, received, done), parts
        let in_order = [
            // A connection was free before the request was due.
            ([100, 50, 110, 115, 200, 203, 205], [0, 10, 5, 85, 3, 2]),
            // It waited for one.
            ([100, 140, 150, 155, 200, 203, 205], [40, 10, 5, 45, 3, 2]),
            // Closed loop: due when it was sent, free before.
            ([100, 90, 101, 104, 200, 203, 205], [0, 1, 3, 96, 3, 2]),
            // The reply came before the call that sent the request returned.
            ([100, 50, 110, 160, 150, 170, 175], [0, 10, 40, 0, 20, 5]),
            // The call is said to have begun before the request was due.
            ([100, 50, 90, 115, 200, 203, 205], [0, 0, 15, 85, 3, 2]),
        ];
        // The stamp lies before the send.
        let early = [([100, 50, 110, 115, 20, 203, 205], [0, 10, 0, 0, 93, 2])];
        let late = [
            ([100, 50, 110, 115, 900, 203, 205], [0, 10, 5, 88, 0, 2]),
            // Nothing is in order.
            ([100, 900, 800, 700, 600, 500, 50], [0, 0, 0, 0, 0, 0]),
        ];
        for (cases, moved) in [
            (&in_order[..], None),
            (&early, Some(Misplaced::BeforeSend)),
            (&late, Some(Misplaced::AfterReceipt)),
        ] {
            for &(ns, expected) in cases {
                assert_eq!(Parts::of(&instants(ns)), (parts(expected), moved), "{ns:?}");
            }
        }
    }

    #[test]
    fn the_tail_is_that_of_the_slowest() {
        // 98 of 1 ms without a share of ours, two of 9 ms with 6 ms.
        let fast = parts([0, 0, 10_000, 990_000, 0, 0]);
        let slow = parts([
            1_000_000, 2_000_000, 10_000, 1_990_000, 3_000_000, 1_000_000,
        ]);
        let split = split_of(&[vec![fast; 98], vec![slow; 2]].concat());
        let tail = split.tail(0.98).expect("two responses");
        assert!((tail.count - 2.0).abs() < 1e-6);
        assert!((tail.response_ns() - 9_000_000.0).abs() < 1.0, "{tail:?}");
        assert!((tail.own_ns() - 6_000_000.0).abs() < 1.0, "{tail:?}");
        // Half of it is of the others.
        let wider = split.tail(0.96).expect("four responses");
        assert!((wider.response_ns() - 5_000_000.0).abs() < 1.0, "{wider:?}");
        let mean = split.mean().expect("responses");
        assert!((mean.own_ns() - 120_000.0).abs() < 1e-3, "{mean:?}");
        assert!((mean.response_ns() - 1_160_000.0).abs() < 1e-3, "{mean:?}");
        assert_eq!(split.own.max_ns(), Some(6_000_000));
        // Less than one response.
        assert_eq!(split.tail(0.999), None);
        assert_eq!(split.tail(f64::NAN), None);
        assert_eq!(split.tail(-3.0), split.mean());
        assert_eq!(Split::default().mean(), None);
    }

    #[test]
    fn there_are_few_buckets() {
        let mut split = Split::default();
        for shift in 0..64 {
            for low in [0, 1, u64::MAX] {
                let server_ns = 1_u64 << shift | low >> (63 - shift);
                split.record(&parts([0, 0, 0, server_ns, 0, 0]));
            }
        }
        assert!(split.buckets.len() <= 976);
        assert_eq!(loglinear::index(u64::MAX, BITS), 975);
    }

    #[test]
    fn what_is_stored_must_be_a_split() {
        let sound = stored(&split_of(&[
            parts([0, 1, 2, 3, 4, 5]),
            parts([0, 1, 2, 3_000, 4, 5]),
        ]));
        type Change = fn(&mut serde_json::Value);
        let cases: [(&str, Change); 7] = [
            ("out of order", |stored| {
                let first = stored["buckets"][0].clone();
                stored["buckets"][1] = first;
            }),
            ("out of order", |stored| {
                stored["buckets"].as_array_mut().expect("buckets").reverse();
            }),
            ("no bucket 976", |stored| {
                stored["buckets"][1]["index"] = 976.into()
            }),
            ("is empty", |stored| {
                stored["buckets"][1]["count"] = 0.into()
            }),
            ("2 rests holds 3 responses", |stored| {
                stored["buckets"][1]["count"] = 2.into()
            }),
            ("2 rests holds 0 responses", |stored| {
                stored["buckets"] = serde_json::json!([])
            }),
            ("2 own shares and 0 rests", |stored| {
                stored["rest"] = serde_json::to_value(Histogram::default()).expect("it serialises");
            }),
        ];
        for (message, change) in cases {
            let mut changed = sound.clone();
            change(&mut changed);
            let read = serde_json::from_value::<Split>(changed).map(drop);
            let words = read.map_err(|error| error.to_string()).expect_err(message);
            assert!(words.contains(message), "{words}");
        }
    }

    fn any_parts() -> impl Strategy<Value = Vec<Parts>> {
        let ns = prop_oneof![0_u64..1_000, 0_u64..1_000_000_000];
        prop::collection::vec(prop::array::uniform6(ns), 0..40)
            .prop_map(|all| all.into_iter().map(parts).collect())
    }

    proptest! {
        #[test]
        fn parts_add_up_whatever_the_instants(
            ns in prop::array::uniform7(any::<u64>()),
        ) {
            let instants = instants(ns);
            let (parts, _) = Parts::of(&instants);
            let response_ns = instants.done_ns.saturating_sub(instants.due_ns);
            prop_assert_eq!(parts.response_ns(), response_ns);
            prop_assert_eq!(parts.exact_sums().0, u128::from(response_ns));
            prop_assert!(parts.own_ns() <= response_ns);
        }

        #[test]
        fn a_stamp_in_order_is_not_moved(mut ns in prop::array::uniform7(0_u64..1_000)) {
            ns.sort_unstable();
            prop_assert_eq!(Parts::of(&instants(ns)).1, None);
        }

        #[test]
        fn merging_commutes_and_keeps_sums(a in any_parts(), b in any_parts()) {
            let mut ab = split_of(&a);
            ab.merge(&split_of(&b));
            let mut ba = split_of(&b);
            ba.merge(&split_of(&a));
            let all = [a, b].concat();
            prop_assert_eq!(&ab, &ba);
            prop_assert_eq!(&ab, &split_of(&all));
            if let Some(mean) = ab.mean() {
                let sum: u64 = all.iter().map(Parts::response_ns).sum();
                let exact = sum as f64 / all.len() as f64;
                prop_assert!((mean.response_ns() - exact).abs() <= exact * 1e-9 + 1e-6);
            }
            let read: Split = serde_json::from_value(stored(&ab)).expect("its own form");
            prop_assert_eq!(&read, &ab);
        }

        #[test]
        fn a_tail_is_slower_than_the_whole(all in any_parts(), q in 0.0_f64..1.0) {
            let split = split_of(&all);
            if let (Some(mean), Some(tail)) = (split.mean(), split.tail(q)) {
                prop_assert!(tail.response_ns() >= mean.response_ns() * (1.0 - 1e-9));
                prop_assert!(tail.own_ns() <= tail.response_ns() * (1.0 + 1e-9));
            }
        }
    }
}
