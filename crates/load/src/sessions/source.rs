//! Where sessions come from: from a log, or all alike.

use std::fmt::Debug;
use std::sync::Arc;

use super::log::SessionLog;
use crate::{ResponseTimes, SessionCounts};

/// What the sessions of one worker are made of: steps, each of which is a pause and requests that
/// are sent at once when it is over.
pub trait SessionSource: Debug + Send {
    /// The pause before this step of a session, both counted from 0, nanoseconds. Absent where the
    /// session is over before it.
    fn pause_ns(&self, session: u64, step: u32) -> Option<u64>;

    /// Puts the numbers of the requests of this step into `texts`, which is empty; it stays so
    /// where there are no requests any more, for no session. Called once for each step, in the
    /// order in which steps are sent.
    fn requests(&mut self, session: u64, step: u32, texts: &mut Vec<u32>);
}

/// The sessions of a log, over and over.
#[derive(Clone, Debug)]
pub struct LoggedSteps(Arc<Steps>);

#[derive(Debug, Default)]
struct Steps {
    steps: Vec<SessionStep>,
    /// Where the steps of each session end.
    ends: Vec<u32>,
    /// Requests of the largest step.
    requests_max: u32,
}

#[derive(Clone, Copy, Debug)]
struct SessionStep {
    pause_ns: u64,
    /// The number of the first of its requests, which follow each other.
    first: u32,
    requests: u32,
}

impl LoggedSteps {
    /// The steps of `log`. Requests are numbered from 0 in the order of the log. A burst without a
    /// think time of its own is followed by `think_ns`. The first request of a burst is a step of
    /// its own, and the others of the burst are one.
    pub fn new(log: &SessionLog, think_ns: u64) -> Self {
        let mut all = Steps::default();
        let mut first = 0;
        for session in &log.sessions {
            let mut pause_ns = 0;
            for burst in &session.bursts {
                let mut add = |pause_ns, requests| {
                    if requests > 0 {
                        all.steps.push(SessionStep {
                            pause_ns,
                            first,
                            requests,
                        });
                        first += requests;
                        all.requests_max = all.requests_max.max(requests);
                    }
                };
                add(pause_ns, 1);
                add(0, burst.requests.len() as u32 - 1);
                pause_ns = burst.think_ns.unwrap_or(think_ns);
            }
            all.ends.push(all.steps.len() as u32);
        }
        Self(Arc::new(all))
    }

    /// How many sessions the log has.
    pub fn sessions(&self) -> u64 {
        self.0.ends.len() as u64
    }

    /// Requests that are sent at once, at most.
    pub fn requests_max(&self) -> u32 {
        self.0.requests_max
    }

    fn step(&self, session: u64, step: u32) -> Option<SessionStep> {
        let all = &self.0;
        let session = (session % self.sessions()) as usize;
        let before = session.checked_sub(1);
        let begin = before.map_or(0, |before| all.ends[before]);
        let place = begin.checked_add(step)?;
        (place < all.ends[session]).then(|| all.steps[place as usize])
    }
}

impl SessionSource for LoggedSteps {
    fn pause_ns(&self, session: u64, step: u32) -> Option<u64> {
        self.step(session, step).map(|step| step.pause_ns)
    }

    fn requests(&mut self, session: u64, step: u32, texts: &mut Vec<u32>) {
        if let Some(step) = self.step(session, step) {
            texts.extend(step.first..step.first + step.requests);
        }
    }
}

/// Sessions that are all of one shape.
#[derive(Clone, Debug)]
pub struct UniformSessions {
    /// Requests of each session, at least one.
    pub calls: u32,
    /// Requests of each burst, at least one.
    pub burst: u32,
    /// Whether the first request of a burst is answered before the others are sent.
    pub first_alone: bool,
    /// Time from the last reply of a burst to the next burst, nanoseconds.
    pub think_ns: u64,
    /// Which requests they are.
    pub order: CallOrder,
}

/// Which requests are sent, one after the other over all connections.
#[derive(Clone, Debug)]
pub enum CallOrder {
    /// The request with the number 0, each time.
    One,
    /// The requests of a list, from number 0 on in turn.
    List {
        /// How many there are, at least one.
        requests: u32,
        /// Whether the list begins again at its end.
        wraps: bool,
        /// Requests so far.
        sent: u64,
    },
    /// A walk through a working set.
    Walk(WorkingSet),
}

