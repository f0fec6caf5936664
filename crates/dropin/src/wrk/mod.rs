//! wrk and wrk2.

mod latencies;
mod options;
mod plan;
mod report;
mod script;
mod units;
mod url;

use brunt_engine::PrepareError;

pub use options::{Options, Program, TABLE};
pub use plan::plan;
pub use report::{heading, report};
pub use script::{Scripted, outcome, script_error};
pub use url::Url;

use crate::Ending;
use crate::ending::Cause;

/// How a run ends that cannot be prepared. Absent where wrk has no words for it.
pub fn preparation_ending(options: &Options, error: &PrepareError) -> Option<Ending> {
    let (host, service) = (&options.url.host, options.url.service());
    let line = match Cause::of(error)? {
        Cause::Resolve(reason) => format!("unable to resolve {host}:{service} {reason}"),
        Cause::Connect(reason, _) => format!("unable to connect to {host}:{service} {reason}"),
    };
    Some(Ending::error(&line, 1))
}
