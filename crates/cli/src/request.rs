//! What one request holds: from the options to its method, header fields and body, also from
//! files, standard input and the environment, so that secrets need not stand among the arguments.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use brunt_load::RequestSpec;

use crate::args::LoadArguments;
use crate::values::field;

/// Largest body: in HTTP/1.1 it is held in memory once per worker and pipelined request.
const BODY_BYTES_MAX: u64 = 256 << 20;
/// Largest file of header fields or credentials.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// What a value of the environment is asked for with.
const FROM_ENVIRONMENT: &str = "@env:";

/// Where the value of an option comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// It was typed.
    Typed(String),
    /// It is read from a file.
    File(PathBuf),
    /// It is read from standard input.
    StandardInput,
    /// It is the value of this environment variable.
    Variable(String),
}

/// A header field, as typed, or where to read some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Name and value.
    One(String, String),
    /// One field per line.
    From(Source),
}

impl Source {
    /// Reads `TEXT`, `@FILE`, `@-` or `@env:NAME`.
    pub(crate) fn of(typed: &str) -> Result<Self, String> {
        if let Some(name) = typed.strip_prefix(FROM_ENVIRONMENT) {
            return Ok(Self::Variable(name.to_owned()));
        }
        match typed.strip_prefix('@') {
            None => Ok(Self::Typed(typed.to_owned())),
            Some("") => Err("a file is missing after @; @- is standard input".to_owned()),
            Some("-") => Ok(Self::StandardInput),
            Some(path) => Ok(Self::File(path.into())),
        }
    }

    /// What it gives, of at most `bytes_max`; `what` names it in messages.
    fn read(&self, what: &str, bytes_max: u64) -> Result<Vec<u8>> {
        match self {
            Self::Typed(text) => Ok(text.clone().into_bytes()),
            Self::Variable(name) => variable(name).map(String::into_bytes),
            Self::File(path) => {
                let name = path.display().to_string();
                let file =
                    File::open(path).with_context(|| format!("cannot read {what} from {name}"))?;
                read_all(file, &name, what, bytes_max)
            }
            Self::StandardInput => read_all(io::stdin().lock(), "standard input", what, bytes_max),
        }
    }

    /// The same of text.
    fn read_text(&self, what: &str) -> Result<String> {
        let bytes = self.read(what, TEXT_BYTES_MAX)?;
        String::from_utf8(bytes).with_context(|| format!("{what} is no text in UTF-8"))
    }
}

fn read_all(input: impl Read, name: &str, what: &str, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input
        .take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {what} from {name}"))?;
    if bytes.len() as u64 > bytes_max {
        let most_mb = bytes_max >> 20;
        bail!("{name} is too large: {what} may have {most_mb} MiB");
    }
    Ok(bytes)
}

/// The request that the options ask for. Reads files, standard input and the environment.
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
        headers,
        body,
    })
}

fn only_one_reads_standard_input(arguments: &LoadArguments) -> Result<()> {
    let headers = arguments.headers.iter().map(|typed| match typed {
        Fields::One(..) => None,
        Fields::From(source) => Some(("--header", source)),
    });
    let user = arguments.user.as_ref().map(|source| ("--user", source));
    let body = arguments.body.as_ref().map(|source| ("--body", source));
    let mut readers = headers
        .flatten()
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
        bail!("--user takes USER:PASSWORD, and there is no colon");
    }
    if text.contains(char::is_control) {
        bail!("user and password hold a control character (RFC 7617 section 2); give one line");
    }
    Ok(format!("Basic {}", BASE64_STANDARD.encode(text)))
}

/// `text` with each `@env:NAME` replaced by the value of the variable.
fn with_environment(text: &str) -> Result<String> {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(FROM_ENVIRONMENT) {
        value.push_str(before);
        let is_in_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let length = after
            .find(|character| !is_in_name(character))
            .unwrap_or(after.len());
        let (name, after) = after.split_at(length);
        value.push_str(&variable(name)?);
        rest = after;
    }
    value.push_str(rest);
    Ok(value)
}

fn variable(name: &str) -> Result<String> {
    if name.is_empty() {
        bail!("the name of a variable is missing after {FROM_ENVIRONMENT}");
    }
    std::env::var(name)
        .ok()
        .with_context(|| format!("{FROM_ENVIRONMENT}{name}: there is no such variable, or no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_value_comes_from() {
        for (typed, source) in [
            ("text", Source::Typed("text".to_owned())),
            ("", Source::Typed(String::new())),
            ("a@b", Source::Typed("a@b".to_owned())),
            ("@file", Source::File("file".into())),
            ("@./-", Source::File("./-".into())),
            ("@@", Source::File("@".into())),
            ("@-", Source::StandardInput),
            ("@env:NAME", Source::Variable("NAME".to_owned())),
            ("x@env:NAME", Source::Typed("x@env:NAME".to_owned())),
        ] {
            assert_eq!(Source::of(typed), Ok(source), "{typed}");
        }
        assert!(Source::of("@").is_err());
    }

    #[test]
    fn variables_are_put_in_their_places() {
        let path = std::env::var("PATH").expect("cargo needs it");
        for (typed, value) in [
            ("Bearer x".to_owned(), "Bearer x".to_owned()),
            ("Bearer @env:PATH".to_owned(), format!("Bearer {path}")),
            (
                "a @env:PATH, @env:PATH.".to_owned(),
                format!("a {path}, {path}."),
            ),
        ] {
            assert_eq!(with_environment(&typed).expect("it is set"), value);
        }
        for (typed, words) in [
            ("@env:", "name of a variable is missing"),
            ("@env: PATH", "name of a variable is missing"),
            (
                "x @env:BRUNT_NO_SUCH_VARIABLE",
                "@env:BRUNT_NO_SUCH_VARIABLE",
            ),
        ] {
            let error = with_environment(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

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
