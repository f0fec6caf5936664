//! Rounds of load: workers over a backend, the course of a round, and what all of it counted as one
//! run.
//!
//! Open `run` first: a plan is prepared (`prepare`), its rounds are made (`session`), and what the
//! workers counted becomes a run. What one of them does is in `worker`.
//!
//! ```
//! use brunt_engine::{Phase, Progress, prepare};
//! use brunt_judge::{ResponseQuantiles, RunFigures};
//! use brunt_load::{Plan, RequestSet, RequestSpec, Stop, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let address = brunt_server::ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
//! # let server = brunt_server::start(&brunt_server::ServeOptions::new(address))?;
//! # let url = format!("http://{}/", server.address());
//! # /*
//! let url = "http://127.0.0.1:8080/";
//! # */
//! let target = Target::parse(&url, None)?;
//! let requests = RequestSet::one(RequestSpec::get(&target.path));
//! let mut plan = Plan::new(target, requests);
//! plan.load.warmup_ns = 0;
//! plan.load.stop = Stop { duration_ns: None, requests: Some(1_000) };
//!
//! let prepared = prepare(plan)?;
//! let control = prepared.control();
//! let observer = &mut |_: Phase, progress: &Progress| eprintln!("{progress:?}");
//! let run = prepared.run(&control, false, observer)?;
//!
//! let successes = run.summary().window.replies.successes();
//! println!("{successes} responses, {:?}", run.response_quantile(0.99));
//! # assert_eq!(successes, 1_000);
//! # server.stop()?;
//! # Ok(())
//! # }
//! ```

mod backlog;
mod connection;
mod failure;
mod generated;
mod limits;
mod negotiate;
mod observer;
mod placement;
mod prepare;
mod probes;
mod protocol;
mod run;
mod session;
mod simulate;
mod task;
mod worker;
mod workload;

pub use failure::RunError;
pub use limits::{port_hold_s, ports_per_address, raise_descriptor_limit};
pub use negotiate::NegotiateError;
pub use observer::{Control, Phase, Progress, RunObserver, Snapshot};
pub use prepare::{
    PrepareError, Prepared, prepare, prepare_part, prepare_simulated, prepare_simulated_part,
};
pub use protocol::EncodeError;
pub use run::{LoadError, Origin, complete, run};
pub use session::{Rounds, Session};
pub use simulate::Machine;
