//! Command lines that repeat a run with other options, to paste.

use brunt_load::{LoadModel, Plan};
use brunt_record::Run;

/// The longest command line that advice holds, bytes.
const BYTES_MAX: usize = 300;
/// What stands for a value that may be secret, and for a query.
const HIDDEN: [&str; 2] = ["...", "?redacted"];
/// Commands of brunt that load and take the options which advice names.
const LOADS: [&str; 1] = ["tcp"];
/// Options that advice sets, with their short names.
const SHORT: [(&str, &str); 4] = [
    ("--connections", "-c"),
    ("--duration", "-d"),
    ("--threads", "-t"),
    ("--rate", "-r"),
];
/// Options of a run that a search or a sweep sets by itself, or that it has no use for.
const NOT_OF_SEARCH: [&str; 12] = [
    "-d",
    "-r",
    "-n",
    "--requests",
    "--warmup",
    "--format",
    "--max-connections",
    "--watch",
    "--objective",
    "--part",
    "--start-at",
    "--stages",
];
/// Options that write to a file: a second run would replace it.
const OUTPUT: [&str; 5] = ["-o", "--output", "--hdr-log", "--hgrm", "--junit"];
/// Options about the load as a whole, which a single request does without.
const NOT_OF_ONE: [&str; 15] = [
    "-d",
    "-r",
    "-n",
    "--requests",
    "-c",
    "-t",
    "--warmup",
    "--stages",
    "--arrivals",
    "--max-connections",
    "--connection-rate",
    "--requests-per-connection",
    "--think-time",
    "--objective",
    "--start-at",
];
/// Such options without a value, and one that `--show-errors` does not go with.
const FLAGS_NOT_OF_ONE: [&str; 3] = ["--show-errors", "--redact", "--no-keepalive"];
/// Options that only a search has.
const OF_SEARCH: [&str; 2] = ["--max-rate", "--budget"];
/// An option without a value that a search and a sweep refuse.
const FLAG_NOT_OF_SEARCH: &str = "--latency";

/// A word that a shell takes as it is.
pub fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/._-~%@+,=".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
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

/// The command line of `run` with `options`, such as `-d 60s`, in place of its own; where that is
/// not known, holds something secret or is long, what is to be changed.
pub(super) fn with(run: &Run, options: &[String]) -> String {
    let line = typed(run).and_then(|words| repeated(words, options));
    line.unwrap_or_else(|| format!("the same command with {}", options.join(" ")))
}

/// The command line `typed` with `options` in place of its own, without files that it writes.
pub fn repeated(typed: &[String], options: &[String]) -> Option<String> {
    let mut words = typed.to_vec();
    drop_files(&mut words);
    for option in options {
        let name = option.split(' ').next().unwrap_or_default();
        without(&mut words, name, option.contains(' '));
    }
    let at = usize::from(is_verb(words.get(1))) + 1;
    let added = options.iter().flat_map(|option| option.split(' '));
    words.splice(at..at, added.map(str::to_owned));
    line(&words)
}

/// One request of `run`, as it is sent, and what answers it.
pub(super) fn once(run: &Run) -> String {
    let line = typed(run).and_then(one_request);
    line.unwrap_or_else(|| "the same command with -n 1 -c 1 --show-errors".to_owned())
}

/// The command line `typed` for one of its requests.
pub fn one_request(typed: &[String]) -> Option<String> {
    let mut words = typed.to_vec();
    drop_files(&mut words);
    for name in NOT_OF_ONE {
        without(&mut words, name, true);
    }
    for name in FLAGS_NOT_OF_ONE {
        without(&mut words, name, false);
    }
    let added = ["-n", "1", "-c", "1", "--show-errors"].map(str::to_owned);
    words.splice(1..1, added);
    line(&words)
}

/// The search for the highest rate that holds the objectives of `run`, else a p99 below
/// `objective`, with its options; absent where its load cannot be searched for, or its command line
/// is not known.
pub(super) fn search(run: &Run, objective: &str) -> Option<String> {
    if !is_searchable(&run.plan) || run.is_generated() {
        return None;
    }
    let words = typed(run).filter(|words| !is_verb(words.get(1)))?;
    searched(words, objective)
}

/// The search with the options and objectives of the command line `typed`; `objective`: where it
/// has none.
pub fn searched(typed: &[String], objective: &str) -> Option<String> {
    let mut words = of_experiment(typed);
    let asked = objectives(typed);
    let objective = asked.as_deref().unwrap_or(objective);
    let added = ["find", "--objective", objective].map(str::to_owned);
    words.splice(1..1, added);
    line(&words)
}

