//! `--urls` and `--targets`: the requests of a list, from their file.

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};
use brunt_load::request_list::{self, ListedRequest, RequestList};
use brunt_load::{RequestOrder, RequestSet, RequestSpec, Target};

use crate::args::{LoadArguments, OrderName};
use crate::plan::fresh_seed;
use crate::request::{BODY_BYTES_MAX, request};
use crate::source::read_all;

/// Largest list.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// What is loaded, and by which requests.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Absent for the built-in server.
    pub(crate) target: Option<Target>,
    /// Absent for the one request of the URL.
    pub(crate) requests: Option<RequestSet>,
}

/// Reads the list of requests, if there is one; `typed` is the URL on the command line.
pub(crate) fn read(arguments: &LoadArguments, typed: Option<Target>) -> Result<Listed> {
    let (option, path) = match (&arguments.urls, &arguments.targets) {
        (Some(path), _) => ("--urls", path),
        (None, Some(path)) => ("--targets", path),
        (None, None) => {
            if arguments.order != OrderName::Turns {
                bail!("--order is about a list of requests; give one with --urls or --targets");
            }
            return Ok(Listed {
                target: typed,
                requests: None,
            });
        }
    };
    let name = path.display();
    let text =
        read_list(path, "the list of requests").with_context(|| format!("{option} {name}"))?;
    let list = if option == "--urls" {
        request_list::urls(&text, typed.as_ref())
    } else {
        request_list::targets(&text, typed.as_ref())
    };
    let list = list.with_context(|| format!("{option} {name}"))?;
    let common = request(arguments)?;
    let is_url = option == "--urls";
    let RequestList {
        mut target,
        requests,
    } = list;
    target.unix_socket = arguments.unix_socket.clone();
    // It stands for all of them.
    target.url = format!("{}://{}/", target.scheme.name(), target.authority);
    let mut specs = Vec::with_capacity(requests.len());
    for listed in requests {
        specs.push(complete(listed, &common, is_url).with_context(|| format!("{option} {name}"))?);
    }
    let requests = RequestSet::list(specs, order(arguments), |request| {
        let name = request.name();
        match name.split_once('?') {
            Some((before, _)) if arguments.output.redact => before.to_owned(),
            _ => name,
        }
    });
    Ok(Listed {
        target: Some(target),
        requests,
    })
}

/// The bytes of the file, or of standard input for `-`; `what` names it in messages.
pub(crate) fn read_list(path: &Path, what: &str) -> Result<Vec<u8>> {
    if path == Path::new("-") {
        return read_all(io::stdin().lock(), "standard input", what, LIST_BYTES_MAX);
    }
    let file = File::open(path).with_context(|| format!("cannot read {what}"))?;
    read_all(file, &path.display().to_string(), what, LIST_BYTES_MAX)
}

/// One request of the list, with what the options give to all of them.
fn complete(listed: ListedRequest, common: &RequestSpec, is_url: bool) -> Result<RequestSpec> {
    let mut request = listed.request;
    if is_url {
        request.method.clone_from(&common.method);
        request.body.clone_from(&common.body);
    }
    // Those of the request itself take the place of those of all.
    let own = |name: &str| {
        let mut names = request.headers.iter().map(|(name, _)| name);
        names.any(|other| other.eq_ignore_ascii_case(name))
    };
    let mut headers: Vec<(String, String)> = common
        .headers
        .iter()
        .filter(|(name, _)| !own(name))
        .cloned()
        .collect();
    headers.append(&mut request.headers);
    request.headers = headers;
    if let Some(path) = listed.body_file {
        let name = path.display().to_string();
        let line = listed.line;
        let file = File::open(&path)
            .with_context(|| format!("line {line}: cannot read the body from {name}"))?;
        request.body = read_all(file, &name, "the body", BODY_BYTES_MAX)?;
    }
    Ok(request)
}

pub(crate) fn order(arguments: &LoadArguments) -> RequestOrder {
    match arguments.order {
        OrderName::Turns => RequestOrder::Turns,
        OrderName::Random => RequestOrder::Random {
            seed: arguments.seed.unwrap_or_else(fresh_seed),
        },
    }
}
