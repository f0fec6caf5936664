//! From gcannon's options to a plan of brunt's.

use std::collections::HashSet;
use std::path::Path;

use brunt_engine::raw_requests;
use brunt_load::{
    HttpChoice, MessageSpec, Placement, Plan, ReplyMatch, RequestOrder, RequestSet, RequestSpec,
    Reuse, Stop, Target, WebSocketExchange, message_name,
};
use brunt_proto::messages::Template;

use super::options::{Address, Options};
use super::wrong;
use crate::{Ending, verbatim};

const SECOND_NS: u64 = 1_000_000_000;
const SETUP_TIMEOUT_NS: u64 = 10 * SECOND_NS;
/// In place of no limit.
const LONG_NS: u64 = 3_600 * SECOND_NS;
/// gcannon leaves at once; what was sent is waited for, for so long.
const DRAIN_NS: u64 = SECOND_NS;

/// Where the requests go: to the URL, or to the server that the first of the `files` names.
///
/// # Errors
///
/// It names none.
pub fn target(options: &Options, files: &[Vec<u8>]) -> Result<Address, Ending> {
    if let Some(address) = &options.address {
        return Ok(address.clone());
    }
    let text = String::from_utf8_lossy(files.first().map_or(&[], Vec::as_slice));
    let mut lines = text.lines();
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host")
            .then(|| value.trim().to_owned())
    });
    let host = host.ok_or_else(|| wrong("there is no URL, and no Host in the first raw file"))?;
    Address::of(&host, "/")
}

/// The plan that does what the command line asks for, with the contents of its files, whose random
/// numbers follow from the seed.
///
/// # Errors
///
/// There is no such load.
pub fn plan(options: &Options, files: &[Vec<u8>], seed: u64) -> Result<Plan, Ending> {
    let address = target(options, files)?;
    let Address { host, port, path } = &address;
    let authority = format!("{host}:{port}");
    let refused = |reason: &dyn std::fmt::Display| wrong(&reason.to_string());
    let (mut target, requests) = match &options.message {
        Some(message) => {
            let target = Target::parse_websocket(&format!("ws://{authority}{path}"), None);
            let spec = MessageSpec {
                name: message_name(1),
                template: Template::constant(message.clone().into_bytes()),
            };
            (
                target,
                RequestSet::messages_in(RequestOrder::Turns, vec![spec]),
            )
        }
        None => {
            let target = Target::parse(&format!("http://{authority}{path}"), None);
            let mut requests = match options.raw.is_empty() {
                true => vec![own_request(&address)?],
                false => of_files(&options.raw, files)?,
            };
            let set = match requests.len() {
                1 => requests.pop().map(RequestSet::one),
                _ => RequestSet::of(requests, RequestOrder::Turns),
            };
            (target, set)
        }
    };
    if let Ok(target) = &mut target {
        target.path.clone_from(path);
        if options.message.is_some() {
            // gcannon says the port, whichever it is.
            target.authority = authority;
        }
    }
    let target = target.map_err(|reason| refused(&reason))?;
    let requests = requests.ok_or_else(|| wrong("the raw request files are too long"))?;
    let mut plan = Plan::new(target, requests);
    plan.connections = options.connections;
    plan.workers = options.threads.min(options.connections);
    plan.placement = Placement::Given;
    plan.oversubscribe = true;
    plan.pipeline = options.depth;
    plan.spoken = match options.message {
        None => HttpChoice::HTTP1.into(),
        Some(_) => WebSocketExchange {
            headers: Vec::new().into(),
            subprotocols: Vec::new(),
            is_binary: false,
            replies: 1,
            matching: ReplyMatch::Any,
            is_strict: false,
            has_zero_masks: false,
            opening: None,
            ping_interval_ns: None,
            seed,
        }
        .into(),
    };
    plan.reuse = options
        .requests_per_connection
        .map_or(Reuse::Unlimited, Reuse::Requests);
    plan.think_seed = seed;
    plan.stop = Stop {
        duration_ns: Some(options.duration_s.get() * SECOND_NS),
        requests: None,
    };
    plan.warmup_ns = 0;
    plan.halves_warmup = false;
    plan.sends_again = false;
    plan.timeout_ns = LONG_NS;
    plan.drain_limit_ns = DRAIN_NS;
    plan.setup_timeout_ns = Some(SETUP_TIMEOUT_NS);
    Ok(plan)
}

