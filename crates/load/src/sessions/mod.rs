//! Sessions: requests of one user after the other on a connection, in bursts with pauses.

mod log;
mod replay;
mod source;

pub use log::{Burst, LoggedRequest, LoggedSession, SessionLog, SessionLogError, SessionTexts};
pub use replay::{Replay, SessionReplay};
pub use source::{
    CallOrder, INTERVAL_NS, Lifetimes, LoggedSteps, SessionFigures, SessionSource, UniformSessions,
    WorkingSet,
};
