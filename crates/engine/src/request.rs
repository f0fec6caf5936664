//! The request of a run, encoded once: what all connections share.

use brunt_load::{Plan, Reuse};
use brunt_measure::Protocol;
use brunt_proto::{http1, http2};
use thiserror::Error;

/// Why a request cannot be encoded.
#[derive(Debug, Error)]
pub enum EncodeError {
    /// Not in HTTP/1.1.
    #[error(transparent)]
    Http1(#[from] http1::RequestError),
    /// Not in HTTP/2.
    #[error(transparent)]
    Http2(#[from] http2::RequestError),
}

/// The request in the protocol of the run.
#[derive(Debug)]
pub(crate) enum EncodedRequest {
    Http1(Http1Request),
    Http2(Box<http2::Template>),
}

impl EncodedRequest {
    /// Encodes what the plan says.
    pub(crate) fn new(plan: &Plan, protocol: Protocol) -> Result<Self, EncodeError> {
        Ok(match protocol {
            Protocol::Http1 => Self::Http1(Http1Request::new(plan)?),
            Protocol::Http2 => Self::Http2(Box::new(http2::Template::new(&http2::Request {
                method: &plan.request.method,
                scheme: plan.target.scheme.name(),
                authority: &plan.target.authority,
                path: &plan.target.path,
                headers: &plan.request.headers,
                body: &plan.request.body,
            })?)),
        })
    }

    /// Bytes of one request: a closing one where every request closes, else an ordinary one. In
    /// HTTP/2, of any but the first of a connection.
    pub(crate) fn bytes(&self, every_one_closes: bool) -> usize {
        match self {
            Self::Http1(request) if every_one_closes => request.closing.len(),
            Self::Http1(request) => request.ordinary.len(),
            Self::Http2(template) => template.request_bytes(),
        }
    }

    /// Bytes that a worker holds of it where `depth` requests are under way per connection.
    pub(crate) fn held_bytes(&self, depth: u32) -> usize {
        match self {
            Self::Http1(request) => request.ordinary.len() * depth as usize + request.closing.len(),
            Self::Http2(template) => template.request_bytes(),
        }
    }
}

/// One HTTP/1.1 request, ordinary and closing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Http1Request {
    ordinary: Vec<u8>,
    /// With `Connection: close`; empty where no connection has a last request.
    closing: Vec<u8>,
    is_head: bool,
}

impl Http1Request {
    fn new(plan: &Plan) -> Result<Self, http1::RequestError> {
        let request = |close| http1::Request {
            method: &plan.request.method,
            path: &plan.target.path,
            host: &plan.target.authority,
            headers: &plan.request.headers,
            body: &plan.request.body,
            close,
        };
        let closing = match plan.reuse {
            Reuse::Unlimited => Vec::new(),
            Reuse::Requests(_) => request(true).encode()?,
        };
        Ok(Self {
            ordinary: request(false).encode()?,
            closing,
            is_head: plan.request.method == "HEAD",
        })
    }

    /// Whether replies have no body.
    pub(crate) fn is_head(&self) -> bool {
        self.is_head
    }

    /// `depth` ordinary requests and a closing one, so that any number up to `depth`, with or
    /// without a closing one at the end, lies in one piece.
    pub(crate) fn payload(&self, depth: u32) -> Vec<u8> {
        let mut payload = self.ordinary.repeat(depth as usize);
        payload.extend_from_slice(&self.closing);
        payload
    }

    /// Where `count` requests (1 to `depth`) lie in the payload, the last of them closing or not.
    pub(crate) fn range(&self, depth: u32, count: u32, closing: bool) -> (u32, u32) {
        let one = self.ordinary.len() as u32;
        let all = one * depth;
        if closing && !self.closing.is_empty() {
            (all - one * (count - 1), all + self.closing.len() as u32)
        } else {
            (0, one * count)
        }
    }
}
