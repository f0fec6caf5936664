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
    let begun_ns = clock::now_ns();
    let waited_ns = || clock::now_ns().saturating_sub(begun_ns);
    while goes_on(ports, waited_ns(), time_wait_sockets()) {
        if is_interrupted() {
            return false;
        }
        threads::sleep(LOOK_NS);
    }
    true
}

/// Whether there are too many sockets, and they may still become fewer.
fn goes_on(ports: Option<u64>, waited_ns: u64, sockets: Option<u64>) -> bool {
    let most = ports.unwrap_or(PORTS_DEFAULT) / 2;
    sockets.is_some_and(|sockets| sockets > most) && waited_ns <= WAIT_NS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_ports_is_enough_and_a_minute_the_most() {
        for (ports, waited_s, sockets, expected) in [
            (Some(1_000), 0, Some(501), true),
            (Some(1_000), 0, Some(500), false),
            (Some(1_000), 0, None, false),
            (Some(1_000), 61, Some(501), true),
            (Some(1_000), 62, Some(501), false),
            (None, 0, Some(14_117), true),
            (None, 0, Some(14_116), false),
        ] {
            let found = goes_on(ports, waited_s * 1_000_000_000, sockets);
            assert_eq!(found, expected, "{ports:?} {waited_s} {sockets:?}");
        }
    }
}
