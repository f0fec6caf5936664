//! Why a list of requests cannot be used.

use thiserror::Error;

use crate::{RequestSet, TargetError};

/// Why a list of requests cannot be used. Each names the line, from 1.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListError {
    /// The list holds no request.
    #[error("there is no request in it; write one URL per line")]
    Empty,
    /// The list has more requests than a run can have.
    #[error("it has more than {most} requests; split it", most = RequestSet::REQUESTS_MAX)]
    TooMany,
    /// A line is not UTF-8.
    #[error("line {line}: it is not text in UTF-8")]
    NotText {
        /// Number of the line.
        line: usize,
    },
    /// A line has no URL that can be used.
    #[error("line {line}: {reason}")]
    Url {
        /// Number of the line.
        line: usize,
        /// Why not.
        reason: TargetError,
    },
    /// A line has a path alone, and no URL says where.
    #[error("line {line}: it is a path alone; give the URL of the server on the command line, too")]
    NoOrigin {
        /// Number of the line.
        line: usize,
    },
    /// A line names another server than those before it.
    #[error(
        "line {line}: {url} is on another server than {first}; a run loads one server: make a list \
         for each"
    )]
    OtherOrigin {
        /// Number of the line.
        line: usize,
        /// Scheme, host and port of the line's URL.
        url: String,
        /// Scheme, host and port of the URLs before it.
        first: String,
    },
    /// A line holds more than a URL and a weight: it is written for another tool, say.
    #[error("line {line}: {remedy}")]
    Other {
        /// Number of the line.
        line: usize,
        /// What the line is, and what to write instead.
        remedy: String,
    },
    /// A weight is none.
    #[error(
        "line {line}: `{typed}` is not a weight; write a whole number from 1, such as weight=3"
    )]
    Weight {
        /// Number of the line.
        line: usize,
        /// What is given.
        typed: String,
    },
    /// The first line of a target is not a method and a URL.
    #[error(
        "line {line}: it is not a target; write METHOD URL, such as GET http://localhost:8080/"
    )]
    NotTarget {
        /// Number of the line.
        line: usize,
    },
    /// A line below a target is not a header field.
    #[error("line {line}: it is not a header field; write NAME: VALUE, or @FILE for the body")]
    NotHeader {
        /// Number of the line.
        line: usize,
    },
    /// The value of a header field, or a body, names a variable of the environment.
    #[error(
        "line {line}: @env: is filled in on the command line alone; give the field there, as in \
         -H 'Authorization: Bearer @env:TOKEN'"
    )]
    Environment {
        /// Number of the line.
        line: usize,
    },
    /// A line is not a target in JSON.
    #[error("line {line}: it is not a target in JSON ({reason})")]
    NotJson {
        /// Number of the line.
        line: usize,
        /// The parser's reason.
        reason: String,
    },
    /// The body of a target in JSON is not base64.
    #[error("line {line}: its body is not base64")]
    NotBase64 {
        /// Number of the line.
        line: usize,
    },
}
