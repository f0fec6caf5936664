//! The command line of wrk and of wrk2.

use std::num::NonZeroU32;
use std::path::PathBuf;

use brunt_record::WORKERS_MAX;

use super::program::Program;
use super::units::{read_number, read_time_s};
use super::url::Url;
use super::usage::{usage, version};
use crate::Ending;
use crate::getopt::{self, Options as Getopt, Row, flag, value};

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// wrk2 also where wrk was called with one of its options.
    pub program: Program,
    /// Threads, each with its connections; not more than these.
    pub threads: NonZeroU32,
    /// Connections, all threads together.
    pub connections: NonZeroU32,
    /// Length of the run, seconds; above 0.
    pub duration_s: u64,
    /// Longest time to a reply, seconds.
    pub timeout_s: u64,
    /// Whether the distribution of latencies is printed.
    pub latency: bool,
    /// Whether that from the send is printed as well (wrk2).
    pub uncorrected_latency: bool,
    /// Whether a batch of pipelined requests has one latency; always so in wrk.
    pub batch_latency: bool,
    /// Requests per second, all threads together (wrk2); above 0.
    pub rate_per_s: Option<u64>,
    /// File of a Lua script.
    pub script: Option<PathBuf>,
    /// Header fields as typed.
    pub headers: Vec<String>,
    /// The target.
    pub url: Url,
    /// Arguments of the script: the URL as typed and the words behind it.
    pub arguments: Vec<String>,
    /// File for brunt's own record of the run.
    pub brunt_report: Option<PathBuf>,
}

/// The options of both tools: wrk takes those of wrk2 as well.
const ROWS: &[Row] = &[
    value("c", "connections"),
    value("d", "duration"),
    value("t", "threads"),
    value("s", "script"),
    value("H", "header"),
    flag("L", "latency"),
    flag("U", "u_latency"),
    flag("B", "batch_latency"),
    value("T", "timeout"),
    flag("", "help"),
    flag("v", "version"),
    value("R", "rate"),
    value("", "brunt-report").in_full(),
];

/// The words behind the program's name as a report may show them: without what may be secret.
pub fn shown(words: &[String]) -> Vec<String> {
    getopt::shown(Getopt::new("", "r?", ROWS, words), &[])
}

/// The options as they are found, before they are looked at together.
#[derive(Debug)]
struct Typed {
    program: Program,
    threads: u64,
    connections: u64,
    duration_s: u64,
    timeout_s: u64,
    rate_per_s: u64,
    latency: bool,
    uncorrected_latency: bool,
    batch_latency: bool,
    script: Option<PathBuf>,
    headers: Vec<String>,
    brunt_report: Option<PathBuf>,
    /// The version was asked for, once or more.
    stdout: String,
}

impl Options {
    /// Reads the words behind the program's name, which messages call `called`.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for: in wrk that is the same.
    pub fn parse(program: Program, called: &str, words: &[String]) -> Result<Self, Ending> {
        let mut typed = Typed::new(program);
        let mut options = Getopt::new(called, "r?", ROWS, words);
        while let Some(item) = options.next() {
            let (name, argument) = item.map_err(|wrong| typed.usage(Some(wrong.line())))?;
            if typed
                .take(name, argument.as_deref().unwrap_or_default())
                .is_none()
            {
                return Err(typed.usage(None));
            }
        }
        typed.finish(options.operands())
    }
}

impl Typed {
    fn new(program: Program) -> Self {
        Self {
            program,
            threads: 2,
            connections: 10,
            duration_s: 10,
            timeout_s: 2,
            rate_per_s: 0,
            latency: false,
            uncorrected_latency: false,
            batch_latency: program == Program::Wrk,
            script: None,
            headers: Vec::new(),
            brunt_report: None,
            stdout: String::new(),
        }
    }

    /// Takes one option. Absent where the usage text is to follow.
    fn take(&mut self, name: &str, argument: &str) -> Option<()> {
        match name {
            "threads" => self.threads = read_number(argument)?,
            "connections" => self.connections = read_number(argument)?,
            "duration" => self.duration_s = read_time_s(argument)?,
            "script" => self.script = Some(argument.into()),
            "header" => self.headers.push(argument.to_owned()),
            "latency" => self.latency = true,
            "timeout" => self.timeout_s = read_time_s(argument)?,
            "u_latency" => {
                self.become_wrk2();
                self.latency = true;
                self.uncorrected_latency = true;
            }
            "batch_latency" => {
                self.become_wrk2();
                self.batch_latency = true;
            }
            "rate" => {
                self.become_wrk2();
                self.rate_per_s = read_number(argument)?;
            }
            "version" => self.stdout.push_str(&version(self.program)),
            "brunt-report" => self.brunt_report = Some(argument.into()),
            _ => return None,
        }
        Some(())
    }

    fn become_wrk2(&mut self) {
        if self.program == Program::Wrk {
            self.program = Program::Wrk2;
            self.batch_latency = false;
        }
    }

    /// The usage text behind `message`.
    fn usage(&self, message: Option<&str>) -> Ending {
        Ending {
            stdout: format!("{}{}", self.stdout, usage(self.program)),
            stderr: message.map_or_else(String::new, |message| format!("{message}\n")),
            code: 1,
        }
    }

