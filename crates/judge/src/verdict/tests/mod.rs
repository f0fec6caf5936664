//! Every signal at every grade, every rule both ways, and runs that make no sense.

mod any_run;
mod bend;
mod failed;
mod rules;
mod signals;
