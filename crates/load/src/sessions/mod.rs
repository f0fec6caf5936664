//! Sessions: requests of one user after the other on a connection, in bursts with pauses.

mod figures;
mod log;
mod replay;
mod source;
mod texts;

pub use figures::{INTERVAL_NS, Lifetimes, SessionFigures};
pub use log::{Burst, LoggedRequest, LoggedSession, SessionLineError, SessionLog, SessionLogError};
pub use replay::{Replay, SessionReplay};
pub use source::{CallOrder, LoggedSteps, SessionSource, UniformSessions, WorkingSet};
pub use texts::SessionTexts;
