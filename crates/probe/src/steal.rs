//! When the hypervisor takes which CPU: their steal, read more often than the rest of the machine.

use std::fs::File;
use std::io;

use brunt_record::{CpuTimes, Stolen};

use crate::host;
use crate::series::Pace;
use crate::server::proc_files::tick_ns;

/// Shortest and longest time between two readings. A burst of steal is some tens of milliseconds
/// long, and what lies between two readings is lost with it.
const PAUSE_MIN_NS: u64 = 25_000_000;
const PAUSE_MAX_NS: u64 = 2_000_000_000;
/// Shortest time between two readings on a machine whose hypervisor has taken nothing since the
/// machine started.
const PAUSE_UNSTOLEN_NS: u64 = 100_000_000;
/// How long before the window steal is read, at most.
pub(crate) const BEFORE_NS: u64 = 1_000_000_000;
/// Stretches that are kept. Beyond, the neighbours of each CPU are joined.
const STOLEN_MAX: usize = 16_384;

/// Reads the steal of all CPUs over one window.
#[derive(Debug)]
pub(crate) struct StealReader {
    stat: io::Result<File>,
    ns_per_tick: u64,
    text: Vec<u8>,
    pace: Pace,
    /// Start of the window.
    origin_ns: u64,
    /// The latest reading, and when it was taken.
    latest: Vec<CpuTimes>,
    latest_ns: u64,
    stolen: Vec<Stolen>,
}

impl StealReader {
    /// Opens what is to be read.
    pub(crate) fn new() -> Self {
        Self {
            stat: File::open(host::STAT),
            ns_per_tick: tick_ns(),
            text: vec![0; host::STAT_BYTES],
            pace: Pace::new(PAUSE_MIN_NS, PAUSE_MAX_NS),
            origin_ns: 0,
            latest: Vec::new(),
            latest_ns: 0,
            stolen: Vec::new(),
        }
    }

    /// The first reading, up to [`BEFORE_NS`] before the window that begins at `origin_ns`.
    pub(crate) fn begin(&mut self, now_ns: u64, origin_ns: u64) {
        self.origin_ns = origin_ns;
        self.sample(now_ns);
        if self.latest.iter().all(|times| times.steal_ns == 0) {
            self.pace = Pace::new(PAUSE_UNSTOLEN_NS, PAUSE_MAX_NS);
        }
    }

    /// A reading. What cannot be read stays as it was.
    pub(crate) fn sample(&mut self, now_ns: u64) {
        let Ok(cpus) = host::read_cpus(&self.stat, &mut self.text, self.ns_per_tick) else {
            return;
        };
        self.note(cpus, now_ns);
    }

    /// A reading took `cpu_ns` of CPU.
    pub(crate) fn cost(&mut self, cpu_ns: u64) {
        self.pace.note(cpu_ns);
    }

    /// Time from one reading to the next, nanoseconds.
    pub(crate) fn pause_ns(&self) -> u64 {
        self.pace.pause_ns()
    }

    /// What was stolen in the window, oldest first.
    pub(crate) fn finish(mut self, now_ns: u64) -> Vec<Stolen> {
        self.sample(now_ns);
        self.stolen
    }

    fn note(&mut self, cpus: Vec<CpuTimes>, now_ns: u64) {
        let origin_ns = self.origin_ns.cast_signed();
        let offset_ns = |at_ns: u64| at_ns.cast_signed().saturating_sub(origin_ns);
        let (from_ns, until_ns) = (offset_ns(self.latest_ns), offset_ns(now_ns));
        for times in &cpus {
            let before = self.latest.iter().find(|before| before.cpu == times.cpu);
            let before_ns = before.map_or(times.steal_ns, |before| before.steal_ns);
            let steal_ns = times.steal_ns.saturating_sub(before_ns);
            if steal_ns > 0 {
                self.stolen.push(Stolen {
                    cpu: times.cpu,
                    from_ns,
                    until_ns,
                    steal_ns,
                });
            }
        }
        if self.stolen.len() > STOLEN_MAX {
            join(&mut self.stolen);
        }
        self.latest = cpus;
        self.latest_ns = now_ns;
    }
}

/// Joins each second stretch of a CPU with the one before it.
fn join(stolen: &mut Vec<Stolen>) {
    let all = std::mem::take(stolen);
    // Places of those that wait for their second half, by CPU.
    let mut firsts = std::collections::BTreeMap::new();
    for next in all {
        match firsts.remove(&next.cpu) {
            Some(place) => {
                let first: &mut Stolen = &mut stolen[place];
                first.until_ns = next.until_ns;
                first.steal_ns = first.steal_ns.saturating_add(next.steal_ns);
            }
            None => {
                firsts.insert(next.cpu, stolen.len());
                stolen.push(next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn reader(origin_ns: u64) -> StealReader {
        StealReader {
            origin_ns,
            ..StealReader::new()
        }
    }

    fn times(steals_ms: &[u64]) -> Vec<CpuTimes> {
        let times = (0..).zip(steals_ms).map(|(cpu, ms)| CpuTimes {
            cpu,
            steal_ns: ms * MS,
            ..CpuTimes::default()
        });
        times.collect()
    }

    #[test]
    fn what_is_added_between_two_readings_was_stolen_in_between() {
        let mut reader = reader(1_000);
        // Before the window, and over its start.
        reader.note(times(&[80, 5]), 900);
        reader.note(times(&[80, 15]), 1_500);
        reader.note(times(&[80, 15]), 2_000);
        // A CPU that comes has been stolen nothing, one that steps back neither.
        reader.note(times(&[90, 14, 99]), 2_500);
        reader.note(times(&[120, 44, 99]), 2_600);
        let stolen = |cpu, from_ns, until_ns, ms| Stolen {
            cpu,
            from_ns,
            until_ns,
            steal_ns: ms * MS,
        };
        assert_eq!(
            reader.stolen,
            [
                stolen(1, -100, 500, 10),
                stolen(0, 1_000, 1_500, 10),
                stolen(0, 1_500, 1_600, 30),
                stolen(1, 1_500, 1_600, 30),
            ]
        );
    }

    #[test]
    fn stretches_are_bounded_and_nothing_is_lost() {
        let mut reader = reader(0);
        let count = 3 * STOLEN_MAX as u64;
        for at in 0..count {
            reader.note(times(&[at, 2 * at, 7]), 1 + at);
        }
        assert!(reader.stolen.len() <= STOLEN_MAX);
        for (cpu, ms) in [(0, count - 1), (1, 2 * (count - 1))] {
            let of_cpu = reader.stolen.iter().filter(|one| one.cpu == cpu);
            assert_eq!(of_cpu.map(|one| one.steal_ns).sum::<u64>(), ms * MS);
        }
        let starts = reader.stolen.iter().map(|one| one.from_ns);
        assert!(starts.is_sorted());
    }

    #[test]
    fn this_machine_is_read() {
        let mut reader = StealReader::new();
        reader.begin(5, 10);
        assert!(!reader.latest.is_empty());
        assert!(reader.pause_ns() >= PAUSE_MIN_NS);
        let stolen = reader.finish(20);
        assert!(
            stolen
                .iter()
                .all(|one| one.from_ns <= one.until_ns && one.until_ns <= 10)
        );
    }
}
