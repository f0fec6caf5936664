//! httperf, of David Mosberger and others.

mod options;
mod plan;
mod report;

use brunt_engine::PrepareError;

pub use options::Period;
pub use options::{Options, TABLE, Uris, Workload};
pub use plan::Files;
pub use plan::Planned;
pub use report::{heading, report};

use crate::Ending;
use crate::ending::Cause;

/// ECONNREFUSED.
const REFUSED: u32 = 111;

/// How a run ends that cannot be prepared. Absent where httperf has no words for it.
pub fn preparation_ending(options: &Options, error: &PrepareError) -> Option<Ending> {
    match Cause::of(error)? {
        Cause::Resolve(_) => Some(Ending {
            stdout: heading(options),
            stderr: format!(
                "httperf.core_addr_intern: invalid server address {}\n",
                options.server
            ),
            code: 1,
        }),
        // Each of its connections would be an error, and it ends well.
        Cause::Connect(_, Some(REFUSED)) => Some(Ending {
            stdout: heading(options) + &report::refused(options),
            stderr: "brunt: NO-SUCCESS: nobody takes connections there\n".to_owned(),
            code: 0,
        }),
        Cause::Connect(..) => None,
    }
}

/// How the program ends where a file cannot be read.
pub fn unread(options: &Options, path: &std::path::Path) -> Ending {
    Ending {
        stdout: heading(options),
        stderr: format!("httperf: can't open {}\n", path.display()),
        code: 1,
    }
}

/// How the program ends where a log of sessions cannot be read.
pub fn unread_log(options: &Options, error: &brunt_load::sessions::SessionLogError) -> Ending {
    Ending {
        stdout: heading(options),
        stderr: format!("brunt: --wsesslog: {error}\n"),
        code: 1,
    }
}
