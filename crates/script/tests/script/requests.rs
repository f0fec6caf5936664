//! What `request`, `delay` and `wrk.format` give.

use brunt_load::{Batch, BatchOutcome, BatchTag, ConnectionNumber, ResponseParts};

use crate::support::{Trial, lines, next, only, respond, said_at_load, started};

/// The request that `expression` gives, with `Host: h` and nothing else set.
fn formatted(expression: &str) -> (String, Vec<String>, String) {
    let source = format!("wrk.headers = {{Host = 'h'}} function request() return {expression} end");
    let script = Trial::new(&source).load();
    lines(&String::from_utf8_lossy(script.first_request()))
}

#[test]
fn a_script_without_functions_has_one_request() {
    let source = "wrk.method = 'POST' wrk.body = 'a=1' wrk.headers['X-A'] = 'b'";
    let trial = Trial::with(source, |options| options.workers = 2);
    let mut script = trial.load();
    let request = script.constant_request().expect("one for all").to_vec();
    assert_eq!(request, script.first_request());
    let (first, headers, body) = lines(&String::from_utf8_lossy(&request));
    assert_eq!(first, "POST /p/a?q=1#frag HTTP/1.1");
    assert_eq!(
        headers,
        ["Content-Length: 3", "Host: 127.0.0.1:8123", "X-A: b"]
    );
    assert_eq!(body, "a=1");
    let mut generator = only(&mut script);
    let (tag, name) = (BatchTag(0), None);
    let text = String::from_utf8_lossy(&request).into_owned();
    assert_eq!(next(&mut generator), Ok((Batch::New { tag, name }, text)));
    let again = (Batch::Same { tag, name }, String::new());
    assert_eq!(next(&mut generator), Ok(again));
}

#[test]
fn texts_that_differ_by_thread_are_not_one() {
    let source = "local n = 0 function setup(t) n = n + 1 t:set('id', n) end \
                  function init() wrk.path = '/' .. id end";
    let trial = Trial::with(source, |options| options.workers = 2);
    let mut script = trial.load();
    assert_eq!(script.constant_request(), None);
    let mut generators = script.generators().expect("generators");
    let texts: Vec<_> = generators
        .iter_mut()
        .map(|generator| next(generator).expect("a request").1)
        .collect();
    assert!(texts[0].starts_with("GET /1 "));
    assert!(texts[1].starts_with("GET /2 "));
}

#[test]
fn functions_leave_nothing_constant() {
    for source in [
        "function request() return wrk.format() end",
        "function response() end",
        "function delay() return 0 end",
    ] {
        let script = Trial::new(source).load();
        assert_eq!(script.constant_request(), None, "{source}");
    }
}

#[test]
fn an_unchanged_text_is_given_once() {
    let source = "local a, b = wrk.format(nil, '/a'), wrk.format(nil, '/b') local n = 0 \
                  function request() n = n + 1 return n < 4 and a or b end";
    let (_trial, _script, mut generator) = started(source);
    let (tag, name) = (BatchTag(0), None);
    let batches: Vec<_> = (0..4)
        .map(|_| next(&mut generator).expect("a request"))
        .collect();
    assert_eq!(batches[0].0, Batch::New { tag, name });
    assert!(batches[0].1.starts_with("GET /a "));
    assert_eq!(batches[1], (Batch::Same { tag, name }, String::new()));
    assert_eq!(batches[2].0, Batch::New { tag, name });
    assert!(batches[2].1.starts_with("GET /b "));
    assert_eq!(batches[3], (Batch::Same { tag, name }, String::new()));
}

#[test]
fn the_text_of_the_run_before_is_not_assumed() {
    let source = "function request() return 'GET / HTTP/1.1\\r\\n\\r\\n' end";
    let mut script = Trial::new(source).load();
    for _ in 0..2 {
        let mut generator = only(&mut script);
        let (batch, text) = next(&mut generator).expect("a request");
        assert!(matches!(batch, Batch::New { .. }));
        assert_eq!(text, "GET / HTTP/1.1\r\n\r\n");
    }
}

#[test]
fn no_text_parks_the_connection() {
    for nothing in ["nil", "''", "{}", "true"] {
        let source = format!(
            "function request() n = (n or 0) + 1 if n == 3 then return {nothing} end \
             return wrk.format() end"
        );
        let (_trial, _script, mut generator) = started(&source);
        let batches: Vec<_> = (0..3)
            .map(|_| next(&mut generator).expect("a call").0)
            .collect();
        assert!(matches!(batches[0], Batch::New { .. }), "{nothing}");
        assert_eq!(batches[1], Batch::Nothing, "{nothing}");
        assert!(!matches!(batches[2], Batch::Nothing), "{nothing}");
    }
}

#[test]
fn a_number_is_a_text() {
    let script = Trial::new("function request() return 42 end").load();
    assert_eq!(script.first_request(), b"42");
    let script = Trial::new("function request() return nil end").load();
    assert_eq!(script.first_request(), b"");
}

#[test]
fn a_function_that_goes_away_is_replaced_by_the_request_of_init() {
    let source = "function request() n = (n or 0) + 1 if n == 2 then request = nil end \
                  return wrk.format(nil, '/n' .. n) end";
    let (_trial, _script, mut generator) = started(source);
    let first = next(&mut generator).expect("a request").1;
    assert!(first.starts_with("GET /n2 "));
    let second = next(&mut generator).expect("a request").1;
    assert!(second.starts_with("GET /p/a?q=1#frag "), "{second}");
}

#[test]
fn what_is_set_at_load_is_set_again_by_init() {
    let source = "wrk.request = function() return 'mine' end";
    let script = Trial::new(source).load();
    assert!(script.first_request().starts_with(b"GET /p/a"));
}

