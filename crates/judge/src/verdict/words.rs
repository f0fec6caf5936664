//! Words of evidence from outside, and of command lines.

use crate::CleanFigures;
use crate::units::short::duration;

/// Most characters of a reason from outside that are printed.
const REASON_CHARS_MAX: usize = 160;
/// Most characters of the name of a program that are printed.
const NAME_CHARS_MAX: usize = 32;

/// The part of a window that was left undisturbed: `7.6 s of 10 s in which the hypervisor took
/// nothing`.
pub(crate) fn undisturbed_told(clean: &CleanFigures) -> String {
    let [clean, all] = [clean.clean_ns, clean.window_ns].map(|ns| duration(ns as f64));
    format!("{clean} of {all} in which the hypervisor took nothing")
}

/// A reason that came from outside, no longer than it may be.
pub(super) fn truncated(reason: &str) -> String {
    reason.chars().take(REASON_CHARS_MAX).collect()
}

/// The name of another program, no longer than it may be. Reports make it printable.
pub(super) fn program(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// The name of the server, no longer than it may be.
pub(super) fn name(name: &str) -> String {
    match program(name).as_str() {
        "" => "server".to_owned(),
        shown if shown.contains("server") => shown.to_owned(),
        shown => format!("server {shown}"),
    }
}

/// A word that a shell takes as it is.
pub fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/._-~%@+,=".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A length as options take it: `10s`, `250ms`.
pub(super) fn length(ns: u64) -> String {
    match ns {
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ => format!("{}us", ns.div_ceil(1_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_reasons_are_bounded() {
        assert_eq!(name("nginx"), "server nginx");
        assert_eq!(name("reference server"), "reference server");
        assert_eq!(name(""), "server");
        assert_eq!(truncated("at most 8 streams"), "at most 8 streams");
        let long = "é".repeat(999);
        assert_eq!(truncated(&long).chars().count(), REASON_CHARS_MAX);
        assert_eq!(
            name(&"x".repeat(99)).len(),
            "server ".len() + NAME_CHARS_MAX
        );
    }
}
