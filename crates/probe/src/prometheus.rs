//! Metrics as Prometheus exporters print them (text format 0.0.4, and OpenMetrics as far as it is
//! the same): samples with their names and labels, and the sum of those that a selector names.

/// One sample of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample<'a> {
    /// The metric's name.
    pub(crate) name: &'a str,
    /// The labels, in the order in which they are printed.
    pub(crate) labels: Vec<(&'a str, String)>,
    /// The value; may be infinite or no number.
    pub(crate) value: f64,
}

impl Sample<'_> {
    /// The value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The samples of metrics whose names `is_wanted`. Labels of others are not looked at: a page can
/// have thousands of them. Lines that are no samples are passed over.
pub(crate) fn samples_of(
    text: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Sample<'_>> {
    text.lines()
        .filter(move |line| split_name(line.trim_start()).is_some_and(|(name, _)| is_wanted(name)))
        .filter_map(sample)
}

/// A metric's name, and perhaps labels that a sample must have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selector {
    name: String,
    labels: Vec<(String, String)>,
}

impl Selector {
    /// Reads `name` or `name{label="value",...}`; `None` where it is neither.
    pub(crate) fn parse(typed: &str) -> Option<Self> {
        let (name, rest) = split_name(typed.trim())?;
        let (labels, rest) = labels(rest)?;
        rest.trim().is_empty().then(|| Self {
            name: name.to_owned(),
            labels: labels
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        })
    }

    /// The sum of all samples that it names; `None` where there are none.
    pub(crate) fn sum(&self, text: &str) -> Option<f64> {
        samples_of(text, |name| name == self.name)
            .filter(|sample| {
                self.labels
                    .iter()
                    .all(|(name, value)| sample.label(name) == Some(value))
            })
            .map(|sample| sample.value)
            .reduce(|sum, value| sum + value)
    }
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let (name, rest) = split_name(line.trim_start())?;
    let (labels, rest) = labels(rest)?;
    // A time stamp may follow.
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name,
        labels,
        value,
    })
}

/// A metric's name at the start of `text`, and the rest; `None` for comments and all else.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    let end = text
        .bytes()
        .position(|byte| !is_part(byte))
        .unwrap_or(text.len());
    let starts_well = text.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    (end > 0 && starts_well).then(|| text.split_at(end))
}

/// The labels at the start of `text`, in braces or not there at all, and the rest.
fn labels(text: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let text = text.trim_start();
    let mut labels = Vec::new();
    let Some(mut rest) = text.strip_prefix('{') else {
        return Some((labels, text));
    };
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = split_name(rest)?;
        let quoted = after.trim_start().strip_prefix('=')?.trim_start();
        let (value, after) = unquote(quoted.strip_prefix('"')?)?;
        labels.push((name, value));
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

/// A label's value up to its closing quotation mark, and what follows that.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"# HELP http_requests_total Requests.
# TYPE http_requests_total counter
http_requests_total{method="get",code="200"} 1027 1395066363000
http_requests_total{method="post",code="200"} 3
http_requests_total{code="400",method="get",} 1.5e1
http_requests_total_of_another 7
 process_cpu_seconds_total 0.25
quoted{path="C:\\dir \"x\" }\n"} +Inf
broken{path="never closed 5
broken{path=5} 5
1broken 5
gone NaN

"#;

    #[test]
    fn sums_of_what_is_selected() {
        for (selector, sum) in [
            ("http_requests_total", Some(1045.0)),
            (r#"http_requests_total{method="get"}"#, Some(1042.0)),
            (
                r#"http_requests_total{ method = "get", code="200" }"#,
                Some(1027.0),
            ),
            (r#"http_requests_total{method="put"}"#, None),
            ("http_requests_total{}", Some(1045.0)),
            ("process_cpu_seconds_total", Some(0.25)),
            ("quoted", Some(f64::INFINITY)),
            ("broken", None),
            ("absent", None),
        ] {
            assert_eq!(
                Selector::parse(selector).unwrap().sum(PAGE),
                sum,
                "{selector}"
            );
        }
    }

    #[test]
    fn what_is_no_selector() {
        for typed in [
            "",
            "a b",
            "9a",
            "a{b}",
            r#"a{b="c""#,
            r#"a{b="c"}x"#,
            "a.b",
            "{}",
        ] {
            assert_eq!(Selector::parse(typed), None, "{typed}");
        }
    }

    #[test]
    fn samples_with_their_labels() {
        let all: Vec<_> = samples_of(PAGE, |_| true).collect();
        assert_eq!(all.len(), 7);
        let quoted = all.iter().find(|sample| sample.name == "quoted").unwrap();
        assert_eq!(quoted.label("path"), Some("C:\\dir \"x\" }\n"));
        assert_eq!(quoted.label("other"), None);
        assert!(all.last().unwrap().value.is_nan());
    }
}
