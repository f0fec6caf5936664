//! Requests that are given as text, in which something is filled in: not where that decides where a
//! request ends.

use thiserror::Error;

use super::request_text::{RequestTextError, TextRequest, field_lines, scan_requests};
use crate::holes::{PlaceholderError, TextWithHoles};

/// Why a text makes no requests, or what stands in braces cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RawRequestsError {
    /// The text is not one of requests.
    #[error(transparent)]
    Text(#[from] RequestTextError),
    /// The text holds several requests.
    #[error("it holds {0} requests; give each as a text of its own")]
    Several(usize),
    /// What stands in braces is not filled in.
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
    /// How long the request is would be known to nobody.
    #[error("nothing is filled into {0}, which says where a request ends; write it out")]
    Framing(String),
    /// A request ends in what is filled in.
    #[error("the lengths that it states end a request within a placeholder; correct them")]
    EndInHole,
}

/// Looks whether something may be filled into the header field of this name.
///
/// # Errors
///
/// The field says where a request ends.
pub fn check_filled_field(name: &str) -> Result<(), RawRequestsError> {
    let names = ["Content-Length", "Transfer-Encoding", "Connection"];
    if names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Err(RawRequestsError::Framing(name.to_owned()));
    }
    Ok(())
}

/// Finds the requests of a text with holes, as [`scan_requests`] does. Their places are those in
/// the text with zeros in its holes.
///
/// # Errors
///
/// The first hole in a field that says where a request ends, or else the first fault in the text.
pub fn scan_filled_requests(text: &TextWithHoles) -> Result<Vec<TextRequest>, RawRequestsError> {
    let scanned = scan_requests(&text.bytes);
    // With a length of zero, what follows is no request: then every line may be one of a head.
    let requests = scanned.as_deref().unwrap_or_default();
    for at in text.holes.iter().map(|hole| hole.at as usize) {
        let request = requests.iter().find(|request| request.range.contains(&at));
        if request.is_some_and(|request| at >= request.body_start) {
            continue;
        }
        let mut lines = text.bytes[..at].rsplit(|&byte| byte == b'\n');
        let line = lines.next().unwrap_or_default();
        if let Some((name, _)) = field_lines(line).next() {
            check_filled_field(&String::from_utf8_lossy(name.trim_ascii()))?;
        }
    }
    Ok(scanned?)
}
