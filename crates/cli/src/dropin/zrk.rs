//! brunt in place of zrk.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_dropin::Ending;
use brunt_dropin::wrk::{self, Scripted};
use brunt_dropin::zrk::{self, Body, Figures, Format, Live, Options, Shown};
use brunt_engine::{Phase, Progress, RunError, RunObserver, Snapshot};
use brunt_io::clock;
use brunt_io::files;
use brunt_load::Plan;
use brunt_record::{GENERATED_NAMES_MAX, RequestLog, Run};
use brunt_script::{Flavour, ScriptOptions, ScriptTarget};

use super::{EXIT_FAILED, cpus, explain, failed, job, open_outputs, print, read_file};
use crate::last_calls::LastCalls;
use crate::output::is_standard;
use crate::request::BODY_BYTES_MAX;
use crate::run::{FrontEnd, Job};
use crate::script::of_drop_in;
use crate::signals::Interrupts;
use crate::{last_calls, message, replace};

const EXIT_USAGE: u8 = 2;
const EXIT_BREACH: u8 = 3;

/// Runs the command line `words` of zrk.
pub(super) fn run(words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(words)?;
    let body = body(&options)?;
    if options.explains {
        return Ok(explain(&zrk::explanation(&options, &body, cpus())?));
    }
    load(&options, body)
}

fn load(options: &Options, body: Vec<u8>) -> Result<ExitCode> {
    let mut plan = zrk::plan(options, &body)?;
    let script = script(options, body, &mut plan)?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let series = options.series.as_deref().filter(|path| !is_standard(path));
    let series = series.map(create).transpose()?;
    let mut script = script.map(|script| LastCalls::new(script, &pipeline.interrupts));
    let generators = script.as_mut().map(LastCalls::generators).transpose();
    let job = Job {
        generators: generators.map_err(Ending::from)?.unwrap_or_default(),
        ..job(plan)
    };
    let mut zrk = Zrk {
        options,
        live: Live::new(options),
        series,
        script,
        interrupts: pipeline.interrupts.clone(),
        figures: None,
    };
    pipeline.run(job, &mut zrk)
}

/// The body that the options name.
fn body(options: &Options) -> Result<Vec<u8>> {
    match &options.body {
        Body::Typed(text) => Ok(text.clone().into_bytes()),
        Body::File(path) if is_standard(path) => {
            files::read_bounded(std::io::stdin().lock(), BODY_BYTES_MAX).context("-b @-")
        }
        Body::File(path) => read_file("-b", path, |error| {
            let line = format!("zrk: cannot read body from {}: {error}\n", path.display());
            Ending {
                stderr: line,
                code: EXIT_USAGE,
                ..Ending::default()
            }
        }),
    }
}

fn script(options: &Options, body: Vec<u8>, plan: &mut Plan) -> Result<Option<Scripted>, Ending> {
    let Some(path) = &options.script else {
        return Ok(None);
    };
    let target = &options.target;
    let script = ScriptOptions {
        path: path.clone(),
        text: None,
        target: ScriptTarget {
            scheme: target.scheme.name().to_owned(),
            host: target.host.clone(),
            port: Some(target.port.to_string()),
            path: target.path.clone(),
            url: options.url.clone(),
        },
        is_resolved: true,
        headers: options.headers.clone(),
        method: Some(options.method.clone()),
        body: (!body.is_empty()).then_some(body),
        arguments: options.arguments.clone(),
        workers: plan.workers.get() as usize,
        flavour: Flavour::Wrk,
        names_max: GENERATED_NAMES_MAX,
    };
    let loaded = Scripted::of(plan, &script, of_drop_in);
    loaded.map(Some).map_err(|ending| Ending {
        code: EXIT_USAGE,
        ..ending
    })
}

fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot write to {}", path.display()))
}

