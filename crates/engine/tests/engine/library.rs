//! The program of `docs/library.md`: it is the example, and it loads a server.

use crate::common::{Kind, serve, served, url};

const PAGE: &str = include_str!("../../../../docs/library.md");
const EXAMPLE: &str = include_str!("../../examples/load.rs");

#[path = "../../examples/load.rs"]
#[expect(unreachable_pub, reason = "nobody uses an example but by its own name")]
mod program;

/// It names a server that a test has not.
const _: fn() -> Result<(), Box<dyn std::error::Error>> = program::main;

#[test]
fn the_program_of_the_page_loads_a_server() {
    let (_, program) = EXAMPLE.split_once("\n\n").expect("a head and a program");
    assert!(PAGE.contains(&format!("```rust\n{program}```\n")));
    let code = program.lines();
    let code = code.filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(code.count() <= 16);
    let serving = serve(Kind::Epoll);
    program::load(&url(&serving, "/")).expect("a run");
    assert!(served(serving).requests > 2_000);
}
