//! The command line of gcannon.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use super::usage::USAGE;
use super::wrong;
use crate::Ending;

/// Most requests in flight per connection; a larger number means this one.
const DEPTH_MAX: u32 = 64;
/// Most files with requests.
const FILES_MAX: usize = 64;
/// Least receive buffer, bytes.
const BUFFER_BYTES_MIN: u64 = 512;
/// Longest run, seconds.
const SECONDS_MAX: u64 = 1_000_000;

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path and query as typed.
    pub path: String,
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where requests go; absent where the first file says so.
    pub address: Option<Address>,
    /// Connections.
    pub connections: NonZeroU32,
    /// Threads.
    pub threads: NonZeroU32,
    /// Length of the run, seconds.
    pub duration_s: NonZeroU64,
    /// Requests in flight per connection.
    pub depth: NonZeroU32,
    /// Requests after which a connection is replaced; absent for no limit.
    pub requests_per_connection: Option<NonZeroU64>,
    /// The status whose class is expected.
    pub expected: i64,
    /// Files with a request each.
    pub raw: Vec<PathBuf>,
    /// The message of WebSocket, where that is spoken.
    pub message: Option<String>,
    /// Whether the result is JSON.
    pub is_json: bool,
    /// Whether each file has latencies of its own.
    pub has_file_latencies: bool,
    /// What the heading says of options that change nothing.
    pub(super) is_tui: bool,
    pub(super) is_cqe: bool,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
    /// Whether the same is asked for in brunt's own options, and nothing is run.
    pub explains: bool,
}

/// The words behind the program's name as a report may show them: without what may be secret.
pub fn shown(words: &[String]) -> Vec<String> {
    let mut is_secret = false;
    let words = words.iter().map(|word| {
        if std::mem::take(&mut is_secret) {
            return "...".to_owned();
        }
        is_secret = word == "--ws-msg";
        word.clone()
    });
    words.collect()
}

fn number<N: std::str::FromStr>(option: &str, least: &str, typed: &str) -> Result<N, Ending> {
    typed.parse().map_err(|_| {
        wrong(&format!(
            "{option} takes a whole number{least}, and not `{typed}`"
        ))
    })
}

/// Whole seconds or minutes. gcannon reads `500ms` as 500 s, which nobody means.
fn seconds(typed: &str) -> Result<NonZeroU64, Ending> {
    let (digits, factor) = match typed.strip_suffix(['s', 'S']) {
        Some(digits) => (digits, 1),
        None => match typed.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 60),
            None => (typed, 1),
        },
    };
    let seconds = digits
        .parse::<u64>()
        .ok()
        .map(|it| it.saturating_mul(factor));
    let seconds = seconds.filter(|&seconds| seconds <= SECONDS_MAX);
    seconds.and_then(NonZeroU64::new).ok_or_else(|| {
        wrong(&format!(
            "-d takes whole seconds or minutes, such as 10s or 1m, and not `{typed}`"
        ))
    })
}

/// Host, port and path of a URL, as gcannon takes it apart.
fn address(url: &str) -> Result<Address, Ending> {
    let Some(rest) = url.strip_prefix("http://") else {
        return Err(wrong("only http:// URLs supported"));
    };
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, "/"),
    };
    Address::of(authority, path)
}

impl Address {
    /// The server of `HOST` or `HOST:PORT`, with this path.
    pub(super) fn of(authority: &str, path: &str) -> Result<Self, Ending> {
        let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
        let port = port.parse().ok().filter(|&port| port > 0);
        match (host, port) {
            ("", _) | (_, None) => Err(wrong(&format!(
                "`{authority}` is not a host, or none with a port; write HOST:PORT"
            ))),
            (host, Some(port)) => Ok(Self {
                host: host.to_owned(),
                port,
                path: path.to_owned(),
            }),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: None,
            connections: NonZeroU32::MIN.saturating_add(99),
            threads: NonZeroU32::MIN,
            duration_s: NonZeroU64::MIN.saturating_add(9),
            depth: NonZeroU32::MIN,
            requests_per_connection: None,
            expected: 200,
            raw: Vec::new(),
            message: None,
            is_json: false,
            has_file_latencies: false,
            is_tui: false,
            is_cqe: false,
            brunt_report: None,
            explains: false,
        }
    }
}

impl Options {
    /// Takes an option without a value; whether there is such.
    fn take_word(&mut self, word: &str) -> bool {
        match word {
            "--ws" => self.set_message(None),
            "--explain" => self.explains = true,
            "--tui" => self.is_tui = true,
            "--json" => self.is_json = true,
            "--cqe-latency" => self.is_cqe = true,
            "--per-tpl-latency" => self.has_file_latencies = true,
            _ => return false,
        }
        true
    }

