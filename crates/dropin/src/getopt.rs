//! Options of other tools as tables, and the one engine that reads all of them.

use std::path::PathBuf;

use brunt_load::{HIDDEN, redact_field};

use crate::Ending;

/// How a tool reads its command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// As `getopt_long` of the C library: letters in clusters, long names abbreviated, other words
    /// in between.
    GetoptLong,
    /// As `getopt_long`, with long names in full.
    InFull,
    /// As `apr_getopt`: letters in clusters, up to the first word that is no option.
    Letters,
    /// One option in each word, whose argument is attached or is the next word that is no option;
    /// up to the first word that is none.
    Words,
}

/// Whether an argument follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Argument,
    /// It may be left out, and is attached where it is there.
    AttachedArgument,
}

/// Does to what is made of a command line what an option says, with its argument.
type Effect<T> = Box<dyn Fn(&mut T, &str) -> Result<(), Wrong>>;

/// What a report shows of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    All,
    /// Of a header field, whose value may be secret, the name.
    Field,
    /// Of a path, whose query may be secret, what stands before that.
    Path,
    Nothing,
}

/// The names of an option as it is typed: `-n --requests`, `-n` or `--requests`. With
/// [`Style::Words`] a single dash may stand before several letters.
type Names = &'static str;

/// Where the value of an option stands.
pub(crate) type Place<T, V> = fn(&mut T) -> &mut V;

/// A row of a table: an option.
pub(crate) struct Row<T> {
    /// Its letter, or nothing.
    letter: &'static str,
    /// Its name without dashes, or nothing.
    name: &'static str,
    takes: Takes,
    effect: Effect<T>,
    /// Whether the option may be abbreviated. Options that the tool does not have must not make its
    /// own options ambiguous.
    is_abbreviated: bool,
    shown: Shown,
}

fn row<T>(names: Names, takes: Takes, effect: Effect<T>) -> Row<T> {
    let (letter, name) = names.split_once("--").unwrap_or((names, ""));
    Row {
        letter: letter.trim_matches(['-', ' ']),
        name,
        takes,
        effect,
        is_abbreviated: true,
        shown: Shown::All,
    }
}

/// An option whose argument is read, and may be wrong.
pub(crate) fn reads<T>(
    names: Names,
    read: impl Fn(&mut T, &str) -> Result<(), Ending> + 'static,
) -> Row<T> {
    let effect = move |to: &mut T, typed: &str| read(to, typed).map_err(Wrong::Ends);
    row(names, Takes::Argument, Box::new(effect))
}

/// As [`reads`], by a function that holds nothing: closures then need no types.
pub(crate) fn value<T: 'static>(
    names: Names,
    read: fn(&mut T, &str) -> Result<(), Ending>,
) -> Row<T> {
    reads(names, read)
}

/// An option whose argument is taken whatever it is.
pub(crate) fn any<T: 'static>(names: Names, take: fn(&mut T, &str)) -> Row<T> {
    reads(names, move |to, typed| {
        take(to, typed);
        Ok(())
    })
}

/// An option whose argument becomes the value of this place.
pub(crate) fn typed<T: 'static, V: 'static, R: Into<V>>(
    names: Names,
    place: Place<T, V>,
    read: impl Fn(&str) -> Result<R, Ending> + 'static,
) -> Row<T> {
    reads(names, move |to, typed| {
        *place(to) = read(typed)?.into();
        Ok(())
    })
}

/// What keeps an argument as it is.
pub(crate) trait Keep {
    fn keep(&mut self, argument: &str);
}

impl Keep for String {
    fn keep(&mut self, argument: &str) {
        argument.clone_into(self);
    }
}

impl<V: From<String>> Keep for Option<V> {
    fn keep(&mut self, argument: &str) {
        *self = Some(argument.to_owned().into());
    }
}

