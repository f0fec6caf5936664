//! What `response` is called with, and how much of it is asked for.

use brunt_load::ResponseParts;

use crate::support::{Trial, next, only, respond, started};

#[test]
fn the_parameters_tell_what_is_wanted() {
    use ResponseParts::{Body, Headers, Nothing, Status};
    for (source, wanted) in [
        ("", Nothing),
        ("function response() end", Status),
        ("function response(s) end", Status),
        ("function response(s, h) end", Headers),
        ("function response(s, h, b) end", Body),
        ("function response(s, h, b, t) end", Body),
        ("function response(...) end", Body),
        ("response = print", Body),
        // As in wrk: it is decided before the run whether there is one.
        ("function request() response = print return 'x' end", Body),
        ("response = setmetatable({}, {__call = print})", Nothing),
    ] {
        let generator = only(&mut Trial::new(source).load());
        assert_eq!(generator.wanted(), wanted, "{source}");
    }
}

#[test]
fn a_response_has_status_headers_and_body() {
    let source = "function response(status, headers, body) local t = {} for k, v in pairs(headers) \
                  do t[#t + 1] = k .. '=' .. v end table.sort(t) say(type(status), status, \
                  table.concat(t, ','), #body, body) end";
    let (trial, _script, mut generator) = started(source);
    let headers: [(&[u8], &[u8]); 3] = [
        (b"Content-Length", b"3"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
    ];
    respond(&mut generator, 201, &headers, b"abc").expect("a response");
    // The same names in other places.
    let headers: [(&[u8], &[u8]); 2] = [(b"set-cookie", b"c"), (b"Content-Length", b"")];
    respond(&mut generator, 404, &headers, b"").expect("a response");
    respond(&mut generator, 200, &[], b"").expect("a response");
    assert_eq!(
        trial.said(),
        [
            "number 201 Content-Length=3,set-cookie=b=2 3 abc",
            "number 404 Content-Length=,set-cookie=c 0 ",
            "number 200  0 "
        ]
    );
}

#[test]
fn another_function_may_want_something_else() {
    let source = "function response() m = (m or 0) + 1 if m == 2 then \
                  response = function(s, h) say('other', s, h.A) end end end";
    let (trial, _script, mut generator) = started(source);
    respond(&mut generator, 200, &[], b"").expect("a response");
    assert_eq!(generator.wanted(), ResponseParts::Status);
    respond(&mut generator, 200, &[], b"").expect("a response");
    assert_eq!(generator.wanted(), ResponseParts::Headers);
    respond(&mut generator, 200, &[(b"A", b"1")], b"").expect("a response");
    assert_eq!(trial.said(), ["other 200 1"]);
}

#[test]
fn request_may_set_it_too() {
    let source = "function response() end function request() response = function(s, h, b) end \
                  return wrk.format() end";
    let mut script = Trial::with(source, |options| options.workers = 2).load();
    let mut generators = script.generators().expect("generators");
    assert_eq!(generators[1].wanted(), ResponseParts::Status);
    next(&mut generators[1]).expect("a request");
    assert_eq!(generators[1].wanted(), ResponseParts::Body);
}

#[test]
fn without_the_function_a_response_is_an_error() {
    let source = "function response() response = nil end";
    let (_trial, _script, mut generator) = started(source);
    respond(&mut generator, 200, &[], b"").expect("a response");
    let error = respond(&mut generator, 200, &[], b"").expect_err("no function");
    assert_eq!(error.message, "attempt to call a nil value");
}

#[test]
fn garbage_does_not_pile_up() {
    let source = "function response(s, h, b) end function request() return wrk.format(nil, '/' .. \
                  math.random(), {A = ('x'):rep(100)}) end function done() collectgarbage() \
                  collectgarbage() say(collectgarbage('count') < 1000) end";
    let (trial, mut script, mut generator) = started(source);
    for i in 0..20_000_u32 {
        let (batch, _) = next(&mut generator).expect("a request");
        assert!(matches!(batch, brunt_load::Batch::New { .. }));
        let value = i.to_string();
        let headers: [(&[u8], &[u8]); 2] = [(b"A", value.as_bytes()), (b"B", b"1")];
        respond(&mut generator, 200, &headers, value.as_bytes()).expect("a response");
    }
    drop(generator);
    script.done(Default::default()).expect("done");
    assert_eq!(trial.said(), ["true"]);
}