/// A walk through requests that are each sent several times in a row.
#[derive(Clone, Debug)]
pub struct WorkingSet {
    /// How many requests there are, at least one.
    pub requests: u32,
    /// New ones per call: 0.25 sends each four times.
    pub step: f64,
    /// Number of the request with which the walk begins.
    pub first: u64,
    /// By how many requests the walk goes on each time.
    pub stride: u64,
    /// Calls so far.
    pub sent: u64,
}

impl CallOrder {
    fn next(&mut self) -> Option<u32> {
        match self {
            Self::One => Some(0),
            Self::List {
                requests,
                wraps,
                sent,
            } => {
                let all = u64::from(*requests);
                let place = *sent % all;
                (*wraps || *sent < all).then(|| {
                    *sent += 1;
                    place as u32
                })
            }
            Self::Walk(set) => {
                set.sent += 1;
                // A sum would drift.
                let new = (set.sent as f64 * set.step) as u64;
                let all = u64::from(set.requests);
                let place = set.first.wrapping_add(new.wrapping_mul(set.stride)) % all;
                Some(place as u32)
            }
        }
    }
}

impl UniformSessions {
    /// The call that this step begins with, and how many calls it has.
    fn step(&self, step: u32) -> Option<(u32, u32)> {
        let (begin, most) = if self.first_alone && self.burst > 1 {
            let begin = (step / 2).checked_mul(self.burst)?;
            match step % 2 {
                0 => (begin, 1),
                _ => (begin + 1, self.burst - 1),
            }
        } else {
            (step.checked_mul(self.burst)?, self.burst)
        };
        let left = self.calls.checked_sub(begin).filter(|&left| left > 0)?;
        Some((begin, left.min(most)))
    }
}

impl SessionSource for UniformSessions {
    fn pause_ns(&self, _session: u64, step: u32) -> Option<u64> {
        let (begin, _) = self.step(step)?;
        let pauses = begin > 0 && begin.is_multiple_of(self.burst);
        Some(if pauses { self.think_ns } else { 0 })
    }

    fn requests(&mut self, _session: u64, step: u32, texts: &mut Vec<u32>) {
        let Some((_, calls)) = self.step(step) else {
            return;
        };
        texts.extend((0..calls).map_while(|_| self.order.next()));
    }
}

/// Interval of counts over time, nanoseconds.
pub const INTERVAL_NS: u64 = 5_000_000_000;
/// Intervals that are kept: two months.
const INTERVALS_MAX: usize = 1 << 20;
/// Longer sessions count as those of this length.
const LENGTH_MAX: usize = 1 << 20;
/// Connections that live longer count as those of this lifetime, milliseconds, in the counts.
const LIFETIME_MS_MAX: usize = 100_000;

/// Outcomes of the sessions of one worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionFigures {
    /// How many sessions there were, by their outcome.
    pub counts: SessionCounts,
    /// Connections of the sessions that were completed.
    pub connections: u64,
    /// Duration of completed sessions, from the opening of the first connection to the last reply,
    /// nanoseconds, summed up.
    pub completed_ns: u128,
    /// Duration of failed sessions, from the opening of the first connection to the end,
    /// nanoseconds, summed up.
    pub failed_ns: u128,
    /// How many sessions ended with so many replies, from 0 on.
    pub lengths: Vec<u64>,
    /// How many sessions were completed in each interval of [`INTERVAL_NS`], from the first request
    /// on.
    pub completed_by_interval: Vec<u64>,
    /// How many replies came in each of these intervals.
    pub replies_by_interval: Vec<u64>,
    /// Replies of all sessions.
    pub replies: u64,
    /// Time from a request to the first byte of its reply, nanoseconds, summed up.
    pub response_ns: u128,
    /// Time from the first byte of a reply to its end, nanoseconds, summed up.
    pub transfer_ns: u128,
    /// How long connections lived, from their opening to their last reply; only connections that
    /// had a reply count.
    pub lifetimes: Lifetimes,
    /// When the first request that was answered was sent; absent before its reply.
    pub first_ns: Option<u64>,
}