    /// Takes an option with its value; whether there is such.
    fn take(&mut self, option: &str, typed: &str) -> Result<bool, Ending> {
        match option {
            "-c" => self.connections = number(option, ", at least 1", typed)?,
            "-t" => self.threads = number(option, ", at least 1", typed)?,
            "-d" => self.duration_s = seconds(typed)?,
            "-p" => {
                let depth: NonZeroU32 = number(option, ", at least 1", typed)?;
                self.depth = depth.min(NonZeroU32::new(DEPTH_MAX).unwrap_or(depth));
            }
            "-r" => {
                self.requests_per_connection =
                    NonZeroU64::new(number(option, ", 0 for no limit", typed)?)
            }
            "-s" => self.expected = number(option, ", a status such as 200", typed)?,
            "-R" | "--raw" => {
                let files = typed.split(',').filter(|file| !file.is_empty());
                self.raw = files.map(PathBuf::from).collect();
                if self.raw.len() > FILES_MAX {
                    return Err(wrong(&format!("--raw takes {FILES_MAX} files at most")));
                }
            }
            "--ws-msg" => self.set_message(Some(typed)),
            "-b" | "--buckets" => {
                number::<u64>(option, "", typed)?;
            }
            "--recv-buf" => {
                if number::<u64>(option, "", typed)? < BUFFER_BYTES_MIN {
                    return Err(wrong(&format!(
                        "--recv-buf must be at least {BUFFER_BYTES_MIN}"
                    )));
                }
            }
            "--brunt-report" => self.brunt_report = Some(typed.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_message(&mut self, typed: Option<&str>) {
        let message = self.message.get_or_insert_with(|| "hello".to_owned());
        if let Some(typed) = typed {
            typed.clone_into(message);
        }
    }
}

impl Options {
    /// Reads the words behind the program's name.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help is asked for.
    pub fn parse(words: &[String]) -> Result<Self, Ending> {
        let usage = || Ending {
            stderr: USAGE.to_owned(),
            code: 1,
            ..Ending::default()
        };
        let mut options = Self::default();
        let mut url = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match &**word {
                "--help" => return Err(Ending::printed(USAGE)),
                // There is none of brunt's.
                "--clear-history" => return Err(Ending::printed("Run history cleared.\n")),
                word if !word.starts_with('-') => url = Some(word),
                word if options.take_word(word) => {}
                word => {
                    let value = words.next().ok_or_else(usage)?;
                    if !options.take(word, value)? {
                        return Err(usage());
                    }
                }
            }
        }
        options.address = url.map(address).transpose()?;
        if options.address.is_none() && options.raw.is_empty() {
            return Err(usage());
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn parse(line: &str) -> Result<Options, Ending> {
        Options::parse(&words(line))
    }

    fn options(line: &str) -> Options {
        parse(line).expect(line)
    }

    #[test]
    fn options_are_gcannons() {
        let usual = options("http://h");
        let address = usual.address.as_ref().expect("it was typed");
        assert_eq!(
            (&*address.host, address.port, &*address.path),
            ("h", 80, "/")
        );
        let rest = Options {
            address: None,
            ..usual
        };
        assert_eq!(rest, Options::default());
        let all = options(
            "http://h:81/a?b -c 9 -t 3 -d 2m -p 99 -r 10 -s 404 --raw a,b --ws-msg x --json \
             --tui --cqe-latency --per-tpl-latency -b 5 --recv-buf 512 --brunt-report f",
        );
        let address = all.address.as_ref().expect("it was typed");
        assert_eq!((address.port, &*address.path), (81, "/a?b"));
        assert_eq!(
            (all.connections.get(), all.threads.get(), all.depth.get()),
            (9, 3, 64)
        );
        assert_eq!((all.duration_s.get(), all.expected), (120, 404));
        assert_eq!(all.requests_per_connection.map(NonZeroU64::get), Some(10));
        assert_eq!(all.raw, ["a", "b"].map(PathBuf::from));
        assert_eq!(all.message.as_deref(), Some("x"));
        assert!(all.is_json && all.is_tui && all.is_cqe && all.has_file_latencies);
        assert_eq!(options("-r 0 -R f").requests_per_connection, None);
        assert_eq!(options("http://h --ws").message.as_deref(), Some("hello"));
        assert!(!all.explains && options("--explain http://h/").explains);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, words) in [
            ("", "Usage: gcannon"),
            ("-x http://h/", "Usage: gcannon"),
            ("http://h/ -c", "Usage: gcannon"),
            ("https://h/", "Error: only http:// URLs supported\n"),
            ("http://h/ -c 0", "Error: -c takes a whole number"),
            ("http://h/ -d 500ms", "Error: -d takes whole seconds"),
            ("http://h/ -d 0", "Error: -d takes whole seconds"),
            (
                "http://h/ --recv-buf 9",
                "Error: --recv-buf must be at least 512\n",
            ),
            ("http://h:x/", "Error: `h:x` is not a host"),
        ] {
            let ending = parse(line).expect_err(line);
            assert_eq!((ending.code, &*ending.stdout), (1, ""), "{line}");
            assert!(ending.stderr.starts_with(words), "{line}: {ending:?}");
        }
        let help = parse("--help").expect_err("it is asked for");
        assert_eq!((help.code, &*help.stdout), (0, USAGE));
    }

    #[test]
    fn messages_are_not_shown() {
        let words = ["--ws-msg", "hush", "--ws", "http://h/"].map(str::to_owned);
        assert_eq!(shown(&words).join(" "), "--ws-msg ... --ws http://h/");
        let words = ["--ws-msg", "--ws-msg", "x"].map(str::to_owned);
        assert_eq!(shown(&words).join(" "), "--ws-msg ... x");
    }
}
