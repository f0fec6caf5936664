//! Options as the C library's `getopt_long` takes them: abbreviated, clustered, behind words.

use brunt_load::{HIDDEN, redact_field};

/// Whether an argument follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    Argument,
    /// It may be left out, and is attached where it is there.
    AttachedArgument,
}

/// A row of a table of options: an option with a long name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its letter, or nothing.
    letter: &'static str,
    /// Its name, without dashes; what [`Options::next`] gives for it.
    name: &'static str,
    takes: Takes,
    /// Whether the option may be abbreviated. Options that the peer does not have must not make its
    /// own options ambiguous.
    is_peers: bool,
    /// Why brunt does not take it, and what to type instead.
    refusal: Option<&'static str>,
}

/// An option without an argument.
pub(crate) const fn flag(letter: &'static str, name: &'static str) -> Row {
    Row {
        letter,
        name,
        takes: Takes::Nothing,
        is_peers: true,
        refusal: None,
    }
}

/// An option with an argument.
pub(crate) const fn value(letter: &'static str, name: &'static str) -> Row {
    Row {
        takes: Takes::Argument,
        ..flag(letter, name)
    }
}

/// An option whose argument may be left out, and has to be attached.
pub(crate) const fn attached(letter: &'static str, name: &'static str) -> Row {
    Row {
        takes: Takes::AttachedArgument,
        ..flag(letter, name)
    }
}

impl Row {
    /// The option is none of the peer's.
    pub(crate) const fn in_full(self) -> Self {
        Self {
            is_peers: false,
            ..self
        }
    }

    /// The option is known, and not taken for this reason, which says what to type instead.
    pub(crate) const fn refused(self, refusal: &'static str) -> Self {
        Self {
            refusal: Some(refusal),
            ..self
        }
    }
}

/// The options among the words of a command line.
#[derive(Debug)]
pub(crate) struct Options<'a> {
    /// The name that the program was called by, for messages.
    program: &'a str,
    /// Options that have a letter alone, each with a colon behind it where it takes an argument.
    short: &'static str,
    rows: &'static [Row],
    words: std::slice::Iter<'a, String>,
    /// What is left of a cluster of short options.
    cluster: std::str::Chars<'a>,
    /// Words that are no options.
    operands: Vec<String>,
}

/// Why a word is not taken.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// The line that the C library prints.
    Unreadable(String),
    /// The option is refused, for this reason.
    Refused(String),
}

impl Wrong {
    /// The line of either.
    pub(crate) fn line(&self) -> &str {
        match self {
            Self::Unreadable(line) | Self::Refused(line) => line,
        }
    }
}

