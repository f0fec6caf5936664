//! The server's own count of requests (`--verify-url`): read before the run and after it, from
//! nginx's status page, the reference server's counters, JSON or Prometheus metrics.

use brunt_io::tls_config::PageTls;
use brunt_load::ServerCounter;
use brunt_record::ServerCount;
use serde_json::Value;
use thiserror::Error;

use crate::fetch::{FetchError, Page};
use crate::prometheus::{self, Selector};

/// Limit of one reading, nanoseconds.
const LIMIT_NS: u64 = 5_000_000_000;
/// Counts from here on are not whole numbers in a float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// Values of a page that a message names.
pub(crate) const NAMED_MAX: usize = 10;
/// Characters of a value's path that a message names.
pub(crate) const PATH_MAX: usize = 100;
/// Values of a page that are looked at for that.
const LOOKED_AT_MAX: usize = 1_000;
/// Depth to which values of a page are looked for, to be named.
const DEPTH_MAX: usize = 8;

/// Why the server's count cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerCountError {
    /// The page cannot be read.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// No value is named, and the page is not one that is known.
    #[error(
        "{url} is neither nginx's status page nor the reference server's counters; say which value \
         counts the requests ({candidates})"
    )]
    Unknown {
        /// What was read.
        url: String,
        /// Values that it has, in words.
        candidates: String,
    },
    /// The page has no such value.
    #[error("{url} has no value `{path}` ({candidates})")]
    Absent {
        /// What was read.
        url: String,
        /// The value asked for.
        path: String,
        /// Values that it has, in words.
        candidates: String,
    },
    /// The value is not a count.
    #[error("`{path}` of {url} is {value}, which is not a count of requests; name another value")]
    NotCount {
        /// What was read.
        url: String,
        /// The value asked for.
        path: String,
        /// The value that was read in its place.
        value: String,
    },
}

/// Reads the server's count.
#[derive(Debug)]
pub struct CounterReader {
    page: Page,
    path: Option<String>,
}

/// One reading of the server's count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Requests so far.
    pub count: u64,
    /// What was read, such as `requests`.
    pub path: String,
    /// Requests that a second reading adds by itself, at most.
    pub own_reads: u64,
}

impl CounterReader {
    /// A reader of the server's count at a page; resolves its host and connects to nothing.
    pub fn new(counter: &ServerCounter, tls: &PageTls) -> Result<Self, ServerCountError> {
        Ok(Self {
            page: Page::new(&counter.target, tls)?,
            path: counter.path.clone(),
        })
    }

    /// Reads it; takes at most 5 s.
    pub fn read(&self) -> Result<Reading, ServerCountError> {
        let text = self.page.get(LIMIT_NS)?;
        find(&text, self.path.as_deref(), self.page.url())
    }

    /// What the run stores: a reading before its first connection and one after drain.
    pub fn server_count(&self, before: &Reading, after: &Reading) -> ServerCount {
        ServerCount {
            url: self.page.url().to_owned(),
            path: after.path.clone(),
            before: before.count,
            after: after.count,
            own_reads: after.own_reads,
        }
    }
}

/// The count in a page.
pub(crate) fn find(text: &str, path: Option<&str>, url: &str) -> Result<Reading, ServerCountError> {
    let url = url.to_owned();
    let Some(path) = path else {
        return recognise(text).ok_or_else(|| ServerCountError::Unknown {
            candidates: candidates(text),
            url,
        });
    };
    let path = path.to_owned();
    let Some(value) = named(text, &path) else {
        return Err(ServerCountError::Absent {
            candidates: candidates(text),
            url,
            path,
        });
    };
    match value.as_u64().or_else(|| value.as_f64().and_then(whole)) {
        Some(count) => Ok(Reading {
            count,
            path,
            own_reads: 1,
        }),
        None => Err(ServerCountError::NotCount {
            value: shortened(&value),
            url,
            path,
        }),
    }
}

/// A page whose looks are known.
fn recognise(text: &str) -> Option<Reading> {
    let reading = |count, own_reads| Reading {
        count,
        path: "requests".to_owned(),
        own_reads,
    };
    if text.starts_with("Active connections:") {
        // Its own requests are among those that it counts.
        return nginx_requests(text).map(|count| reading(count, 1));
    }
    let Ok(Value::Object(counters)) = serde_json::from_str(text) else {
        return None;
    };
    // The reference server counts requests for its counters apart.
    counters.get("counters_requests")?;
    let count = counters.get("requests")?.as_u64()?;
    Some(reading(count, 0))
}

