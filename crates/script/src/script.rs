//! A script: loaded and set up before a run, asked for its last words after it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use brunt_load::{Interrupt, RequestGenerator};

use crate::error::ScriptError;
use crate::generator::{Callbacks, Generator, too_long};
use crate::lua::{
    Answer, Argument, Beside, Function, Interrupter, Requested, Settings, State, TEXT_BYTES_MAX,
};
use crate::shared::{Outcome, ScriptTarget, Shared};

/// The tool whose scripts they are, where wrk and wrk2 differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// wrk's.
    #[default]
    Wrk,
    /// wrk2's: `wrk.time_us` is there, `delay` is not called, statistics are those of a histogram.
    Wrk2,
}

/// What a script is loaded with.
#[derive(Clone, Debug)]
pub struct ScriptOptions {
    /// The file; messages name it as it is given here.
    pub path: PathBuf,
    /// What is in the file, where it is on another machine; else it is read.
    pub text: Option<Vec<u8>>,
    /// The target, as it was typed.
    pub target: ScriptTarget,
    /// Whether the target's name is looked up and its addresses tried, as wrk does: not where a
    /// Unix socket leads to it.
    pub is_resolved: bool,
    /// `wrk.method`, if not GET.
    pub method: Option<String>,
    /// `wrk.body`, if any.
    pub body: Option<Vec<u8>>,
    /// `wrk.headers`: names and values. Of several with one name the last counts.
    pub headers: Vec<(String, String)>,
    /// What `init` is given after the URL.
    pub arguments: Vec<String>,
    /// How many threads the script has: workers.
    pub workers: usize,
    /// wrk's or wrk2's.
    pub flavour: Flavour,
    /// Names of requests that are kept, at most, by worker.
    pub names_max: usize,
}

/// What is called of a script while it is loaded, for another thread that waits.
#[derive(Clone, Debug, Default)]
pub struct Called(Arc<AtomicU8>);

impl Called {
    const NAMES: [&str; 4] = [
        "what stands outside of its functions",
        "its function `setup`",
        "its function `init`",
        "the first call of its function `request`",
    ];

    /// In words.
    pub fn name(&self) -> &'static str {
        Self::NAMES[usize::from(self.0.load(Ordering::Relaxed)) % Self::NAMES.len()]
    }

    fn set(&self, number: u8) {
        self.0.store(number, Ordering::Relaxed);
    }
}

/// A script that is ready for a run: one Lua state for itself, and one for each worker.
#[derive(Debug)]
pub struct Script {
    main: State,
    shared: Arc<Shared>,
    callbacks: Callbacks,
    first_request: Vec<u8>,
    /// The constant text of each worker; empty where `request` makes the texts.
    constants: Vec<Vec<u8>>,
    has_done: bool,
    has_teardown: bool,
    names_max: usize,
}

impl Script {
    /// Loads a script and runs its `setup` and `init`, once per worker, on the calling thread and
    /// in wrk's order, while `called` tells which is called.
    ///
    /// # Errors
    ///
    /// The script cannot be loaded, one of its functions fails, or the target has no address that
    /// takes a connection.
    pub fn load(options: &ScriptOptions, called: &Called) -> Result<Self, ScriptError> {
        let shared = Arc::new(Shared::new(options.workers));
        let mut main = new_state(options, None, &shared)?;
        if options.is_resolved {
            resolve(&mut main, options, &shared)?;
        } else {
            set_up(&shared, main.call(Function::WithoutAddresses, &[]))?;
        }
        let mut script = Self {
            main,
            shared,
            callbacks: Callbacks::default(),
            first_request: Vec::new(),
            constants: Vec::new(),
            has_done: false,
            has_teardown: false,
            names_max: options.names_max,
        };
        for thread in 0..options.workers {
            script.set_up_thread(options, thread, called)?;
        }
        let has_done = script.main.is_function("done");
        script.has_done = set_up(&script.shared, has_done)?;
        Ok(script)
    }