#[test]
fn a_second_result_comes_back_with_the_response() {
    let source = "local n = 0 function request() n = n + 1 if n == 1 then return wrk.format() end \
                  if n == 4 then return wrk.format(), {n} end return wrk.format(), 'name ' .. n \
                  end function response(status, headers, body, tag) say(status, type(tag) == \
                  'table' and tag[1] or tag) end";
    let (trial, _script, mut generator) = started(source);
    let mut batches: Vec<Batch> = Vec::new();
    for _ in 0..3 {
        batches.push(next(&mut generator).expect("a request").0);
    }
    let told = batches.iter().map(|batch| match batch {
        Batch::New { tag, name } | Batch::Same { tag, name } => (*tag, *name),
        Batch::Nothing | Batch::Close => panic!("a request"),
    });
    let told: Vec<_> = told.collect();
    assert_eq!(
        told,
        [
            (BatchTag(1), Some(0)),
            (BatchTag(2), Some(1)),
            (BatchTag(3), None)
        ]
    );
    assert_eq!(generator.names(), ["name 2", "name 3"]);
    let connection = ConnectionNumber(0);
    // In another order than they were sent in.
    for (status, tag) in [(203, 3), (201, 1), (202, 2)] {
        let response = brunt_load::GeneratorResponse {
            tag: BatchTag(tag),
            status,
            ..brunt_load::GeneratorResponse::default()
        };
        generator.response(&response).expect("a response");
        generator.ended(connection, BatchTag(tag), BatchOutcome::Answered);
    }
    assert_eq!(trial.said(), ["203 4", "201 name 2", "202 name 3"]);
    let again = next(&mut generator).expect("a request").0;
    let tag = BatchTag(2);
    assert!(
        matches!(again, Batch::Same { tag: t, .. } | Batch::New { tag: t, .. } if t == tag),
        "the tag that was freed last: {again:?}"
    );
}

#[test]
fn responses_without_a_tag_have_three_arguments() {
    let source = "function response(...) say(select('#', ...)) end";
    let (trial, _script, mut generator) = started(source);
    respond(&mut generator, 200, &[], b"").expect("a response");
    assert_eq!(trial.said(), ["3"]);
    assert_eq!(generator.wanted(), ResponseParts::Body);
}

#[test]
fn delays_are_whole_milliseconds() {
    for (delay, ns) in [
        ("100", 100_000_000),
        ("1.9", 1_000_000),
        ("'7'", 7_000_000),
        ("nil", 0),
        ("-5", 0),
        ("{}", 0),
        ("0/0", 0),
    ] {
        let mut script = Trial::new(&format!("function delay() return {delay} end")).load();
        let mut generator = only(&mut script);
        assert!(generator.delays());
        assert_eq!(generator.delay_ns(ConnectionNumber(0)), Ok(ns), "{delay}");
    }
}

#[test]
fn a_request_is_put_together_of_what_is_given() {
    let request = formatted("wrk.format('PUT', '/x', {['X-N'] = 5, ['X-T'] = true}, 'abc')");
    assert_eq!(request.0, "PUT /x HTTP/1.1");
    assert_eq!(
        request.1,
        ["Content-Length: 3", "Host: h", "X-N: 5", "X-T: true"]
    );
    assert_eq!(request.2, "abc");
    // An absolute URL, an empty body, numbers.
    let request =
        formatted("wrk.format(nil, 'http://h/x', {[7] = 1.5, N = -3, Z = 0, B = 1e15}, '')");
    assert_eq!(request.0, "GET http://h/x HTTP/1.1");
    assert_eq!(
        request.1,
        [
            "7: 1.5",
            "B: 1e+15",
            "Content-Length: 0",
            "Host: h",
            "N: -3",
            "Z: 0"
        ]
    );
    assert_eq!(request.2, "");
    let request = formatted("wrk.format(nil, nil, {}, 12)");
    assert_eq!(request.1, ["Content-Length: 2", "Host: h"]);
    assert_eq!(request.2, "12");
}

#[test]
fn a_table_of_headers_is_changed() {
    let source = "local h = {['Content-Length'] = 99} function init() wrk.format(nil, nil, h) \
                  say(h.Host, h['Content-Length']) wrk.format('POST', nil, h, 'four') \
                  say(h.Host, h['Content-Length']) end";
    assert_eq!(
        said_at_load(source),
        ["127.0.0.1:8123 nil", "127.0.0.1:8123 4"]
    );
    // At load there is no Host yet.
    let source = "local text = wrk.format() say(text:find('Host') == nil)";
    assert_eq!(said_at_load(source)[0], "true");
}

#[test]
fn values_that_only_lua_can_print_are_printed_by_it() {
    let request = formatted(
        "wrk.format(nil, setmetatable({}, {__tostring = function() return '/made' end}), \
         {A = setmetatable({}, {__tostring = function() return 'a value' end})})",
    );
    assert_eq!(request.0, "GET /made HTTP/1.1");
    assert_eq!(request.1, ["A: a value", "Host: h"]);
}

#[test]
fn what_cannot_be_put_together_is_an_error() {
    for (call, message) in [
        ("wrk.format(nil, nil, 'a')", "attempt to index"),
        (
            "wrk.format(nil, nil, nil, {})",
            "bad argument #1 to 'length'",
        ),
    ] {
        let source = format!("function init() say(pcall(function() return {call} end)) end");
        let said = said_at_load(&source);
        assert!(said[0].starts_with("false "), "{call}: {said:?}");
        assert!(said[0].contains(message), "{call}: {said:?}");
    }
}
