//! The request of a run, encoded once: the bytes that all connections share.

use brunt_load::{Plan, Reuse};
use brunt_proto::http1::{Request, RequestError};

/// One request, ordinary and closing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedRequest {
    ordinary: Vec<u8>,
    /// With `Connection: close`; empty where no connection has a last request.
    closing: Vec<u8>,
    is_head: bool,
}

impl EncodedRequest {
    /// Encodes what the plan says.
    pub(crate) fn new(plan: &Plan) -> Result<Self, RequestError> {
        let request = |close| Request {
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
        let is_head = plan.request.method == "HEAD";
        Ok(Self {
            ordinary: request(false).encode()?,
            closing,
            is_head,
        })
    }

    /// Whether replies have no body.
    pub(crate) fn is_head(&self) -> bool {
        self.is_head
    }

    /// Bytes of one request: a closing one where every request closes, else an ordinary one.
    pub(crate) fn bytes(&self, every_one_closes: bool) -> usize {
        if every_one_closes {
            self.closing.len()
        } else {
            self.ordinary.len()
        }
    }

    /// Bytes of the payload of [`EncodedRequest::payload`].
    pub(crate) fn payload_bytes(&self, pipeline: u32) -> usize {
        self.ordinary.len() * pipeline as usize + self.closing.len()
    }

    /// `pipeline` ordinary requests and a closing one, so that any number up to `pipeline`, with
    /// or without a closing one at the end, lies in one piece.
    pub(crate) fn payload(&self, pipeline: u32) -> Vec<u8> {
        let mut payload = self.ordinary.repeat(pipeline as usize);
        payload.extend_from_slice(&self.closing);
        payload
    }

    /// Where `count` requests (1 to `pipeline`) lie in the payload, the last of them closing or
    /// not.
    pub(crate) fn range(&self, pipeline: u32, count: u32, closing: bool) -> (u32, u32) {
        let (one, all) = (
            self.ordinary.len() as u32,
            self.ordinary.len() as u32 * pipeline,
        );
        if closing && !self.closing.is_empty() {
            (all - one * (count - 1), all + self.closing.len() as u32)
        } else {
            (0, one * count)
        }
    }
}
