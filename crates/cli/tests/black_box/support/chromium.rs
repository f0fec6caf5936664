//! A browser without a screen: what it makes of a page, and what it complains about.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use super::foreign::program;
use super::process::{Outcome, Process};

/// Virtual milliseconds after which a page is looked at: long after it has loaded.
const LOADED_MS: &str = "--virtual-time-budget=3000";

/// The outcome of a page.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The elements of the page, as HTML.
    pub(crate) dom: String,
    /// Lines of its console.
    pub(crate) console: Vec<String>,
    /// Every URL that was asked of the network, but for what the browser wants by itself.
    pub(crate) requests: Vec<String>,
}

/// What a reader sees of a page in a frame of some width in which no script runs.
#[derive(Debug)]
pub(crate) struct Read {
    /// The text of the page, without what is hidden.
    pub(crate) text: String,
    /// How wide it is, which is more than the frame where something sticks out.
    pub(crate) width: u32,
}

/// Two browsers run at once: with more, each takes longer than a process may.
static TURNS: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];
static OPENED: AtomicUsize = AtomicUsize::new(0);

/// Opens a page. Names lead nowhere, so that nothing leaves the machine.
pub(crate) fn open(page: &Path, options: &[&str]) -> Opened {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let requests = directory.path().join("requests.json");
    let mut command = browser(&directory, options);
    command.arg(format!("--log-net-log={}", requests.display()));
    command.arg(format!("file://{}", page.display()));
    let Outcome {
        code,
        stdout,
        stderr,
        ..
    } = {
        let turn = OPENED.fetch_add(1, Ordering::Relaxed) % TURNS.len();
        let _turn = TURNS[turn].lock().unwrap_or_else(PoisonError::into_inner);
        Process::start(command).wait()
    };
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("<html"), "no page: {stderr}");
    let log = std::fs::read_to_string(requests).expect("the browser's log");
    Opened {
        dom: stdout,
        console: lines_of_console(&stderr),
        requests: urls(&log),
    }
}

/// Reads a page without scripts, `width` pixels wide.
pub(crate) fn read_without_scripts(page: &Path, width: u32) -> Read {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let frame = directory.path().join("frame.html");
    let html = format!(
        "<!doctype html><iframe sandbox=\"allow-same-origin\" width=\"{width}\" height=\"800\" \
         style=\"border:0\" src=\"file://{}\"></iframe><pre></pre><script>onload = () => {{\
         const {{ documentElement, body }} = document.querySelector('iframe').contentDocument;\
         document.querySelector('pre').textContent =\
         `${{documentElement.scrollWidth}} ${{body.innerText}}`; }}</script>",
        page.display()
    );
    std::fs::write(&frame, html).expect("the page around it");
    let opened = open(&frame, &["--allow-file-access-from-files"]);
    let (_, rest) = opened.dom.split_once("<pre>").expect("the text");
    let (text, _) = rest.split_once("</pre>").expect("its end");
    let (width, text) = text.split_once(' ').expect("a width and a text");
    Read {
        text: text.to_owned(),
        width: width.parse().expect("a number"),
    }
}

fn browser(directory: &TempDir, options: &[&str]) -> Command {
    let mut command = Command::new(program("chromium"));
    let profile = directory.path().join("profile");
    command
        .args(["--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--no-first-run", "--disable-extensions", "--disable-sync"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args(["--disable-dev-shm-usage", "--enable-logging=stderr"])
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .arg(format!("--user-data-dir={}", profile.display()))
        .args([LOADED_MS, "--dump-dom"])
        .args(options);
    command
}

fn lines_of_console(stderr: &str) -> Vec<String> {
    let lines = stderr.lines().filter(|line| line.contains(":CONSOLE"));
    lines.map(str::to_owned).collect()
}

/// The URLs of a log of the network, without those of the browser's own makers.
fn urls(log: &str) -> Vec<String> {
    let urls = log.split("\"url\":\"").skip(1);
    let urls = urls.filter_map(|rest| rest.split('"').next());
    let is_own = |url: &&str| {
        let host = url.split('/').nth(2).unwrap_or_default();
        host.ends_with(".google.com") || host.ends_with(".googleapis.com")
    };
    urls.filter(|url| !is_own(url)).map(str::to_owned).collect()
}
