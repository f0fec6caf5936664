//! Why a request cannot be encoded in the protocol of the run.

use std::error::Error;

use brunt_load::Plan;

/// What only one protocol can fail at, as it says it.
pub type ProtocolError = Box<dyn Error + Send + Sync>;

/// Why a request cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The protocol cannot carry a request.
    #[error("{}{reason}", of_list(*.number))]
    Request {
        /// The number of the request in its list, from 1; absent where there is no list.
        number: Option<usize>,
        /// Why not.
        reason: ProtocolError,
    },
    /// The protocol cannot be spoken as the plan says.
    #[error(transparent)]
    Protocol(ProtocolError),
    /// All requests together have too many bytes.
    #[error("the requests of the list have more than 1 GiB in all; split it")]
    TooLarge,
}

impl EncodeError {
    /// The protocol cannot carry the request of `plan` that has this index.
    pub(super) fn request(plan: &Plan, index: usize, reason: impl Into<ProtocolError>) -> Self {
        Self::Request {
            number: (plan.requests.count() > 1).then_some(index + 1),
            reason: reason.into(),
        }
    }

    /// The protocol cannot be spoken as the plan says.
    pub(super) fn protocol(reason: impl Into<ProtocolError>) -> Self {
        Self::Protocol(reason.into())
    }
}

fn of_list(number: Option<usize>) -> String {
    number.map_or(String::new(), |number| {
        format!("request {number} of the list: ")
    })
}
