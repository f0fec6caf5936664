//! The program of `docs/library.md`: it is the example, and it loads a server.

use crate::common::{Kind, serve, served, url};

const PAGE: &str = include_str!("../../../../docs/library.md");
const EXAMPLE: &str = include_str!("../../examples/load.rs");

#[path = "../../examples/load.rs"]
#[allow(dead_code, reason = "its own main names a server that a test has not")]
mod program;

#[test]
fn the_program_of_the_page_loads_a_server() {
    let (_, program) = EXAMPLE.split_once("\n\n").expect("a head and a program");
    assert!(PAGE.contains(&format!("```rust\n{program}```\n")));
    let code = program.lines().filter(|line| !line.is_empty());
    assert!(code.count() <= 15);
    let serving = serve(Kind::Epoll);
    program::load(&url(&serving, "/")).expect("a run");
    assert!(served(serving).requests > 2_000);
}
