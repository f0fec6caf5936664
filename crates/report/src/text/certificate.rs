//! The certificate of `brunt calibrate` for people: what brunt reaches on a machine, and how exact
//! it is there.

use brunt_record::{Accuracy, Calibration, Ceiling};

use super::layout::{Page, Tone};
use crate::units::counted;
use crate::{Style, units};

/// What stands in a cell without a figure.
const NONE: &str = "unknown";

/// The certificate as lines of text with a newline at the end of each.
pub fn calibration_text(calibration: &Calibration, style: &Style) -> String {
    let mut page = Page::new(style);
    machine(calibration, &mut page);
    page.blank();
    ceilings(&calibration.ceilings, &mut page);
    page.blank();
    accuracy(&calibration.accuracy, &mut page);
    page.blank();
    clock(calibration, &mut page);
    limits(calibration, &mut page);
    for note in &calibration.notes {
        page.row("note", std::slice::from_ref(note), Tone::Warning);
    }
    page.into_text()
}

fn machine(calibration: &Calibration, page: &mut Page) {
    let machine = std::slice::from_ref(&calibration.machine);
    page.row("machine", machine, Tone::Plain);
    let items = [
        format!("brunt {}", calibration.brunt_version),
        counted(calibration.usable_cpus.into(), "usable CPU", "usable CPUs"),
        format!("made {}", units::date_time(calibration.made_unix_ms)),
    ];
    page.row("calibrated", &items, Tone::Plain);
}

/// What was reached, one row per backend and number of workers.
fn ceilings(ceilings: &[Ceiling], page: &mut Page) {
    if ceilings.is_empty() {
        return page.row("ceiling", &["none was measured".to_owned()], Tone::Warning);
    }
    let headings = ["workers", "req/s", "received", "CPU/req"];
    page.cells("ceiling", &headings.map(str::to_owned), "", Tone::Plain);
    for ceiling in ceilings {
        let cells = [
            units::count(ceiling.workers.into()),
            units::rate(ceiling.requests_per_s),
            units::bytes_per_s(ceiling.bytes_per_s),
            ceiling.cpu_ns_per_request.map_or_else(
                || NONE.to_owned(),
                |ns| units::duration(ns.round().max(0.0) as u64),
            ),
        ];
        page.cells(
            &format!("  {}", ceiling.backend.name()),
            &cells,
            "",
            Tone::Strong,
        );
    }
    let what = "against the null server on loopback, which shares the CPUs: no body for req/s, \
                large bodies for bytes";
    page.row("", &[what.to_owned()], Tone::Plain);
}

/// How far measured quantiles were from the truth, one row per backend.
fn accuracy(accuracy: &[Accuracy], page: &mut Page) {
    if accuracy.is_empty() {
        return page.row("accuracy", &["none was measured".to_owned()], Tone::Warning);
    }
    let headings = ["delay", "p50", "p99", "p99.9", "stall"];
    page.cells("accuracy", &headings.map(str::to_owned), "", Tone::Plain);
    for row in accuracy {
        let error = |ns: Option<i64>| ns.map_or_else(|| "too few".to_owned(), units::difference);
        let cells = [
            units::duration(row.delay_ns),
            error(row.p50_error_ns),
            error(row.p99_error_ns),
            error(row.p99_9_error_ns),
            row.stall_p99_error
                .map_or_else(|| NONE.to_owned(), units::percent_change),
        ];
        page.cells(
            &format!("  {}", row.backend.name()),
            &cells,
            "",
            Tone::Strong,
        );
    }
    let what = "measured less true: answers after a known delay, and p99 of a known stall";
    page.row("", &[what.to_owned()], Tone::Plain);
}

fn clock(calibration: &Calibration, page: &mut Page) {
    let clock = &calibration.clock;
    let items = [
        format!("{} ns per reading", units::rate(clock.read_ns)),
        format!("steps of {}", units::duration(clock.step_ns)),
        format!(
            "sleeps end late by {} p50, {} p99, {} at most",
            units::duration(clock.sleep_late_ns_p50),
            units::duration(clock.sleep_late_ns_p99),
            units::duration(clock.sleep_late_ns_max),
        ),
    ];
    page.row("clock", &items, Tone::Plain);
}

fn limits(calibration: &Calibration, page: &mut Page) {
    let limits = &calibration.limits;
    let items = [
        format!("{} descriptors", units::count(limits.descriptors)),
        format!(
            "{} ports per source and target address",
            units::count(limits.ports)
        ),
        format!(
            "accept queue of {}",
            counted(limits.accept_queue, "connection", "connections")
        ),
    ];
    page.row("limits", &items, Tone::Plain);
    match &limits.uring_refused {
        None => page.row("io_uring", &["usable".to_owned()], Tone::Plain),
        Some(reason) => page.row("io_uring", &[format!("refused: {reason}")], Tone::Warning),
    }
}
