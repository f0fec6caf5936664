//! The requests of one worker, made by its script.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use brunt_load::{
    Batch, BatchOutcome, BatchTag, ConnectionNumber, GeneratorError, GeneratorResponse, Interrupt,
    RequestGenerator, ResponseParts,
};

use crate::lua::{Beside, Requested, ResponseArguments, State, TEXT_BYTES_MAX};
use crate::shared::Shared;

const NS_PER_MS: u64 = 1_000_000;

/// Which functions a script has: decided before the run, for all of its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Callbacks {
    pub(crate) has_request: bool,
    pub(crate) has_response: bool,
    pub(crate) has_delay: bool,
}

/// The requests of one worker. Gives the state back when it is dropped.
#[derive(Debug)]
pub(crate) struct Generator {
    /// The Lua state of the worker; there until the generator is dropped.
    state: Option<State>,
    shared: Arc<Shared>,
    thread: usize,
    callbacks: Callbacks,
    /// The text of each request, where there is no `request`.
    constant: Vec<u8>,
    is_constant_given: bool,
    /// Where connections go, if not to where all of them do.
    target_address: Option<SocketAddr>,
    wanted: ResponseParts,
    names: Names,
    tags: Tags,
    beside: Beside,
}

impl Generator {
    pub(crate) fn new(
        mut state: State,
        shared: Arc<Shared>,
        thread: usize,
        callbacks: Callbacks,
        constant: Vec<u8>,
        target_address: Option<SocketAddr>,
        names_max: usize,
    ) -> Self {
        let wanted = if callbacks.has_response {
            parts(state.response_arity())
        } else {
            ResponseParts::Nothing
        };
        Self {
            state: Some(state),
            shared,
            thread,
            callbacks,
            constant,
            is_constant_given: false,
            target_address,
            wanted,
            names: Names::new(names_max),
            tags: Tags::default(),
            beside: Beside::default(),
        }
    }

    fn state(&mut self) -> Result<&mut State, GeneratorError> {
        self.state.as_mut().ok_or_else(is_over)
    }

    /// The script has set `response` to another function.
    #[cold]
    fn look_at_response(&mut self) {
        if self.callbacks.has_response
            && let Some(state) = self.state.as_mut()
        {
            self.wanted = parts(state.response_arity());
        }
    }
}

impl RequestGenerator for Generator {
    fn delays(&self) -> bool {
        self.callbacks.has_delay
    }

    fn delay_ns(&mut self, _connection: ConnectionNumber) -> Result<u64, GeneratorError> {
        let (delay, is_response_new) = self.state()?.delay().map_err(error)?;
        if is_response_new {
            self.look_at_response();
        }
        // Whole milliseconds, as in wrk.
        Ok((delay as u64).saturating_mul(NS_PER_MS))
    }

    fn next(
        &mut self,
        _connection: ConnectionNumber,
        text: &mut Vec<u8>,
    ) -> Result<Batch, GeneratorError> {
        if !self.callbacks.has_request {
            let (tag, name) = (BatchTag::default(), None);
            if self.constant.is_empty() {
                return Ok(Batch::Nothing);
            }
            if self.is_constant_given {
                return Ok(Batch::Same { tag, name });
            }
            self.is_constant_given = true;
            text.extend_from_slice(&self.constant);
            return Ok(Batch::New { tag, name });
        }
        let tag = self.tags.next();
        let beside = &mut self.beside;
        let Some(state) = &mut self.state else {
            return Err(is_over());
        };
        let requested = state.request(TEXT_BYTES_MAX, text, tag, beside);
        let requested = requested.map_err(error)?;
        if beside.is_response_new {
            self.look_at_response();
        }
        let (tag, name) = if self.beside.is_there && requested != Requested::Nothing {
            self.tags.take(tag);
            (BatchTag(tag), self.names.place(&self.beside.name))
        } else {
            (BatchTag::default(), None)
        };
        match requested {
            Requested::Nothing => Ok(Batch::Nothing),
            Requested::Same => Ok(Batch::Same { tag, name }),
            Requested::New => Ok(Batch::New { tag, name }),
            Requested::TooLong(bytes) => Err(error(too_long(bytes))),
        }
    }

    fn wanted(&self) -> ResponseParts {
        self.wanted
    }

    fn response(&mut self, response: &GeneratorResponse<'_>) -> Result<(), GeneratorError> {
        let arguments = ResponseArguments {
            status: response.status,
            is_status_all: self.wanted <= ResponseParts::Status,
            headers: response.headers,
            body: response.body,
            tag: response.tag.0,
        };
        if self.state()?.response(&arguments).map_err(error)? {
            self.look_at_response();
        }
        Ok(())
    }

