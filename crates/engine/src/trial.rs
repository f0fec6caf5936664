//! Whether a round has workers enough: how busy they and the CPUs are in the parts of its warm-up.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use brunt_io::spin::Spinner;
use brunt_probe::host::difference;
use brunt_probe::thread_meter::ThreadMeter;
use brunt_record::{CpuTimes, ThreadUse, Window};

use crate::placement::{PartOfWarmUp, Placed};

/// A warm-up has so many parts. After each but the last there may be a beginning with more workers.
const PARTS: u64 = 4;
/// CPU times are counted in ticks of 10 ms: a shorter part says little.
const PART_NS_MIN: u64 = 100_000_000;
/// How long after the end of a part all busy workers have reported it, nanoseconds.
const REPORTED_NS: u64 = 2_000_000;

/// Whether a warm-up of this length can tell.
pub(crate) fn is_possible(warmup_ns: u64) -> bool {
    warmup_ns / PARTS >= PART_NS_MIN
}

/// One worker over one part.
#[derive(Clone, Copy, Debug)]
struct Busy {
    part: usize,
    share: f64,
}

/// A worker's side.
#[derive(Debug)]
pub(crate) struct Gauge {
    meter: ThreadMeter,
    sender: SyncSender<Busy>,
    part: usize,
    part_ns: u64,
    due_ns: u64,
}

/// What a gauge is made of, by the thread that it is for.
#[derive(Clone, Debug)]
pub(crate) struct GaugeMaker {
    sender: SyncSender<Busy>,
    part_ns: u64,
}

impl GaugeMaker {
    /// The gauge of the calling thread, which runs a worker whose load begins at `load_ns`.
    pub(crate) fn of_thread(self, load_ns: u64) -> Gauge {
        Gauge {
            meter: ThreadMeter::of_thread(),
            sender: self.sender,
            part: 0,
            part_ns: self.part_ns,
            due_ns: load_ns,
        }
    }
}

impl Gauge {
    /// To be called at every turn under load, until the window begins.
    pub(crate) fn turn(&mut self, now_ns: u64, spinner: &Spinner) {
        if now_ns < self.due_ns {
            return;
        }
        let spun_ns = spinner.spun_ns();
        if let Some(used) = self.meter.end(now_ns, spun_ns) {
            // Where there is no room, nobody looks any more.
            let _ = self.sender.try_send(Busy {
                part: self.part,
                share: busy_share(&used),
            });
            self.part += 1;
        }
        self.due_ns = self.due_ns.saturating_add(self.part_ns).max(now_ns + 1);
        self.meter.begin(now_ns, spun_ns);
    }
}

/// Share of the time for which a thread worked or waited for a CPU.
fn busy_share(used: &ThreadUse) -> f64 {
    let waited_ns = used.run_queue_wait_ns.unwrap_or(0);
    let busy_ns = used.worked_ns().saturating_add(waited_ns);
    busy_ns as f64 / used.interval_ns.max(1) as f64
}

/// What a look has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing yet.
    Open,
    /// The warm-up is over, and showed no lack of workers.
    Enough,
    /// More workers are needed, with this placement.
    TooFew(Placed),
}

/// What workers said of one part.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    workers: usize,
    /// The busiest of them.
    busiest: f64,
}

/// The side of those who watch the round.
#[derive(Debug)]
pub(crate) struct Trial {
    placed: Placed,
    receiver: Receiver<Busy>,
    window: Window,
    part_ns: u64,
    /// When the part that is awaited ends.
    due_ns: u64,
    /// The parts that are over.
    parts: usize,
    /// What workers said of each part.
    said: [Said; PARTS as usize],
    before: Vec<CpuTimes>,
    /// When the workers are taken for too few whatever the gauges say; absent but in tests.
    forced_ns: Option<u64>,
}

impl Trial {
    /// A trial of workers with this placement and this warm-up, and the maker of their gauges.
    pub(crate) fn new(placed: Placed, warmup_ns: u64) -> (Self, GaugeMaker) {
        let part_ns = warmup_ns / PARTS;
        let (sender, receiver) = sync_channel(placed.cpus.len() * PARTS as usize);
        let trial = Self {
            placed,
            receiver,
            window: Window {
                start_ns: u64::MAX,
                end_ns: u64::MAX,
            },
            part_ns,
            due_ns: u64::MAX,
            parts: 0,
            said: [Said::default(); PARTS as usize],
            before: Vec::new(),
            forced_ns: None,
        };
        (trial, GaugeMaker { sender, part_ns })
    }

    /// Load begins now, or in some milliseconds; the CPUs have spent their time so. `forced_ns`: by
    /// when there are to be more workers whatever is said.
    pub(crate) fn begin(
        &mut self,
        load_ns: u64,
        window: Window,
        cpus: Vec<CpuTimes>,
        forced_ns: Option<u64>,
    ) {
        self.forced_ns = forced_ns;
        self.window = window;
        self.due_ns = load_ns.saturating_add(self.part_ns);
        self.before = cpus;
    }

    /// When to look next.
    pub(crate) fn next_edge_ns(&self) -> u64 {
        let look_ns = self.due_ns.saturating_add(REPORTED_NS);
        look_ns.min(self.forced_ns.unwrap_or(u64::MAX))
    }

