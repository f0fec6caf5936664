//! Long texts cut in the middle, where a report is for people.

use std::borrow::Cow;

/// Most characters of a URL, or of a word of a command line, that are printed: whole ones are in
/// the JSON form.
pub(crate) const WORD_CHARACTERS: usize = 300;

/// What stands for the rest.
const DOTS: &str = "...";

/// At most `characters` of `text`: its beginning and its end. More is left of the end, which tells
/// more of a long path.
pub(crate) fn shortened(text: &str, characters: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= characters {
        return Cow::Borrowed(text);
    }
    let kept = characters.saturating_sub(DOTS.len());
    let head: String = text.chars().take(kept / 3).collect();
    let tail: String = text.chars().skip(length - (kept - kept / 3)).collect();
    Cow::Owned(format!("{head}{DOTS}{tail}"))
}

/// A URL, or a word of a command line, as reports for people print it.
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    shortened(text, WORD_CHARACTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept() {
        assert_eq!(shortened("/short", 31), "/short");
        let exact = "x".repeat(31);
        assert_eq!(shortened(&exact, 31), exact);
        let long = format!("/begin/{}/end", "m".repeat(50));
        let short = shortened(&long, 31);
        assert_eq!(short.chars().count(), 31);
        assert!(short.starts_with("/begin/"), "{short}");
        assert!(short.ends_with("mmm/end"), "{short}");
        let url = format!("http://h/?{}", "q".repeat(9_000));
        assert_eq!(word(&url).len(), WORD_CHARACTERS);
    }
}