/// How long connections lived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lifetimes {
    /// How many connections there were.
    pub count: u64,
    /// The shortest, nanoseconds.
    pub min_ns: u64,
    /// The longest, nanoseconds.
    pub max_ns: u64,
    /// The sum of the lifetimes, nanoseconds.
    pub sum_ns: u128,
    /// The sum of their squares, milliseconds squared.
    pub squares_ms: f64,
    /// How many lived so many whole milliseconds, from 0 on; the last ones longer.
    pub by_ms: Vec<u64>,
}

/// A session that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) is_complete: bool,
    /// When the opening of the session's first connection began, and when the session ended.
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) connections: u32,
    pub(super) replies: u32,
}

impl SessionFigures {
    pub(super) fn replied(&mut self, times: ResponseTimes) {
        self.replies += 1;
        let response_ns = times.first_byte_ns.saturating_sub(times.sent_ns);
        self.response_ns += u128::from(response_ns);
        let transfer_ns = times.done_ns.saturating_sub(times.first_byte_ns);
        self.transfer_ns += u128::from(transfer_ns);
        let first_ns = *self.first_ns.get_or_insert(times.sent_ns);
        add_in_time(&mut self.replies_by_interval, first_ns, times.done_ns);
    }

    pub(super) fn ended(&mut self, ended: Ended) {
        let Ended { from_ns, to_ns, .. } = ended;
        let lasted_ns = u128::from(to_ns.saturating_sub(from_ns));
        add_at(&mut self.lengths, (ended.replies as usize).min(LENGTH_MAX));
        if !ended.is_complete {
            self.counts.failed += 1;
            self.failed_ns += lasted_ns;
            return;
        }
        self.counts.completed += 1;
        self.completed_ns += lasted_ns;
        self.connections += u64::from(ended.connections);
        let first_ns = self.first_ns.unwrap_or(from_ns);
        add_in_time(&mut self.completed_by_interval, first_ns, to_ns);
    }

    /// A connection that had a reply is over; it lived so long.
    pub(super) fn lived(&mut self, ns: u64) {
        let all = &mut self.lifetimes;
        all.min_ns = if all.count == 0 {
            ns
        } else {
            all.min_ns.min(ns)
        };
        all.max_ns = all.max_ns.max(ns);
        all.count += 1;
        all.sum_ns += u128::from(ns);
        all.squares_ms += (ns as f64 / 1e6).powi(2);
        let ms = usize::try_from(ns / 1_000_000).unwrap_or(LIFETIME_MS_MAX);
        add_at(&mut all.by_ms, ms.min(LIFETIME_MS_MAX));
    }
}

impl Lifetimes {
    /// The least whole number of milliseconds that half of them do not live beyond; absent without
    /// any.
    pub fn median_ms(&self) -> Option<usize> {
        let mut below = 0;
        self.by_ms.iter().position(|&count| {
            below += count;
            count > 0 && below * 2 >= self.count
        })
    }
}

fn add_in_time(counts: &mut Vec<u64>, from_ns: u64, at_ns: u64) {
    let interval = at_ns.saturating_sub(from_ns) / INTERVAL_NS;
    let interval = usize::try_from(interval).unwrap_or(INTERVALS_MAX);
    if interval < INTERVALS_MAX {
        add_at(counts, interval);
    }
}

