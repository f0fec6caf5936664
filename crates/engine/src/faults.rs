//! Disturbances of brunt itself, so that the checks of a run can be seen to find them.

use brunt_record::{Once, Recording, StatusCounts};

/// Disturbances of brunt itself, for tests of its own checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Worker, and how much later than the others it starts, nanoseconds.
    pub start_delay: Option<(u32, u64)>,
    /// Worker, and how far its window is moved against the others', nanoseconds.
    pub window_shift: Option<(u32, u64)>,
    /// Worker, and the work added to each of its requests, nanoseconds.
    pub busy: Option<(u32, u64)>,
    /// Worker, and how much earlier than it did it says that it left the window, nanoseconds.
    pub window_cut: Option<(u32, u64)>,
    /// Worker, and how far its clock jumps ahead within the window, nanoseconds: what it notes
    /// afterwards of its own life is off by as much.
    pub clock_step: Option<(u32, u64)>,
    /// Worker, and how many replies of the window are missing from its counters.
    pub lost_replies: Option<(u32, u64)>,
    /// How long after the start of load the workers are found to be too few, nanoseconds: once, or
    /// on a machine as often as there may be more of them.
    pub too_few: Option<u64>,
}

/// What a fault does to this worker, 0 for nothing.
pub(crate) fn fault_of(fault: Option<(u32, u64)>, worker: u32) -> u64 {
    fault
        .filter(|&(whom, _)| whom == worker)
        .map_or(0, |(_, ns)| ns)
}

/// Puts the faults of this worker into its recording.
pub(crate) fn apply(faults: &Faults, recording: &mut Recording) {
    let record = &mut recording.record;
    let edges = &mut record.edges;
    let cut_ns = fault_of(faults.window_cut, record.worker);
    if cut_ns > 0 {
        edges.window_end = moved(edges.window_end, |at_ns| at_ns.saturating_sub(cut_ns));
    }
    let step_ns = fault_of(faults.clock_step, record.worker);
    if step_ns > 0 {
        for edge in [&mut edges.window_end, &mut edges.drained] {
            *edge = moved(*edge, |at_ns| at_ns.saturating_add(step_ns));
        }
    }
    let lost = fault_of(faults.lost_replies, record.worker);
    if lost > 0 {
        let replies = &mut record.tallies.measure.replies;
        *replies = without(replies, lost);
    }
}

/// The edge at another instant, if it was written.
fn moved(edge: Once, to: impl FnOnce(u64) -> u64) -> Once {
    edge.get().map_or(edge, |at_ns| {
        Once::at(to(at_ns.cast_unsigned()).cast_signed())
    })
}

/// The counts with the first `lost` replies left out.
fn without(replies: &StatusCounts, mut lost: u64) -> StatusCounts {
    let mut left = StatusCounts::default();
    for (status, count) in replies.iter() {
        let lost_here = count.min(lost);
        lost -= lost_here;
        (lost_here..count).for_each(|_| left.add(status));
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording() -> Recording {
        let mut recording = Recording::default();
        let record = &mut recording.record;
        record.worker = 1;
        record.edges.window_start = Once::at(1_000);
        record.edges.window_end = Once::at(3_000);
        record.edges.drained = Once::at(3_100);
        for status in [200, 200, 503] {
            record.tallies.measure.replies.add(status);
        }
        recording
    }

    #[test]
    fn each_fault_changes_what_it_names_and_nothing_else() {
        type Change = fn(&mut Recording);
        let cases: [(Faults, Change); 7] = [
            (Faults::default(), |_| {}),
            (
                Faults {
                    window_cut: Some((1, 300)),
                    ..Faults::default()
                },
                |recording| recording.record.edges.window_end = Once::at(2_700),
            ),
            (
                Faults {
                    clock_step: Some((1, 50)),
                    ..Faults::default()
                },
                |recording| {
                    recording.record.edges.window_end = Once::at(3_050);
                    recording.record.edges.drained = Once::at(3_150);
                },
            ),
            (
                Faults {
                    lost_replies: Some((1, 1)),
                    ..Faults::default()
                },
                |recording| {
                    let mut left = StatusCounts::default();
                    left.add(200);
                    left.add(503);
                    recording.record.tallies.measure.replies = left;
                },
            ),
            (
                Faults {
                    lost_replies: Some((1, u64::MAX)),
                    ..Faults::default()
                },
                |recording| {
                    recording.record.tallies.measure.replies = StatusCounts::default();
                },
            ),
            (
                Faults {
                    window_cut: Some((0, 300)),
                    lost_replies: Some((2, 1)),
                    clock_step: Some((0, 50)),
                    ..Faults::default()
                },
                |_| {},
            ),
            (
                Faults {
                    start_delay: Some((1, 9)),
                    window_shift: Some((1, 9)),
                    busy: Some((1, 9)),
                    ..Faults::default()
                },
                |_| {},
            ),
        ];
        for (faults, change) in cases {
            let (mut faulty, mut expected) = (recording(), recording());
            apply(&faults, &mut faulty);
            change(&mut expected);
            assert_eq!(faulty.record, expected.record, "{faults:?}");
        }
    }

    #[test]
    fn an_edge_that_was_not_written_stays_unwritten() {
        let faults = Faults {
            window_cut: Some((0, 300)),
            clock_step: Some((0, 50)),
            ..Faults::default()
        };
        let mut recording = Recording::default();
        apply(&faults, &mut recording);
        assert_eq!(recording.record, Recording::default().record);
    }
}
