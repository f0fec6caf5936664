//! ab, of the Apache HTTP server.

mod options;
mod plan;
mod report;

use brunt_engine::PrepareError;
use brunt_judge::RunFigures;
use brunt_record::Run;

pub use options::{Html, Options, Proxy, TABLE, Url};
pub use plan::Planned;
pub use report::{Measured, csv, gnuplot, heading, report};

use crate::Ending;
use crate::ending::Cause;

/// Where the codes of the resolver begin in ab's messages.
const RESOLVER_CODES: u32 = 670_000;
/// A time-out in ab's messages.
const TIMED_OUT: u32 = 70_007;

/// How a run ends that cannot be prepared. Absent where ab has no words for it.
pub fn preparation_ending(options: &Options, error: &PrepareError) -> Option<Ending> {
    Some(match Cause::of(error)? {
        Cause::Resolve(reason) => {
            // EAI_AGAIN, EAI_NONAME.
            let is_temporary = reason.starts_with("Temporary");
            let code = if is_temporary { 3 } else { 2 };
            let what = format!("apr_sockaddr_info_get() for {}", options.server().0);
            ending(&what, &reason, RESOLVER_CODES + code)
        }
        Cause::Connect(reason, Some(code)) => ending("apr_socket_recv", &reason, code),
        Cause::Connect(..) => timed_out(),
    })
}

/// Why ab would have ended in the middle of `run`. Absent where it would have gone on.
pub fn run_ending(options: &Options, run: &Run) -> Option<Ending> {
    use brunt_record::FailureKind::{Reset, TimedOut};
    let summary = run.summary();
    let failures = &summary.lifetime.failures;
    let mut ending = if failures.get(TimedOut) > 0 {
        timed_out()
    } else if failures.get(Reset) > 0 && !options.goes_on {
        ending("apr_socket_recv", "Connection reset by peer", 104)
    } else {
        return None;
    };
    let replies = summary.lifetime.replies.total();
    if replies > 0 {
        ending.stdout = format!("Total of {replies} requests completed\n");
    }
    Some(ending)
}

fn timed_out() -> Ending {
    let reason = "The timeout specified has expired";
    ending("apr_pollset_poll", reason, TIMED_OUT)
}

/// ab exits with what a process can give of the code.
fn ending(what: &str, reason: &str, code: u32) -> Ending {
    Ending::error(&format!("{what}: {reason} ({code})"), code as u8)
}
