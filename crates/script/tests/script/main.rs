//! Scripts from outside: what they find, what they are called with, and what is made of what they
//! give. Nothing is sent.
#![expect(
    clippy::disallowed_methods,
    reason = "what interrupts a script runs beside it"
)]

mod documentation;
mod environment;
mod errors;
mod exchange;
mod last_words;
mod modules;
mod requests;
mod responses;
mod support;
