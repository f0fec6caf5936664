//! `brunt wrk -s` beside the real wrk: scripts make the same requests, print the same in the same
//! order, and end the run alike; where brunt differs on purpose, what it does.

use crate::dropin_wrk::{both, masked, sorted};
use crate::support::at_once;
use crate::support::keeping::Keeping;
use crate::support::process::{Outcome, tool};
use crate::support::stored::Stored;

/// A script in a file of its own, and its path.
fn script(text: &str) -> (Stored, String) {
    let files = Stored::new();
    let path = files.write("script.lua", text);
    (files, path)
}

/// Runs a script in brunt, with these words before the URL.
fn run(text: &str, words: &[&str]) -> (Outcome, Keeping) {
    let ((_files, path), server) = (script(text), Keeping::start());
    let words = [&["-s", &path][..], words, &["URL/"]].concat();
    (tool("wrk", false, &words, &server.url("")), server)
}

const STATIC: &str = r#"
wrk.method = "POST"
wrk.body   = "foo=bar&baz=quux"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
"#;

const PATHS: &str = r#"
local paths = { "/a", "/b?x=1", "/c" }
local next_path = 0
request = function()
   next_path = next_path % #paths + 1
   wrk.headers["X-Path"] = paths[next_path]
   return wrk.format("PUT", paths[next_path], nil, "body of " .. paths[next_path])
end
"#;

const PIPELINE: &str = r#"
init = function(args)
   local r = {}
   r[1] = wrk.format(nil, "/?foo")
   r[2] = wrk.format(nil, "/?bar")
   r[3] = wrk.format(nil, "/?baz")
   req = table.concat(r)
end
request = function() return req end
"#;

const RESPONSE: &str = r#"
local seen = 0
function response(status, headers, body)
   seen = seen + 1
   if seen == 1 then
      print("first", status, headers["Content-Length"], body)
      wrk.thread:set("token", body)
   end
end
"#;

const ARGUMENTS: &str = r#"
function init(args)
   print("init", #args, args[1], args[2], args[3], args[0]:match("^http") )
   wrk.headers["X-First"] = args[1]
end
"#;

const THREADS: &str = r#"
local counter = 1
local threads = {}
function setup(thread)
   thread:set("id", counter)
   table.insert(threads, thread)
   counter = counter + 1
   print("setup", tostring(thread.addr):match("^[0-9.]+"))
end
function init(args)
   requests  = 0
   responses = 0
   print("thread " .. id .. " created")
end
function request()
   requests = requests + 1
   return wrk.request()
end
function response()
   responses = responses + 1
end
function done(summary, latency, requests)
   for index, thread in ipairs(threads) do
      local sent, got = thread:get("requests"), thread:get("responses")
      print("thread", thread:get("id"), sent > 0, got > 0 and got <= sent)
   end
   print(summary.duration > 900000, summary.requests > 0, summary.bytes > summary.requests)
   local errors = summary.errors
   print(errors.connect, errors.read, errors.write, errors.status, errors.timeout)
   print(latency.min > 0, latency.max >= latency.mean, latency.stdev >= 0)
   print(latency:percentile(50) >= latency.min, latency:percentile(99.9) <= latency.max)
   print(#latency > 0, (latency(1)) == latency.min, requests.max > 0, requests.total, type(latency))
end
"#;

const DELAY: &str = "function delay() return 20 end";

const STOP: &str = r#"
local sent = 0
function response()
   sent = sent + 1
   if sent == 3 then wrk.thread:stop() end
end
"#;

const PARKS: &str = r#"
local sent = 0
function request()
   sent = sent + 1
   if sent <= 3 then return wrk.request() end
end
"#;

const REASSIGNS: &str = r#"
function request()
   request = function() return wrk.format(nil, "/second") end
   return wrk.format(nil, "/first")
end
"#;

const DONE_FAILS: &str = "function done() error('in done') end";

#[test]
fn scripts_do_what_they_do_in_the_real_wrk() {
    let plain: &[&str] = &["-t1", "-c1", "-d1", "URL/"];
    let worded: &[&str] = &["-t1", "-c1", "-d1", "URL/", "one", "--", "two", "-x"];
    let cases = [
        (STATIC, &["-t1", "-c2", "-d1", "URL/form"][..]),
        (PATHS, plain),
        (PIPELINE, plain),
        (RESPONSE, plain),
        (ARGUMENTS, worded),
        (THREADS, &["-t2", "-c2", "-d1", "URL/"]),
        (DELAY, plain),
        (STOP, plain),
        (PARKS, plain),
        (REASSIGNS, plain),
        (DONE_FAILS, plain),
    ];
    at_once(cases, |(text, words)| {
        let (_files, path) = script(text);
        let words = [&["-s", &path][..], words].concat();
        let servers = [Keeping::start(), Keeping::start()];
        let [real, ours] = both(&words, &servers);
        let expected = masked(&real.stdout, &servers[0].url(""));
        let found = masked(&ours.stdout, &servers[1].url(""));
        assert_eq!(expected, found, "{text}\n{real:?}\n{ours:?}");
        assert_eq!(real.code, ours.code, "{text}\n{ours:?}");
        let [real, ours] = servers.map(|server| server.requests());
        assert_eq!(sorted(&real), sorted(&ours), "{text}");
    });
}

#[test]
fn what_cannot_begin_ends_with_a_message() {
    let incomplete = "incomplete request at 1:1\n";
    for (text, code, words) in [
        ("error('at load')", 1, "script.lua:1: at load"),
        ("os.exit(3)", 3, ""),
        ("function request() return nil end", 1, incomplete),
    ] {
        let (outcome, server) = run(text, &["-t1", "-c1", "-d1"]);
        assert_eq!(outcome.code, Some(code), "{text}\n{outcome:?}");
        assert_eq!(outcome.stdout, "", "{text}");
        assert!(outcome.stderr.contains(words), "{text}\n{outcome:?}");
        assert!(server.requests().is_empty(), "{text}");
    }
    let words = ["-s", "/nonexistent/script.lua", "-d1", "URL/"];
    let outcome = tool("wrk", false, &words, "http://127.0.0.1:1").exits(1);
    outcome.assert_says(&["/nonexistent/script.lua"]);
}

#[test]
fn an_error_in_mid_run_ends_it_with_the_report_of_what_was_measured() {
    let text = "local sent = 0\nfunction request()\n  sent = sent + 1\n  \
                if sent > 5 then error('enough') end\n  return wrk.request()\nend\n";
    let (outcome, _) = run(text, &["-t1", "-c1", "-d600"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.contains("\nTransfer/sec: "), "{outcome:?}");
    outcome.assert_says(&["script.lua:4: enough"]);
}