    fn set_up_thread(
        &mut self,
        options: &ScriptOptions,
        thread: usize,
        called: &Called,
    ) -> Result<(), ScriptError> {
        called.set(0);
        let index = [Argument::Number(thread as f64)];
        let mut state = new_state(options, Some(thread), &self.shared)?;
        set_up(&self.shared, state.call(Function::SetThread, &index))?;
        // In its place while the main state may ask for it.
        let place = |shared: &Shared, state| {
            if let Some(mut place) = shared.state(thread) {
                *place = state;
            }
        };
        place(&self.shared, Some(state));
        called.set(1);
        set_up(&self.shared, self.main.call(Function::SetUp, &index))?;
        let state = self.shared.state(thread).and_then(|mut place| place.take());
        let mut state = state.ok_or(ScriptError::Stuck { worker: thread })?;

        let mut arguments = vec![Argument::Text(options.target.url.as_bytes())];
        let further = options.arguments.iter();
        arguments.extend(further.map(|argument| Argument::Text(argument.as_bytes())));
        called.set(2);
        set_up(&self.shared, state.call(Function::Init, &arguments))?;
        called.set(3);

        if thread == 0 {
            self.first_request = self.text_of(&mut state)?;
            let callbacks = callbacks(&mut state, options.flavour);
            self.callbacks = set_up(&self.shared, callbacks)?;
            let has_teardown = state.is_function("teardown");
            self.has_teardown = set_up(&self.shared, has_teardown)?;
        }
        let constant = if self.callbacks.has_request {
            Vec::new()
        } else {
            self.text_of(&mut state)?
        };
        self.constants.push(constant);
        place(&self.shared, Some(state));
        Ok(())
    }

    /// Calls `request` before the run.
    fn text_of(&self, state: &mut State) -> Result<Vec<u8>, ScriptError> {
        let mut text = Vec::new();
        let mut beside = Beside::default();
        set_up(&self.shared, state.begin())?;
        let requested = state.request(TEXT_BYTES_MAX, &mut text, 1, &mut beside);
        state.forget(1);
        match set_up(&self.shared, requested)? {
            Requested::TooLong(bytes) => Err(ScriptError::SetUp {
                message: too_long(bytes),
            }),
            Requested::New | Requested::Same | Requested::Nothing => Ok(text),
        }
    }

    /// What `request` of the first worker gave when it was asked before the run: the caller checks
    /// it. Its number of requests is that of each batch, where `request` does not change it.
    pub fn first_request(&self) -> &[u8] {
        &self.first_request
    }

    /// The text of every request, where no worker asks Lua for anything: the script has no
    /// `request`, `response` or `delay`, and its workers' texts do not differ.
    pub fn constant_request(&self) -> Option<&[u8]> {
        let callbacks = self.callbacks;
        if callbacks.has_request || callbacks.has_response || callbacks.has_delay {
            return None;
        }
        let (first, others) = self.constants.split_first()?;
        let first_lines = sorted_lines(first);
        let all_same = others
            .iter()
            .all(|other| other == first || sorted_lines(other) == first_lines);
        (all_same && !first.is_empty()).then_some(first)
    }

    /// Bytes that its states take, such as tables that it filled when it was loaded.
    pub fn held_bytes(&self) -> u64 {
        let threads = 0..self.shared.threads();
        let of_threads = threads.filter_map(|thread| {
            let place = self.shared.state(thread)?;
            place.as_ref().map(State::held_bytes)
        });
        of_threads.fold(self.main.held_bytes(), u64::saturating_add)
    }

    /// A function of the script that is called when the load is over, if there is one: `done`, or
    /// `teardown`.
    pub fn last_call(&self) -> Option<&'static str> {
        match (self.has_done, self.has_teardown) {
            (true, _) => Some("done"),
            (false, true) => Some("teardown"),
            (false, false) => None,
        }
    }

    /// One generator per worker, in their order. They are given back by dropping them.
    ///
    /// # Errors
    ///
    /// Some of the last ones were not dropped, or a state has no memory left.
    pub fn generators(&mut self) -> Result<Vec<Box<dyn RequestGenerator>>, ScriptError> {
        self.shared.start_all();
        let target_address = self.shared.notes().target;
        let mut generators: Vec<Box<dyn RequestGenerator>> = Vec::new();
        for worker in 0..self.shared.threads() {
            let state = self.shared.state(worker).and_then(|mut place| place.take());
            let mut state = state.ok_or(ScriptError::Stuck { worker })?;
            state.resume();
            set_up(&self.shared, state.begin())?;
            generators.push(Box::new(Generator::new(
                state,
                Arc::clone(&self.shared),
                worker,
                self.callbacks,
                self.constants.get(worker).cloned().unwrap_or_default(),
                target_address,
                self.names_max,
            )));
        }
        Ok(generators)
    }

    /// What ends a call of [`Self::teardown`] or [`Self::done`] from another thread. What was ended
    /// in one state does not keep the next call from being made.
    pub fn interrupter(&self) -> Arc<dyn Interrupt> {
        let workers = (0..self.shared.threads()).filter_map(|worker| {
            let place = self.shared.state(worker)?;
            place.as_ref().map(State::interrupter)
        });
        let main = self.main.interrupter();
        Arc::new(Interrupters(workers.chain([main]).collect()))
    }

    /// Calls `teardown` of each worker's state.
    ///
    /// # Errors
    ///
    /// One of them fails, or a worker has not come back: the others were called.
    pub fn teardown(&mut self) -> Result<(), ScriptError> {
        let mut result = Ok(());
        for worker in 0..self.shared.threads() {
            let mut place = self.shared.state(worker);
            let state = place.as_mut().and_then(|place| place.as_mut());
            let torn_down = match state {
                Some(state) => {
                    state.resume();
                    let called = state.call(Function::TearDown, &[]);
                    called.map_err(|message| ScriptError::Done { message })
                }
                None => Err(ScriptError::Stuck { worker }),
            };
            result = result.and(torn_down.map(|_| ()));
        }
        result
    }

    /// Calls `done` in the main state, where the script has it.
    ///
    /// # Errors
    ///
    /// As Lua words them.
    pub fn done(&mut self, outcome: Outcome) -> Result<(), ScriptError> {
        if !self.has_done {
            return Ok(());
        }
        let summary = outcome.summary.clone();
        self.shared.notes().outcome = Some(outcome);
        let arguments = [
            summary.duration_us,
            summary.requests,
            summary.bytes,
            summary.connect_errors,
            summary.read_errors,
            summary.write_errors,
            summary.status_errors,
            summary.timeouts,
        ];
        let arguments = arguments.map(|number| Argument::Number(number as f64));
        self.main.resume();
        let called = self.main.call(Function::Done, &arguments);
        called
            .map(|_| ())
            .map_err(|message| ScriptError::Done { message })
    }
}

