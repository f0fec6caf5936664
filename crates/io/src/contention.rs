//! Whether others want the CPU of a thread, and for how long the thread leaves it to them.

use crate::cpu::Contention;

/// How long to poll between two looks at whether others want the CPU.
pub(crate) const LOOK_NS: u64 = 50_000_000;
/// How long polling is given up at first, and at most when it is given up again and again.
pub(crate) const PAUSE_NS_MIN: u64 = 100_000_000;
pub(crate) const PAUSE_NS_MAX: u64 = 10_000_000_000;
/// The thread has competitors for its CPU when it spent more than one part in this many of the time
/// waiting for it. Kernel threads alone can make it a few percent.
const WAIT_PARTS: u64 = 10;
/// Involuntary switches per `LOOK_NS` that mean nothing: on every CPU kernel threads run at times.
const SWITCHES_MAX: u64 = 100;

/// Whether others wanted the CPU in an interval of at least `LOOK_NS`.
pub(crate) fn is_contended(change: Contention, interval_ns: u64) -> bool {
    let waited_ns = change.run_queue_wait_ns.unwrap_or(0);
    waited_ns > interval_ns / WAIT_PARTS
        || change.involuntary_switches > SWITCHES_MAX * (interval_ns / LOOK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn contention(involuntary_switches: u64, run_queue_wait_ns: u64) -> Contention {
        Contention {
            involuntary_switches,
            run_queue_wait_ns: Some(run_queue_wait_ns),
        }
    }

    #[test]
    fn what_counts_as_contention() {
        let cases = [
            (contention(0, 0), LOOK_NS, false),
            (
                contention(SWITCHES_MAX, LOOK_NS / WAIT_PARTS),
                LOOK_NS,
                false,
            ),
            (contention(SWITCHES_MAX + 1, 0), LOOK_NS, true),
            (contention(0, LOOK_NS / WAIT_PARTS + 1), LOOK_NS, true),
            // A turn may be long: what is allowed grows with it.
            (
                contention(10 * SWITCHES_MAX, 10 * LOOK_NS / WAIT_PARTS),
                10 * LOOK_NS,
                false,
            ),
            (contention(10 * SWITCHES_MAX + 1, 0), 10 * LOOK_NS, true),
            (
                contention(0, 10 * LOOK_NS / WAIT_PARTS + 1),
                10 * LOOK_NS,
                true,
            ),
        ];
        for (change, interval_ns, contended) in cases {
            assert_eq!(
                is_contended(change, interval_ns),
                contended,
                "{change:?} in {interval_ns} ns"
            );
        }
        let unknown = Contention {
            involuntary_switches: SWITCHES_MAX + 1,
            run_queue_wait_ns: None,
        };
        assert!(is_contended(unknown, LOOK_NS), "switches alone suffice");
    }
}
