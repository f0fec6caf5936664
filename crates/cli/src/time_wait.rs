//! Waiting until the sockets of earlier rounds have given their local ports back.

use brunt_io::{clock, threads};
use brunt_probe::network::time_wait_sockets;

/// TIME_WAIT lasts 60 s on Linux: who waits for longer waits for something else.
const WAIT_NS_MAX: u64 = 61_000_000_000;
/// How often it is looked whether it is over.
const LOOK_NS: u64 = 100_000_000;
/// Local ports where their number is not known: the kernel's own range.
const PORTS_DEFAULT: u64 = 28_232;

/// Waits until sockets in TIME_WAIT, of this network namespace, hold at most half of the local
/// ports; gives whether that was waited for, and not `is_interrupted`.
pub(crate) fn settle(ports: Option<u64>, mut is_interrupted: impl FnMut() -> bool) -> bool {
    let wait = Wait::new(ports, clock::now_ns());
    while wait.goes_on(clock::now_ns(), time_wait_sockets()) {
        if is_interrupted() {
            return false;
        }
        threads::sleep(LOOK_NS);
    }
    true
}

/// What is waited for.
#[derive(Clone, Copy, Debug)]
struct Wait {
    begun_ns: u64,
    sockets_most: u64,
}

impl Wait {
    fn new(ports: Option<u64>, now_ns: u64) -> Self {
        Self {
            begun_ns: now_ns,
            sockets_most: ports.unwrap_or(PORTS_DEFAULT) / 2,
        }
    }

    /// Whether there are too many sockets, and they may still become fewer.
    fn goes_on(&self, now_ns: u64, sockets: Option<u64>) -> bool {
        let waited_ns = now_ns.saturating_sub(self.begun_ns);
        sockets.is_some_and(|sockets| sockets > self.sockets_most) && waited_ns <= WAIT_NS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn half_of_the_ports_is_enough_and_a_minute_the_most() {
        let wait = Wait::new(Some(1_000), 5 * S);
        for (at_s, sockets, goes_on) in [
            (5, Some(501), true),
            (5, Some(500), false),
            (5, None, false),
            (66, Some(501), true),
            (67, Some(501), false),
        ] {
            assert_eq!(
                wait.goes_on(at_s * S, sockets),
                goes_on,
                "{at_s} {sockets:?}"
            );
        }
        let unknown = Wait::new(None, 0);
        assert!(unknown.goes_on(S, Some(14_117)) && !unknown.goes_on(S, Some(14_116)));
    }
}
