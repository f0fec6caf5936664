//! Every signal at every grade, every rule both ways, and runs that make no sense.

mod any_run;
mod bend;
mod disturbed;
mod failed;
mod held;
mod rules;
mod rules_load;
mod rules_others;
mod rules_script;
mod sample;
mod signals;
mod signals_client;
mod signals_others;
mod streams;
