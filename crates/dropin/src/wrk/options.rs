//! The command line of wrk and of wrk2.

use std::num::NonZeroU32;
use std::path::PathBuf;

use brunt_record::WORKERS_MAX;

use super::units::{METRIC, TIME_S};
use super::url::Url;
use crate::Ending;
use crate::getopt::*;
use crate::numbers::at_least_1;

/// Whose command line it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// wrk: as many requests as replies allow.
    #[default]
    Wrk,
    /// wrk2: a planned rate.
    Wrk2,
}

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// wrk2 also where wrk was called with one of its options.
    pub program: Program,
    /// Threads, each with its connections; not more than these.
    threads: u64,
    /// Connections, all threads together.
    connections: u64,
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
    /// Requests per second, all threads together (wrk2).
    pub rate_per_s: u64,
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
    /// The version was asked for, once or more.
    version: String,
}

/// The options of both tools: wrk takes those of wrk2 as well.
/// The options.
pub const TABLE: Table<Options> = Table {
    style: Style::GetoptLong,
    rows: ROWS,
};
const ROWS: &[Row<Options>] = &[
    value("c", "connections", |it, typed| {
        it.read(METRIC.read(typed))
            .map(|count| it.connections = count)
    }),
    value("d", "duration", |it, typed| {
        it.read(TIME_S.read(typed)).map(|s| it.duration_s = s)
    }),
    value("t", "threads", |it, typed| {
        it.read(METRIC.read(typed)).map(|count| it.threads = count)
    }),
    text("s", "script", |it, typed| it.script = Some(typed.into())),
    field("H", "header", |it, typed| it.headers.push(typed)),
    flag("L", "latency", |it| it.latency = true),
    flag("U", "u_latency", |it| {
        it.become_wrk2();
        it.latency = true;
        it.uncorrected_latency = true;
    }),
    flag("B", "batch_latency", |it| {
        it.become_wrk2();
        it.batch_latency = true;
    }),
    value("T", "timeout", |it, typed| {
        it.read(TIME_S.read(typed)).map(|s| it.timeout_s = s)
    }),
    end("", "help", |it| it.usage(None)),
    flag("v", "version", |it| {
        it.version.push_str(&version(it.program))
    }),
    value("R", "rate", |it, typed| {
        it.become_wrk2();
        it.read(METRIC.read(typed)).map(|rate| it.rate_per_s = rate)
    }),
    end("r", "", |it| it.usage(None)),
    end("?", "", |it| it.usage(None)),
    report(|it| &mut it.brunt_report),
];
/// The last line of the usage text, which no blanks follow.
const TIMES: &str = "  Time arguments may include a time unit (2s, 2m, 2h)\n";
/// Columns to which the other lines are filled with blanks.
const WIDTH: usize = 54;

/// The version whose command line and text these are, and in brackets, where wrk names what makes
/// the load, brunt.
fn version(program: Program) -> String {
    let version = match program {
        Program::Wrk => "4.1.0",
        Program::Wrk2 => "4.0.0",
    };
    let brunt = env!("CARGO_PKG_VERSION");
    format!("wrk {version} [brunt {brunt}] Copyright (C) 2012 Will Glozer\n")
}

impl Options {
    /// Reads the words behind the program's name, which messages call `called`.
    ///
    /// # Errors
    ///
    /// Something is wrong with them, or help or version is asked for: in wrk that is the same.
    pub fn parse(program: Program, called: &str, words: &[String]) -> Result<Self, Ending> {
        let mut options = Self {
            program,
            threads: 2,
            connections: 10,
            duration_s: 10,
            timeout_s: 2,
            batch_latency: program == Program::Wrk,
            ..Self::default()
        };
        options.arguments = TABLE
            .read(words, &mut options)
            .map_err(|wrong| wrong.ending(called, |line| options.usage(Some(line))))?;
        options.check()?;
        Ok(options)
    }

    /// Threads, each with its connections.
    pub fn threads(&self) -> NonZeroU32 {
        at_least_1(self.threads)
    }

    /// Connections, all threads together.
    pub fn connections(&self) -> NonZeroU32 {
        at_least_1(self.connections)
    }

    /// What was read; where that is nothing, the usage text is printed.
    fn read(&self, number: Option<u64>) -> Result<u64, Ending> {
        number.ok_or_else(|| self.usage(None))
    }

    fn become_wrk2(&mut self) {
        if self.program == Program::Wrk {
            self.program = Program::Wrk2;
            self.batch_latency = false;
        }
    }

    /// The usage text behind `message`.
    fn usage(&self, message: Option<&str>) -> Ending {
        let text = match self.program {
            Program::Wrk => include_str!("wrk.txt"),
            Program::Wrk2 => include_str!("wrk2.txt"),
        };
        let lines = text.lines().map(|line| format!("{line:<WIDTH$}\n"));
        let lines: String = lines.chain([TIMES.to_owned()]).collect();
        Ending {
            stdout: format!("{}{lines}", self.version),
            stderr: message.map_or_else(String::new, |message| format!("{message}\n")),
            code: 1,
        }
    }

    /// Looks at the options together, and at the URL.
    fn check(&mut self) -> Result<(), Ending> {
        let Some(url) = self.arguments.first() else {
            return Err(self.usage(None));
        };
        if self.threads == 0 || self.duration_s == 0 {
            return Err(self.usage(None));
        }
        let Some(url) = Url::parse(url) else {
            return Err(self.usage(Some(&format!("invalid URL: {url}"))));
        };
        self.url = url;
        if self.connections == 0 || self.connections < self.threads {
            return Err(self.usage(Some("number of connections must be >= threads")));
        }
        if self.program == Program::Wrk2 && self.rate_per_s == 0 {
            let message = "Throughput MUST be specified with the --rate or -R option";
            return Err(self.usage(Some(message)));
        }
        for (name, count, most) in [
            ("threads", self.threads, WORKERS_MAX),
            ("connections", self.connections, u32::MAX),
        ] {
            if count > most.into() {
                let line = format!("brunt: {count} {name} are over {most}");
                return Err(Ending::error(&line, 1));
            }
        }
        Ok(())
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
        assert_eq!(
            (options.threads().get(), options.connections().get()),
            (2, 10)
        );
        assert_eq!((options.duration_s, options.timeout_s), (10, 2));
        assert!(!options.latency && options.batch_latency);
        assert_eq!((options.rate_per_s, options.script), (0, None));
        assert_eq!(options.arguments, ["http://h/"]);
    }

    #[test]
    fn command_lines_in_use() {
        let options = good(Program::Wrk, "-t12 -c400 -d30s http://h:1/");
        assert_eq!(
            (
                options.threads().get(),
                options.connections().get(),
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
        assert_eq!((options.threads().get(), options.duration_s), (4, 120));
        assert_eq!(options.connections().get(), 1_000);
        assert_eq!(options.arguments, ["http://h/", "a", "b"]);
        let line = "--rate=2k --connections=100 --threads=2 --duration=30 --u_latency http://h/";
        let options = good(Program::Wrk2, line);
        assert_eq!(options.rate_per_s, 2_000);
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
