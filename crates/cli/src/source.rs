//! Where the values of options come from: typed, or read from files, standard input and the
//! environment, so that secrets need not stand among the arguments.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use brunt_io::files::{self, FileError};

/// Largest file of header fields or credentials.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// What a value of the environment is asked for with.
pub(crate) const FROM_ENVIRONMENT: &str = "@env:";

/// Where the value of an option comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The value was typed.
    Typed(String),
    /// The value is read from a file.
    File(PathBuf),
    /// The value is read from standard input.
    StandardInput,
    /// The value is that of this environment variable.
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

    /// The bytes of the source, at most `bytes_max`; `what` names the value in messages.
    pub(crate) fn read(&self, what: &str, bytes_max: u64) -> Result<Vec<u8>> {
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

    /// Reads text in UTF-8; `what` names it in errors.
    pub(crate) fn read_text(&self, what: &str) -> Result<String> {
        let bytes = self.read(what, TEXT_BYTES_MAX)?;
        String::from_utf8(bytes).with_context(|| format!("{what} is not text in UTF-8"))
    }
}

pub(crate) fn read_all(
    input: impl Read,
    name: &str,
    what: &str,
    bytes_max: u64,
) -> Result<Vec<u8>> {
    match files::read_bounded(input, bytes_max) {
        Err(FileError::TooLarge { bytes_max }) => {
            let most_mb = bytes_max >> 20;
            bail!("{name} is too large: {what} may have {most_mb} MiB");
        }
        read => read.with_context(|| format!("cannot read {what} from {name}")),
    }
}

/// `text` with each `@env:NAME` replaced by the value of the variable.
pub(crate) fn with_environment(text: &str) -> Result<String> {
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
}
