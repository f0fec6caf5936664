//! What a call of a script's functions costs: `cargo run --release -p brunt-script --example
//! call_cost`. The best of several turns, in nanoseconds per call, without any network.
#![expect(
    clippy::disallowed_methods,
    reason = "a measurement beside the product reads the clock itself"
)]

use std::error::Error;
use std::time::Instant;

use brunt_load::{Batch, BatchOutcome, ConnectionNumber, GeneratorResponse, RequestGenerator};
use brunt_script::{Called, Flavour, Script, ScriptOptions, ScriptTarget};

const CALLS: u32 = 200_000;
const TURNS: u32 = 7;

const HEADERS: [(&[u8], &[u8]); 6] = [
    (b"Server", b"nginx/1.26.3"),
    (b"Date", b"Sun, 22 Nov 2026 12:00:00 GMT"),
    (b"Content-Type", b"text/html"),
    (b"Content-Length", b"14"),
    (b"Last-Modified", b"Sat, 21 Nov 2026 12:00:00 GMT"),
    (b"Connection", b"keep-alive"),
];

/// What a case calls.
#[derive(Clone, Copy)]
enum Calls {
    Requests,
    Responses(&'static [u8]),
    Delays,
}

const CASES: [(&str, &str, Calls); 11] = [
    ("no request", "", Calls::Requests),
    (
        "the same text each time",
        "local t = wrk.format() function request() return t end",
        Calls::Requests,
    ),
    (
        "one of 1,000 texts",
        "local t = {} for i = 0, 999 do t[i] = wrk.format(nil, '/' .. i) end \
         function request() return t[math.random(0, 999)] end",
        Calls::Requests,
    ),
    (
        "wrk.format, a counter, two header fields",
        "wrk.headers['X-A'] = '1' local n = 0 function request() n = n + 1 \
         return wrk.format(nil, '/' .. n) end",
        Calls::Requests,
    ),
    (
        "wrk.format with a new table and a body",
        "local n = 0 function request() n = n + 1 return wrk.format('POST', '/', \
         {['Content-Type'] = 'text/plain', ['X-N'] = n}, 'a=' .. n) end",
        Calls::Requests,
    ),
    (
        "the same text, with a name",
        "local t = wrk.format() function request() return t, 'name' end",
        Calls::Requests,
    ),
    (
        "response()",
        "function response() end",
        Calls::Responses(b""),
    ),
    (
        "response(status)",
        "function response(s) if s ~= 200 then n = 1 end end",
        Calls::Responses(b""),
    ),
    (
        "response(status, headers), 6 of them",
        "function response(s, h) n = h.Date end",
        Calls::Responses(b""),
    ),
    (
        "response(status, headers, body), 14 B",
        "function response(s, h, b) n = #b end",
        Calls::Responses(b"fourteen bytes"),
    ),
    ("delay()", "function delay() return 0 end", Calls::Delays),
];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("call_cost.{}.lua", std::process::id()));
    for (name, source, calls) in CASES {
        std::fs::write(&path, source)?;
        let options = ScriptOptions {
            path: path.clone(),
            text: None,
            target: ScriptTarget::from_url("http://127.0.0.1:8080/path").ok_or("a URL")?,
            is_resolved: false,
            method: None,
            body: None,
            headers: Vec::new(),
            arguments: Vec::new(),
            workers: 1,
            flavour: Flavour::Wrk,
            names_max: 1_000,
        };
        let mut script = Script::load(&options, &Called::default())?;
        let mut generators = script.generators()?;
        let generator = generators.first_mut().ok_or("one generator")?;
        let mut best_ns = f64::INFINITY;
        let mut text = Vec::new();
        for _ in 0..TURNS {
            let begin = Instant::now();
            for _ in 0..CALLS {
                text.clear();
                call(generator.as_mut(), calls, &mut text)?;
            }
            let ns = begin.elapsed().as_nanos() as f64 / f64::from(CALLS);
            best_ns = best_ns.min(ns);
        }
        println!("{best_ns:7.0} ns  {name}");
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

fn call(
    generator: &mut dyn RequestGenerator,
    calls: Calls,
    text: &mut Vec<u8>,
) -> Result<(), Box<dyn Error>> {
    let connection = ConnectionNumber(0);
    match calls {
        Calls::Requests => {
            let batch = generator.next(connection, text)?;
            if let Batch::New { tag, .. } | Batch::Same { tag, .. } = batch {
                generator.ended(connection, tag, BatchOutcome::Answered);
            }
        }
        Calls::Responses(body) => generator.response(&GeneratorResponse {
            status: 200,
            headers: match generator.wanted() {
                brunt_load::ResponseParts::Status => &[],
                _ => &HEADERS,
            },
            body,
            ..GeneratorResponse::default()
        })?,
        Calls::Delays => {
            generator.delay_ns(connection)?;
        }
    }
    Ok(())
}