/// The sweep over these numbers of connections, with the options of `run`; where its command line
/// is not known, what is to be given.
pub(super) fn sweep(run: &Run, connections: &str) -> String {
    let words = typed(run).filter(|words| !is_verb(words.get(1)));
    let line = words.and_then(|words| swept(words, connections));
    line.unwrap_or_else(|| format!("brunt sweep -c {connections}, with the options of this run"))
}

/// The sweep over these numbers of connections with the options of the command line `typed`.
pub fn swept(typed: &[String], connections: &str) -> Option<String> {
    let mut words = of_experiment(typed);
    without(&mut words, "-c", true);
    let added = ["sweep", "-c", connections].map(str::to_owned);
    words.splice(1..1, added);
    line(&words)
}

/// The command line without what an experiment has no use for.
fn of_experiment(typed: &[String]) -> Vec<String> {
    let mut words = typed.to_vec();
    drop_files(&mut words);
    for name in NOT_OF_SEARCH {
        without(&mut words, name, true);
    }
    without(&mut words, FLAG_NOT_OF_SEARCH, false);
    words
}

/// The objectives among the words, as a list: without those of a rate, which is searched for.
fn objectives(words: &[String]) -> Option<String> {
    const NAME: &str = "--objective";
    let mut words = words.iter();
    let mut asked = Vec::new();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix(NAME) {
            Some("") => words.next().map(String::as_str),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        let parts = value.into_iter().flat_map(|list| list.split(','));
        let is_rate = |part: &str| {
            let plain = part.rsplit(": ").next().unwrap_or(part);
            plain.trim_start().starts_with("rate")
        };
        asked.extend(parts.filter(|part| !is_rate(part)).map(str::trim));
    }
    (!asked.is_empty()).then(|| asked.join(", "))
}

/// Takes out what writes files.
fn drop_files(words: &mut Vec<String>) {
    for name in OUTPUT {
        without(words, name, true);
    }
}

/// The run at `per_s` requests per second that `searched`, the words of a search, had the options
/// of; absent where they are not known as a whole.
pub fn at_rate(searched: &[String], per_s: &str) -> Option<String> {
    let is_search = searched.get(1).is_some_and(|verb| verb == "find");
    let mut words = whole(searched).filter(|_| is_search)?.to_vec();
    words.remove(1);
    drop_files(&mut words);
    for name in NOT_OF_SEARCH.iter().chain(&OF_SEARCH) {
        without(&mut words, name, true);
    }
    words.splice(1..1, ["-r", per_s].map(str::to_owned));
    line(&words)
}

/// The command `typed` with a page for a browser beside its text; absent where it is not known as a
/// whole, or writes files already.
pub fn with_page(typed: &[String], file: &str) -> Option<String> {
    let is_output = |word: &String| word.starts_with("-o") || word.starts_with("--output");
    let words = whole(typed).filter(|words| !words.iter().any(is_output))?;
    let mut words = words.to_vec();
    without(&mut words, "--format", true);
    words.extend(["-o", file].map(str::to_owned));
    line(&words)
}

/// Whether the load is one that a search can plan a rate for.
fn is_searchable(plan: &Plan) -> bool {
    let is_by_rate = match &plan.model {
        LoadModel::Closed { connect_per_s } => connect_per_s.is_none(),
        LoadModel::Open { schedule, .. } => schedule.rate_per_s().is_some(),
        LoadModel::Held { .. } | LoadModel::Sessions { .. } => false,
    };
    is_by_rate
        && plan.stop.requests.is_none()
        && plan.think_time_ns == 0
        && plan.one_way().is_none()
        && !plan.has_equal_parts
}

/// How brunt was called, where that is known and whole.
fn typed(run: &Run) -> Option<&[String]> {
    let words = whole(run.agents.first()?.command.as_deref()?)?;
    let loads = words
        .get(1)
        .is_some_and(|verb| LOADS.contains(&verb.as_str()));
    (run.is_plain() && (loads || !is_verb(words.get(1)))).then_some(words)
}

/// The words of a command of brunt of which nothing is left out.
fn whole(words: &[String]) -> Option<&[String]> {
    let mut ends = words
        .iter()
        .flat_map(|word| HIDDEN.map(|end| word.ends_with(end)));
    let is_hidden = ends.any(|is_hidden| is_hidden);
    (words.first()? == "brunt" && !is_hidden).then_some(words)
}