impl Keep for Vec<String> {
    fn keep(&mut self, argument: &str) {
        self.push(argument.to_owned());
    }
}

/// An option whose argument is kept as it is.
pub(crate) fn text<T: 'static, V: Keep + 'static>(names: Names, place: Place<T, V>) -> Row<T> {
    reads(names, move |to, typed| {
        place(to).keep(typed);
        Ok(())
    })
}

/// An option without an argument that may be wrong where it stands.
fn bare<T>(names: Names, set: impl Fn(&mut T) -> Result<(), Ending> + 'static) -> Row<T> {
    let row = reads(names, move |to, _| set(to));
    takes(Takes::Nothing, row)
}

/// An option without an argument.
pub(crate) fn flag<T: 'static>(names: Names, set: fn(&mut T)) -> Row<T> {
    bare(names, move |to| {
        set(to);
        Ok(())
    })
}

/// An option that has something printed in place of a run.
pub(crate) fn end<T: 'static>(names: Names, ending: fn(&T) -> Ending) -> Row<T> {
    bare(names, move |to: &mut T| Err(ending(to)))
}

/// An option that is known and not taken, for this reason, which says what to type instead.
pub(crate) fn refused<T>(names: Names, reason: &'static str) -> Row<T> {
    let option = names.split(' ').next().unwrap_or(names);
    let line = format!("brunt: {option} is not supported: {reason}");
    let effect = move |_: &mut T, _: &str| Err(Wrong::Refused(line.clone()));
    row(names, Takes::AttachedArgument, Box::new(effect))
}

/// `--brunt-report FILE`, which no tool has: the file for brunt's own record of the run.
pub(crate) fn report<T: 'static>(place: Place<T, Option<PathBuf>>) -> Row<T> {
    in_full(text("--brunt-report", place))
}

/// The option is none of the tool's.
pub(crate) fn in_full<T>(mut row: Row<T>) -> Row<T> {
    row.is_abbreviated = false;
    row
}

/// Another argument follows the option than its effect says.
pub(crate) fn takes<T>(takes: Takes, row: Row<T>) -> Row<T> {
    Row { takes, ..row }
}

/// A report shows this of the argument.
pub(crate) fn shows<T>(shown: Shown, row: Row<T>) -> Row<T> {
    Row { shown, ..row }
}

/// The argument may be secret.
pub(crate) fn secret<T>(row: Row<T>) -> Row<T> {
    shows(Shown::Nothing, row)
}

/// The argument is a header field, whose value may be secret.
pub(crate) fn field<T>(row: Row<T>) -> Row<T> {
    shows(Shown::Field, row)
}

impl<T> Row<T> {
    /// The option as it is typed: by its letter where it has one.
    fn typed(&self) -> String {
        match self.letter {
            "" => format!("--{}", self.name),
            letter => format!("-{letter}"),
        }
    }
}

/// Why a command line is not taken.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// No option is called so: a letter or a name, with its dashes.
    NoOption(String),
    /// The option lacks its argument: a letter or a name, with its dashes.
    NoArgument(String),
    /// What the C library says of a long option.
    Name(String),
    /// The option is refused, with this line.
    Refused(String),
    /// The option ends the program, or its argument does.
    Ends(Ending),
}

impl Wrong {
    /// How the program ends: as `wrong` says of the line that the C library prints for `program`.
    pub(crate) fn ending(self, program: &str, wrong: impl FnOnce(&str) -> Ending) -> Ending {
        let line = match self {
            Self::Ends(ending) => return ending,
            Self::Refused(line) => return wrong(&line),
            Self::Name(line) => line,
            Self::NoOption(option) => match letter(&option) {
                Some(letter) => format!("invalid option -- '{letter}'"),
                None => format!("unrecognized option '{option}'"),
            },
            Self::NoArgument(option) => match letter(&option) {
                Some(letter) => format!("option requires an argument -- '{letter}'"),
                None => format!("option '{option}' requires an argument"),
            },
        };
        wrong(&format!("{program}: {line}"))
    }
}

