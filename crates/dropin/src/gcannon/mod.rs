//! gcannon.

mod explain;
mod figures;
mod options;
mod plan;
mod report;
mod usage;

use std::path::Path;

use brunt_engine::PrepareError;

pub use explain::explanation;
pub use figures::Figures;
pub use options::{Address, Options, shown};
pub use plan::{plan, target};
pub use report::{exit_code, heading, report};

use crate::Ending;
use crate::ending::{Cause, cause};

/// The version whose command line and output these are.
const VERSION: &str = "0.5.3";

/// How a run ends that cannot be prepared. Absent where gcannon has no words for it.
pub fn preparation_ending(options: &Options, error: &PrepareError) -> Option<Ending> {
    let host = options.address.as_ref().map_or("", |it| &it.host);
    Some(match cause(error)? {
        Cause::Resolve(_) => wrong(&format!("cannot resolve host '{host}'")),
        Cause::Connect(reason, _) => wrong(&format!("cannot connect to '{host}': {reason}")),
    })
}

/// How a command line ends whose file with a request cannot be read.
pub fn unread(path: &Path) -> Ending {
    wrong(&format!(
        "cannot open raw request file '{}'",
        path.display()
    ))
}

/// What is wrong before the load, in gcannon's form.
pub(crate) fn wrong(message: &str) -> Ending {
    Ending::error(&format!("Error: {message}"), 1)
}
