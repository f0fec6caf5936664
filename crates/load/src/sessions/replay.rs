//! Replaying sessions: a generator that gives each of them a connection of its own.

use std::sync::{Arc, Mutex, PoisonError};

use super::source::Ended;
use super::{SessionFigures, SessionSource, SessionTexts};
use crate::{
    Batch, BatchOutcome, BatchTag, ConnectionNumber, GeneratorError, GeneratorResponse,
    RequestFailure, RequestGenerator, ResponseParts, SessionCounts,
};

/// How sessions are replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// How many there are, all workers together; absent: without end.
    pub sessions: Option<u64>,
    /// Whether a session whose connection is lost goes on with another one.
    pub reconnects: bool,
    /// Connections of a session, at most; absent: as many as it takes.
    pub connections_max: Option<u32>,
    /// A reply with this status fails its session.
    pub failure_status: Option<u16>,
    /// Whether what was answered so is sent again instead.
    pub retries: bool,
    /// Whether the latest cookie that a session was given is sent with its further requests.
    pub cookies: bool,
}

/// The sessions of one worker. Each begins when a connection is being opened for it, which is
/// closed at its end.
#[derive(Debug)]
pub struct SessionReplay {
    source: Box<dyn SessionSource>,
    texts: Arc<SessionTexts>,
    replay: Replay,
    /// The number of the session that begins next, and of how many each begins one here.
    next: u64,
    workers: u64,
    connections: Vec<Option<Session>>,
    /// Sessions that go on.
    running: u64,
    /// All requests of the source were sent.
    is_exhausted: bool,
    /// The request that was sent last, where it was one alone and without a cookie.
    latest: Option<u32>,
    figures: SessionFigures,
    place: Arc<Mutex<SessionFigures>>,
}

/// A session that goes on.
#[derive(Debug, Default)]
struct Session {
    number: u64,
    /// The step that is sent, or is next.
    step: u32,
    /// Requests of the step that have no reply; empty before it is sent.
    unanswered: Vec<u32>,
    /// How many of them have one since.
    answered: usize,
    /// Requests that are to be sent again.
    again: Vec<u32>,
    cookie: Option<Vec<u8>>,
    /// The pause before the step was asked for.
    is_paused: bool,
    /// The session has no further steps.
    is_over: bool,
    is_failed: bool,
    /// When the opening of the session's first connection began; absent before its first reply.
    from_ns: Option<u64>,
    /// When the opening of the last reply's connection began, and when that reply came.
    opening_ns: u64,
    to_ns: u64,
    connections: u32,
    /// Replies on the present connection, and in all.
    replies_here: u32,
    replies: u32,
}

impl SessionReplay {
    /// The sessions of worker number `worker` of `workers`, and where it leaves what became of
    /// them when it is dropped. Sessions are numbered from 0, and workers take them in turns.
    pub fn new(
        source: Box<dyn SessionSource>,
        texts: Arc<SessionTexts>,
        replay: Replay,
        worker: u32,
        workers: u32,
    ) -> (Self, Arc<Mutex<SessionFigures>>) {
        let place = Arc::default();
        let replay = Self {
            source,
            texts,
            replay,
            next: worker.into(),
            workers: workers.max(1).into(),
            connections: Vec::new(),
            running: 0,
            is_exhausted: false,
            latest: None,
            figures: SessionFigures::default(),
            place: Arc::clone(&place),
        };
        (replay, place)
    }

    /// The session of the connection is over.
    fn end(&mut self, connection: ConnectionNumber) {
        let place = self.connections.get_mut(connection.0 as usize);
        let Some(session) = place.and_then(Option::take) else {
            return;
        };
        self.running -= 1;
        if session.replies_here > 0 {
            self.figures
                .lived(session.to_ns.saturating_sub(session.opening_ns));
        }
        self.figures.ended(Ended {
            is_complete: session.is_over && !session.is_failed,
            from_ns: session.from_ns.unwrap_or(session.to_ns),
            to_ns: session.to_ns,
            connections: session.connections,
            replies: session.replies,
        });
    }

    /// Appends what the session of the connection sends now, if anything.
    fn write(&mut self, connection: ConnectionNumber, text: &mut Vec<u8>) -> Option<Batch> {
        let session = session_of(&mut self.connections, connection)?;
        if session.is_over || session.is_failed {
            return None;
        }
        if session.unanswered.is_empty() {
            let Session { number, step, .. } = *session;
            self.source.requests(number, step, &mut session.unanswered);
        }
        session.answered = 0;
        let Some((&first, others)) = session.unanswered.split_first() else {
            self.is_exhausted = true;
            session.is_over = session.replies > 0;
            return None;
        };
        let (tag, name) = (BatchTag(connection.0), Some(self.texts.name_of(first)));
        if others.is_empty() && session.cookie.is_none() {
            if self.latest.replace(first) == Some(first) {
                return Some(Batch::Same { tag, name });
            }
        } else {
            self.latest = None;
        }
        let field = session.cookie.as_deref().unwrap_or_default();
        for &number in &session.unanswered {
            self.texts.append(number, field, text);
        }
        Some(Batch::New { tag, name })
    }
}

impl Drop for SessionReplay {
    fn drop(&mut self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        *place = std::mem::take(&mut self.figures);
    }
}

impl RequestGenerator for SessionReplay {
    fn begin(&mut self, connections: u32) {
        // What a round before has left open goes on.
        self.connections.resize_with(connections as usize, || None);
    }

