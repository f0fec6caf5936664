//! Options as the C library's `getopt_long` takes them: abbreviated, clustered, behind words.

use brunt_load::{HIDDEN, redact_field};

/// A long option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Long {
    /// Name of the option, without its dashes.
    pub(crate) name: &'static str,
    /// Whether an argument must follow.
    pub(crate) takes: bool,
    /// What [`Options::next`] gives for it.
    pub(crate) id: char,
    /// Whether the option may be abbreviated. Options that the peer does not have must not make its
    /// own options ambiguous.
    pub(crate) is_peers: bool,
}

/// The options among the words of a command line.
#[derive(Debug)]
pub(crate) struct Options<'a> {
    /// The name that the program was called by, for messages.
    program: &'a str,
    /// Short options, each with a colon behind it where it takes an argument.
    short: &'static str,
    long: &'static [Long],
    words: std::slice::Iter<'a, String>,
    /// Long options, by their ids, whose argument is taken only where it is attached.
    attached: &'static str,
    /// What is left of a cluster of short options.
    cluster: std::str::Chars<'a>,
    /// The long option that came last.
    last_long: &'static str,
    /// Words that are no options.
    operands: Vec<String>,
}

/// An option, by its letter, with its argument; or the line that the C library prints.
pub(crate) type Item = Result<(char, Option<String>), String>;

impl<'a> Options<'a> {
    pub(crate) fn new(
        program: &'a str,
        short: &'static str,
        long: &'static [Long],
        words: &'a [String],
    ) -> Self {
        Self {
            program,
            short,
            long,
            words: words.iter(),
            attached: "",
            cluster: "".chars(),
            last_long: "",
            operands: Vec::new(),
        }
    }

    /// The name of the long option that came last.
    pub(crate) fn last_long(&self) -> &'static str {
        self.last_long
    }

    /// Lets the options with these ids do without an argument.
    pub(crate) fn with_attached(self, attached: &'static str) -> Self {
        Self { attached, ..self }
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
        let mut rest = match self.short.find(letter) {
            Some(at) if letter != ':' && letter != ';' => {
                self.short[at + letter.len_utf8()..].chars()
            }
            _ => return Err(self.message(&format!("invalid option -- '{letter}'"))),
        };
        if rest.next() != Some(':') {
            return Ok((letter, None));
        }
        let attached = self.cluster.as_str();
        self.cluster = "".chars();
        let argument = match attached {
            "" => self.words.next().cloned(),
            attached => Some(attached.to_owned()),
        };
        match argument {
            Some(argument) => Ok((letter, Some(argument))),
            None => Err(self.message(&format!("option requires an argument -- '{letter}'"))),
        }
    }

    fn long_option(&mut self, typed: &str) -> Item {
        let (name, attached) = match typed.split_once('=') {
            Some((name, argument)) => (name, Some(argument.to_owned())),
            None => (typed, None),
        };
        let option = match self.find(name) {
            Ok(option) => option,
            Err(candidates) if candidates.is_empty() => {
                return Err(self.message(&format!("unrecognized option '--{typed}'")));
            }
            Err(candidates) => {
                let names: String = candidates
                    .iter()
                    .map(|candidate| format!(" '--{}'", candidate.name))
                    .collect();
                return Err(self.message(&format!(
                    "option '--{typed}' is ambiguous; possibilities:{names}"
                )));
            }
        };
        self.last_long = option.name;
        match (option.takes, attached) {
            (false, None) => Ok((option.id, None)),
            (false, Some(_)) => {
                let text = format!("option '--{}' doesn't allow an argument", option.name);
                Err(self.message(&text))
            }
            (true, Some(argument)) => Ok((option.id, Some(argument))),
            (true, None) if self.attached.contains(option.id) => Ok((option.id, None)),
            (true, None) => match self.words.next() {
                Some(argument) => Ok((option.id, Some(argument.clone()))),
                None => {
                    let text = format!("option '--{}' requires an argument", option.name);
                    Err(self.message(&text))
                }
            },
        }
    }

    /// The option of this name, or the only one that begins so; else all that do.
    fn find(&self, name: &str) -> Result<Long, Vec<Long>> {
        if let Some(exact) = self.long.iter().find(|option| option.name == name) {
            return Ok(*exact);
        }
        let begin_so = |option: &&Long| option.is_peers && option.name.starts_with(name);
        let candidates: Vec<Long> = self.long.iter().filter(begin_so).copied().collect();
        if let [only] = candidates[..] {
            return Ok(only);
        }
        Err(candidates)
    }

    fn message(&self, text: &str) -> String {
        format!("{}: {text}", self.program)
    }
}

/// A command line without what may be secret: the arguments of the options `secret`, of header
/// fields (`H`) all but the name, and all words behind the first, which is the URL. Options stand
/// before the URL, each with its argument in a word of its own.
pub(crate) fn shown(mut options: Options<'_>, secret: &[char]) -> Vec<String> {
    let (short, long) = (options.short, options.long);
    let mut shown = Vec::new();
    // A command line that is wrong makes no run.
    while let Some(Ok((id, argument))) = options.next() {
        let long = long.iter().find(|option| option.id == id);
        shown.push(match long {
            Some(long) if !short.contains(id) => format!("--{}", long.name),
            _ => format!("-{id}"),
        });
        shown.extend(argument.map(|argument| match id {
            'H' => redact_field(&argument),
            _ if secret.contains(&id) => HIDDEN.to_owned(),
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

    const LONG: &[Long] = &[
        long("threads", true, 't'),
        long("timeout", true, 'T'),
        long("time", false, 'i'),
        long("latency", false, 'L'),
        Long {
            name: "brunt-report",
            takes: true,
            id: 'b',
            is_peers: false,
        },
    ];

    const fn long(name: &'static str, takes: bool, id: char) -> Long {
        Long {
            name,
            takes,
            id,
            is_peers: true,
        }
    }

    /// What is found: options as `letter` or `letter=argument`, the operands behind a bar; or the
    /// message.
    fn found(line: &str) -> String {
        let words = words(line);
        let mut options = Options::new("wrk", "t:T:Lr?", LONG, &words);
        let mut text = String::new();
        while let Some(item) = options.next() {
            match item {
                Ok((letter, None)) => text.push(letter),
                Ok((letter, Some(argument))) => text.push_str(&format!("{letter}={argument}")),
                Err(message) => return message,
            }
            text.push(' ');
        }
        format!("{text}| {}", options.operands().join(" "))
    }

    #[test]
    fn options_are_found_as_the_c_library_finds_them() {
        for (line, expected) in [
            ("-t12 url -L", "t=12 L | url"),
            ("-Lt4 url", "L t=4 | url"),
            ("-t 4 -T5 url word", "t=4 T=5 | url word"),
            ("--threads=4 --lat url", "t=4 L | url"),
            ("--thr 4 url", "t=4 | url"),
            ("--timeo=1 --time url", "T=1 i | url"),
            ("--threads= url", "t= | url"),
            ("url -- -t 4 --x", "| url -t 4 --x"),
            ("-t -- url", "t=-- | url"),
            ("-t --latency url", "t=--latency | url"),
            ("- url", "| - url"),
            ("-? url", "? | url"),
            ("--brunt-report=f url", "b=f | url"),
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
            let options = Options::new("wrk", "t:LH:C:", LONG, &words);
            let found = shown(options, &['C']).join(" ");
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn messages_are_those_of_the_c_library() {
        for (line, expected) in [
            ("-x url", "wrk: invalid option -- 'x'"),
            ("-: url", "wrk: invalid option -- ':'"),
            ("url -t", "wrk: option requires an argument -- 't'"),
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
