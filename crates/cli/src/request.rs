//! What one request holds: from the options to its method, header fields and body.

use anyhow::{Result, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use brunt_load::RequestSpec;

use crate::args::LoadArguments;
use crate::source::{FROM_ENVIRONMENT, Fields, Source, with_environment};
use crate::values::field;

/// Largest body: in HTTP/1.1 it is held in memory once per worker and pipelined request.
pub(crate) const BODY_BYTES_MAX: u64 = 256 << 20;

/// The request that the options ask for, without its path. Reads files, standard input and the
/// environment.
pub(crate) fn request(arguments: &LoadArguments) -> Result<RequestSpec> {
    only_one_reads_standard_input(arguments)?;
    let mut headers = Vec::new();
    for typed in &arguments.headers {
        match typed {
            Fields::One(name, value) => headers.push((name.clone(), with_environment(value)?)),
            Fields::From(source) => headers.extend(fields_of(source)?),
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
    let default = if arguments.body.is_some() {
        "POST"
    } else {
        "GET"
    };
    Ok(RequestSpec {
        method: arguments
            .method
            .clone()
            .unwrap_or_else(|| default.to_owned()),
        path: String::new(),
        headers,
        body,
        text: None,
        has_placeholders: false,
    })
}

fn only_one_reads_standard_input(arguments: &LoadArguments) -> Result<()> {
    let headers = arguments.headers.iter().map(|typed| match typed {
        Fields::One(..) => None,
        Fields::From(source) => Some(("--header", source)),
    });
    let user = arguments.user.as_ref().map(|source| ("--user", source));
    let body = arguments.body.as_ref().map(|source| ("--body", source));
    let raw = arguments.raw.iter().map(|source| ("--raw", source));
    let mut readers = headers
        .flatten()
        .chain(raw)
        .chain(user)
        .chain(body)
        .filter(|(_, source)| **source == Source::StandardInput);
    if let (Some((first, _)), Some((second, _))) = (readers.next(), readers.next()) {
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
