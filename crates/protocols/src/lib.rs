//! One description per protocol: what plan, negotiation, limits, invariants, verdict and report
//! need to know of it. A protocol is added by a file here, a line in the registry and its client.

mod description;
mod http1;
mod http2;
mod http3;
mod messages;
mod registry;
mod tcp;
mod websocket;

pub use description::{
    ByHand, ConnectionCost, Depth, DepthPlace, FailureFamily, Greeting, ProtocolDescription, Unit,
};
pub use registry::Protocol;