    /// Looks what came; `read_cpus` says how the CPUs have spent their time by now.
    pub(crate) fn look(
        &mut self,
        now_ns: u64,
        read_cpus: impl FnOnce() -> Vec<CpuTimes>,
    ) -> Outcome {
        if now_ns >= self.window.start_ns {
            return Outcome::Enough;
        }
        if let Some(forced_ns) = self.forced_ns {
            return match self
                .placed
                .more(&PartOfWarmUp::of_nothing_left(&self.placed))
            {
                _ if now_ns < forced_ns => Outcome::Open,
                Some(more) => Outcome::TooFew(more),
                None => Outcome::Enough,
            };
        }
        while let Ok(busy) = self.receiver.try_recv() {
            if let Some(said) = self.said.get_mut(busy.part) {
                said.workers += 1;
                said.busiest = said.busiest.max(busy.share);
            }
        }
        let Some(said) = self.said.get(self.parts) else {
            return Outcome::Enough;
        };
        if said.workers < self.placed.cpus.len() {
            return Outcome::Open;
        }
        let cpus = read_cpus();
        let part = PartOfWarmUp {
            busiest: said.busiest,
            idle: idle_shares(&difference(&self.before, &cpus)),
        };
        self.before = cpus;
        self.parts += 1;
        self.due_ns = self.due_ns.saturating_add(self.part_ns);
        match self.placed.more(&part) {
            Some(more) => Outcome::TooFew(more),
            None if self.parts + 1 >= self.said.len() => Outcome::Enough,
            None => Outcome::Open,
        }
    }
}

fn idle_shares(cpus: &[CpuTimes]) -> Vec<(u32, f64)> {
    let share = |times: &CpuTimes| times.idle_ns as f64 / times.total_ns().max(1) as f64;
    cpus.iter().map(|times| (times.cpu, share(times))).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Two workers on CPUs 3 and 2, with two more to spare, and a warm-up of 1 s that begins at
    /// 20 ms.
    fn trial() -> (Trial, GaugeMaker) {
        let placed = Placed {
            workers: NonZeroU32::new(2).expect("not 0"),
            cpus: vec![3, 2],
            spare: vec![1, 0],
            record: None,
        };
        let (mut trial, maker) = Trial::new(placed, 1_000 * MS);
        let window = Window {
            start_ns: 1_020 * MS,
            end_ns: u64::MAX,
        };
        trial.begin(20 * MS, window, cpus(0), None);
        (trial, maker)
    }

    /// Four CPUs after `ns`, the first two idle for half of it.
    fn cpus(ns: u64) -> Vec<CpuTimes> {
        let times = |cpu| CpuTimes {
            cpu,
            busy_ns: if cpu < 2 { ns / 2 } else { ns },
            idle_ns: if cpu < 2 { ns / 2 } else { 0 },
            ..CpuTimes::default()
        };
        (0..4).map(times).collect()
    }

    fn say(maker: &GaugeMaker, part: usize, shares: &[f64]) {
        for &share in shares {
            maker
                .sender
                .try_send(Busy { part, share })
                .expect("there is room");
        }
    }

    #[test]
    fn busy_workers_get_help_once_all_have_said_so() {
        let (mut trial, maker) = trial();
        assert_eq!(trial.next_edge_ns(), 272 * MS);
        say(&maker, 0, &[0.99]);
        let never = || panic!("nothing is to be read yet");
        assert_eq!(trial.look(272 * MS, never), Outcome::Open);
        say(&maker, 0, &[0.5]);
        let Outcome::TooFew(more) = trial.look(275 * MS, || cpus(250 * MS)) else {
            panic!("one of them is the limit, and there is room");
        };
        assert_eq!(more.cpus, [3, 2, 1, 0]);
    }

    #[test]
    fn parts_are_looked_at_one_by_one_and_the_last_one_not_at_all() {
        let (mut trial, maker) = trial();
        let mut looks = Vec::new();
        for part in 0..3 {
            say(&maker, part, &[0.6, 0.7]);
            let at_ns = trial.next_edge_ns();
            looks.push((at_ns, trial.look(at_ns, || cpus(at_ns))));
        }
        assert_eq!(
            looks,
            [
                (272 * MS, Outcome::Open),
                (522 * MS, Outcome::Open),
                (772 * MS, Outcome::Enough)
            ]
        );
        // A worker that is a part ahead of the other, which says nothing any more.
        let (mut trial, maker) = self::trial();
        say(&maker, 0, &[1.0]);
        say(&maker, 1, &[1.0]);
        assert_eq!(trial.look(600 * MS, || cpus(0)), Outcome::Open);
        assert_eq!(trial.look(1_020 * MS, || cpus(0)), Outcome::Enough);
    }

    #[test]
    fn waiting_for_a_cpu_is_being_busy_and_polling_is_not() {
        let used = ThreadUse {
            interval_ns: 1_000,
            cpu_user_ns: 300,
            cpu_system_ns: 400,
            spun_ns: 200,
            run_queue_wait_ns: Some(100),
            involuntary_switches: 0,
        };
        assert!((busy_share(&used) - 0.6).abs() < 1e-9);
    }

    #[test]
    fn short_warm_ups_tell_nothing() {
        assert!(is_possible(1_000 * MS) && is_possible(400 * MS));
        assert!(!is_possible(399 * MS) && !is_possible(0));
    }
}
