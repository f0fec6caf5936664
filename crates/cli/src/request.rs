//! What requests hold: from the options, from a list (`--urls` and `--targets`), or byte by byte
//! (`--raw`).

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use brunt_load::request_list::{self, ListedRequest};
use brunt_load::{RequestOrder, RequestSet, RequestSpec, RequestTableBuilder, Target};
use brunt_proto::messages::unescape;

use crate::args::LoadArguments;
use crate::output::is_standard;
use crate::values::{FROM_ENVIRONMENT, HeaderFields, Source, field, read_all, with_environment};

/// Largest body: in HTTP/1.1 it is held in memory once per worker and pipelined request.
pub(crate) const BODY_BYTES_MAX: u64 = 256 << 20;
/// Largest list.
pub(crate) const LIST_BYTES_MAX: u64 = 256 << 20;

/// The requests of a load on `target`, and what they load: a list that comes without a URL names
/// its server itself.
pub(crate) fn listed(
    arguments: &LoadArguments,
    has_url: bool,
    target: Target,
) -> Result<(Target, RequestSet)> {
    let mut request = request(arguments)?;
    let (option, path) = match (&arguments.urls, &arguments.targets) {
        (Some(path), _) => ("--urls", path),
        (None, Some(path)) => ("--targets", path),
        (None, None) => {
            let requests = if !arguments.raw.is_empty() {
                raw_requests(arguments, &request.body)?
            } else {
                request.path.clone_from(&target.path);
                if arguments.is_generated() {
                    request.fill_in_nothing()?;
                    request.path.clone_from(&target.path);
                } else {
                    request.fill_in()?;
                }
                RequestSet::one(request)
            };
            if requests.count() < 2 && arguments.order != RequestOrder::Turns {
                bail!("--order is about a list of requests; give one with --urls or --targets");
            }
            return Ok((target, requests));
        }
    };
    let named = || format!("{option} {}", path.display());
    let text = read_list(path, "the list of requests").with_context(named)?;
    let target = has_url.then_some(target);
    requests_of(text, arguments, request, target.as_ref()).with_context(named)
}

