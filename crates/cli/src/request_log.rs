//! `--request-log`: each request of the window, as a line of a file.

use anyhow::{Result, bail};
use brunt_load::{RequestSet, Stop};
use brunt_record::RequestLog;

use crate::args::LoadArguments;
use crate::message;
use crate::redact::without_query;

/// Requests that are to be logged, at most; 0 where no log was asked for.
///
/// # Errors
///
/// More are to be sent than a log holds.
pub(crate) fn requests_max(arguments: &LoadArguments, stop: &Stop) -> Result<u64> {
    const MOST: u64 = RequestLog::REQUESTS_MAX;
    if arguments.output.request_log.is_none() {
        return Ok(0);
    }
    match stop.requests {
        Some(requests) if requests > MOST => bail!(
            "--request-log holds {MOST} requests (1 GiB), and -n asks for {requests}; give -n \
             {MOST} or less, or leave --request-log out"
        ),
        Some(requests) => Ok(requests),
        None => Ok(MOST),
    }
}

/// What a run logged, with what its requests are called.
#[derive(Debug)]
pub(crate) struct NamedLog {
    pub(crate) log: RequestLog,
    /// The requests of the plan; absent where a generator made them during the run.
    requests: Option<RequestSet>,
    /// What a single one is called.
    only: String,
    hides_queries: bool,
}

impl NamedLog {
    /// The named log of a run that sent `requests`.
    pub(crate) fn new(log: RequestLog, requests: &RequestSet) -> Self {
        let only = match requests.names().len() {
            0 => requests.first_name(),
            _ => String::new(),
        };
        Self {
            log,
            requests: Some(requests.clone()),
            only,
            hides_queries: false,
        }
    }

    /// The named log of a run whose requests a generator made during the run.
    pub(crate) fn of_generated(log: RequestLog) -> Self {
        Self {
            log,
            requests: None,
            only: String::new(),
            hides_queries: false,
        }
    }

    /// Leaves the queries of URLs out of the names.
    pub(crate) fn without_queries(self) -> Self {
        Self {
            hides_queries: true,
            ..self
        }
    }

    /// Says so where requests are missing in it.
    pub(crate) fn announce(&self) {
        if self.log.left_out() > 0 {
            message::print(&format_args!(
                "--request-log holds the first {} requests; {} more were answered or failed",
                self.log.len(),
                self.log.left_out()
            ));
        }
    }

    /// What the request of this number is called.
    pub(crate) fn name(&self, request: u32) -> &str {
        let requests = self.requests.as_ref();
        let name = requests.and_then(|requests| requests.name(request));
        let name = name.unwrap_or(&self.only);
        match self.hides_queries {
            true => without_query(name),
            false => name,
        }
    }
}
