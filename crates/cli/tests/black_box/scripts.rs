//! Scripts: what is sent for them, what they are told, and how a run ends whose script fails.

use crate::loads::MACHINERIES;
use crate::support::process::{Outcome, Process, binary, brunt, refused, success};
use crate::support::run::run;
use crate::support::serve::Serve;
use crate::support::stored::{Stored, number};

/// A file with this script, and its path.
fn script(source: &str) -> (Stored, String) {
    let files = Stored::new();
    let path = files.write("script.lua", source);
    (files, path)
}

/// Runs a script for 300 ms against brunt's own server with a text report.
fn run_script(source: &str, options: &str) -> (Outcome, u64) {
    run_script_for("300ms", source, options)
}

fn run_script_for(length: &str, source: &str, options: &str) -> (Outcome, u64) {
    let server = Serve::start();
    let (_directory, path) = script(source);
    let url = server.url("/");
    let load = format!("-s {path} --warmup 0s -d {length} {options} {url}");
    (brunt(&load), server.counters().requests)
}

#[test]
fn what_a_script_makes_is_what_the_server_gets() {
    let (_directory, path) = script(
        "local n = 0\n\
         function request()\n\
            n = n + 1\n\
            local kind = n % 3 == 0 and 'third' or 'other'\n\
            return wrk.format('POST', '/bytes/10?' .. n, {['X-N'] = n}, ('x'):rep(n % 50)), kind\n\
         end\n\
         function response(status, headers, body, kind)\n\
            if status ~= 200 or #body ~= 10 or not kind then error('wrong') end\n\
         end\n",
    );
    for machinery in MACHINERIES {
        for load in [
            "-c 4 -n 300",
            "-c 3 -r 2000 -d 200ms",
            "-c 2 -d 100ms --warmup 50ms",
        ] {
            let server = Serve::start();
            let load = format!("-s {path} {load}");
            let report = machinery.run(&load, &server.url("/"));
            let requests = report.requests();
            assert_eq!(requests.answered, requests.sent, "{machinery:?} {load}");
            let counted = server.counters().requests;
            assert_eq!(counted, requests.sent, "{machinery:?} {load}");
            let names = report.at("/names").as_array().expect("a list").iter();
            let sent = names.map(|name| number(name, "/requests_sent"));
            assert_eq!(sent.sum::<u64>(), requests.sent, "{machinery:?} {load}");
        }
    }
}

#[test]
fn options_and_words_reach_the_script() {
    let (_directory, path) = script(
        "function init(args)\n\
            print('init', args[0], args[1], args[2], #args)\n\
            print(wrk.method, wrk.body, wrk.headers['X-A'], wrk.path)\n\
         end\n",
    );
    let server = Serve::start();
    let url = server.url("/bytes/10?a=1");
    let outcome = success(&format!(
        "-s {path} -n 1 -c 1 -q -m PUT -b abc -H X-A:1 {url} one -- --two"
    ));
    let lines: Vec<_> = outcome.stdout.lines().take(2).collect();
    assert_eq!(
        lines,
        [
            format!("init\t{url}\tone\t--two\t2"),
            "PUT\tabc\t1\t/bytes/10?a=1".to_owned()
        ]
    );
}

#[test]
fn prints_stand_where_they_belong() {
    let source = "print('load')\n\
                  function init() io.write('init\\n') end\n\
                  function response() if not told then told = true print('response') end end\n\
                  function teardown() print('teardown') end\n\
                  function done(summary) print('done', summary.requests) end\n";
    let (outcome, requests) = run_script(source, "-c 1");
    let outcome = outcome.exits_unless_late(0);
    let places = [
        "load", "load", "init", "response", "teardown", "http://", "CPUs ", "done",
    ];
    let mut rest = outcome.stdout.as_str();
    for place in places {
        let at = rest
            .find(place)
            .unwrap_or_else(|| panic!("{place}: {outcome:?}"));
        rest = &rest[at + place.len()..];
    }
    // Replies that come after the window are in the server's count alone.
    let printed: u64 = rest.trim().parse().expect("a count");
    assert!(
        (printed..=printed + 2).contains(&requests),
        "{printed}, {requests}"
    );
}

#[test]
fn lines_of_two_threads_are_not_mixed() {
    let source = "local a, b = ('a'):rep(60), ('b'):rep(60)\n\
                  function request()\n\
                    print(a, b, a, b, a, b)\n\
                    io.write(b, a, 1, b, a, '\\n')\n\
                    return wrk.format()\n\
                  end\n";
    let (outcome, _) = run_script(source, "-c 2 -t 2 --oversubscribe -n 3000 -q -o /dev/null");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let (a, b) = ("a".repeat(60), "b".repeat(60));
    let printed = [&*a, &b, &a, &b, &a, &b].join("\t");
    let written = format!("{b}{a}1{b}{a}");
    let mut lines = 0;
    for line in outcome.stdout.lines() {
        assert!(line == printed || line == written, "{line}");
        lines += 1;
    }
    assert!(lines > 100, "{lines}");
}

#[test]
fn a_script_that_does_not_load_sends_nothing() {
    for (source, words) in [
        ("\nerror('no')", "script.lua:2: no"),
        ("function init()\nerror('init') end", "script.lua:2: init"),
        (
            "function request() return 'GET / HTTP/1.1\\r\\nHost: x\\r\\n' end",
            "incomplete request at 3:1",
        ),
    ] {
        let (outcome, requests) = run_script(source, "");
        refused(&outcome, words);
        assert_eq!(outcome.stdout, "", "{source}");
        assert_eq!(requests, 0, "{source}");
    }
}

