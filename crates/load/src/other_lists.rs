//! Lines that are written for other tools, or with more than a URL and a weight: what they are, and
//! what to write instead.

/// What a weight is given with, behind a URL.
pub(crate) const WEIGHT: &str = "weight=";

/// Characters of a line that are shown.
const SHOWN_MAX: usize = 80;
/// What begins a command line that brunt takes as it is.
const DROP_INS: [&str; 8] = [
    "ab", "h2load", "httperf", "oha", "tcpkali", "weighttp", "wrk", "wrk2",
];
/// What begins a command line of which there is no drop-in.
const OTHER_TOOLS: [&str; 6] = ["autocannon", "bombardier", "hey", "k6", "siege", "vegeta"];
/// Methods as siege has them behind a URL.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// What a line of a list of URLs is, where that shows by its beginning, and what to do instead.
pub(crate) fn remedy(text: &str) -> Option<String> {
    if text.starts_with('{') {
        return Some("it is a target in JSON: give the file with --targets".to_owned());
    }
    if is_variable(text) {
        return Some(
            "it has a variable of siege; write whole URLs, or paths alone and the URL of the \
             server on the command line"
                .to_owned(),
        );
    }
    let (first, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim();
    if text.contains(" HTTP/1.") && text.contains('"') {
        return Some(
            "it is a line of an access log; its paths alone are a list: awk '{print $7}' LOG"
                .to_owned(),
        );
    }
    if METHODS.contains(&first) && is_url(rest) {
        return Some("it is a target: give the file with --targets".to_owned());
    }
    if first == "curl" {
        return Some(of_curl(rest));
    }
    if DROP_INS.contains(&first) {
        let line = shortened(text);
        return Some(format!(
            "it is a command line of {first}; type `brunt {line}`, or write its URL alone"
        ));
    }
    if OTHER_TOOLS.contains(&first) {
        return Some(format!(
            "it is a command line of {first}; write its URL alone, and give the load by brunt's \
             options"
        ));
    }
    if first.parse::<f64>().is_ok() && is_url(rest) && !rest.contains(char::is_whitespace) {
        return Some(as_weight(rest, first));
    }
    None
}

/// What stands behind a URL, and is not a weight.
pub(crate) fn more_than_a_url(url: &str, behind: &str) -> String {
    let (first, rest) = match behind.split_once(char::is_whitespace) {
        Some((first, rest)) => (first, rest.trim()),
        None => (behind, ""),
    };
    if METHODS.contains(&first) {
        return of_siege(url, first, rest);
    }
    let step = ["method=", "contents=", "think="];
    if step.iter().any(|option| behind.contains(option)) {
        return "it is a step of httperf's sessions: give the file with --sessions".to_owned();
    }
    let digits = |text: &str| {
        text.trim_matches(|character: char| !character.is_ascii_digit())
            .to_owned()
    };
    let is_share = |word: &str| {
        word.trim_end_matches('%').parse::<f64>().is_ok()
            || word.starts_with("weight")
            || word.starts_with("w=")
    };
    if rest.is_empty() && is_share(first) && !digits(first).is_empty() {
        return as_weight(url, first);
    }
    format!(
        "behind the URL stands `{}`; a line has a URL and, if need be, {WEIGHT}N; within a URL \
         write %20 for a space",
        shortened(behind)
    )
}

/// A weight that is written otherwise.
fn as_weight(url: &str, typed: &str) -> String {
    let digits = typed.trim_matches(|character: char| !character.is_ascii_digit());
    let url = shortened(url);
    match digits.parse::<u32>() {
        Ok(weight) if weight > 0 => format!("for a weight, write `{url} {WEIGHT}{weight}`"),
        _ => format!("weights are whole numbers from 1; write `{url} {WEIGHT}3`"),
    }
}

/// siege's `URL METHOD BODY`, whose body may be `<FILE`.
fn of_siege(url: &str, method: &str, body: &str) -> String {
    let url = shortened(url);
    let file = match body.strip_prefix('<') {
        Some(file) => Some(file.trim()),
        None if body.is_empty() => None,
        None => Some("FILE"),
    };
    as_target(method, &url, file)
}

/// The target that a line of another tool stands for.
fn as_target(method: &str, url: &str, body_file: Option<&str>) -> String {
    let below = match body_file {
        Some(file) => format!(", and below it `@{}`", shortened(file)),
        None => String::new(),
    };
    format!("a method of its own stands in a file for --targets: write `{method} {url}`{below}")
}

/// A command line of curl.
fn of_curl(words: &str) -> String {
    let is_quote = |character: char| matches!(character, '\'' | '"');
    let words: Vec<&str> = words
        .split_whitespace()
        .map(|word| word.trim_matches(is_quote))
        .collect();
    let behind = |names: &[&str]| {
        let at = words.iter().position(|word| names.contains(word))?;
        words.get(at + 1).copied()
    };
    let url = words.iter().find(|word| word.contains("://"));
    let url = url.map_or_else(|| "URL".to_owned(), |url| shortened(url));
    let data = behind(&["-d", "--data", "--data-raw", "--data-binary", "--json"]);
    let method = behind(&["-X", "--request"]);
    match (method, data) {
        (None, None) | (Some("GET"), None) => {
            format!("it is a command line of curl; write `{url}`")
        }
        (method, data) => {
            let file = data.map(|data| data.strip_prefix('@').unwrap_or("FILE"));
            as_target(method.unwrap_or("POST"), &url, file)
        }
    }
}

/// `NAME=VALUE`, or a URL with `$(NAME)` or `${NAME}`.
fn is_variable(text: &str) -> bool {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_assigned = text.split_once('=').is_some_and(|(name, _)| is_name(name));
    is_assigned || text.contains("$(") || text.contains("${")
}

/// Whether the text begins as a URL or a path does.
fn is_url(text: &str) -> bool {
    text.starts_with('/')
        || text
            .split_whitespace()
            .next()
            .is_some_and(|it| it.contains("://"))
}

/// The beginning of a long text.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