/// An option, by its long name if it has one, else by its letter, with its argument.
pub(crate) type Item = Result<(&'static str, Option<String>), Wrong>;

impl<'a> Options<'a> {
    pub(crate) fn new(
        program: &'a str,
        short: &'static str,
        rows: &'static [Row],
        words: &'a [String],
    ) -> Self {
        Self {
            program,
            short,
            rows,
            words: words.iter(),
            cluster: "".chars(),
            operands: Vec::new(),
        }
    }

    /// The next option; absent where only words are left.
    pub(crate) fn next(&mut self) -> Option<Item> {
        if let Some(letter) = self.cluster.next() {
            return Some(self.short_option(letter));
        }
        loop {
            let word = self.words.next()?;
            if word == "--" {
                self.operands.extend(self.words.by_ref().cloned());
                return None;
            }
            if let Some(long) = word.strip_prefix("--") {
                return Some(self.long_option(long));
            }
            match word.strip_prefix('-') {
                Some(cluster) if !cluster.is_empty() => {
                    self.cluster = cluster.chars();
                    return self.next();
                }
                _ => self.operands.push(word.clone()),
            }
        }
    }

    /// The words that are no options, in their order, once there are no more options.
    pub(crate) fn operands(self) -> Vec<String> {
        self.operands
    }

    fn short_option(&mut self, letter: char) -> Item {
        let row = self.rows.iter().find(|row| row.letter.starts_with(letter));
        let (name, takes) = match row {
            Some(row) if row.refusal.is_some() => return Err(row.refuse()),
            Some(row) => (row.name, row.takes == Takes::Argument),
            None => match self.short.find(letter).filter(|_| letter != ':') {
                Some(at) => {
                    let end = at + letter.len_utf8();
                    (&self.short[at..end], self.short[end..].starts_with(':'))
                }
                None => return Err(self.unreadable(&format!("invalid option -- '{letter}'"))),
            },
        };
        if !takes {
            return Ok((name, None));
        }
        let attached = self.cluster.as_str();
        self.cluster = "".chars();
        let argument = match attached {
            "" => self.words.next().cloned(),
            attached => Some(attached.to_owned()),
        };
        let argument = argument
            .ok_or_else(|| self.unreadable(&format!("option requires an argument -- '{letter}'")));
        Ok((name, Some(argument?)))
    }

    fn long_option(&mut self, typed: &str) -> Item {
        let (name, attached) = match typed.split_once('=') {
            Some((name, argument)) => (name, Some(argument.to_owned())),
            None => (typed, None),
        };
        let row = match self.find(name) {
            Ok(row) => row,
            Err(candidates) if candidates.is_empty() => {
                return Err(self.unreadable(&format!("unrecognized option '--{typed}'")));
            }
            Err(candidates) => {
                let names: String = candidates
                    .iter()
                    .map(|candidate| format!(" '--{}'", candidate.name))
                    .collect();
                return Err(self.unreadable(&format!(
                    "option '--{typed}' is ambiguous; possibilities:{names}"
                )));
            }
        };
        if row.refusal.is_some() {
            return Err(row.refuse());
        }
        let argument = match (row.takes, attached) {
            (Takes::Nothing, Some(_)) => {
                let text = format!("option '--{}' doesn't allow an argument", row.name);
                return Err(self.unreadable(&text));
            }
            (Takes::Argument, None) => {
                let next = self.words.next().cloned();
                let text = || format!("option '--{}' requires an argument", row.name);
                Some(next.ok_or_else(|| self.unreadable(&text()))?)
            }
            (_, attached) => attached,
        };
        Ok((row.name, argument))
    }

    /// The option of this name, or the only one that begins so; else all that do.
    fn find(&self, name: &str) -> Result<Row, Vec<Row>> {
        if let Some(exact) = self.rows.iter().find(|row| row.name == name) {
            return Ok(*exact);
        }
        let begin_so = |row: &&Row| row.is_peers && row.name.starts_with(name);
        let candidates: Vec<Row> = self.rows.iter().filter(begin_so).copied().collect();
        if let [only] = candidates[..] {
            return Ok(only);
        }
        Err(candidates)
    }

    fn unreadable(&self, text: &str) -> Wrong {
        Wrong::Unreadable(format!("{}: {text}", self.program))
    }
}

impl Row {
    fn refuse(&self) -> Wrong {
        let reason = self.refusal.unwrap_or_default();
        Wrong::Refused(format!(
            "brunt: {} is not supported: {reason}",
            self.typed()
        ))
    }

    /// The option as it is typed: by its letter where it has one.
    fn typed(&self) -> String {
        match self.letter {
            "" => format!("--{}", self.name),
            letter => format!("-{letter}"),
        }
    }
}

/// A command line without what may be secret: the arguments of the options `secret`, of header
/// fields all but the name, and all words behind the first, which is the URL. Options stand before
/// the URL, each with its argument in a word of its own.
pub(crate) fn shown(mut options: Options<'_>, secret: &[&str]) -> Vec<String> {
    let mut shown = Vec::new();
    // A command line that is wrong makes no run.
    while let Some(Ok((name, argument))) = options.next() {
        let row = options.rows.iter().find(|row| row.name == name);
        shown.push(row.map_or_else(|| format!("-{name}"), Row::typed));
        shown.extend(argument.map(|argument| match name {
            "H" | "header" | "add-header" => redact_field(&argument),
            _ if secret.contains(&name) => HIDDEN.to_owned(),
            _ => argument,
        }));
    }
    let mut operands = options.operands().into_iter();
    shown.extend(operands.next());
    shown.extend(operands.map(|_| HIDDEN.to_owned()));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    const ROWS: &[Row] = &[
        value("t", "threads"),
        value("T", "timeout"),
        flag("", "time"),
        flag("L", "latency"),
        value("", "brunt-report").in_full(),
        value("", "seed").refused("leave it out"),
    ];

    /// What is found: options as `name` or `name=argument`, the operands behind a bar; or the
    /// message.
    fn found(line: &str) -> String {
        let words = words(line);
        let mut options = Options::new("wrk", "r?", ROWS, &words);
        let mut text = String::new();
        while let Some(item) = options.next() {
            match item {
                Ok((name, None)) => text.push_str(name),
                Ok((name, Some(argument))) => text.push_str(&format!("{name}={argument}")),
                Err(wrong) => return wrong.line().to_owned(),
            }
            text.push(' ');
        }
        format!("{text}| {}", options.operands().join(" "))
    }

    #[test]
    fn options_are_found_as_the_c_library_finds_them() {
        for (line, expected) in [
            ("-t12 url -L", "threads=12 latency | url"),
            ("-Lt4 url", "latency threads=4 | url"),
            ("-t 4 -T5 url word", "threads=4 timeout=5 | url word"),
            ("--threads=4 --lat url", "threads=4 latency | url"),
            ("--thr 4 url", "threads=4 | url"),
            ("--timeo=1 --time url", "timeout=1 time | url"),
            ("--threads= url", "threads= | url"),
            ("url -- -t 4 --x", "| url -t 4 --x"),
            ("-t -- url", "threads=-- | url"),
            ("-t --latency url", "threads=--latency | url"),
            ("- url", "| - url"),
            ("-? url", "? | url"),
            ("--brunt-report=f url", "brunt-report=f | url"),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for (line, expected) in [
            ("-t12 http://h/?a=b -L", "-t 12 -L http://h/?a=b"),
            ("-LHX-Token:hush url", "-L -H X-Token: ... url"),
            ("-H hush -C hush --thr 4 url", "-H ... -C ... -t 4 url"),
            (
                "--brunt-report=f url hush -- -x hush",
                "--brunt-report f url ... ... ...",
            ),
        ] {
            let words = words(line);
            let options = Options::new("wrk", "H:C:", ROWS, &words);
            let found = shown(options, &["C"]).join(" ");
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn messages_are_those_of_the_c_library() {
        for (line, expected) in [
            ("-x url", "wrk: invalid option -- 'x'"),
            ("-: url", "wrk: invalid option -- ':'"),
            ("url -t", "wrk: option requires an argument -- 't'"),
            (
                "--seed 1 url",
                "brunt: --seed is not supported: leave it out",
            ),
            ("--foo=1 url", "wrk: unrecognized option '--foo=1'"),
            ("--brunt f url", "wrk: unrecognized option '--brunt'"),
            (
                "url --threads",
                "wrk: option '--threads' requires an argument",
            ),
            (
                "--lat=1 url",
                "wrk: option '--latency' doesn't allow an argument",
            ),
            (
                "--t 1 url",
                "wrk: option '--t' is ambiguous; possibilities: '--threads' '--timeout' '--time'",
            ),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }
}
