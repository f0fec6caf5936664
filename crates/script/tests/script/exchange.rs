//! Values that go from state to state: `thread:get` and `thread:set`.

use crate::support::{Trial, next, said_at_load, started};

#[test]
fn values_are_copied() {
    let source = "function setup(t) t:set('a', {x = 1, y = 's', [3] = true, z = {1, {2}}}) \
                  t:set('n', nil) t:set('s', 'a\\0b') t:set('f', 1.5) t:set('b', false) \
                  local a = t:get('a') say(a.x, a.y, a[3], a.z[2][1], t:get('nosuch')) a.x = 9 \
                  say(t:get('a').x) end \
                  function init() say(a.x, a.y, a[3], a.z[1], a.z[2][1], n, #s, f, b) end";
    assert_eq!(
        said_at_load(source),
        ["1 s true 2 nil", "1", "1 s true 1 2 nil 3 1.5 false"]
    );
}

#[test]
fn what_cannot_be_copied_is_refused() {
    let source = "function setup(t)\n\
                  say(pcall(function() t:set('f', print) end))\n\
                  say(pcall(function() t:get('print') end))\n\
                  say(pcall(function() t:set('f', {{print}}) end))\n\
                  local loop = {} loop.loop = loop\n\
                  say(pcall(function() t:set('f', loop) end))\n\
                  say(t:get('f'))\n\
                  end";
    assert_eq!(
        said_at_load(source),
        [
            "false script.lua:2: cannot transfer 'function' to thread",
            "false script.lua:3: cannot transfer 'function' to thread",
            "false script.lua:4: cannot transfer 'function' to thread",
            "false script.lua:6: cannot transfer a table that is nested more than 100 times to \
             thread",
            "nil"
        ]
    );
}

#[test]
fn threads_refuse_what_wrk_refuses() {
    let source = "function setup(t)\n\
                  say(pcall(function() t.foo = 1 end))\n\
                  say(pcall(function() t.addr = 'x' end))\n\
                  say(pcall(function() t.get() end))\n\
                  say(pcall(function() t.get('x', 'y') end))\n\
                  end";
    assert_eq!(
        said_at_load(source),
        [
            "false script.lua:2: cannot set 'number' on thread",
            "false script.lua:3: bad argument #4 to '__newindex' (wrk.addr expected, got string)",
            "false script.lua:4: bad argument #1 to 'get' (wrk.thread expected, got no value)",
            "false script.lua:5: bad argument #1 to 'get' (wrk.thread expected, got string)"
        ]
    );
}

#[test]
fn a_thread_may_ask_for_its_own_values() {
    let source = "id = 5 function request() wrk.thread:set('next_id', wrk.thread:get('id') + 1) \
                  wrk.thread:set('t', {1, {2}}) if next_id ~= 6 or t[2][1] ~= 2 then error('no') \
                  end return wrk.format() end";
    let (_trial, _script, mut generator) = started(source);
    for _ in 0..3 {
        next(&mut generator).expect("a request");
    }
}

#[test]
fn a_coroutine_may_ask_for_them_too() {
    let source = "id = 5 function init() coroutine.wrap(function() wrk.thread:set('x', \
                  {wrk.thread:get('id')}) end)() say(x[1]) end";
    assert_eq!(said_at_load(source), ["5"]);
}

#[test]
fn the_main_state_sees_what_threads_counted() {
    let source = "local threads = {} function setup(t) threads[#threads + 1] = t end \
                  function request() n = (n or 0) + 1 return wrk.format() end \
                  function done() for i, t in ipairs(threads) do say(i, t:get('n')) end say(n) end";
    let trial = Trial::with(source, |options| options.workers = 2);
    let mut script = trial.load();
    let mut generators = script.generators().expect("generators");
    for _ in 0..4 {
        next(&mut generators[1]).expect("a request");
    }
    // One of them has not come back yet.
    let kept = generators.remove(0);
    drop(generators);
    let error = script
        .done(Default::default())
        .expect_err("a thread is away");
    assert_eq!(
        trial.plain(&error.to_string()),
        "script.lua:1: thread 1 has not come back from the script"
    );
    drop(kept);
    trial.said();
    script.done(Default::default()).expect("all are back");
    // The first one was asked before the run, once.
    assert_eq!(trial.said(), ["1 1", "2 4", "nil"]);
}

#[test]
fn a_thread_stops_itself_while_it_runs() {
    let source = "function setup(t) t:stop() end function request() n = (n or 0) + 1 \
                  if n == 3 then wrk.thread:stop() end return wrk.format() end";
    let (_trial, _script, mut generator) = started(source);
    assert!(!generator.is_stopped(), "before the run it has no effect");
    next(&mut generator).expect("a request");
    assert!(!generator.is_stopped());
    next(&mut generator).expect("a request");
    assert!(generator.is_stopped());
}
