//! The parts that a plan may lack, in words that say what to put back.

use std::fmt;

use thiserror::Error;

/// A part that was left out of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Withheld {
    /// The requests or messages.
    #[error("{} (`Plan::requests`)", requests_in_words(first, header_names, *body_bytes))]
    Requests {
        /// What the first one is called.
        first: String,
        /// Names of its header fields.
        header_names: Vec<String>,
        /// Length of its body, bytes.
        body_bytes: u64,
    },
    /// The query of a target.
    #[error("the query of {url} (`Target::path`)")]
    Query {
        /// The URL without it.
        url: String,
    },
    /// What opens each connection.
    #[error("the first message of each connection, of {bytes} bytes (`OpeningMessage::message`)")]
    Opening {
        /// Bytes of the message, at most.
        bytes: u64,
    },
    /// Header fields of the upgrade to WebSocket.
    #[error("header fields of the upgrade to WebSocket (`WebSocketExchange::headers`)")]
    UpgradeFields,
    /// Subprotocols of WebSocket.
    #[error("the subprotocols of WebSocket (`WebSocketExchange::subprotocols`)")]
    Subprotocols,
    /// A file.
    #[error("what is in the file {name} (`TlsSpec`)")]
    File {
        /// Path of the file, as typed.
        name: String,
    },
}

fn requests_in_words(first: &str, header_names: &[String], body_bytes: u64) -> String {
    let mut words = format!("the requests or messages, of which `{first}` is the first");
    if !header_names.is_empty() {
        words += &format!(", with values of {}", header_names.join(", "));
    }
    if body_bytes > 0 {
        words += &format!(", with a body of {body_bytes} bytes");
    }
    words
}

/// The parts that were left out of a plan, which cannot be run without them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct WithheldParts(pub Vec<Withheld>);

impl fmt::Display for WithheldParts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            "the plan was stored without what may be secret; put back what is missing: ",
        )?;
        for (part, number) in self.0.iter().zip(0..) {
            let between = if number > 0 { "; " } else { "" };
            write!(formatter, "{between}{part}")?;
        }
        Ok(())
    }
}