    fn finish(self, operands: Vec<String>) -> Result<Options, Ending> {
        let Some(url) = operands.first() else {
            return Err(self.usage(None));
        };
        if self.threads == 0 || self.duration_s == 0 {
            return Err(self.usage(None));
        }
        let Some(url) = Url::parse(url) else {
            return Err(self.usage(Some(&format!("invalid URL: {url}"))));
        };
        if self.connections == 0 || self.connections < self.threads {
            return Err(self.usage(Some("number of connections must be >= threads")));
        }
        let rate_per_s = (self.program == Program::Wrk2).then_some(self.rate_per_s);
        if rate_per_s == Some(0) {
            let message = "Throughput MUST be specified with the --rate or -R option";
            return Err(self.usage(Some(message)));
        }
        let number = |asked: u64, most: u32| {
            let number = u32::try_from(asked).ok().filter(|&number| number <= most);
            number.and_then(NonZeroU32::new)
        };
        let Some(threads) = number(self.threads, WORKERS_MAX) else {
            let line = format!("brunt: {} threads are over {WORKERS_MAX}", self.threads);
            return Err(Ending::error(&line, 1));
        };
        let Some(connections) = number(self.connections, u32::MAX) else {
            let line = format!(
                "brunt: {} connections are over {}",
                self.connections,
                u32::MAX
            );
            return Err(Ending::error(&line, 1));
        };
        Ok(Options {
            program: self.program,
            threads,
            connections,
            duration_s: self.duration_s,
            timeout_s: self.timeout_s,
            latency: self.latency,
            uncorrected_latency: self.uncorrected_latency,
            batch_latency: self.batch_latency,
            rate_per_s,
            script: self.script,
            headers: self.headers,
            url,
            arguments: operands,
            brunt_report: self.brunt_report,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn parse(program: Program, line: &str) -> Result<Options, Ending> {
        Options::parse(program, "wrk", &words(line))
    }

    fn good(program: Program, line: &str) -> Options {
        parse(program, line).expect(line)
    }

    #[test]
    fn defaults_are_wrks() {
        let options = good(Program::Wrk, "http://h/");
        assert_eq!((options.threads.get(), options.connections.get()), (2, 10));
        assert_eq!((options.duration_s, options.timeout_s), (10, 2));
        assert!(!options.latency && options.batch_latency);
        assert_eq!((options.rate_per_s, options.script), (None, None));
        assert_eq!(options.arguments, ["http://h/"]);
    }

    #[test]
    fn command_lines_in_use() {
        let options = good(Program::Wrk, "-t12 -c400 -d30s http://h:1/");
        assert_eq!(
            (
                options.threads.get(),
                options.connections.get(),
                options.duration_s
            ),
            (12, 400, 30)
        );
        let options = good(
            Program::Wrk,
            "--latency -d 15 -c 256 --timeout 8 -t 28 http://h/ -s pipeline.lua -- 16 -x",
        );
        assert_eq!((options.latency, options.timeout_s), (true, 8));
        assert_eq!(options.arguments, ["http://h/", "16", "-x"]);
        assert_eq!(options.script, Some("pipeline.lua".into()));
        let options = good(
            Program::Wrk,
            "-Lt4 --script=./x.lua --dur 2m -c1k http://h/ a b",
        );
        assert_eq!((options.threads.get(), options.duration_s), (4, 120));
        assert_eq!(options.connections.get(), 1_000);
        assert_eq!(options.arguments, ["http://h/", "a", "b"]);
        let line = "--rate=2k --connections=100 --threads=2 --duration=30 --u_latency http://h/";
        let options = good(Program::Wrk2, line);
        assert_eq!(options.rate_per_s, Some(2_000));
        assert!(options.latency && options.uncorrected_latency && !options.batch_latency);
        let options = good(Program::Wrk, "-H a --brunt-report run.json http://h/ -H b");
        assert_eq!(options.headers, ["a", "b"]);
        assert_eq!(options.brunt_report, Some("run.json".into()));
    }

    #[test]
    fn wrk_with_an_option_of_wrk2_is_wrk2() {
        for (line, program) in [
            ("http://h/", Program::Wrk),
            ("-R10 http://h/", Program::Wrk2),
            ("http://h/ --rate 10", Program::Wrk2),
            ("-R10 -B http://h/", Program::Wrk2),
            ("-UR10 http://h/", Program::Wrk2),
        ] {
            assert_eq!(good(Program::Wrk, line).program, program, "{line}");
        }
        assert!(good(Program::Wrk, "-R10 -B http://h/").batch_latency);
    }

    #[test]
    fn more_than_can_be_is_said() {
        for (line, words) in [
            ("-t 9999 -c 9999 http://h/", "9999 threads are over 4096"),
            ("-c 9G http://h/", "9000000000 connections are over"),
        ] {
            let ending = parse(Program::Wrk, line).expect_err(line);
            assert!(ending.stderr.contains(words), "{line}: {ending:?}");
        }
    }
}
