//! A limit of the address space (RLIMIT_AS, `ulimit -v`): no allocation that it refuses has an
//! error, so what brunt needs at least is looked at first.

use anyhow::{Result, bail};
use brunt_io::heap;
use brunt_probe::memory;

/// What brunt needs with one worker: stacks of its threads, certificates, buffers, histograms.
const NEEDED_BYTES: u64 = 56 << 20;

/// Makes the most of the address space, where it is limited.
///
/// # Errors
///
/// It is too small for any run.
pub(crate) fn fit() -> Result<()> {
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