/// The number under `requests` on the page of nginx's stub_status module.
fn nginx_requests(text: &str) -> Option<u64> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("server "));
    let titles = lines.next()?.split_ascii_whitespace().skip(1);
    let numbers = lines.next()?.split_ascii_whitespace();
    titles
        .zip(numbers)
        .find(|(title, _)| *title == "requests")
        .and_then(|(_, number)| number.parse().ok())
}

/// The value that `path` names: in JSON, or among metrics.
fn named(text: &str, path: &str) -> Option<Value> {
    match serde_json::from_str::<Value>(text) {
        Ok(json) => descend(&json, path).cloned(),
        Err(_) => {
            let sum = Selector::parse(path)?.sum(text)?;
            // What is not finite is shown as null.
            Some(Value::from(sum))
        }
    }
}

/// The value at a dotted path; keys may have dots in them.
fn descend<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let child = |key: &str| match value {
        Value::Object(members) => members.get(key),
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    };
    if let Some(found) = child(path) {
        return Some(found);
    }
    path.match_indices('.')
        .find_map(|(dot, _)| descend(child(&path[..dot])?, &path[dot + 1..]))
}

fn whole(number: f64) -> Option<u64> {
    ((0.0..EXACT_MAX).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

/// A value for a message.
fn shortened(value: &Value) -> String {
    let text = match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => other.to_string(),
    };
    cut(&text, 40)
}

/// A text of at most so many characters, and dots where there were more.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Values of a page that could be meant, in words.
fn candidates(text: &str) -> String {
    let mut paths = Vec::new();
    match serde_json::from_str::<Value>(text) {
        Ok(json) => collect_counts(&json, "", DEPTH_MAX, &mut paths),
        Err(_) => {
            for sample in prometheus::samples_of(text, |name| name.ends_with("_total")) {
                if paths.len() < LOOKED_AT_MAX && !paths.iter().any(|path| path == sample.name) {
                    paths.push(sample.name.to_owned());
                }
            }
        }
    }
    if paths.is_empty() {
        return "it is neither JSON with numbers nor Prometheus metrics with counters".to_owned();
    }
    let more = if paths.len() > NAMED_MAX {
        ", and more"
    } else {
        ""
    };
    // The likely ones first.
    paths.sort_by_key(|path| !path.contains("request"));
    paths.truncate(NAMED_MAX);
    let paths: Vec<_> = paths.iter().map(|path| cut(path, PATH_MAX)).collect();
    format!("it has {}{more}", paths.join(", "))
}

/// The paths of whole numbers, at most as many as are looked at.
fn collect_counts(value: &Value, prefix: &str, depth: usize, paths: &mut Vec<String>) {
    let mut visit = |key: &str, child: &Value| {
        if paths.len() >= LOOKED_AT_MAX {
            return;
        }
        let path = if prefix.is_empty() {
            key.to_owned()
        } else {
            format!("{prefix}.{key}")
        };
        if child.is_u64() {
            paths.push(path);
        } else if depth > 0 {
            collect_counts(child, &path, depth - 1, paths);
        }
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, child)| visit(key, child)),
        Value::Array(items) => (0..)
            .zip(items)
            .for_each(|(at, child): (usize, _)| visit(&at.to_string(), child)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::tests::{ok, serve, target};

    /// The status page as nginx 1.24 prints it.
    const NGINX: &str = "Active connections: 291 \nserver accepts handled requests\n \
                         16630948 16630948 31070465 \nReading: 6 Writing: 179 Waiting: 106 \n";
    /// The status page as Tengine prints it.
    const TENGINE: &str = "Active connections: 1\nserver accepts handled requests request_time\n \
                           1140 1140 1142 75806\nReading: 0 Writing: 1 Waiting: 0\n";
    /// The first fields of the reference server's.
    const REFERENCE: &str = r#"{"connections_accepted":3,"requests":41,
        "requests_by_method":{"GET":41},"counters_requests":2}"#;
    const JSON: &str = r#"{"requests":{"total":12,"failed":0.0,"rate":1.5,"note":"x"},
        "workers":[{"count":3},{"count":4e2}],"dotted.key":{"a.b":5},
        "requests.all":6,"none":null}"#;
    /// Metrics as the exporter of nginx prints them, and a few lines more.
    const METRICS: &str = "# TYPE nginx_http_requests_total counter\n\
                           nginx_http_requests_total 31070465\n\
                           http_requests_total{code=\"200\"} 10\n\
                           http_requests_total{code=\"404\"} 2\n\
                           go_info{version=\"go1.22\"} 1\nratio 0.5\nbad_total NaN\n";

    #[test]
    fn pages_that_are_known() {
        for (text, count, own_reads) in [
            (NGINX, 31_070_465, 1),
            (TENGINE, 1_142, 1),
            (REFERENCE, 41, 0),
        ] {
            let reading = find(text, None, "http://h/").unwrap();
            assert_eq!(
                (reading.count, reading.own_reads),
                (count, own_reads),
                "{text}"
            );
            assert_eq!(reading.path, "requests");
        }
    }

    #[test]
    fn values_by_their_paths() {
        for (text, path, count) in [
            (REFERENCE, "requests", 41),
            (REFERENCE, "requests_by_method.GET", 41),
            (JSON, "requests.total", 12),
            (JSON, "requests.failed", 0),
            (JSON, "workers.1.count", 400),
            (JSON, "dotted.key.a.b", 5),
            (JSON, "requests.all", 6),
            ("[7]", "0", 7),
            (METRICS, "nginx_http_requests_total", 31_070_465),
            (METRICS, "http_requests_total", 12),
            (METRICS, "http_requests_total{code=\"404\"}", 2),
        ] {
            let reading = find(text, Some(path), "http://h/").unwrap();
            assert_eq!((reading.count, &*reading.path), (count, path));
            assert_eq!(reading.own_reads, 1);
        }
    }

    #[test]
    fn what_cannot_be_read_says_what_could() {
        for (text, path, words) in [
            (
                JSON,
                None,
                "it has requests.total, requests.all, workers.0.count, dotted.key.a.b)",
            ),
            (
                METRICS,
                None,
                "nginx_http_requests_total, http_requests_total, bad_total",
            ),
            ("<html>", None, "neither JSON with numbers"),
            ("", None, "neither JSON with numbers"),
            ("Active connections: 1 \nserver\n", None, "neither nginx"),
            (JSON, Some("requests.totals"), "no value `requests.totals`"),
            (JSON, Some("workers.2.count"), "no value"),
            (JSON, Some("requests"), "is an object"),
            (JSON, Some("workers"), "is a list"),
            (JSON, Some("requests.rate"), "is 1.5"),
            (JSON, Some("requests.note"), "is \"x\""),
            (JSON, Some("none"), "is null"),
            (METRICS, Some("ratio"), "is 0.5"),
            (METRICS, Some("bad_total"), "is null"),
            (METRICS, Some("not a name"), "no value"),
            (
                METRICS,
                Some("absent_total"),
                "it has nginx_http_requests_total",
            ),
            (r#"{"a":-1}"#, Some("a"), "is -1"),
            (r#"{"a":1e300}"#, Some("a"), "is 1e+300"),
        ] {
            let message = find(text, path, "http://h/").unwrap_err().to_string();
            assert!(message.contains(words), "{path:?} of {text}: {message}");
        }
    }

    #[test]
    fn many_values_are_not_all_named() {
        let many: Vec<String> = (0..50).map(|at| format!("\"k{at:02}\":{at}")).collect();
        let json = format!("{{{},\"requests\":7}}", many.join(","));
        let words = candidates(&json);
        assert!(words.starts_with("it has requests, k00"), "{words}");
        assert!(words.contains("k08") && !words.contains("k09"), "{words}");
        assert!(words.ends_with(", and more"), "{words}");
    }

    #[test]
    fn two_readings_make_a_count() {
        let later = NGINX.replace("31070465", "31070475");
        let address = serve(vec![ok(NGINX), ok(&later)]);
        let counter = ServerCounter {
            target: target(address),
            path: None,
        };
        let reader = CounterReader::new(&counter, &PageTls::default()).unwrap();
        let (before, after) = (reader.read().unwrap(), reader.read().unwrap());
        assert_eq!(
            reader.server_count(&before, &after),
            ServerCount {
                url: format!("http://{address}/page"),
                path: "requests".to_owned(),
                before: 31_070_465,
                after: 31_070_475,
                own_reads: 1,
            }
        );
    }
}
