//! One description per protocol: what plan, negotiation, limits, invariants, verdict and report
//! need to know of it. A protocol is added by a file behind the registry, which
//! names it.

mod description;
mod registry;

pub use description::{
    ByHand, ConnectionCost, Depth, DepthPlace, FailureFamily, Greeting, ProtocolDescription,
    Transport, Unit, Window,
};
pub use registry::Protocol;