fn add_at(counts: &mut Vec<u64>, place: usize) {
    if counts.len() <= place {
        counts.resize(place + 1, 0);
    }
    counts[place] += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of a session, each as its pause in milliseconds and its requests.
    fn steps(source: &mut dyn SessionSource, session: u64) -> Vec<(u64, Vec<u32>)> {
        let mut steps = Vec::new();
        while let Some(ns) = source.pause_ns(session, steps.len() as u32) {
            let mut texts = Vec::new();
            source.requests(session, steps.len() as u32, &mut texts);
            steps.push((ns / 1_000_000, texts));
        }
        steps
    }

    #[test]
    fn the_sessions_of_a_log_take_turns() {
        let text = b"/a think=.2\n /b\n /c\n/d\n/e think=3\n\n/f\n/g";
        let log = SessionLog::parse(text).expect("a log");
        let mut source = LoggedSteps::new(&log, 7_000_000);
        assert_eq!((source.sessions(), source.requests_max()), (2, 2));
        let first = [(0, vec![0]), (0, vec![1, 2]), (200, vec![3]), (7, vec![4])];
        assert_eq!(steps(&mut source, 0), first);
        assert_eq!(steps(&mut source, 1), [(0, vec![5]), (7, vec![6])]);
        assert_eq!(steps(&mut source, 2), first);
    }

    fn uniform(calls: u32, burst: u32, first_alone: bool, order: CallOrder) -> UniformSessions {
        UniformSessions {
            calls,
            burst,
            first_alone,
            think_ns: 5_000_000,
            order,
        }
    }

    #[test]
    fn uniform_sessions_have_bursts() {
        let counts = |calls, burst, first_alone| {
            let mut source = uniform(calls, burst, first_alone, CallOrder::One);
            let steps = steps(&mut source, 3).into_iter();
            steps
                .map(|(ms, texts)| (ms, texts.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(counts(3, 1, true), [(0, 1), (5, 1), (5, 1)]);
        assert_eq!(counts(7, 3, true), [(0, 1), (0, 2), (5, 1), (0, 2), (5, 1)]);
        assert_eq!(counts(5, 2, false), [(0, 2), (5, 2), (5, 1)]);
        assert_eq!(counts(1, 9, true), [(0, 1)]);
    }

    #[test]
    fn requests_are_in_the_order_of_the_peers() {
        let taken = |mut order: CallOrder, count: usize| {
            let taken = (0..count).map_while(|_| order.next());
            taken.collect::<Vec<_>>()
        };
        let list = |wraps| CallOrder::List {
            requests: 3,
            wraps,
            sent: 0,
        };
        assert_eq!(taken(list(true), 5), [0, 1, 2, 0, 1]);
        assert_eq!(taken(list(false), 5), [0, 1, 2]);
        let walk = |requests, step, first, stride| {
            CallOrder::Walk(WorkingSet {
                requests,
                step,
                first,
                stride,
                sent: 0,
            })
        };
        // As httperf --wset=11,0.3, and --wset=11,1 --client=3/5, walk.
        assert_eq!(taken(walk(11, 0.3, 0, 1), 8), [0, 0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(taken(walk(11, 1.0, 3, 5), 6), [8, 2, 7, 1, 6, 0]);
    }

    #[test]
    fn sessions_are_added_up() {
        let mut figures = SessionFigures::default();
        for (is_complete, to_ns, replies) in [
            (true, 1_000, 3),
            (true, 2 * INTERVAL_NS + 1_000, 1),
            (false, 400, 0),
        ] {
            figures.first_ns.get_or_insert(100);
            figures.ended(Ended {
                is_complete,
                from_ns: 100,
                to_ns,
                connections: 2,
                replies,
            });
        }
        assert_eq!((figures.counts.completed, figures.counts.failed), (2, 1));
        assert_eq!(figures.connections, 4);
        assert_eq!(figures.lengths, [1, 1, 0, 1]);
        assert_eq!(figures.completed_by_interval, [1, 0, 1]);
        let lasted_ns = u128::from(2 * INTERVAL_NS + 1_800);
        assert_eq!((figures.completed_ns, figures.failed_ns), (lasted_ns, 300));
    }

    #[test]
    fn replies_and_connections_are_added_up() {
        let mut figures = SessionFigures::default();
        for sent_ns in [1_000, INTERVAL_NS] {
            figures.replied(ResponseTimes {
                sent_ns,
                first_byte_ns: sent_ns + 30,
                done_ns: sent_ns + 1_070,
                ..ResponseTimes::default()
            });
        }
        assert_eq!((figures.response_ns, figures.transfer_ns), (60, 2_080));
        assert_eq!(figures.replies_by_interval, [1, 1]);
        assert_eq!(figures.lifetimes.median_ms(), None);
        for ms in [34, 31, 400_000] {
            figures.lived(ms * 1_000_000 + 700_000);
        }
        let all = &figures.lifetimes;
        assert_eq!((all.count, all.median_ms()), (3, Some(34)));
        assert_eq!((all.min_ns, all.max_ns), (31_700_000, 400_000_700_000));
        assert_eq!(all.by_ms.len(), LIFETIME_MS_MAX + 1);
    }
}
