//! Where sessions come from: from a log, or all alike.

use std::fmt::Debug;
use std::sync::Arc;

use super::log::SessionLog;

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
    steps: Vec<Step>,
    /// Where the steps of each session end.
    ends: Vec<u32>,
    /// Requests of the largest step.
    requests_max: u32,
}

#[derive(Clone, Copy, Debug)]
struct Step {
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
                        all.steps.push(Step {
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

    fn step(&self, session: u64, step: u32) -> Option<Step> {
        let all = &self.0;
        let session = (session % self.sessions()) as usize;
        let begin = match session {
            0 => 0,
            _ => all.ends[session - 1],
        };
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
}
