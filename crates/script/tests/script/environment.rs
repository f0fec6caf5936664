//! What scripts find: the table `wrk`, `setup`, `init`, arguments.

use std::net::TcpListener;

use brunt_script::{Flavour, ScriptError, ScriptTarget};

use crate::support::{Trial, only, said_at_load, said_with};

#[test]
fn a_script_finds_the_parts_of_its_url() {
    let source = "say(wrk.scheme, wrk.host, wrk.port, type(wrk.port), wrk.path, wrk.method, \
                  wrk.body, wrk.thread, wrk.headers.Host, url)";
    let expected = "http 127.0.0.1 8123 string /p/a?q=1#frag GET nil nil nil \
                    http://127.0.0.1:8123/p/a?q=1#frag";
    // Once in the main state, once in that of the worker.
    assert_eq!(said_at_load(source), [expected, expected]);
}

#[test]
fn the_table_is_a_module_and_has_the_keys_of_wrk() {
    let source = "local t = {} for k in pairs(wrk) do t[#t + 1] = k end table.sort(t) \
                  say(table.concat(t, ' ')) say(require('wrk') == wrk, package.loaded.wrk == wrk, \
                  arg, ...) say(debug.getinfo(1, 'S').source:match('^@.*script.lua$') ~= nil) \
                  say(jit.version:match('^LuaJIT 2.1'), _VERSION, type(ffi), type(bit), \
                  type(require('ffi')))";
    let said = said_at_load(source);
    assert_eq!(
        said[0],
        "connect format headers host init lookup method path port resolve scheme setup"
    );
    assert_eq!(said[1], "true true nil");
    assert_eq!(said[2], "true");
    assert_eq!(said[3], "LuaJIT 2.1 Lua 5.1 nil table table");
}

#[test]
fn headers_are_there_before_the_script_runs() {
    let said = said_with("say(wrk.headers['X-A'], wrk.headers['X-C'])", |options| {
        options.headers = vec![
            ("X-A".to_owned(), "1".to_owned()),
            ("X-C".to_owned(), " 3 ".to_owned()),
            ("X-A".to_owned(), "2".to_owned()),
        ];
    });
    assert_eq!(said[0], "2  3 ");
}

#[test]
fn method_and_body_may_be_given() {
    let trial = Trial::with("say(wrk.method, wrk.body)", |options| {
        options.method = Some("PUT".to_owned());
        options.body = Some(b"abc".to_vec());
    });
    let script = trial.load();
    assert_eq!(trial.said()[0], "PUT abc");
    assert!(script.first_request().starts_with(b"PUT /p/a"));
    assert!(script.first_request().ends_with(b"\r\n\r\nabc"));
}

#[test]
fn init_has_the_words_of_the_command_line_and_the_host() {
    let source = "function init(args) say(#args, args[0], args[1], args[2], args[3], args[-1]) \
                  say(wrk.headers.Host, type(wrk.thread), wrk.thread.nothing, wrk.thread[7]) end";
    let said = said_with(source, |options| {
        // As they were typed, whatever is in them.
        options.arguments = vec!["one".to_owned(), "--two \t'\"%s\u{e9}\u{1f600}".to_owned()];
    });
    assert_eq!(
        said,
        [
            "2 http://127.0.0.1:8123/p/a?q=1#frag one --two \t'\"%s\u{e9}\u{1f600} nil nil",
            "127.0.0.1:8123 userdata nothing 7"
        ]
    );
}

#[test]
fn hosts_that_are_addresses_get_brackets() {
    let said = said_with("function init() say(wrk.headers.Host) end", |options| {
        options.target = ScriptTarget::from_url("http://[::1]:80/").expect("a URL");
    });
    assert_eq!(said, ["[::1]:80"]);
    let said = said_with("function init() say(wrk.headers.Host) end", |options| {
        options.target = ScriptTarget::from_url("http://host/").expect("a URL");
        options.headers = vec![("Host".to_owned(), "other".to_owned())];
    });
    assert_eq!(said, ["other"]);
}

#[test]
fn threads_are_set_up_one_after_the_other() {
    let source = "say('load') local n = 0 function setup(t) n = n + 1 say('setup', n) \
                  t:set('id', n) end function init() say('init', id) end";
    let said = said_with(source, |options| options.workers = 2);
    assert_eq!(
        said,
        [
            "load", "load", "setup 1", "init 1", "load", "setup 2", "init 2"
        ]
    );
}

