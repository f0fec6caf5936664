//! zrk.

mod explain;
mod figures;
mod json;
mod live;
mod options;
mod plan;
mod report;
mod tally;
mod usage;

use brunt_engine::PrepareError;

pub use explain::explanation;
pub use figures::Figures;
pub use live::{Live, Shown};
pub use options::{Body, Format, Options, shown};
pub use plan::plan;
pub use report::{breach, hgrm, report};

use crate::Ending;
use crate::ending::{Cause, cause};

/// The version whose command line and output these are.
const VERSION: &str = "3.0.0";

/// How a run ends that cannot be prepared. Absent where zrk has no words for it.
pub fn preparation_ending(error: &PrepareError) -> Option<Ending> {
    Some(match cause(error)? {
        Cause::Resolve(reason) => Ending::error(
            &format!("zrk: could not resolve the target host: {reason}"),
            1,
        ),
        Cause::Connect(reason, _) => nothing_done(&format!("connecting failed: {reason}")),
    })
}

/// How a run ends in which no request was answered.
pub fn nothing_done(why: &str) -> Ending {
    Ending::error(&format!("zrk: no request completed; {why}"), 1)
}
