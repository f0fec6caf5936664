//! What to send and when: the plan of a run, its target, the arrival processes, and how the load is
//! split over workers. Pure: no clock, no socket, no thread.
//!
//! Open `plan` first: the parts of a [`Plan`]. When requests are due is in `arrivals`, what is sent
//! in `request_set` and `protocol_spec`, and what is said of each protocol in `protocol`.

mod amounts;
mod arrivals;
mod generator;
mod http;
mod messages;
mod plan;
pub mod protocol;
mod protocol_spec;
pub mod request_list;
mod request_set;
mod request_spec;
mod request_table;
mod request_text;
mod secret;
pub mod sessions;
pub mod stored_bytes;
mod streams;
mod target;
mod think_time;
mod tls;
pub mod units;
mod websocket;
mod withheld;

pub use amounts::{Amounts, Part, StageRates, share, share_u64};
pub use arrivals::{ArrivalProcess, Arrivals, Schedule, ScheduleError, Stage};
pub use brunt_proto::http1::{RawRequestsError, RequestTextError};
pub use brunt_proto::http2::ClientSettings;
pub use brunt_proto::messages::{Framing, Template};
pub use generator::{
    Batch, BatchOutcome, BatchTag, ConnectionNumber, GeneratorError, GeneratorResponse, Interrupt,
    RequestFailure, RequestGenerator, ResponseParts, ResponseTimes, SessionCounts,
};
pub use http::HttpChoice;
pub use messages::{MessageExchange, MessageSpec, OpeningMessage};
pub use plan::{
    BackendChoice, ConnectionSpec, Load, LoadModel, Observation, Placement, Plan, Reuse,
    ServerCounter, SocketOptions, Spin, Stamps, Stop, TimeLimits, Traffic, Watch, Work, Workers,
};
pub use protocol_spec::{Exchange, ProtocolSpec, Term};
pub use request_set::{
    ListOutline, RequestId, RequestOrder, RequestOutline, RequestSet, RequestSource,
    RequestsOutline, message_name,
};
pub use request_spec::{RequestRef, RequestSpec};
pub use request_table::{RequestTable, RequestTableBuilder, TableFull};
pub use request_text::{kind_of_text, raw_requests, verbatim_requests};
pub use secret::{PlanFile, Secret};
pub use streams::Streams;
use target::HIDDEN_QUERY;
pub use target::{HIDDEN, Scheme, Target, TargetError, redact_field, redact_queries};
pub use think_time::{ThinkSpread, ThinkTime, ThinkTimes};
pub use tls::{ClientIdentity, TlsSpec, TlsVersion};
pub use websocket::{ReplyMatch, WebSocketExchange, WebSocketOpening};
pub use withheld::{Withheld, WithheldParts};
