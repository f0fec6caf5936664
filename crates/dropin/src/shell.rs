//! Command lines as a shell takes them back.

/// The words in one line, with its end.
pub(crate) fn line(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("{}\n", quoted.join(" "))
}

fn quoted(word: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:=,@%+".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The words of a line without quotes: the command lines of tests.
#[cfg(test)]
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_special_is_quoted() {
        let words = ["brunt", "-H", "X: it's", "http://h/?a&b", ""].map(str::to_owned);
        assert_eq!(line(&words), "brunt -H 'X: it'\\''s' 'http://h/?a&b' ''\n");
    }
}
