//! The ways of loading whose counts are compared with those of servers.

use rustix::process::Signal;

use crate::support::process::brunt;
use crate::support::run::{RunReport, run, start_run};

/// One combination of backend and workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machinery {
    pub(crate) backend: &'static str,
    pub(crate) workers: u32,
}

/// All combinations that counts are compared with.
pub(crate) const MACHINERIES: [Machinery; 4] = [
    Machinery::of("uring", 1),
    Machinery::of("epoll", 1),
    Machinery::of("uring", 2),
    Machinery::of("epoll", 2),
];

impl Machinery {
    const fn of(backend: &'static str, workers: u32) -> Self {
        Self { backend, workers }
    }

    /// Runs with the options `load` against `url`, and checks that what was asked for ran.
    pub(crate) fn run(self, load: &str, url: &str) -> RunReport {
        self.checked(run(&format!("{} {load} {url}", self.options())))
    }

    /// Runs with messages over TCP to `server` and the options `load`, and checks that what was
    /// asked for ran.
    pub(crate) fn run_tcp(self, load: &str, server: &str) -> RunReport {
        let options = self.options();
        let outcome = brunt(&format!("tcp --format json {options} {load} {server}"));
        self.checked(RunReport::of(outcome))
    }

    /// Runs without a planned end, and sends SIGINT when `under_load` returns.
    pub(crate) fn run_interrupted(
        self,
        load: &str,
        url: &str,
        under_load: impl FnOnce(),
    ) -> RunReport {
        // Without a warm-up, load is measured from its first request.
        let process = start_run(&format!(
            "{} --warmup 0s -d 10m {load} {url}",
            self.options()
        ));
        under_load();
        process.signal(Signal::INT);
        let report = self.checked(RunReport::of(process.wait()));
        assert!(report.flag("/agents/0/interrupted"));
        report
    }

    fn options(self) -> String {
        format!(
            "--backend {} -t {} --oversubscribe",
            self.backend, self.workers
        )
    }

    fn checked(self, report: RunReport) -> RunReport {
        // Where io_uring is refused, epoll stands in for it and the report says so.
        if report.at("/agents/0/backend_note").is_null() {
            assert_eq!(report.at("/agents/0/backend"), self.backend);
        }
        assert_eq!(
            report.number("/plan/workers/count"),
            u64::from(self.workers)
        );
        report
    }
}
