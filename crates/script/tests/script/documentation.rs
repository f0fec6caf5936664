//! The examples of docs/scripts.md work.

use brunt_load::{Batch, GeneratorResponse, ResponseParts};

use crate::support::{Trial, lines, next, only};

/// The blocks of Lua, in order.
fn examples() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scripts.md");
    let page = std::fs::read_to_string(page).expect("the page is in the repository");
    let blocks = page.split("```lua\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next().map(str::to_owned))
        .collect()
}

/// An example that finds no installed modules: those in C need the whole program.
fn trial(example: &str) -> Trial {
    Trial::new(&format!("package.path = '' package.cpath = ''\n{example}"))
}

#[test]
fn they_load_and_make_requests() {
    let examples = examples();
    assert!(examples.len() >= 7, "{examples:#?}");
    for example in examples {
        let trial = trial(&example);
        let mut script = trial.load();
        let mut generator = only(&mut script);
        for _ in 0..3 {
            next(&mut generator).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
        drop(generator);
        script.done(Default::default()).expect("done");
    }
}

#[test]
fn the_token_is_carried() {
    let mut all = examples().into_iter();
    let example = all.find(|example| example.contains("/login"));
    let example = example.expect("an example that logs in");
    let mut script = trial(&example).load();
    let mut generator = only(&mut script);
    let (batch, text) = next(&mut generator).expect("a request");
    assert!(text.starts_with("POST /login "), "{text}");
    assert_eq!(generator.wanted(), ResponseParts::Body);
    let Batch::New { tag, .. } = batch else {
        panic!("the first one: {batch:?}");
    };
    let response = GeneratorResponse {
        tag,
        status: 200,
        body: b"{\"token\":\"abc\"}",
        ..GeneratorResponse::default()
    };
    generator.response(&response).expect("a response");
    assert_eq!(generator.wanted(), ResponseParts::Status);
    let (first, headers, _) = lines(&next(&mut generator).expect("a request").1);
    assert_eq!(first, "GET /private HTTP/1.1");
    assert!(
        headers.contains(&"Authorization: Bearer abc".to_owned()),
        "{headers:?}"
    );
    assert_eq!(generator.names(), ["login", "private"]);
}

#[test]
fn a_request_of_an_example_is_whole() {
    let example = examples().remove(0);
    let script = Trial::new(&example).load();
    let (first, headers, body) = lines(&String::from_utf8_lossy(script.first_request()));
    assert_eq!(first, "POST /p/a?q=1#frag HTTP/1.1");
    assert!(
        headers.contains(&"Content-Length: 16".to_owned()),
        "{headers:?}"
    );
    assert_eq!(body, "foo=bar&baz=quux");
}
