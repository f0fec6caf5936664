//! The engine as a whole: the same cases on every backend, and properties of simulated runs.
#![expect(clippy::disallowed_methods, reason = "peers of a test run beside it")]

mod bandwidth;
mod common;
mod connects;
mod counts;
mod early_replies;
mod failures;
mod floods;
mod generated;
mod generated_connections;
mod held;
mod library;
mod makers;
mod open_loop;
mod parts;
mod phases;
mod protocols;
mod refused;
mod replays;
mod rounds;
mod set_up;
mod simulation;
mod texts;
mod tls_ends;
