//! What lines of lists have in common: comments and weights.

use std::num::NonZeroU32;

use crate::list_error::ListError;
use crate::other_lists::shortened;

/// A weight, as it is typed.
pub(crate) fn weight(line: usize, typed: &str) -> Result<NonZeroU32, ListError> {
    typed.trim().parse().map_err(|_| ListError::Weight {
        line,
        typed: shortened(typed),
    })
}

/// Whether nothing is meant by it.
pub(crate) fn is_comment(text: &str) -> bool {
    text.is_empty() || text.starts_with('#')
}
