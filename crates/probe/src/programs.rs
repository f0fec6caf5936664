//! What programs beside brunt and the server use: one look at all processes at either edge of the
//! window.

use std::collections::{BTreeMap, BTreeSet};

use brunt_record::{OtherPrograms, PROGRAMS_MAX, ProgramUse};

use crate::server::proc_files::{self, ProcessReading};

/// Processes that are looked at: at 20 µs each, the rest are left to what nobody is charged with.
const PROCESSES_MAX: usize = 2_048;
/// Generations of processes that all end within the window.
const ANCESTORS_MAX: usize = 64;

/// All processes at the begin of the window.
#[derive(Debug, Default)]
pub(crate) struct ProgramsReader {
    start: BTreeMap<u32, ProcessReading>,
}

impl ProgramsReader {
    /// The first look.
    pub(crate) fn begin(&mut self) {
        self.start = read_all();
    }

    /// The last look. `watched`: processes of the server.
    pub(crate) fn end(self, watched: &BTreeSet<u32>) -> OtherPrograms {
        let left_out = |pid: &u32| *pid == std::process::id() || watched.contains(pid);
        let used = used(&self.start, &read_all(), left_out);
        let named = used.into_iter().map(|(pid, ns)| {
            let name = proc_files::name(pid).unwrap_or_else(|| "?".to_owned());
            (name, ns)
        });
        sums(named)
    }
}

/// All processes but the kernel's own threads. Empty where /proc is not to be read.
fn read_all() -> BTreeMap<u32, ProcessReading> {
    let pids = proc_files::pids().take(PROCESSES_MAX);
    pids.filter_map(|pid| Some((pid, ProcessReading::of(pid)?)))
        .filter(|(_, reading)| !reading.is_kernel_thread)
        .collect()
}

/// The CPU that each process used between two looks, with that of children that it waited for.
fn used(
    start: &BTreeMap<u32, ProcessReading>,
    end: &BTreeMap<u32, ProcessReading>,
    left_out: impl Fn(&u32) -> bool,
) -> Vec<(u32, u64)> {
    let same = |pid: &u32, reading: &ProcessReading| {
        let before = start.get(pid)?;
        (before.start_ticks == reading.start_ticks).then_some(before)
    };
    let is_left = |pid: &u32, reading: &ProcessReading| {
        let later = end.get(pid);
        later.is_none_or(|later| later.start_ticks != reading.start_ticks)
    };
    // A parent that waits for a child takes over what that used in all its life. If the parent ends
    // too, its own parent takes over both.
    let heir = |reading: &ProcessReading| {
        let mut parent = reading.parent;
        for _ in 0..ANCESTORS_MAX {
            match start.get(&parent) {
                Some(before) if is_left(&parent, before) => parent = before.parent,
                _ => break,
            }
        }
        parent
    };
    let mut before_window: BTreeMap<u32, u64> = BTreeMap::new();
    for (_, reading) in start.iter().filter(|(pid, reading)| is_left(pid, reading)) {
        let life_ns = reading.cpu.plus(reading.waited_cpu).total_ns();
        let sum = before_window.entry(heir(reading)).or_default();
        *sum = sum.saturating_add(life_ns);
    }
    let kept = end.iter().filter(|(pid, _)| !left_out(pid));
    let used = kept.map(|(pid, reading)| {
        let (own, waited) = match same(pid, reading) {
            Some(before) => (
                reading.cpu.since(before.cpu),
                reading.waited_cpu.since(before.waited_cpu),
            ),
            None => (reading.cpu, reading.waited_cpu),
        };
        let known_ns = before_window.get(pid).copied().unwrap_or(0);
        let waited_ns = waited.total_ns().saturating_sub(known_ns);
        (*pid, own.total_ns().saturating_add(waited_ns))
    });
    used.filter(|(_, ns)| *ns > 0).collect()
}

/// What programs used in all, and the largest of them by name.
fn sums(used: impl Iterator<Item = (String, u64)>) -> OtherPrograms {
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    for (name, ns) in used {
        let sum = by_name.entry(name).or_default();
        *sum = sum.saturating_add(ns);
    }
    let cpu_ns = by_name.values().sum();
    let mut largest: Vec<_> = by_name
        .into_iter()
        .map(|(name, cpu_ns)| ProgramUse { name, cpu_ns })
        .collect();
    largest.sort_by_key(|program| std::cmp::Reverse(program.cpu_ns));
    largest.truncate(PROGRAMS_MAX);
    OtherPrograms { cpu_ns, largest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_io::cpu::CpuUse;

    fn reading(parent: u32, start_ticks: u64, own_ns: u64, waited_ns: u64) -> ProcessReading {
        let cpu = |ns| CpuUse {
            user_ns: ns,
            system_ns: 0,
        };
        ProcessReading {
            start_ticks,
            parent,
            cpu: cpu(own_ns),
            waited_cpu: cpu(waited_ns),
            threads: 1,
            resident_bytes: 0,
            has_ended: false,
            is_kernel_thread: false,
        }
    }

    #[test]
    fn what_ran_between_two_looks_is_counted_once() {
        let start = BTreeMap::from([
            (1, reading(0, 1, 100, 1_000)),
            // Ends within the window, with 50 more, and is waited for by 1.
            (2, reading(1, 2, 300, 0)),
            (3, reading(1, 3, 40, 0)),
            (4, reading(1, 4, 70, 0)),
            (9, reading(1, 9, 5, 0)),
        ]);
        let end = BTreeMap::from([
            (1, reading(0, 1, 110, 1_350)),
            (3, reading(1, 3, 45, 0)),
            // Another process by the same number, and a new one.
            (4, reading(1, 8, 7, 0)),
            (5, reading(3, 9, 20, 2)),
            (9, reading(1, 9, 500, 0)),
        ]);
        let found = used(&start, &end, |pid| *pid == 9);
        // Of the first 4, 70 came from before the window.
        assert_eq!(found, [(1, 10), (3, 5), (4, 7), (5, 22)]);
    }

    #[test]
    fn a_family_that_ends_hands_down_only_what_it_used_in_the_window() {
        let start = BTreeMap::from([
            (1, reading(0, 1, 100, 0)),
            (2, reading(1, 2, 30, 400)),
            (3, reading(2, 3, 2_000, 10)),
            (4, reading(3, 4, 500, 0)),
        ]);
        // 4 ended after 20 more, 3 after 5 and 2 after 1: 1 waited for 2, which had waited for all.
        let end = BTreeMap::from([(1, reading(0, 1, 100, 2_966))]);
        assert_eq!(used(&start, &end, |_| false), [(1, 26)]);
    }

    #[test]
    fn programs_are_named_by_what_they_used() {
        let used = [("a", 5), ("b", 9), ("c", 1), ("a", 5), ("d", 2)];
        let found = sums(used.into_iter().map(|(name, ns)| (name.to_owned(), ns)));
        assert_eq!(found.cpu_ns, 22);
        let names: Vec<_> = found
            .largest
            .iter()
            .map(|one| (one.name.as_str(), one.cpu_ns))
            .collect();
        assert_eq!(names, [("a", 10), ("b", 9), ("d", 2)]);
    }

    #[test]
    fn this_process_is_none_of_the_others() {
        let mut reader = ProgramsReader::default();
        reader.begin();
        assert!(reader.start.contains_key(&std::process::id()));
        let found = reader.end(&BTreeSet::new());
        assert!(found.largest.len() <= PROGRAMS_MAX);
        assert!(found.largest.iter().all(|one| one.cpu_ns <= found.cpu_ns));
    }
}