fn own_request(address: &Address) -> Result<RequestSpec, Ending> {
    let Address { host, port, path } = address;
    let host = match port {
        80 | 443 => host.clone(),
        _ => format!("{host}:{port}"),
    };
    verbatim::request("GET", path, &[("Host".to_owned(), host)], b"")
        .map_err(|reason| wrong(&reason.to_string()))
}

/// The requests of all files, each with a name of its own.
fn of_files(paths: &[impl AsRef<Path>], files: &[Vec<u8>]) -> Result<Vec<RequestSpec>, Ending> {
    let mut names = HashSet::new();
    let mut requests = Vec::with_capacity(files.len());
    for (path, text) in paths.iter().zip(files) {
        let refused = |reason: &dyn std::fmt::Display| {
            let name = path.as_ref().display();
            wrong(&format!("raw request file '{name}': {reason}"))
        };
        let mut found = raw_requests(text).map_err(|reason| refused(&reason))?;
        let (Some(mut request), true) = (found.pop(), found.is_empty()) else {
            return Err(refused(
                &"it holds several requests; give each a file of its own",
            ));
        };
        // Its bytes are given: this is what its figures stand under.
        if !names.insert(request.name()) {
            let number = requests.len() + 1;
            request.path.push_str(&format!(" (file {number})"));
            names.insert(request.name());
        }
        requests.push(request);
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn plan_of(line: &str, files: &[&str]) -> Result<Plan, Ending> {
        let files: Vec<Vec<u8>> = files.iter().map(|it| it.as_bytes().to_vec()).collect();
        plan(&Options::parse(&words(line)).expect(line), &files, 7)
    }

    fn texts(plan: &Plan) -> Vec<String> {
        let texts = plan.requests.requests().filter_map(|request| request.text);
        texts
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect()
    }

    #[test]
    fn the_request_is_gcannons() {
        for (url, expected) in [
            ("http://h:81/a?b", "GET /a?b HTTP/1.1\r\nHost: h:81\r\n\r\n"),
            ("http://h", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
            (
                "http://h:443/%7e/../x",
                "GET /%7e/../x HTTP/1.1\r\nHost: h\r\n\r\n",
            ),
        ] {
            assert_eq!(texts(&plan_of(url, &[]).expect(url)), [expected]);
        }
    }

    #[test]
    fn files_are_sent_in_turns_under_names_of_their_own() {
        let get = "GET /a HTTP/1.1\r\nHost: o:8080\r\n\r\n";
        let post = "POST /a?{RAND:1:50} HTTP/1.1\r\nContent-Length: 6\r\n\r\n{SEQ:100001}";
        let plan = plan_of("-R a,b,c -c 8 -t 2 -p 4 -r 9 -d 1", &[get, post, post]);
        let plan = plan.expect("a plan");
        assert_eq!(texts(&plan), [get, post, post]);
        let names: Vec<&str> = plan.requests.names().collect();
        assert_eq!(
            names,
            ["/a", "POST /a?{RAND:1:50}", "POST /a?{RAND:1:50} (file 3)"]
        );
        assert_eq!((&*plan.target.host, plan.target.port), ("o", 8080));
        assert_eq!((plan.workers.get(), plan.pipeline.get()), (2, 4));
        assert_eq!((plan.warmup_ns, plan.think_seed), (0, 7));
        let filled = plan
            .requests
            .requests()
            .filter(|it| it.placeholders.is_some());
        assert_eq!(filled.count(), 2);
    }

    #[test]
    fn frames_are_texts_that_are_answered_by_one() {
        let plan = plan_of("http://h/chat --ws-msg x{y} -r 5", &[]).expect("a plan");
        assert_eq!(
            (&*plan.target.url, &*plan.target.authority),
            ("ws://h/chat", "h:80")
        );
        let message = &plan.requests.messages()[0];
        assert_eq!(message.template.as_constant(), Some(&b"x{y}"[..]));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let get = "GET / HTTP/1.1\r\n\r\n";
        for (line, files, words) in [
            ("-R a", vec![get], "Error: there is no URL, and no Host"),
            (
                "-R a,b http://h/",
                vec![get, "GET /\r\n"],
                "Error: raw request file 'b': invalid",
            ),
            (
                "-R a http://h/",
                vec!["GET /{RAND:2:1} HTTP/1.1\r\n\r\n"],
                "Error: raw request file 'a': `{RAND:2:1}`",
            ),
            (
                "-R a http://h/",
                vec!["GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n"],
                "Error: raw request file 'a': it holds several",
            ),
        ] {
            let ending = plan_of(line, &files).expect_err(line);
            assert_eq!(ending.code, 1);
            assert!(ending.stderr.starts_with(words), "{ending:?}");
        }
    }
}