#[test]
fn an_error_in_the_run_ends_it_with_a_report() {
    for source in [
        "function request()\nn = (n or 0) + 1 if n > 100 then error('enough\\n\\tnow') end \
         return wrk.format() end",
        "function response(status)\nm = (m or 0) + 1 if m > 100 then \
         error('enough\\n\\tnow') end end",
    ] {
        // However slow the machine is, the error comes first.
        let (outcome, requests) = run_script_for("50s", source, "-c 2");
        assert_eq!(outcome.code, Some(2), "{source}: {outcome:?}");
        assert!(outcome.stdout.contains("throughput"), "{outcome:?}");
        outcome.assert_says(&["script.lua:2: enough\n\tnow\n"]);
        assert!((99..=102).contains(&requests), "{requests}");
    }
}

#[test]
fn an_error_in_done_comes_after_the_report() {
    let (outcome, _) = run_script("function done()\nerror('late') end", "-c 1");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stdout.contains("throughput"), "{outcome:?}");
    assert!(outcome.stderr.contains("script.lua:2: late"), "{outcome:?}");
}

#[test]
fn a_script_that_does_not_return_does_not_hold_the_run() {
    let source = "function response()\nm = (m or 0) + 1 if m > 10 then while true do end end end";
    let (outcome, _) = run_script(source, "-c 2");
    refused(
        &outcome,
        "script.lua:2: it was still running when the run was over",
    );
}

#[test]
fn the_first_request_stands_for_all_in_reports() {
    let server = Serve::start();
    let (_directory, path) = script(
        "function request() return wrk.format('PUT', '/bytes/10', {['X-A'] = 1}, 'abc') end",
    );
    let report = run(&format!("-s {path} -c 1 -n 10 {}", server.url("/")));
    let first = report.at("/plan/traffic/requests/outline/first");
    assert_eq!(first["method"], "PUT");
    assert_eq!(first["path"], "/bytes/10");
    assert_eq!(first["body_bytes"], 3);
    // The line to repeat a run would not have the script: it says what to change.
    let text = brunt(&format!("-s {path} -c 1 -n 10 {}", server.url("/"))).stdout;
    assert!(!text.contains("next        brunt"), "{text}");
}

#[test]
fn modules_in_c_load() {
    // They call the functions of Lua that this program exports.
    let source = "local ffi = require('ffi')\n\
                  ffi.cdef('void lua_pushlstring(void *, const char *, size_t);\
                  void luaL_register(void *, const char *, const void *);\
                  int lua_gettop(void *); const char *luaL_checklstring(void *, int, size_t *);')\n\
                  for _, name in ipairs({'lua_pushlstring', 'luaL_register', 'lua_gettop',\n\
                  'luaL_checklstring'}) do\n\
                     assert(ffi.cast('void *', ffi.C[name]) ~= nil)\n\
                  end\n\
                  print('exported')\n";
    let (outcome, _) = run_script(source, "-c 1");
    let outcome = outcome.exits_unless_late(0);
    assert!(outcome.stdout.starts_with("exported\n"), "{outcome:?}");
}

#[test]
fn over_tls_a_script_speaks_http1() {
    let server = Serve::start_secure(&[]);
    let (_directory, path) = script("function request() return wrk.format() end");
    let report = run(&format!("-k -s {path} -c 2 -n 50 {}", server.url("/")));
    assert_eq!(report.requests().answered, 50);
    assert_eq!(report.at("/agents/0/negotiated/protocol"), "HTTP/1.1");
}

/// Calls beyond the load that do not return: by name, the script, whether `done` is still heard,
/// and what is said.
const ENDLESS: &[(&str, &str, bool, &str)] = &[
    (
        "teardown",
        "function teardown() hang() end function done() print('heard') end",
        true,
        "teardown() had not returned",
    ),
    (
        "done",
        "function done() hang() end",
        false,
        "done() had not returned",
    ),
    (
        "a caught error",
        "function done() while true do pcall(hang) end end",
        false,
        "done() had not returned",
    ),
    (
        "a finalizer",
        "kept = newproxy(true) getmetatable(kept).__gc = function() hang() end",
        false,
        "finalizer (__gc) had not returned",
    ),
    (
        "the system",
        "function teardown() io.stderr:write('it hangs\\n') \
         io.popen('exec sleep 30 2> /dev/null'):read('*a') end",
        false,
        "teardown() had not returned",
    ),
];
const HANG: &str = "function hang() io.stderr:write('it hangs\\n') while true do end end ";

#[test]
fn calls_beyond_the_load_end_with_the_first_signal() {
    for &(what, source, is_heard, words) in ENDLESS {
        let server = Serve::start();
        let (files, path) = script(&format!("{HANG}{source}"));
        let stored = files.path("run.json");
        for tool in [
            &["-q", "-n", "50", "-o"][..],
            &["wrk", "-t1", "-c1", "-d", "1"],
        ] {
            let mut command = binary();
            command.args(tool);
            let is_own = tool.contains(&"-q");
            if is_own {
                command.arg(&stored);
            }
            command.arg("-s").arg(&path).arg(server.url("/"));
            let process = Process::start(command);
            process.wait_for_message("it hangs");
            let outcome = process.wait_interrupted();
            assert!(outcome.stderr.contains(words), "{what}: {outcome:?}");
            let was_heard = outcome.stdout.contains("heard");
            assert_eq!(was_heard, is_heard, "{what}: {outcome:?}");
            let is_last = what == "a finalizer";
            let code = if is_last { 0 } else { 130 };
            // A busy machine may leave the window too little of it.
            let is_late = is_last && is_own && outcome.code == Some(3);
            assert!(is_late || outcome.code == Some(code), "{what}: {outcome:?}");
            if is_own {
                files.read("run.json");
            } else {
                outcome.assert_prints(&["Requests/sec:"]);
            }
        }
    }
}
