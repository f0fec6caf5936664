//! How a simulated worker waits: virtual time passes until there is something to look at.

use std::io;

use crate::cpu::Cpu;
use crate::settings::LateWakeUps;

/// What happens outside of a worker while it waits.
pub(crate) trait Outside {
    /// When the next thing happens.
    fn next_ns(&self) -> Option<u64>;

    /// Lets everything happen that happens up to `until_ns`.
    fn pass(&mut self, until_ns: u64);

    /// Whether there is something that the worker is to look at.
    fn has_notices(&self) -> bool;

    /// Whether something of this probability happens.
    fn chance(&mut self, probability: f64) -> bool;

    /// A wake-up is late.
    fn woken_late(&mut self);
}

/// Waits from `from_ns` on until there is something to look at, or until `until_ns`.
///
/// # Errors
///
/// Nothing more would ever happen.
pub(crate) fn wait(
    cpu: &Cpu,
    outside: &mut impl Outside,
    (from_ns, until_ns): (u64, Option<u64>),
    late: Option<LateWakeUps>,
) -> io::Result<()> {
    let until_ns = until_ns.unwrap_or(u64::MAX).max(from_ns);
    outside.pass(from_ns);
    let mut now_ns = from_ns;
    while !outside.has_notices() {
        match outside.next_ns().filter(|&next_ns| next_ns <= until_ns) {
            Some(next_ns) => {
                outside.pass(next_ns);
                now_ns = next_ns;
            }
            None if until_ns == u64::MAX => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the simulation waits for ever: nothing more will happen in it",
                ));
            }
            None => {
                now_ns = until_ns;
                break;
            }
        }
    }
    if let Some(late) = late
        && now_ns > from_ns
        && outside.chance(late.probability)
    {
        outside.woken_late();
        now_ns += late.delay_ns;
    }
    let now_ns = cpu.wake(now_ns);
    outside.pass(now_ns);
    Ok(())
}
