//! Scripts that fail, before a run and in it, and scripts that do not return.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use brunt_script::ScriptError;

use crate::support::{Trial, next, only, respond, started};

#[test]
fn a_script_that_cannot_be_loaded_says_why() {
    for (source, message) in [
        (
            "\nwrk.body = {\"message\":\"Hi\"}",
            "script.lua:2: '}' expected near ':'",
        ),
        ("\n\nerror('not today')", "script.lua:3: not today"),
        ("error({})", "the script raised a table value as an error"),
        ("error()", "the script raised a nil value as an error"),
    ] {
        let trial = Trial::new(source);
        assert!(matches!(trial.try_load(), Err(ScriptError::Load { .. })));
        assert_eq!(trial.refusal(), message);
    }
    let trial = Trial::with("", |options| options.path = "/nonexistent/x.lua".into());
    assert_eq!(
        trial.refusal(),
        "cannot open /nonexistent/x.lua: No such file or directory"
    );
    let trial = Trial::with("", |options| options.path = "a\0b".into());
    assert_eq!(trial.try_load().expect_err("a name"), ScriptError::Name);
}

#[test]
fn what_fails_before_the_run_says_where() {
    for (source, message) in [
        ("function setup()\nerror('a') end", "script.lua:2: a"),
        (
            "function init()\nlocal x = nil + 1 end",
            "script.lua:2: attempt to perform arithmetic on a nil value",
        ),
        ("function request()\nerror('c') end", "script.lua:2: c"),
        (
            "wrk.init = function() end",
            "attempt to call local 'request' (a nil value)",
        ),
    ] {
        let trial = Trial::new(source);
        let error = trial.try_load().expect_err(source);
        assert!(matches!(error, ScriptError::SetUp { .. }), "{error:?}");
        let said = trial.plain(&error.to_string());
        assert!(said.ends_with(message), "{said}");
    }
}

#[test]
fn what_fails_in_the_run_says_where() {
    let source = "function request()\nn = (n or 0) + 1 if n == 3 then local x = nil; return x.y \
                  end return wrk.format() end\nfunction response(s)\nerror('boom') end\n\
                  function delay()\nreturn nil + 1 end";
    let (trial, _script, mut generator) = started(source);
    next(&mut generator).expect("a request");
    let error = next(&mut generator).expect_err("the third call");
    assert_eq!(
        trial.plain(&error.message),
        "script.lua:2: attempt to index local 'x' (a nil value)"
    );
    let error = respond(&mut generator, 200, &[], b"").expect_err("a response");
    assert_eq!(trial.plain(&error.message), "script.lua:4: boom");
    let error = generator
        .delay_ns(brunt_load::ConnectionNumber(0))
        .expect_err("a delay");
    assert!(trial.plain(&error.message).starts_with("script.lua:6: "));
    // And goes on afterwards.
    next(&mut generator).expect("a request");
}

/// Behind a function of the script's is C, in wrk: there is no place to name.
#[test]
fn an_error_for_the_caller_names_no_place() {
    let source = "function request() n = (n or 0) + 1 if n > 1 then error('no request', 2) end \
                  return wrk.format() end function response(s) error('no response', 2) end \
                  function delay() error('no delay', 2) end";
    let (_trial, _script, mut generator) = started(source);
    let error = next(&mut generator).expect_err("the second call");
    assert_eq!(error.message, "no request");
    let error = respond(&mut generator, 200, &[], b"").expect_err("a response");
    assert_eq!(error.message, "no response");
    let delay = generator.delay_ns(brunt_load::ConnectionNumber(0));
    assert_eq!(delay.expect_err("a delay").message, "no delay");
}

#[test]
fn errors_of_functions_in_rust_are_caught_by_lua() {
    let source = "function request() for i = 1, 100 do local is_fine, message = pcall(function() \
                  wrk.thread:set('f', print) end) if is_fine or not message:find('cannot \
                  transfer') then error('not caught') end end return wrk.format() end";
    let (_trial, _script, mut generator) = started(source);
    for _ in 0..50 {
        next(&mut generator).expect("a request");
    }
}

#[test]
fn deep_calls_fit_the_stack_of_a_worker() {
    let source = "local function deep(n) return n == 0 and 'end' or (('x'):gsub('x', function() \
                  return deep(n - 1) end)) end function request() return wrk.format(nil, '/' .. \
                  deep(200)) end";
    // As large as brunt_io::threads makes it.
    let worker = std::thread::Builder::new().stack_size(8 << 20);
    let worker = worker.spawn(move || {
        let script = Trial::new(source).load();
        assert!(script.first_request().starts_with(b"GET /end "));
    });
    worker.expect("a thread").join().expect("no overflow");
}