/// The letter of an option with its dashes; absent for a name.
fn letter(option: &str) -> Option<char> {
    let mut letters = option.chars().skip(1);
    letters.next().filter(|_| letters.next().is_none())
}

/// The options of a tool, which say what a command line makes of its `T`.
pub struct Table<T> {
    pub(crate) style: Style,
    pub(crate) rows: Vec<Row<T>>,
}

impl Style {
    pub(crate) fn table<T>(self, rows: Vec<Row<T>>) -> Table<T> {
        Table { style: self, rows }
    }
}

impl<T> Table<T> {
    /// Does to `to` what the options among `words` say. Gives the other words.
    pub(crate) fn read(&self, words: &[String], to: &mut T) -> Result<Vec<String>, Wrong> {
        match self.read_on(words, to) {
            (others, None) => Ok(others),
            (_, Some(wrong)) => Err(wrong),
        }
    }

    /// Does to `to` what the options say up to one that is wrong, if any. Gives the other words, or
    /// what is left, and what is wrong.
    pub(crate) fn read_on(&self, words: &[String], to: &mut T) -> (Vec<String>, Option<Wrong>) {
        let mut found = self.find(words);
        while let Some(item) = found.next() {
            let done =
                item.and_then(|(row, argument)| (row.effect)(to, &argument.unwrap_or_default()));
            if let Err(wrong) = done {
                return (found.others(), Some(wrong));
            }
        }
        (found.others(), None)
    }

    /// A command line as a report may show it: without what may be secret, which are arguments of
    /// options, and all words behind the first, which is the URL. Options stand before the URL,
    /// each with its argument in a word of its own.
    pub fn shown(&self, words: &[String]) -> Vec<String> {
        let mut shown = Vec::new();
        let mut found = self.find(words);
        // A command line that is wrong makes no run.
        while let Some(Ok((row, argument))) = found.next() {
            shown.push(row.typed());
            shown.extend(argument.map(|argument| match row.shown {
                Shown::All => argument,
                Shown::Field => redact_field(&argument),
                Shown::Path => match argument.split_once('?') {
                    Some((path, _)) => format!("{path}?{HIDDEN}"),
                    None => argument,
                },
                Shown::Nothing => HIDDEN.to_owned(),
            }));
        }
        let mut others = found.others().into_iter();
        shown.extend(others.next());
        shown.extend(others.map(|_| HIDDEN.to_owned()));
        shown
    }

    fn find<'a>(&'a self, words: &'a [String]) -> Found<'a, T> {
        Found {
            style: self.style,
            rows: &self.rows,
            words: words.iter().peekable(),
            cluster: "",
            others: Vec::new(),
        }
    }
}

/// An option with its argument.
type Item<'a, T> = Result<(&'a Row<T>, Option<String>), Wrong>;

/// The options among the words of a command line.
struct Found<'a, T> {
    style: Style,
    rows: &'a [Row<T>],
    words: std::iter::Peekable<std::slice::Iter<'a, String>>,
    /// What is left of a cluster of letters.
    cluster: &'a str,
    /// Words that are no options.
    others: Vec<String>,
}

