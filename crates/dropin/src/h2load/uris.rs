//! What h2load requests: the URIs of its command line, of a file, or of a script with times.

use super::options::Options;
use super::uri::{is_absolute, path_of};
use super::wrong::error;
use crate::Ending;

/// What is requested, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uris {
    /// The first one, or the base in its place: scheme, host and port of all.
    pub base: String,
    /// Path and query of each.
    pub paths: Vec<String>,
    /// When each request of a script with times is due, nanoseconds after its connection is open;
    /// empty without such a script.
    pub due_ns: Vec<u64>,
    /// Warnings for standard error: whole lines, or empty.
    pub warning: String,
}

impl Options {
    /// The URIs, with the text of the input file or script where there is one.
    ///
    /// # Errors
    ///
    /// One is no URI, or there is none.
    pub fn uris(&self, text: Option<&str>) -> Result<Uris, Ending> {
        let mut uris = Uris::default();
        let typed: Vec<&str> = match text {
            Some(text) if self.timing_script.is_some() => uris.read_script(text)?,
            Some(text) => text.lines().collect(),
            None => self.uris.iter().map(String::as_str).collect(),
        };
        let first = typed.first().ok_or_else(|| error("no URI available"))?;
        uris.base = match self.base.as_deref() {
            Some(base) if !base.starts_with("unix:") => base.to_owned(),
            _ if is_absolute(first) => (*first).to_owned(),
            _ => return Err(invalid(first)),
        };
        for uri in typed {
            uris.paths.push(path_of(uri).ok_or_else(|| invalid(uri))?);
        }
        Ok(uris)
    }
}

impl Uris {
    /// Reads lines of milliseconds, a tabulator and a URI.
    fn read_script<'a>(&mut self, text: &'a str) -> Result<Vec<&'a str>, Ending> {
        let mut uris = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.is_empty() {
                self.warning.push_str(&format!(
                    "Empty line detected at line {number}. Ignoring and continuing.\n"
                ));
                continue;
            }
            let Some((typed, uri)) = line.split_once('\t') else {
                return Err(error(&format!(
                    "Invalid line format detected, no tab character at line {number}. \n\t{line}"
                )));
            };
            let ms = typed.trim().parse::<f64>().ok();
            let Some(ms) = ms.filter(|ms| ms.is_finite() && (0.0..=1e12).contains(ms)) else {
                return Err(error(&format!(
                    "Time value error at line {number}. \n\tvalue = {typed}"
                )));
            };
            self.due_ns.push((ms * 1e6) as u64);
            uris.push(uri);
        }
        Ok(uris)
    }
}

fn invalid(uri: &str) -> Ending {
    error(&format!("invalid URI: {uri}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn uris(line: &str, text: Option<&str>) -> Result<Uris, Ending> {
        let words = words(line);
        Options::parse(&words).expect(line).uris(text)
    }

    #[test]
    fn lines_of_a_file_are_uris() {
        let found = uris("-i f -B https://base:9", Some("http://h/a\n/b\n")).expect("good");
        assert_eq!(found.base, "https://base:9");
        assert_eq!(found.paths, ["/a", "/b"]);
        for (text, expected) in [
            ("http://h/\n\n/b", "invalid URI: \n"),
            ("http://h/a b\n", "invalid URI: http://h/a b\n"),
            ("", "no URI available\n"),
        ] {
            let ending = uris("-i f", Some(text)).expect_err(text);
            assert_eq!(ending.stderr, expected, "{text}");
        }
    }

    #[test]
    fn scripts_have_times() {
        let script = "0\thttp://h/a\n\n1.5\t/b\n";
        let found = uris("--timing-script-file f", Some(script)).expect("good");
        assert_eq!(found.due_ns, [0, 1_500_000]);
        assert_eq!(found.paths, ["/a", "/b"]);
        assert!(found.warning.starts_with("Empty line detected at line 2."));
        for (script, expected) in [
            ("http://h/", "Invalid line format detected, no tab"),
            (
                "-1\thttp://h/",
                "Time value error at line 1. \n\tvalue = -1\n",
            ),
            (
                "x\thttp://h/",
                "Time value error at line 1. \n\tvalue = x\n",
            ),
        ] {
            let ending = uris("--timing-script-file f", Some(script)).expect_err(script);
            assert!(ending.stderr.starts_with(expected), "{ending:?}");
        }
    }
}
