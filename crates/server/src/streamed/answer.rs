//! What a stream sends as an answer.

use super::body::{Body, Finish, Source};
use super::says::Says;
use crate::answer::{Answer, counters_text};
use crate::counters::Shared;
use crate::http1::stream::After;
use crate::raw::RawAnswer;
use crate::route::Method;

/// A head, and what follows it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) says: Says,
    /// Absent: the head ends the stream.
    pub(crate) body: Option<Body>,
    /// Whether it is counted as a reply.
    pub(crate) is_reply: bool,
    /// Whether its bytes are counted as sent.
    pub(crate) is_counted: bool,
}

/// What a stream sends.
#[derive(Debug)]
pub(crate) enum Streamed {
    /// The null answer.
    Null,
    /// The null answer, which is sent at once and does not wait for answers behind it.
    NullAlone,
    /// The null answer, at an instant.
    NullAt {
        at_ns: u64,
    },
    /// The null answer, behind so many interim replies.
    Interim(u16),
    /// The null answer, as the last one on its connection.
    Last,
    Reply(Reply),
    /// Nothing, until the client gives it up.
    Silence,
    /// A reset with this code.
    Reset(u32),
    /// Nothing: the connection takes no more requests, nor this one, for this code.
    GoAway(u32),
    Raw(&'static RawAnswer),
    /// Nothing: the connection ends.
    End(After),
}

impl Streamed {
    /// What carries an answer to a request with this method. What was sent before is in the
    /// counters already.
    pub(crate) fn of(answer: Answer, method: Method, shared: &Shared) -> Self {
        let is_head = method == Method::Head;
        match answer {
            Answer::Null => Self::Null,
            Answer::NullAlone => Self::NullAlone,
            Answer::NullAt { at_ns } => Self::NullAt { at_ns },
            Answer::Interim(count) => Self::Interim(count),
            Answer::Last => Self::Last,
            Answer::Status(status @ (204 | 304)) => reply(status, Says::Nothing, None),
            Answer::Status(status) => reply(status, Says::Length(0), None),
            Answer::RetryLater(status) => reply(status, Says::RetryLater, None),
            Answer::Text(status, text) => {
                let length = Says::Length(text.len() as u64);
                let source = (!is_head).then(|| Source::text(text));
                reply(status, length, source)
            }
            Answer::Counters => {
                let text = counters_text(shared);
                Self::Reply(Reply {
                    status: 200,
                    says: Says::Length(text.len() as u64),
                    body: (!is_head).then(|| Body {
                        source: Source::text(text),
                        finish: Finish::End,
                        is_counted: false,
                    }),
                    is_reply: false,
                    is_counted: false,
                })
            }
            Answer::Sized(bytes) => {
                let source = (!is_head && bytes > 0).then(|| Source::pattern(bytes));
                reply(200, Says::Length(bytes), source)
            }
            Answer::Chunked(bytes) => Self::Reply(Reply {
                status: 200,
                says: Says::Trailer,
                body: (!is_head).then(|| Body {
                    source: Source::pattern(bytes),
                    finish: Finish::Trailers(bytes),
                    is_counted: true,
                }),
                is_reply: true,
                is_counted: true,
            }),
            Answer::Truncated(promised) => Self::Reply(Reply {
                status: 200,
                says: Says::Length(promised),
                body: Some(Body {
                    source: Source::pattern(if is_head { 0 } else { promised / 2 }),
                    finish: Finish::Reset,
                    is_counted: true,
                }),
                is_reply: false,
                is_counted: true,
            }),
            Answer::Silence => Self::Silence,
            Answer::ResetStream(code) => Self::Reset(code),
            Answer::GoAway(code) => Self::GoAway(code),
            Answer::Raw(answer) => Self::Raw(answer),
            // Replies of HTTP/1.0 are not among the answers of these protocols; nothing comes near.
            Answer::Cut | Answer::Http10 | Answer::Http10KeepAlive => Self::End(After::Close),
            Answer::Reset => Self::End(After::Reset),
        }
    }
}

/// A reply that is counted, with a body that ends its stream.
fn reply(status: u16, says: Says, source: Option<Source>) -> Streamed {
    Streamed::Reply(Reply {
        status,
        says,
        body: source.map(|source| Body {
            source,
            finish: Finish::End,
            is_counted: true,
        }),
        is_reply: true,
        is_counted: true,
    })
}