impl<'a, T> Found<'a, T> {
    /// The next option; absent where only words are left.
    fn next(&mut self) -> Option<Item<'a, T>> {
        while self.cluster.is_empty() {
            let word = self.words.next()?;
            match (word.strip_prefix("--"), word.strip_prefix('-')) {
                (Some(""), _) if self.style != Style::Words => return None,
                (Some(name), _) => match self.long_option(name) {
                    // What begins like this ends the options there.
                    Err(Wrong::NoOption(_)) if self.style == Style::Letters => return None,
                    item => return Some(item),
                },
                (None, Some(cluster)) if !cluster.is_empty() => self.cluster = cluster,
                _ => {
                    self.others.push(word.clone());
                    if matches!(self.style, Style::Letters | Style::Words) {
                        return None;
                    }
                }
            }
        }
        Some(self.short_option())
    }

    /// The words that are no options, in their order, and those that were not looked at.
    fn others(self) -> Vec<String> {
        let mut others = self.others;
        others.extend(self.words.cloned());
        others
    }

    fn short_option(&mut self) -> Item<'a, T> {
        let cluster = std::mem::take(&mut self.cluster);
        let rows = self.rows.iter();
        let mut with_letter = rows.filter(|row| !row.letter.is_empty());
        let Some(row) = with_letter.find(|row| cluster.starts_with(row.letter)) else {
            let letter: String = cluster.chars().take(1).collect();
            return Err(Wrong::NoOption(format!("-{letter}")));
        };
        let attached = &cluster[row.letter.len()..];
        let argument = match row.takes {
            Takes::Nothing if self.style == Style::Words => None,
            Takes::Nothing => {
                self.cluster = attached;
                None
            }
            Takes::AttachedArgument => Some(attached.to_owned()),
            Takes::Argument if attached.is_empty() => match self.next_word() {
                None if self.style == Style::Words => Some(String::new()),
                None => return Err(Wrong::NoArgument(row.typed())),
                next => next,
            },
            Takes::Argument => Some(attached.to_owned()),
        };
        Ok((row, argument))
    }

    fn next_word(&mut self) -> Option<String> {
        let is_any = self.style != Style::Words;
        let next = self.words.next_if(|word| is_any || !word.starts_with('-'));
        next.cloned()
    }

    fn long_option(&mut self, typed: &str) -> Item<'a, T> {
        let (name, attached) = match typed.split_once('=') {
            Some((name, argument)) => (name, Some(argument.to_owned())),
            None => (typed, None),
        };
        let row = match &self.called(name)[..] {
            [] => return Err(Wrong::NoOption(format!("--{typed}"))),
            [row] => *row,
            candidates => {
                let names = candidates.iter().map(|row| format!(" '--{}'", row.name));
                let names: String = names.collect();
                return Err(Wrong::Name(format!(
                    "option '--{typed}' is ambiguous; possibilities:{names}"
                )));
            }
        };
        let argument = match (row.takes, attached) {
            (Takes::Nothing, Some(_)) => {
                return Err(Wrong::Name(format!(
                    "option '--{}' doesn't allow an argument",
                    row.name
                )));
            }
            (Takes::Argument, None) => match self.next_word() {
                None => return Err(Wrong::NoArgument(format!("--{}", row.name))),
                next => next,
            },
            (_, attached) => attached,
        };
        Ok((row, argument))
    }

    /// The option of this name, or all that begin so.
    fn called(&self, name: &str) -> Vec<&'a Row<T>> {
        let named = self.rows.iter().filter(|row| !row.name.is_empty());
        if let Some(exact) = named.clone().find(|row| row.name == name) {
            return vec![exact];
        }
        let named = named.filter(|_| self.style == Style::GetoptLong);
        let begin_so = named.filter(|row| row.is_abbreviated && row.name.starts_with(name));
        begin_so.collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The words of a line without quotes.
    pub(crate) fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// An option with an argument, which is found under this key.
    fn keyed(names: Names, key: &'static str) -> Row<String> {
        reads(names, move |to: &mut String, typed| {
            to.push_str(&format!("{key}={typed} "));
            Ok(())
        })
    }

    fn table(style: Style) -> Table<String> {
        style.table(vec![
            keyed("-t --threads", "t"),
            keyed("-T --timeout", "T"),
            flag("--time", |to| to.push_str("time ")),
            flag("-L --latency", |to| to.push_str("L ")),
            flag("-?", |to| to.push_str("? ")),
            field(keyed("-H", "H")),
            keyed("-Cx", "Cx"),
            secret(keyed("-C", "C")),
            shows(Shown::Path, keyed("--uri", "uri")),
            in_full(keyed("--brunt-report", "report")),
            refused("--seed", "leave it out"),
        ])
    }

    /// What is found: options with their arguments, the other words behind a bar; or the message.
    fn found(style: Style, line: &str) -> String {
        let mut text = String::new();
        let found = table(style).read(&words(line), &mut text);
        match found {
            Ok(others) => format!("{text}| {}", others.join(" ")),
            Err(wrong) => wrong.ending("wrk", |line| Ending::error(line, 1)).stderr,
        }
    }

    #[test]
    fn options_are_found_as_the_c_library_finds_them() {
        for (line, expected) in [
            ("-t12 url -L", "t=12 L | url"),
            ("-Lt4 url", "L t=4 | url"),
            ("-t 4 -T5 url word", "t=4 T=5 | url word"),
            ("--threads=4 --lat url", "t=4 L | url"),
            ("--thr 4 url", "t=4 | url"),
            ("--timeo=1 --time url", "T=1 time | url"),
            ("--threads= url", "t= | url"),
            ("url -- -t 4 --x", "| url -t 4 --x"),
            ("-t -- url", "t=-- | url"),
            ("-t --latency url", "t=--latency | url"),
            ("- url", "| - url"),
            ("-? url", "? | url"),
            ("--brunt-report=f url", "report=f | url"),
        ] {
            assert_eq!(found(Style::GetoptLong, line), expected, "{line}");
        }
    }

    #[test]
    fn other_styles_end_with_the_first_other_word() {
        for (style, line, expected) in [
            (Style::Letters, "-Lt4 url -L", "L t=4 | url -L"),
            (
                Style::Letters,
                "-L --time= --nothing -L",
                "wrk: option '--time' doesn't allow an argument\n",
            ),
            (Style::Letters, "-L --nothing -L", "L | -L"),
            (
                Style::Words,
                "-Lt4 -t -L -Cx1 -C x url -L",
                "L t= L Cx=1 C=x | url -L",
            ),
            (Style::Words, "--brunt-report f", "report=f | "),
            (
                Style::InFull,
                "--lat url",
                "wrk: unrecognized option '--lat'\n",
            ),
        ] {
            assert_eq!(found(style, line), expected, "{line}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for (line, expected) in [
            ("-t12 http://h/?a=b -L", "-t 12 -L http://h/?a=b"),
            ("-LHX-Token:hush url", "-L -H X-Token: ... url"),
            ("-H hush -C hush --thr 4 url", "-H ... -C ... -t 4 url"),
            ("--uri=/x?hush", "--uri /x?..."),
            (
                "--brunt-report=f url hush -- -x hush",
                "--brunt-report f url ... ... ...",
            ),
        ] {
            let table = table(Style::GetoptLong);
            assert_eq!(table.shown(&words(line)).join(" "), expected, "{line}");
        }
    }

    #[test]
    fn messages_are_those_of_the_c_library() {
        for (line, expected) in [
            ("-x url", "wrk: invalid option -- 'x'\n"),
            ("url -t", "wrk: option requires an argument -- 't'\n"),
            (
                "--seed 1 url",
                "brunt: --seed is not supported: leave it out\n",
            ),
            ("--foo=1 url", "wrk: unrecognized option '--foo=1'\n"),
            ("--brunt f url", "wrk: unrecognized option '--brunt'\n"),
            (
                "url --threads",
                "wrk: option '--threads' requires an argument\n",
            ),
            (
                "--lat=1 url",
                "wrk: option '--latency' doesn't allow an argument\n",
            ),
            (
                "--t 1 url",
                "wrk: option '--t' is ambiguous; possibilities: '--threads' '--timeout' '--time'\n",
            ),
        ] {
            assert_eq!(found(Style::GetoptLong, line), expected, "{line}");
        }
    }
}