#[test]
fn an_error_in_done_says_where() {
    let trial = Trial::new("\nfunction done() error('late') end");
    let mut script = trial.load();
    let error = script.done(Default::default()).expect_err("done");
    assert!(matches!(error, ScriptError::Done { .. }));
    assert_eq!(trial.plain(&error.to_string()), "script.lua:2: late");
}

/// Interrupts a script that loops for ever as `body` says, and returns the error.
fn interrupted(body: &str) -> String {
    let source = format!(
        "function request() n = (n or 0) + 1 if n == 2 then {body} end return wrk.format() end \
         function done() say('done') end"
    );
    let trial = Trial::new(&source);
    let mut script = trial.load();
    let mut generator = only(&mut script);
    let interrupt = generator.interrupt().expect("a script can be interrupted");
    let (begins, begun) = mpsc::channel();
    let interrupting = std::thread::spawn(move || {
        begun.recv().expect("the test goes on");
        // Long enough for the loop to be compiled; whenever it comes, the call ends.
        std::thread::sleep(Duration::from_millis(50));
        interrupt.interrupt();
    });
    begins.send(()).expect("the thread waits");
    let error = next(&mut generator).expect_err("it is interrupted");
    interrupting.join().expect("the thread ends");
    drop(generator);
    // The state is usable afterwards.
    script.teardown().expect("teardown");
    script.done(Default::default()).expect("done");
    assert_eq!(trial.said(), ["done"]);
    trial.plain(&error.message)
}

#[test]
fn endless_loops_are_interrupted() {
    for body in [
        "while true do end",
        "local x = 0 while true do x = x + 1 end",
        "local t = {} while true do t[#t % 100 + 1] = tostring(#t) end",
        "local function f(i) return f(i + 1) end f(1)",
        "for i = 1, math.huge do pcall(function() while true do end end) end",
        "coroutine.wrap(function() repeat until false end)()",
        "string.gsub(('x'):rep(1000), '.', function() while true do end end)",
    ] {
        let message = interrupted(body);
        assert!(
            message.ends_with("it was still running when the run was over"),
            "{body}: {message}"
        );
    }
}

#[test]
fn an_interrupt_between_calls_ends_the_next_one() {
    let mut script = Trial::new("function request() return wrk.format() end").load();
    let mut generator = only(&mut script);
    let interrupt = generator.interrupt().expect("a script can be interrupted");
    interrupt.interrupt();
    next(&mut generator).expect_err("it is interrupted");
    drop(generator);
    drop(script);
    // The script is gone: nothing happens.
    interrupt.interrupt();
}

/// What no server is to get is refused before it is put together, or copied.
#[test]
fn huge_strings_are_refused() {
    for (call, message) in [
        (
            "wrk.format(nil, nil, {A = ('x'):rep(2 ^ 24)})",
            "script.lua:1: a request of more than 16777216 bytes is not sent",
        ),
        (
            "wrk.format(nil, '/', {}, ('x'):rep(2 ^ 24 + 1))",
            "script.lua:1: a request of more than 16777216 bytes is not sent",
        ),
        (
            "wrk.thread:set('s', ('x'):rep(2 ^ 26 + 1))",
            "script.lua:1: cannot transfer a string of 67108865 bytes to thread: at most 67108864",
        ),
        (
            "('x'):rep(2 ^ 24 + 1)",
            "request() gave a text of 16777217 bytes; at most 16777216 are sent at once",
        ),
    ] {
        let source = format!("function request() local text = {call} return text end");
        assert_eq!(Trial::new(&source).refusal(), message, "{call}");
    }
}

#[test]
fn calls_beyond_the_load_are_interrupted() {
    let source = "function teardown() while true do end end function done() say('done') end";
    let trial = Trial::with(source, |options| options.workers = 2);
    let mut script = trial.load();
    drop(script.generators().expect("generators"));
    let interrupt = script.interrupter();
    let (ends, ended) = mpsc::channel::<()>();
    // As long as it lasts: each worker's state makes the call.
    let interrupting = std::thread::spawn(move || {
        while ended.recv_timeout(Duration::from_millis(10)) == Err(RecvTimeoutError::Timeout) {
            interrupt.interrupt();
        }
    });
    let error = script.teardown().expect_err("it is interrupted");
    drop(ends);
    interrupting.join().expect("the thread ends");
    assert!(error.to_string().contains("still running"), "{error}");
    script.done(Default::default()).expect("done");
    assert_eq!(trial.said(), ["done"]);
}
