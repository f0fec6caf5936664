//! `done` and `teardown`, and the statistics that `done` is given.

use brunt_script::{Distribution, Flavour, Outcome, Summary};

use crate::support::{Trial, only};

fn outcome() -> Outcome {
    Outcome {
        summary: Summary {
            duration_us: 1_005_114,
            requests: 96,
            bytes: 14_112,
            connect_errors: 1,
            read_errors: 2,
            write_errors: 3,
            status_errors: 4,
            timeouts: 5,
        },
        latency: Distribution::new([(100, 1), (200, 2), (400, 1)]),
        requests: Distribution::new([(40, 1), (50, 3)]),
    }
}

fn said_by_done(body: &str, flavour: Flavour) -> Vec<String> {
    let trial = Trial::with(&format!("function done(s, l, r) {body} end"), |options| {
        options.flavour = flavour
    });
    let mut script = trial.load();
    assert_eq!(script.last_call(), Some("done"));
    script.done(outcome()).expect("done");
    trial.said()
}

#[test]
fn the_summary_has_counts() {
    let body = "say(type(s), s.duration, s.requests, s.bytes, s.errors.connect, s.errors.read, \
                s.errors.write, s.errors.status, s.errors.timeout) \
                say(string.format('%d %d', s.requests, l.mean))";
    assert_eq!(
        said_by_done(body, Flavour::Wrk),
        ["table 1005114 96 14112 1 2 3 4 5", "96 225"]
    );
}

#[test]
fn statistics_answer_as_those_of_wrk() {
    let body = "say(type(l), type(r), l.min, l.max, l.mean, string.format('%.3f', l.stdev)) \
                say(#l, l(1)) say(l(3)) say(l(4)) say(l(0)) \
                say(l:percentile(50), l:percentile(99), l:percentile(25.5), l:percentile(100)) \
                say(r.min, r.max, r.mean, #r, r(2)) \
                say(r.total, l.nothing, l[1], type(l.percentile), tostring(l):match('^%a+')) \
                say(pcall(l.percentile, l)) say(pcall(l.percentile, 1, 2))";
    assert_eq!(
        said_by_done(body, Flavour::Wrk),
        [
            "userdata userdata 100 400 225 125.831",
            "3 100 1",
            "400 1",
            "0 3",
            "0 3",
            "200 400 200 0",
            "40 50 47.5 2 50 3",
            "total nothing 1 function userdata",
            "false bad argument #2 to 'percentile' (number expected, got no value)",
            "false bad argument #1 to 'percentile' (wrk.stats expected, got number)"
        ]
    );
}

#[test]
fn statistics_answer_as_those_of_wrk2() {
    let body = "say(#l, l[1], l[2], l[3], l[4], l.min, l.max) say(l:percentile(50), \
                l:percentile(100)) say(pcall(function() return l(1) end))";
    let said = said_by_done(body, Flavour::Wrk2);
    assert_eq!(said[0], "4 100 200 200 400 100 400");
    assert_eq!(said[1], "200 400");
    assert!(said[2].starts_with("false "), "{said:?}");
}

#[test]
fn nothing_measured_is_answered_too() {
    let trial = Trial::new(
        "function done(s, l, r) say(s.requests, l.min > 1e19, l.max, l.mean, l.stdev, #l, \
         l:percentile(50)) say(l(1)) end",
    );
    let mut script = trial.load();
    script.done(Outcome::default()).expect("done");
    assert_eq!(trial.said(), ["0 true 0 0 0 0 0", "0 0"]);
}

#[test]
fn a_script_without_done_has_no_last_words() {
    let mut script = Trial::new("").load();
    assert_ne!(script.last_call(), Some("done"));
    script.done(outcome()).expect("nothing to do");
}

#[test]
fn teardown_runs_in_each_thread() {
    let source = "local n = 0 function setup(t) n = n + 1 t:set('id', n) end \
                  function teardown() say('teardown', id) end function done() say('done', id) end";
    let trial = Trial::with(source, |options| options.workers = 2);
    let mut script = trial.load();
    drop(script.generators().expect("generators"));
    script.teardown().expect("teardown");
    script.done(outcome()).expect("done");
    assert_eq!(trial.said(), ["teardown 1", "teardown 2", "done nil"]);
    let generator = only(&mut Trial::new("").load());
    drop(generator);
}