#[test]
fn the_first_request_is_asked_for_once_more() {
    let source = "function request() n = (n or 0) + 1 return wrk.format(nil, '/' .. n) end";
    let mut script = Trial::new(source).load();
    assert!(script.first_request().starts_with(b"GET /1 HTTP/1.1\r\n"));
    let mut generator = only(&mut script);
    let mut text = Vec::new();
    generator
        .next(brunt_load::ConnectionNumber(0), &mut text)
        .expect("a request");
    assert!(text.starts_with(b"GET /2 HTTP/1.1\r\n"));
}

#[test]
fn addresses_are_looked_up_and_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let source = "function setup(t) say(t.addr, #wrk.addrs, type(t.addr), t.addr == t.addr) \
                  t:set('where', t.addr) end function init() say(where, \
                  wrk.connect(wrk.thread.addr), wrk.lookup('127.0.0.1', 80)[1]) end";
    let trial = Trial::with(source, |options| {
        let url = format!("http://127.0.0.1:{port}/");
        options.target = ScriptTarget::from_url(&url).expect("a URL");
        options.is_resolved = true;
    });
    let mut script = trial.load();
    let address = format!("127.0.0.1:{port}");
    assert_eq!(
        trial.said(),
        [
            format!("{address} 1 userdata false"),
            format!("{address} true 127.0.0.1:80")
        ]
    );
    assert_eq!(only(&mut script).address(), None);
}

#[test]
fn a_thread_goes_where_its_address_says() {
    let source = "local n = 0 function setup(t) n = n + 1 if n == 2 then t.addr = \
                  wrk.lookup('127.0.0.2', '8081')[1] end end";
    let trial = Trial::with(source, |options| options.workers = 2);
    let mut script = trial.load();
    let generators = script.generators().expect("generators");
    let addresses: Vec<_> = generators.iter().map(|one| one.address()).collect();
    let other = "127.0.0.2:8081".parse().expect("an address");
    assert_eq!(addresses, [None, Some(other)]);
}

#[test]
fn a_target_that_takes_no_connection_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let trial = Trial::with("", |options| {
        let url = format!("http://127.0.0.1:{port}/");
        options.target = ScriptTarget::from_url(&url).expect("a URL");
        options.is_resolved = true;
    });
    assert_eq!(
        trial.refusal(),
        format!("unable to connect to 127.0.0.1:{port} Connection refused")
    );
}

#[test]
fn a_name_without_address_is_named() {
    let trial = Trial::new("function setup() wrk.lookup('127.0.0.1', 'no-such-service') end");
    let error = trial.try_load().expect_err("no such service");
    assert!(matches!(error, ScriptError::Resolve { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .starts_with("unable to resolve 127.0.0.1:no-such-service "),
        "{error}"
    );
    // One that the script looks after itself is its own matter.
    let caught = "function setup() say(pcall(wrk.lookup, '127.0.0.1', 'no-such-service')) end";
    assert!(said_at_load(caught)[0].starts_with("false unable to resolve"));
}

#[test]
fn wrk2_has_a_clock_and_no_delay() {
    let source = "function delay() return 5 end function init() say(type(wrk.time_us), \
                  wrk.time_us and wrk.time_us() > 1.6e15) end";
    let trial = Trial::new(source);
    assert!(only(&mut trial.load()).delays());
    assert_eq!(trial.said(), ["nil nil"]);
    let trial = Trial::with(source, |options| options.flavour = Flavour::Wrk2);
    assert!(!only(&mut trial.load()).delays());
    assert_eq!(trial.said(), ["function true"]);
}

/// Modules that are installed and do not load: a file that is no library, and a module in Lua that
/// needs another one.
#[test]
fn modules_that_do_not_load_have_stand_ins() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("cjson.so"), "no library").expect("a file");
    let socket = "error('no socket.core')";
    std::fs::write(folder.path().join("socket.lua"), socket).expect("a file");
    let other = "error('another')";
    std::fs::write(folder.path().join("other.lua"), other).expect("a file");
    let path = folder.path().display();
    let source = format!(
        "package.path = '{path}/?.lua' package.cpath = '{path}/?.so' \
         say(require('cjson').encode({{1}}), type(require('socket').gettime())) \
         say(pcall(require, 'other'))"
    );
    let trial = Trial::new(&source);
    let _script = trial.load();
    let said = trial.said();
    assert_eq!(said[0], "[1] number");
    assert!(
        said[1].starts_with("false ") && said[1].ends_with("another"),
        "{said:?}"
    );
}
