//! SIGINT, SIGTERM and SIGHUP: listening for them, and counting them.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context, Result, bail};
use brunt_io::{clock, heap, process_group, threads};
use brunt_probe::memory;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::EXIT_INTERRUPTED;

/// A signal that comes this long after the second one finds a process that does not end by itself:
/// its report is being written to a pipe that nobody reads, say.
const STUCK_NS: u64 = 1_000_000_000;

/// What a second signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    /// The run ends at once, with its report.
    Reports,
    /// The process ends at once: there is nothing to be reported.
    Ends,
}

/// The signals that came.
#[derive(Clone, Debug)]
pub(crate) struct Interrupts {
    count: Arc<AtomicU32>,
}

impl Interrupts {
    /// Listens from now on. SIGHUP is left alone where it is ignored, as nohup has it.
    pub(crate) fn listen(second: Second) -> Result<Self> {
        let count = Arc::new(AtomicU32::new(0));
        let heard = Arc::clone(&count);
        let mut numbers = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            numbers.push(SIGHUP);
        }
        let mut signals = Signals::new(numbers).context("cannot listen for signals")?;
        let body = move || {
            let mut second_ns = None;
            for _ in signals.forever() {
                let before = heard.fetch_add(1, Ordering::Relaxed);
                let now_ns = clock::now_ns();
                let is_last = match (before, second, second_ns) {
                    (0, _, _) => false,
                    (_, Second::Ends, _) => true,
                    (_, Second::Reports, None) => {
                        second_ns = Some(now_ns);
                        false
                    }
                    (_, Second::Reports, Some(second_ns)) => now_ns > second_ns + STUCK_NS,
                };
                if is_last {
                    process_group::kill_all();
                    process::exit(EXIT_INTERRUPTED.into());
                }
            }
        };
        threads::spawn("brunt-signals", body).context("cannot listen for signals")?;
        Ok(Self { count })
    }

    /// How many signals came.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether a signal came.
    pub(crate) fn came(&self) -> bool {
        self.count() > 0
    }

    /// Whether a second one came.
    pub(crate) fn came_again(&self) -> bool {
        self.count() > 1
    }

    /// As if so many had come, and none could come but by [`Self::add`].
    #[cfg(test)]
    pub(crate) fn of(count: u32) -> Self {
        Self {
            count: Arc::new(AtomicU32::new(count)),
        }
    }

    #[cfg(test)]
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Has the kernel refuse what would make a file larger than is allowed (RLIMIT_FSIZE), in place of
/// the signal that ends the process and leaves temporary files behind. It is handled and not
/// ignored, which commands that brunt runs would inherit.
pub(crate) fn outlive_file_limit() {
    // Without a handler the signal ends the process, as it does by default.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// Whether the process was started with this signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The mask of ignored signals in a `/proc/PID/status`.
fn ignored_in(status: &str) -> Option<u64> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// What brunt needs with one worker: stacks of its threads, certificates, buffers, histograms.
const NEEDED_BYTES: u64 = 56 << 20;

/// Makes the most of the address space, where it is limited.
///
/// # Errors
///
/// It is too small for any run.
pub(crate) fn fit_address_space() -> Result<()> {
    let Some(space) = memory::address_space() else {
        return Ok(());
    };
    heap::use_one_arena();
    if space.left_bytes() < NEEDED_BYTES {
        let needed = space.used_bytes + NEEDED_BYTES;
        bail!(
            "{} MB of address space are allowed (RLIMIT_AS), and brunt needs {} MB at least; raise \
             the limit with `ulimit -v {}`, or limit memory by a cgroup in its place",
            space.limit_bytes >> 20,
            needed.div_ceil(1 << 20),
            needed.div_ceil(1 << 10)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tbrunt\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored_in(status), Some(0x1001));
        assert_eq!(ignored_in("Name:\tbrunt\n"), None);
        assert!(ignored_in(&std::fs::read_to_string("/proc/self/status").unwrap()).is_some());
    }
}