    fn opening(&mut self, connection: ConnectionNumber) {
        if session_of(&mut self.connections, connection).is_some() || self.begins_no_more() {
            return;
        }
        let session = Session {
            number: self.next,
            ..Session::default()
        };
        self.next += self.workers;
        self.running += 1;
        self.figures.counts.begun += 1;
        if let Some(place) = self.connections.get_mut(connection.0 as usize) {
            *place = Some(session);
        }
    }

    fn unopened(&mut self, connection: ConnectionNumber) {
        self.end(connection);
    }

    fn opened(&mut self, connection: ConnectionNumber) {
        let Some(session) = session_of(&mut self.connections, connection) else {
            return;
        };
        session.connections += 1;
        session.replies_here = 0;
        let is_further = session.connections > 1;
        self.figures.counts.reconnected += u64::from(is_further);
    }

    fn closed(&mut self, connection: ConnectionNumber) {
        if !self.goes_on(connection) {
            self.end(connection);
            return;
        }
        if let Some(session) = session_of(&mut self.connections, connection) {
            let lived_ns = session.to_ns.saturating_sub(session.opening_ns);
            session.replies_here = 0;
            self.figures.lived(lived_ns);
        }
    }

    fn goes_on(&self, connection: ConnectionNumber) -> bool {
        let session = self.connections.get(connection.0 as usize);
        let Some(session) = session.and_then(Option::as_ref) else {
            return false;
        };
        let replay = &self.replay;
        let is_within = |most| session.connections < most;
        // A server that takes connections and answers nothing would be asked for ever.
        replay.reconnects
            && !(session.is_over || session.is_failed)
            && session.replies_here > 0
            && replay.connections_max.is_none_or(is_within)
    }

    fn begins_no_more(&self) -> bool {
        self.is_exhausted || self.replay.sessions.is_some_and(|all| self.next >= all)
    }

    fn delays(&self) -> bool {
        true
    }

    fn delay_ns(&mut self, connection: ConnectionNumber) -> Result<u64, GeneratorError> {
        let Some(session) = session_of(&mut self.connections, connection) else {
            return Ok(0);
        };
        let is_due = !session.is_failed && session.unanswered.is_empty();
        // What was waited for on a connection that is lost since is not waited for again.
        if !is_due || std::mem::replace(&mut session.is_paused, true) {
            return Ok(0);
        }
        let pause_ns = self.source.pause_ns(session.number, session.step);
        Ok(pause_ns.unwrap_or(0))
    }

    fn next(
        &mut self,
        connection: ConnectionNumber,
        text: &mut Vec<u8>,
    ) -> Result<Batch, GeneratorError> {
        if let Some(batch) = self.write(connection, text) {
            return Ok(batch);
        }
        self.end(connection);
        Ok(if self.begins_no_more() {
            Batch::Nothing
        } else {
            Batch::Close
        })
    }

    fn names_in(&self, tag: BatchTag, names: &mut Vec<u32>) {
        let session = self.connections.get(tag.0 as usize);
        if let Some(session) = session.and_then(Option::as_ref) {
            let numbers = session.unanswered.iter();
            names.extend(numbers.map(|&number| self.texts.name_of(number)));
        }
    }

    fn wanted(&self) -> ResponseParts {
        if self.replay.cookies {
            ResponseParts::Headers
        } else {
            ResponseParts::Status
        }
    }

    fn response(&mut self, response: &GeneratorResponse<'_>) -> Result<(), GeneratorError> {
        let replay = self.replay;
        let Some(session) = session_of(&mut self.connections, response.connection) else {
            return Ok(());
        };
        let times = response.times;
        session.from_ns.get_or_insert(times.opening_ns);
        session.opening_ns = times.opening_ns;
        session.to_ns = times.done_ns;
        session.replies += 1;
        session.replies_here += 1;
        if replay.failure_status == Some(response.status) {
            match session.unanswered.get(session.answered) {
                Some(&number) if replay.retries => session.again.push(number),
                _ => session.is_failed = true,
            }
        }
        session.answered += 1;
        if replay.cookies {
            for (name, value) in response.headers {
                if name.eq_ignore_ascii_case(b"set-cookie") {
                    session.cookie = Some(cookie_field(value));
                }
            }
        }
        self.figures.replied(times);
        Ok(())
    }

    fn ended(&mut self, connection: ConnectionNumber, _tag: BatchTag, outcome: BatchOutcome) {
        let Some(session) = session_of(&mut self.connections, connection) else {
            return;
        };
        let answered = session.answered.min(session.unanswered.len());
        session.unanswered.drain(..answered);
        session.answered = 0;
        session.unanswered.append(&mut session.again);
        match outcome {
            BatchOutcome::Answered
            | BatchOutcome::Failed(RequestFailure::NotSent | RequestFailure::ConnectionLost) => {}
            BatchOutcome::Failed(_) => session.is_failed = true,
        }
        if session.unanswered.is_empty() {
            session.step += 1;
            session.is_paused = false;
            let pause_ns = self.source.pause_ns(session.number, session.step);
            session.is_over = pause_ns.is_none();
        }
    }

    fn is_stopped(&self) -> bool {
        self.running == 0 && self.begins_no_more()
    }

    fn names(&self) -> &[String] {
        self.texts.names()
    }

    fn sessions(&self) -> Option<SessionCounts> {
        Some(self.figures.counts)
    }
}

/// The session of a connection.
fn session_of(all: &mut [Option<Session>], connection: ConnectionNumber) -> Option<&mut Session> {
    all.get_mut(connection.0 as usize)?.as_mut()
}

/// The line that gives a cookie back: its name and value, without its attributes.
fn cookie_field(value: &[u8]) -> Vec<u8> {
    let pair = value.split(|&byte| byte == b';').next().unwrap_or_default();
    [b"Cookie: ", pair.trim_ascii(), b"\r\n"].concat()
}