    fn ended(&mut self, _connection: ConnectionNumber, tag: BatchTag, _outcome: BatchOutcome) {
        if tag != BatchTag::default()
            && self.tags.free(tag.0)
            && let Some(state) = self.state.as_mut()
        {
            state.forget(tag.0);
        }
    }

    fn is_stopped(&self) -> bool {
        self.shared.is_stopped(self.thread)
    }

    fn address(&self) -> Option<SocketAddr> {
        let id = self.shared.thread_address(self.thread)?;
        let address = self.shared.address(id)?;
        (self.target_address != Some(address)).then_some(address)
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        let state = self.state.as_ref()?;
        Some(state.interrupter())
    }

    fn names(&self) -> &[String] {
        &self.names.list
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        if let Some(mut place) = self.shared.state(self.thread) {
            *place = self.state.take();
        }
    }
}

#[cold]
fn is_over() -> GeneratorError {
    GeneratorError {
        message: "the script is over".to_owned(),
    }
}

fn error(message: String) -> GeneratorError {
    GeneratorError { message }
}

/// Why a text of `request` is not sent.
pub(crate) fn too_long(bytes: usize) -> String {
    format!("request() gave a text of {bytes} bytes; at most {TEXT_BYTES_MAX} are sent at once")
}

/// What a function with so many parameters can see of a response.
fn parts(arity: u32) -> ResponseParts {
    match arity {
        0 | 1 => ResponseParts::Status,
        2 => ResponseParts::Headers,
        _ => ResponseParts::Body,
    }
}

/// Which tags are free. 0 is none.
#[derive(Debug, Default)]
struct Tags {
    free: Vec<u32>,
    is_used: Vec<bool>,
}

impl Tags {
    /// A tag that is free.
    fn next(&self) -> u32 {
        self.free
            .last()
            .copied()
            .unwrap_or(self.is_used.len() as u32 + 1)
    }

    /// The one that is `next` is in use.
    fn take(&mut self, tag: u32) {
        let place = tag as usize - 1;
        if place == self.is_used.len() {
            self.is_used.push(true);
        } else {
            self.free.pop();
            self.is_used[place] = true;
        }
    }

    /// A tag is free again; false where it was.
    fn free(&mut self, tag: u32) -> bool {
        let is_used = (tag as usize).checked_sub(1);
        let is_used = is_used.and_then(|place| self.is_used.get_mut(place));
        let was_used = is_used.is_some_and(std::mem::take);
        if was_used {
            self.free.push(tag);
        }
        was_used
    }
}

/// Longer names are no names: they are texts.
const NAME_BYTES_MAX: usize = 256;

/// Names in the order in which they came up.
#[derive(Debug)]
struct Names {
    /// Most names that are kept; requests with others have none.
    most: usize,
    list: Vec<String>,
    places: HashMap<Vec<u8>, u32>,
}

impl Names {
    fn new(most: usize) -> Self {
        Self {
            most,
            list: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// The place of a name, which may be new; absent where there is no room for it.
    fn place(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        if name.is_empty() || name.len() > NAME_BYTES_MAX || self.list.len() >= self.most {
            return None;
        }
        let place = u32::try_from(self.list.len()).ok()?;
        self.places.insert(name.to_owned(), place);
        self.list.push(String::from_utf8_lossy(name).into_owned());
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_used_again() {
        let mut tags = Tags::default();
        for expected in 1..=3 {
            assert_eq!(tags.next(), expected);
            tags.take(expected);
        }
        assert!(tags.free(2));
        assert!(!tags.free(2));
        assert!(!tags.free(9));
        assert_eq!(tags.next(), 2);
        tags.take(2);
        assert_eq!(tags.next(), 4);
    }

    #[test]
    fn a_name_keeps_its_place() {
        let mut names = Names::new(1_000);
        assert_eq!(names.place(b"login"), Some(0));
        assert_eq!(names.place(b"cart"), Some(1));
        assert_eq!(names.place(b"login"), Some(0));
        assert_eq!(names.list, ["login", "cart"]);
    }

    #[test]
    fn names_are_bounded() {
        let mut names = Names::new(1_000);
        for i in 0..1_005 {
            let _ = names.place(format!("n{i}").as_bytes());
        }
        assert_eq!(names.list.len(), 1_000);
        assert_eq!(names.place(b"one more"), None);
        assert_eq!(names.place(b"n7"), Some(7));
        assert_eq!(Names::new(1_000).place(&[b'x'; NAME_BYTES_MAX + 1]), None);
    }
}
