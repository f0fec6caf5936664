//! `--urls` and `--targets`: the requests of a list, from their file; and `--raw`, requests byte by
//! byte.

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};
use brunt_load::request_list::{self, ListedRequest};
use brunt_load::{RequestOrder, RequestSet, RequestSpec, RequestTableBuilder, Target};
use brunt_proto::messages::unescape;

use crate::args::{LoadArguments, OrderName};
use crate::plan::{refuse_useless_start, seed};
use crate::request::{BODY_BYTES_MAX, request};
use crate::source::{Source, read_all};

/// Largest list.
pub(crate) const LIST_BYTES_MAX: u64 = 256 << 20;

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
            let requests = match arguments.raw.is_empty() {
                true => None,
                false => Some(typed_raw_requests(arguments)?),
            };
            let is_list = requests.as_ref().is_some_and(|set| set.count() > 1);
            if !is_list && arguments.order != OrderName::Turns {
                bail!("--order is about a list of requests; give one with --urls or --targets");
            }
            return Ok(Listed {
                target: typed,
                requests,
            });
        }
    };
    let whence = || format!("{option} {}", path.display());
    let text = read_list(path, "the list of requests").with_context(whence)?;
    listed(text, option == "--urls", arguments, typed.as_ref()).with_context(whence)
}

/// The requests of the list in `text`, with what the options give to all of them.
fn listed(
    text: Vec<u8>,
    is_url: bool,
    arguments: &LoadArguments,
    typed: Option<&Target>,
) -> Result<Listed> {
    let parse = || match is_url {
        true => request_list::urls(&text, typed),
        false => request_list::targets(&text, typed),
    };
    if text.contains(&b'@') && !is_url {
        // Before any of them is read.
        bodies_fit(parse())?;
    }
    let mut list = parse();
    let common = Common {
        request: request(arguments)?,
        is_url,
    };
    let mut table = RequestTableBuilder::default();
    let mut weights = Vec::new();
    for listed in &mut list {
        let listed = listed?;
        let line = listed.line;
        weights.push(listed.weight.get());
        let mut request = complete(listed, &common, table.bytes())?;
        let filled = request.fill_in();
        filled.with_context(|| format!("line {line}"))?;
        if table.push(request).is_err() {
            bail!(
                "line {line}: with it the requests take more than {}, the most that a run holds; \
                 split the list, or give shorter bodies",
                gib(RequestSet::BYTES_MAX as u64)
            );
        }
    }
    let mut target = list.target()?;
    drop(text);
    target.unix_socket.clone_from(&arguments.unix_socket);
    // It stands for all of them.
    target.url = format!("{}://{}/", target.scheme.name(), target.authority);
    let set = RequestSet::list(table.finish(), order(arguments), arguments.output.redact);
    let set = set.and_then(|set| set.with_weights(&weights));
    let Some(set) = set else {
        bail!(
            "the weights add up to more than {}, divided by what they have in common; give smaller \
             ones, such as weight=3 in place of weight=3001",
            RequestSet::TURNS_MAX
        );
    };
    refuse_useless_start(arguments, set.counts_numbers())?;
    Ok(Listed {
        target: Some(target),
        requests: Some(set),
    })
}

/// The requests that are given byte by byte.
fn typed_raw_requests(arguments: &LoadArguments) -> Result<RequestSet> {
    let body = match &arguments.body {
        Some(body) => body.read("the body", BODY_BYTES_MAX)?,
        None => Vec::new(),
    };
    let mut requests = Vec::new();
    let mut bytes = 0;
    for raw in &arguments.raw {
        let mut text = match raw {
            Source::Typed(typed) => unescape(typed).context("--raw")?,
            other => other.read("the request", LIST_BYTES_MAX)?,
        };
        text.extend(&body);
        bytes += text.len();
        if bytes > RequestSet::BYTES_MAX {
            bail!("--raw: the requests take more than {}", gib(bytes as u64));
        }
        let of_text = brunt_engine::raw_requests(&text).with_context(|| match raw {
            Source::File(path) => format!("--raw @{}", path.display()),
            Source::Typed(typed) if Path::new(typed).is_file() => {
                format!("--raw takes a text; for the file write --raw @{typed}")
            }
            _ => "--raw".to_owned(),
        })?;
        requests.extend(of_text);
    }
    if let [only] = &requests[..] {
        return Ok(RequestSet::one(only.clone()));
    }
    let set = RequestSet::of(requests, order(arguments));
    set.with_context(|| {
        let most = RequestSet::REQUESTS_MAX;
        format!("--raw takes 1 to {most} requests")
    })
}

fn gib(bytes: u64) -> String {
    format!("{} GiB", bytes >> 30)
}

/// Whether all bodies that stand in files of their own have room together.
fn bodies_fit(list: request_list::RequestList<'_>) -> Result<()> {
    let mut bytes = 0_u64;
    // What is wrong with a line is said when it is read for good.
    for listed in list.map_while(Result::ok) {
        let file = listed.body_file.as_deref();
        let length = file
            .and_then(|path| path.metadata().ok())
            .map_or(0, |it| it.len());
        bytes = bytes.saturating_add(length);
        if bytes > RequestSet::BYTES_MAX as u64 {
            bail!(
                "line {}: with its body the requests take more than {}, the most that a run \
                 holds; give fewer or shorter bodies",
                listed.line,
                gib(RequestSet::BYTES_MAX as u64)
            );
        }
    }
    Ok(())
}

/// The bytes of the file, or of standard input for `-`; `what` names it in messages.
pub(crate) fn read_list(path: &Path, what: &str) -> Result<Vec<u8>> {
    if path == Path::new("-") {
        return read_all(io::stdin().lock(), "standard input", what, LIST_BYTES_MAX);
    }
    let file = File::open(path).with_context(|| format!("cannot read {what}"))?;
    read_all(file, &path.display().to_string(), what, LIST_BYTES_MAX)
}

/// What the options give to all requests of a list.
struct Common {
    request: RequestSpec,
    /// The list is one of URLs: method and body are those of the options.
    is_url: bool,
}

/// One request of the list, with what the options give to all of them; those before it take
/// `bytes`.
fn complete(listed: ListedRequest, common: &Common, bytes: u64) -> Result<RequestSpec> {
    let mut request = listed.request;
    if common.is_url {
        request.method.clone_from(&common.request.method);
        request.body.clone_from(&common.request.body);
    }
    // Those of the request itself take the place of those of all.
    let own = |name: &str| {
        let mut names = request.headers.iter().map(|(name, _)| name);
        names.any(|other| other.eq_ignore_ascii_case(name))
    };
    let mut headers: Vec<(String, String)> = common
        .request
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
        let room = (RequestSet::BYTES_MAX as u64).saturating_sub(bytes);
        request.body = read_all(file, &name, "the body", BODY_BYTES_MAX.min(room))
            .with_context(|| format!("line {line}"))?;
    }
    Ok(request)
}

pub(crate) fn order(arguments: &LoadArguments) -> RequestOrder {
    match arguments.order {
        OrderName::Turns => RequestOrder::Turns,
        OrderName::Connection => RequestOrder::ConnectionTurns,
        OrderName::Random => RequestOrder::Random {
            seed: seed(arguments),
        },
    }
}
