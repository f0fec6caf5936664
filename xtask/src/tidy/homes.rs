//! Things with one home: messages, files that are read whole, and `unsafe`. Those of clock and
//! threads are clippy's matter (clippy.toml).

use super::Finding;
use super::source::{Source, Token};

/// Messages quote what strangers wrote; there it is made printable.
const MESSAGES_HOME: &str = "crates/cli/src/message.rs";

/// What others wrote may have no end; there it is read up to a limit.
const WHOLE_FILES_HOME: &str = "crates/io/src/files.rs";
/// It reads what the kernel wrote.
const KERNEL_FILES_READER: &str = "crates/probe/";

const WHOLE_FILES_READER: &[&str] = &["fs", ":", ":", "read", "("];

/// The files that talk to the kernel below the safe libraries, or to Lua by its C interface. A
/// folder ends in `/`.
const UNSAFE_HOMES: &[&str] = &[
    "crates/io/src/cpu.rs",
    "crates/io/src/datagrams.rs",
    "crates/io/src/epoll/wait.rs",
    "crates/io/src/heap.rs",
    "crates/io/src/receive_stamps.rs",
    "crates/io/src/socket.rs",
    "crates/io/src/tcp_info.rs",
    "crates/io/src/uring/",
    "crates/script/src/lua/",
];

/// Programs beside the product: neither is part of a run.
const OUTSIDE_THE_PRODUCT: &[&str] = &["xtask/", "bench/"];

/// What writes to a standard stream. Whether one is a terminal anybody may ask.
const MESSAGE_PRINTERS: &[&[&str]] = &[
    &["eprintln", "!"],
    &["eprint", "!"],
    &["println", "!"],
    &["print", "!"],
    &["stdout", "(", ")", ".", "lock"],
    &["stdout", "(", ")", ".", "write_all"],
    &["stdout", "(", ")", ","],
    &["stderr", "(", ")", ".", "lock"],
    &["stderr", "(", ")", ".", "write_all"],
    &["stderr", "(", ")", ","],
];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut refuse = |token: &Token, message: String| {
        findings.push(Finding::new(&source.path, token.line, message));
    };
    if !is_home(UNSAFE_HOMES, &source.path) {
        for token in source.find(&["unsafe"]) {
            let homes = UNSAFE_HOMES.join(", ");
            let message = format!("`unsafe` is for {homes} only: use a safe library, or move it");
            refuse(token, message);
        }
    }
    if is_home(OUTSIDE_THE_PRODUCT, &source.path) || is_beside_a_crate(&source.path) {
        return findings;
    }
    if source.path != MESSAGES_HOME {
        let printers = MESSAGE_PRINTERS.iter();
        let prints = printers.flat_map(|printer| source.find(printer));
        for token in prints.filter(|token| !token.is_test) {
            let message = format!("{MESSAGES_HOME} alone writes to standard streams: call it");
            refuse(token, message);
        }
    }
    if !source.path.starts_with(KERNEL_FILES_READER) {
        let reads = source.find(WHOLE_FILES_READER);
        for token in reads.filter(|token| !token.is_test) {
            let message = format!("files are read by {WHOLE_FILES_HOME}, up to a limit: call it");
            refuse(token, message);
        }
    }
    findings
}

/// Whether `homes` name the file, or a folder that it is in.
fn is_home(homes: &[&str], path: &str) -> bool {
    let mut homes = homes.iter();
    homes.any(|home| path == *home || (home.ends_with('/') && path.starts_with(home)))
}

/// Whether a file belongs to what sees a crate from outside: its tests, examples and build script.
fn is_beside_a_crate(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates")
        && matches!(
            parts.nth(1),
            Some("tests" | "benches" | "examples" | "build.rs")
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let source = Source::parse(path, text).unwrap();
        check(&source).iter().map(|finding| finding.line).collect()
    }

    const UNSAFE: &str = "fn f() { unsafe { g() } }\nunsafe impl Send for A {}\n";

    #[test]
    fn messages_are_printed_at_home_only() {
        let text = "fn f() { eprintln!(\"brunt: {}\", 1); }\nfn g() { print!(\"a\"); }\n\
            fn h() { io::stdout().lock(); }\nfn i() { write!(io::stderr(), \"a\"); }\n";
        assert!(lines(MESSAGES_HOME, text).is_empty());
        assert_eq!(lines("crates/cli/src/main.rs", text), [1, 2, 3, 4]);
        let asks = "fn f() -> bool { io::stdout().is_terminal() }\n";
        assert!(lines("crates/cli/src/main.rs", asks).is_empty());
        for path in ["crates/cli/build.rs", "crates/engine/examples/load.rs"] {
            assert!(lines(path, text).is_empty());
        }
        assert!(lines("xtask/src/main.rs", text).is_empty());
        assert!(lines("crates/cli/tests/black_box/support/mod.rs", text).is_empty());
        let in_a_test = format!("#[cfg(test)]\nmod tests {{\n{text}}}\n");
        assert!(lines("crates/cli/src/main.rs", &in_a_test).is_empty());
    }

    #[test]
    fn files_are_read_up_to_a_limit() {
        let text = "fn f() { std::fs::read(path); }\nfn g() { fs::read_dir(path); }\n";
        assert_eq!(lines("crates/cli/src/main.rs", text), [1]);
        assert!(lines("crates/probe/src/host.rs", text).is_empty());
        assert!(lines("xtask/src/main.rs", text).is_empty());
        let in_a_test = format!("#[cfg(test)]\nmod tests {{\n{text}}}\n");
        assert!(lines("crates/cli/src/main.rs", &in_a_test).is_empty());
    }

    #[test]
    fn unsafe_has_its_homes() {
        assert!(lines("crates/io/src/uring/ring.rs", UNSAFE).is_empty());
        for path in ["crates/io/src/epoll/mod.rs", "xtask/src/main.rs"] {
            assert_eq!(lines(path, UNSAFE), [1, 2]);
        }
        let words = "#![deny(unsafe_op_in_unsafe_fn)]\n// unsafe\nconst A: &str = \"unsafe\";\n";
        assert!(lines("crates/load/src/lib.rs", words).is_empty());
    }
}