/// The output of a run, and its script.
struct Zrk<'a> {
    options: &'a Options,
    live: Live<'a>,
    /// The file of the rows; absent where they have standard output, or nobody wants them.
    series: Option<File>,
    script: Option<LastCalls>,
    interrupts: Interrupts,
    /// Once the run is over.
    figures: Option<Figures>,
}

impl Zrk<'_> {
    /// Whether lines are printed while the run lasts.
    fn has_lines(&self) -> bool {
        self.options.format == Format::Text && !self.options.series_is_output()
    }

    fn show(&mut self, shown: Option<Shown>) {
        let Some(shown) = shown else {
            return;
        };
        if self.has_lines() {
            print(&shown.line);
        }
        if self.options.series_is_output() {
            print(&shown.row);
        }
        if let Some(file) = &mut self.series
            && let Err(error) = file.write_all(shown.row.as_bytes())
        {
            self.series = None;
            message::print_lines(&format!(
                "zrk: --timeseries output failed ({error}); continuing without it\n"
            ));
        }
    }

    /// Prints the report, or writes it where the options say.
    fn write(&self, report: &str) -> Result<()> {
        match &self.options.output {
            Some(path) => {
                replace::write(path, report.as_bytes())
                    .with_context(|| format!("cannot write {}", path.display()))?;
                if self.has_lines() {
                    print(&format!("Report written to {}\n", path.display()));
                }
            }
            None if self.options.series_is_output() => message::print_lines(report),
            None => print(report),
        }
        Ok(())
    }
}

impl FrontEnd for Zrk<'_> {
    fn observer(&mut self) -> Option<&mut dyn RunObserver> {
        let is_shown = self.has_lines() || self.options.series.is_some();
        is_shown.then_some(self)
    }

    fn failed(&mut self, error: anyhow::Error) -> Result<ExitCode> {
        if let Some(RunError::NoConnection { .. }) = error.downcast_ref() {
            return Err(zrk::nothing_done(&format!("{error:#}")).into());
        }
        failed(error, zrk::preparation_ending)
    }

    fn report(&mut self, run: &Run, _log: &RequestLog) -> Result<()> {
        let options = self.options;
        let figures = Figures::of(options, run);
        if self.has_lines() || options.series.is_some() {
            let shown = self.live.end(&figures);
            self.show(shown);
        }
        let outcome = self.write(&options.format.report(options, &figures));
        let hdr = options.hdr.as_ref().map_or(Ok(()), |path| {
            replace::write(path, zrk::hgrm(&figures).as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))
        });
        self.figures = Some(figures);
        outcome.and(hdr)
    }

    fn exit_code(&mut self, run: &Run, usual: ExitCode) -> Result<ExitCode> {
        let mut code = ExitCode::SUCCESS;
        if let Some(figures) = &self.figures {
            let breach = zrk::breach(self.options, figures);
            message::print_lines(&breach);
            if figures.is_interrupted {
                // 128 and the number of the signal, as shells have it.
                code = self.interrupts.exit_code().map_or(usual, ExitCode::from);
            } else if figures.counts.requests == 0 {
                message::print_lines(&zrk::nothing_done("see errors in the report").stderr);
                code = ExitCode::from(EXIT_FAILED);
            } else if !breach.is_empty() {
                code = ExitCode::from(EXIT_BREACH);
            }
        }
        if let Some(reason) = wrk::script_error(run) {
            message::print_of_script(&reason);
            code = ExitCode::from(EXIT_FAILED);
        }
        let Some(script) = &mut self.script else {
            return Ok(code);
        };
        let done = script.done(run);
        last_calls::exit_code(done, code)
    }
}

impl RunObserver for Zrk<'_> {
    fn progress(&mut self, phase: Phase, progress: &Progress) {
        let shown = self.live.look(clock::now_ns(), phase, progress);
        self.show(shown);
    }

    fn wants_response_times(&mut self) -> bool {
        true
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.live.take(snapshot);
    }
}