/// The interrupters of all Lua states.
#[derive(Debug)]
struct Interrupters(Vec<Arc<Interrupter>>);

impl Interrupt for Interrupters {
    fn interrupt(&self) {
        for one in &self.0 {
            one.interrupt();
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // States know what they share, and it has them: without this they would keep each other.
        for thread in 0..self.shared.threads() {
            let state = self.shared.state(thread).and_then(|mut place| place.take());
            drop(state);
        }
    }
}

/// A state in which the script has been run.
fn new_state(
    options: &ScriptOptions,
    thread: Option<usize>,
    shared: &Arc<Shared>,
) -> Result<State, ScriptError> {
    let settings = Settings {
        target: &options.target,
        is_wrk2: options.flavour == Flavour::Wrk2,
        thread,
    };
    let mut state = State::new(&settings, Arc::clone(shared))?;
    for (name, value) in &options.headers {
        let header = [
            Argument::Text(name.as_bytes()),
            Argument::Text(value.as_bytes()),
        ];
        set_up(shared, state.call(Function::SetHeader, &header))?;
    }
    let method = options
        .method
        .as_ref()
        .map(|method| ("method", method.as_bytes()));
    let body = options.body.as_ref().map(|body| ("body", body.as_slice()));
    for (name, value) in method.into_iter().chain(body) {
        let field = [Argument::Text(name.as_bytes()), Argument::Text(value)];
        set_up(shared, state.call(Function::SetField, &field))?;
    }
    state.run_file(&options.path, options.text.as_deref())?;
    Ok(state)
}

fn resolve(main: &mut State, options: &ScriptOptions, shared: &Shared) -> Result<(), ScriptError> {
    let (host, service) = (options.target.host.as_str(), options.target.service());
    let both = [
        Argument::Text(host.as_bytes()),
        Argument::Text(service.as_bytes()),
    ];
    let left = set_up(shared, main.call(Function::Resolve, &both))?;
    let mut notes = shared.notes();
    // wrk tries its addresses from the last to the first: what took a connection last is the
    // target.
    notes.target = notes.connected;
    if left == Answer::Number(0.0) {
        let reason = notes.connect_error.take();
        return Err(ScriptError::Connect {
            host: host.to_owned(),
            service: service.to_owned(),
            reason: reason.unwrap_or_else(|| "there is no address".to_owned()),
        });
    }
    Ok(())
}

fn callbacks(state: &mut State, flavour: Flavour) -> Result<Callbacks, String> {
    Ok(Callbacks {
        has_request: state.is_function("request")?,
        has_response: state.is_function("response")?,
        has_delay: flavour == Flavour::Wrk && state.is_function("delay")?,
    })
}

/// Says of a failure before the run what it was, where something is known of it.
fn set_up<T>(shared: &Shared, called: Result<T, String>) -> Result<T, ScriptError> {
    let known = shared.notes().failure.take();
    called.map_err(|message| match known {
        Some(known) if known.to_string() == message => known,
        _ => ScriptError::SetUp { message },
    })
}

/// The lines of a request, in an order of their own: Lua's tables have none.
fn sorted_lines(request: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = request.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}
