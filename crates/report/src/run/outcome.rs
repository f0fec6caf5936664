//! What must be said before any figure: that there is no result; and what the throughput counts
//! that a reader may not expect.

use brunt_judge::{Judgement, Verdict};
use brunt_record::StatusCounts;

use crate::page::{Page, Tone};
use crate::units;

/// A reply that says that it was not modified: no redirect, though its code is among theirs.
const NOT_MODIFIED: u16 = 304;

/// The first line of a run in which nothing succeeded: that, why, and what to do.
pub(super) fn first_line(judgement: &Judgement, page: &mut Page) {
    if judgement.verdict != Verdict::NoSuccess {
        return;
    }
    let mut line = format!("{}: {}", judgement.verdict.name(), judgement.because);
    if let Some(advice) = judgement.advice.first() {
        line.push_str("; next: ");
        line.push_str(advice);
    }
    page.line(&line, Tone::Refusal);
    page.blank();
}

/// The redirects among `replies`, which are successes and lead elsewhere; empty without any.
pub(super) fn redirects(replies: &StatusCounts) -> Option<String> {
    let found: Vec<_> = replies
        .iter()
        .filter(|&(status, _)| status / 100 == 3 && status != NOT_MODIFIED)
        .collect();
    let count = found.iter().map(|&(_, count)| count).sum();
    let statuses: Vec<_> = found.iter().map(|(status, _)| status.to_string()).collect();
    let statuses = statuses.join(", ");
    match count {
        0 => None,
        _ if count == replies.successes() => Some(format!(
            "all of these were redirects ({statuses}), not followed"
        )),
        _ => {
            let redirects = units::counted(count, "was a redirect", "were redirects");
            Some(format!("of these {redirects} ({statuses}), not followed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_told_from_other_successes() {
        for (statuses, words) in [
            (&[200, 204, 304, 404][..], None),
            (
                &[200, 302, 404],
                Some("of these 1 was a redirect (302), not followed"),
            ),
            (
                &[301, 302, 302],
                Some("all of these were redirects (301, 302), not followed"),
            ),
        ] {
            let mut replies = StatusCounts::default();
            statuses.iter().for_each(|&status| replies.add(status));
            assert_eq!(redirects(&replies).as_deref(), words);
        }
    }
}