/// The requests of the list in `text`, with what the options give to all of them.
fn requests_of(
    text: Vec<u8>,
    arguments: &LoadArguments,
    common: RequestSpec,
    typed: Option<&Target>,
) -> Result<(Target, RequestSet)> {
    let is_url = arguments.urls.is_some();
    let mut list = if is_url {
        request_list::urls(&text, typed)
    } else {
        request_list::targets(&text, typed)
    };
    let mut table = RequestTableBuilder::default();
    let mut weights = Vec::new();
    for listed in &mut list {
        let listed = listed?;
        let line = listed.line;
        weights.push(listed.weight.get());
        let mut request = complete(listed, &common, is_url, table.bytes())?;
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
    let set = RequestSet::list(
        table.finish(),
        arguments.request_order(),
        arguments.output.redact,
    );
    let set = set.and_then(|set| set.with_weights(&weights));
    let Some(set) = set else {
        bail!(
            "the weights add up to more than {}, divided by what they have in common; give smaller \
             ones, such as weight=3 in place of weight=3001",
            RequestSet::TURNS_MAX
        );
    };
    Ok((target, set))
}

/// The requests that are given byte by byte, each followed by `body`.
fn raw_requests(arguments: &LoadArguments, body: &[u8]) -> Result<RequestSet> {
    let mut requests = Vec::new();
    let mut bytes = 0;
    for raw in &arguments.raw {
        let mut text = match raw {
            Source::Typed(typed) => unescape(typed).context("--raw")?,
            other => other.read("the request", LIST_BYTES_MAX)?,
        };
        text.extend(body);
        bytes += text.len();
        if bytes > RequestSet::BYTES_MAX {
            bail!("--raw: the requests take more than {}", gib(bytes as u64));
        }
        let of_text = brunt_load::raw_requests(&text).with_context(|| match raw {
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
    let set = RequestSet::of(requests, arguments.request_order());
    set.with_context(|| {
        let most = RequestSet::REQUESTS_MAX;
        format!("--raw takes 1 to {most} requests")
    })
}

fn gib(bytes: u64) -> String {
    format!("{} GiB", bytes >> 30)
}

/// The bytes of the file, or of standard input for `-`; `what` names it in messages.
pub(crate) fn read_list(path: &Path, what: &str) -> Result<Vec<u8>> {
    if is_standard(path) {
        return read_all(io::stdin().lock(), "standard input", what, LIST_BYTES_MAX);
    }
    let file = File::open(path).with_context(|| format!("cannot read {what}"))?;
    read_all(file, &path.display().to_string(), what, LIST_BYTES_MAX)
}

/// One request of the list, with what the options give to all of them: method and body to those of
/// a list of URLs. Those before it take `bytes`.
fn complete(
    listed: ListedRequest,
    common: &RequestSpec,
    is_url: bool,
    bytes: u64,
) -> Result<RequestSpec> {
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
    let headers = common.headers.iter().filter(|(name, _)| !own(name));
    let mut headers: Vec<(String, String)> = headers.cloned().collect();
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

/// The request that the options ask for, without its path. Reads files, standard input and the
/// environment.
pub(crate) fn request(arguments: &LoadArguments) -> Result<RequestSpec> {
    only_one_reads_standard_input(arguments)?;
    let mut headers = Vec::new();
    for typed in &arguments.headers {
        match typed {
            HeaderFields::One(name, value) => {
                headers.push((name.clone(), with_environment(value)?))
            }
            HeaderFields::From(source) => headers.extend(fields_of(source)?),
        }
    }
    if let Some(source) = &arguments.user {
        let is_authorization = |name: &str| name.eq_ignore_ascii_case("authorization");
        if headers.iter().any(|(name, _)| is_authorization(name)) {
            bail!("--user makes the header Authorization, and -H gives another; leave one out");
        }
        headers.push(("Authorization".to_owned(), basic_credentials(source)?));
    }
    let body = match &arguments.body {
        Some(Source::Typed(text)) if text.contains(FROM_ENVIRONMENT) => bail!(
            "-b @env:NAME takes the whole body from a variable, and nothing is filled in within a \
             text; give a text that has {FROM_ENVIRONMENT} in it as a file, -b @FILE"
        ),
        Some(source) => source.read("the body", BODY_BYTES_MAX)?,
        None => Vec::new(),
    };
    let method = match (&arguments.method, &arguments.body) {
        (Some(method), _) => method.as_str(),
        (None, Some(_)) => "POST",
        (None, None) => "GET",
    };
    Ok(RequestSpec {
        method: method.to_owned(),
        headers,
        body,
        ..RequestSpec::get("")
    })
}

fn only_one_reads_standard_input(arguments: &LoadArguments) -> Result<()> {
    let headers = arguments.headers.iter().filter_map(|typed| match typed {
        HeaderFields::One(..) => None,
        HeaderFields::From(source) => Some(("--header", source)),
    });
    let raw = arguments.raw.iter().map(|source| ("--raw", source));
    let user = arguments.user.iter().map(|source| ("--user", source));
    let body = arguments.body.iter().map(|source| ("--body", source));
    let mut readers = headers.chain(raw).chain(user).chain(body);
    let mut next = || readers.find(|(_, source)| **source == Source::StandardInput);
    if let (Some((first, _)), Some((second, _))) = (next(), next()) {
        bail!("{first} and {second} cannot both read standard input; give one of them a file");
    }
    Ok(())
}

/// Header fields, one per line. A line that is none is named by its number, for it may be secret.
fn fields_of(source: &Source) -> Result<Vec<(String, String)>> {
    let text = source.read_text("header fields")?;
    let mut fields = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let Some((name, value)) = field(line) else {
            bail!("line {number} of the header fields is none; write each as `Name: value`");
        };
        if value.contains(FROM_ENVIRONMENT) {
            bail!(
                "line {number} of the header fields has {FROM_ENVIRONMENT}, which is filled in on \
                 the command line alone, as in -H 'Authorization: Bearer @env:TOKEN'"
            );
        }
        fields.push((name, value));
    }
    Ok(fields)
}

/// What RFC 7617 makes of `USER:PASSWORD`.
fn basic_credentials(source: &Source) -> Result<String> {
    let text = match source {
        Source::Typed(text) => with_environment(text)?,
        _ => source.read_text("user and password")?,
    };
    let text = text.trim_end_matches(['\r', '\n']);
    if !text.contains(':') {
        bail!("--user takes USER:PASSWORD, and there is no colon; connections are -c N");
    }
    if text.contains(char::is_control) {
        bail!("user and password hold a control character (RFC 7617 section 2); give one line");
    }
    Ok(format!("Basic {}", BASE64_STANDARD.encode(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_the_rfc() {
        // The example of RFC 7617 section 2.
        let source = Source::Typed("Aladdin:open sesame".to_owned());
        assert_eq!(
            basic_credentials(&source).expect("they are good"),
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
        for typed in ["user", "", "a:b\nc", "a:\u{1}"] {
            let source = Source::Typed(typed.to_owned());
            assert!(basic_credentials(&source).is_err(), "{typed:?}");
        }
    }
}
