//! Scripts in Lua that make requests and look at responses: wrk's scripting API, and that of its
//! forks.
//!
//! A [`Script`] is loaded, set up and initialised before a run, with one Lua state for itself and
//! one for each worker. It hands out one [`brunt_load::RequestGenerator`] per worker. Dropping them
//! after the run gives the states back, so that the script's `done` can look at what its threads
//! counted.
//!
//! Open `generator` first: what makes the requests of a worker.

mod distribution;
mod error;
mod generator;
mod lua;
mod script;
mod shared;

pub use distribution::Distribution;
pub use error::ScriptError;
pub use lua::flush_script_output;
pub use script::{Called, Flavour, Script, ScriptOptions};
pub use shared::{Outcome, ScriptTarget, Summary};