/// Whether a word behind `brunt` names a command: URLs and options hold other characters.
fn is_verb(word: Option<&String>) -> bool {
    word.is_some_and(|word| {
        word.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

/// Takes an option out, by whichever of its names it is there.
fn without(words: &mut Vec<String>, name: &str, has_value: bool) {
    let pair = SHORT
        .iter()
        .find(|(long, short)| [*long, *short].contains(&name));
    let names = pair.map_or([name, name], |(long, short)| [*long, *short]);
    let mut at = 0;
    while at < words.len() {
        let word = words[at].as_str();
        let is_attached = |name: &str| match name.starts_with("--") {
            true => word
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('=')),
            false => !word.starts_with("--") && word.starts_with(name) && word.len() > name.len(),
        };
        if names.contains(&word) {
            let end = at + 1 + usize::from(has_value);
            words.drain(at..end.min(words.len()));
        } else if has_value && names.into_iter().any(is_attached) {
            words.remove(at);
        } else {
            at += 1;
        }
    }
}

/// The words as a line for a shell, unless it is long.
fn line(words: &[String]) -> Option<String> {
    let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    Some(words.join(" ")).filter(|line| line.len() <= BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::sample::{open_run, run};

    fn called(line: &str) -> Run {
        let mut run = run();
        run.agents[0].command = Some(line.split(' ').map(str::to_owned).collect());
        run
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_run_has_the_options_of_a_search() {
        let typed = "brunt find --objective p99<1ms --max-rate=5k --budget 1m -c 9 -d2s http://h/";
        let run = at_rate(&words(typed), "500");
        assert_eq!(run.as_deref(), Some("brunt -r 500 -c 9 http://h/"));
        for unknown in ["brunt -c 9 http://h/", "brunt find -H ... http://h/"] {
            assert_eq!(at_rate(&words(unknown), "500"), None, "{unknown}");
        }
    }

    #[test]
    fn a_page_is_written_beside_the_text() {
        let page = with_page(&words("brunt compare a.json b.json"), "c.html");
        let expected = "brunt compare a.json b.json -o c.html";
        assert_eq!(page.as_deref(), Some(expected));
        assert_eq!(with_page(&words(expected), "d.html"), None);
    }

    #[test]
    fn options_take_the_place_of_those_typed() {
        for (typed, options, expected) in [
            (
                "brunt http://h/a?b&c",
                "-d 60s",
                "brunt -d 60s 'http://h/a?b&c'",
            ),
            (
                "brunt -d 2s -c9 http://h/",
                "-d 60s|-c 18",
                "brunt -d 60s -c 18 http://h/",
            ),
            (
                "brunt --duration=2s --connections 9 http://h/",
                "-d 250ms|-c 18|--warmup 10s",
                "brunt -d 250ms -c 18 --warmup 10s http://h/",
            ),
            (
                "brunt -o run.json --output=run.html http://h/",
                "-d 60s",
                "brunt -d 60s http://h/",
            ),
            (
                "brunt tcp -d2s h:1",
                "-d 4s|--redact",
                "brunt tcp -d 4s --redact h:1",
            ),
            (
                "brunt --redact http://h/",
                "--redact",
                "brunt --redact http://h/",
            ),
            (
                "brunt -H ... http://h/",
                "-d 4s",
                "the same command with -d 4s",
            ),
            (
                "brunt wrk -d 2s http://h/",
                "-d 4s",
                "the same command with -d 4s",
            ),
            ("other http://h/", "-d 4s", "the same command with -d 4s"),
        ] {
            let options: Vec<String> = options.split('|').map(str::to_owned).collect();
            assert_eq!(with(&called(typed), &options), expected);
        }
        assert_eq!(
            with(&run(), &["-d 4s".to_owned()]),
            "the same command with -d 4s"
        );
        let long = called(&format!("brunt http://h/{}", "x".repeat(BYTES_MAX)));
        assert_eq!(
            with(&long, &["-c 2".to_owned()]),
            "the same command with -c 2"
        );
    }

    #[test]
    fn a_search_keeps_what_it_can_use() {
        let objective = "p99 < 5ms";
        let found = search(
            &called("brunt -k --latency -d 2s -r 9 --objective rate>9 -c 4 https://h/"),
            objective,
        );
        let expected = "brunt find --objective 'p99 < 5ms' -k -c 4 https://h/";
        assert_eq!(found.as_deref(), Some(expected));
        let mut open = open_run();
        assert_eq!(search(&open, objective), None);
        open.agents[0].command = called("brunt -r5 http://h/").agents.remove(0).command;
        assert!(search(&open, objective).is_some());
        open.plan.stop.requests = Some(9);
        assert_eq!(search(&open, objective), None);
        assert_eq!(search(&called("brunt tcp h:1"), objective), None);
    }

    #[test]
    fn a_sweep_keeps_what_it_can_use() {
        for (typed, expected) in [
            (
                "brunt -k --latency -d2s -c 4 --junit=a.xml https://h/",
                "brunt sweep -c 2,4,8 -k https://h/",
            ),
            (
                "brunt tcp h:1",
                "brunt sweep -c 2,4,8, with the options of this run",
            ),
        ] {
            assert_eq!(sweep(&called(typed), "2,4,8"), expected);
        }
    }
}
