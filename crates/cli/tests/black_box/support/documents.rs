//! Commands of the documentation, as a shell would take them apart.

use crate::support::process::{Process, binary, first_line};

/// Fails the test if `brunt serve` with the `words` of a page does not listen, at ports that are
/// free.
pub(crate) fn assert_serves(words: &[String]) {
    let mut words = words.to_vec();
    let (of_tcp, of_http) = (["--tcp", "--tcp-listen"], ["serve", "--listen"]);
    for (option, because) in [("--listen", of_http), ("--tcp-listen", of_tcp)] {
        let is_asked = words.iter().any(|word| because.contains(&word.as_str()));
        if let Some(typed) = words.iter().position(|word| word == option) {
            words.drain(typed..typed + 2);
        }
        if is_asked {
            words.extend([option, "127.0.0.1:0"].map(str::to_owned));
        }
    }
    let mut serve = binary();
    serve.args(&words);
    let (process, stdout) = Process::start_open(serve);
    let line = first_line(stdout);
    let is_up = line.starts_with("listening on ");
    assert!(is_up, "{words:?}: {line} {}", process.kill());
}

/// A page, by its path in the repository.
pub(crate) fn page(name: &str) -> String {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the page is in the repository")
}

/// The commands of a page that call brunt: those in fenced blocks, without comments and prompts,
/// without what runs before them on their line, and without where their output goes.
pub(crate) fn commands(name: &str) -> Vec<String> {
    let page = page(name).replace("\\\n", " ");
    let lines = page.split("```").skip(1).step_by(2).flat_map(str::lines);
    let commands = lines.filter_map(|line| {
        let line = line.split(" #").next().unwrap_or_default();
        let line = line.rsplit("; ").next().unwrap_or_default().trim();
        let line = line.trim_start_matches("$ ");
        let line = match line.strip_prefix("taskset -c ") {
            Some(rest) => rest.split_once(' ')?.1,
            None => line,
        };
        let is_ours = line.starts_with("brunt ") || line.starts_with("cargo run");
        let end = line.find(" > ").or_else(|| line.find(" | "));
        is_ours.then(|| line[..end.unwrap_or(line.len())].trim().to_owned())
    });
    commands.collect()
}

/// The arguments of a command, quotes removed.
pub(crate) fn arguments(command: &str) -> Vec<String> {
    let program = if command.starts_with("brunt ") {
        "brunt"
    } else {
        "cargo run --release"
    };
    let rest = command.strip_prefix(program).expect("one of the two");
    let rest = rest.trim().trim_start_matches("-- ");
    let mut words = Vec::new();
    let mut quoted = false;
    let mut inside = false;
    for character in rest.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted => inside = false,
            _ => {
                if !std::mem::replace(&mut inside, true) {
                    words.push(String::new());
                }
                words.last_mut().expect("one was begun").push(character);
            }
        }
    }
    assert!(!quoted, "{command}: a quote is open");
    words
}
