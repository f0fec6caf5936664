//! Answers that break their protocol, which the reference server gives on paths of `/malformed`:
//! what a client has to bear. Over HTTP/1.1 the connection is closed after most of them; over
//! the other protocols the server mostly goes on as if nothing had happened.

mod http1;
mod http2;
mod http3;
mod parts;
mod websocket;

use brunt_server::{RawAnswer, RawAnswers, RawBytes, RawEnding, RawPlace};

/// An answer, and the last part of its path.
#[derive(Debug)]
struct Case {
    name: &'static str,
    answer: RawAnswer,
}

impl Case {
    const fn new(name: &'static str, bytes: RawBytes, ending: RawEnding) -> Self {
        let place = RawPlace::Request;
        let answer = RawAnswer {
            bytes,
            place,
            ending,
        };
        Self { name, answer }
    }
}

/// These bytes, over any protocol.
fn fixed(bytes: &'static [u8]) -> RawBytes {
    written(move |out, _| out.extend_from_slice(bytes))
}

/// What `write` appends for a stream.
fn written(write: impl Fn(&mut Vec<u8>, u32) + Sync + 'static) -> RawBytes {
    RawBytes(Box::leak(Box::new(write)))
}

/// The names of the kinds over HTTP/1.1, HTTP/2, HTTP/3 and WebSocket.
pub fn names() -> [Vec<&'static str>; 4] {
    let names = |kinds: &[Case]| kinds.iter().map(|kind| kind.name).collect();
    [
        names(&http1::KINDS),
        names(&http2::KINDS),
        names(&http3::KINDS),
        names(&websocket::KINDS),
    ]
}

/// Has every reference server of this process give such answers.
pub fn install() {
    brunt_server::set_raw_answers(answers);
}

fn answers(path: &str) -> Option<RawAnswers> {
    let name = path.strip_prefix("/malformed/")?;
    let of = |kinds: &'static [Case]| {
        let kind = kinds.iter().find(|kind| kind.name == name);
        kind.map(|kind| &kind.answer)
    };
    let answers = RawAnswers {
        http1: of(&http1::KINDS),
        http2: of(&http2::KINDS).or(of(&http2::ODD)),
        http3: of(&http3::KINDS),
        websocket: of(&websocket::KINDS).or(of(&websocket::ODD)),
    };
    (answers != RawAnswers::default()).then_some(answers)
}
