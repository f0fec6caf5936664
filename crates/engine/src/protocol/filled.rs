//! Requests with places that are filled in: their parts as they are encoded, with holes there.

use std::borrow::Cow;

use brunt_load::{Plan, RequestRef};
use brunt_proto::holes::{Hole, TextWithHoles};
use brunt_proto::http1::{RawRequestsError, RequestPart, check_filled_field};
use brunt_proto::http2::Request;

use super::EncodeError;

/// What a request consists of, with zeros in its holes.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    method: &'a str,
    pub(super) path: Cow<'a, str>,
    pub(super) headers: Cow<'a, [(String, String)]>,
    pub(super) body: Cow<'a, [u8]>,
    /// The holes, each counted from the start of its part.
    holes: Vec<(RequestPart, Hole)>,
}

impl<'a> Parts<'a> {
    /// The parts of a request that does not come as text.
    pub(super) fn of(request: RequestRef<'a>) -> Result<Self, RawRequestsError> {
        let mut parts = Self {
            method: request.method,
            path: request.path.into(),
            headers: request.headers.into(),
            body: request.body.into(),
            holes: Vec::new(),
        };
        if !request.has_placeholders {
            return Ok(parts);
        }
        let mut take = |part, filled: TextWithHoles| {
            let holes = filled.holes.into_iter();
            parts.holes.extend(holes.map(|hole| (part, hole)));
            filled.bytes
        };
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let path = TextWithHoles::parse(request.path.as_bytes())?;
        let path = take(RequestPart::Path, path);
        let mut headers = Vec::with_capacity(request.headers.len());
        for (index, (name, value)) in request.headers.iter().enumerate() {
            let value = TextWithHoles::parse(value.as_bytes())?;
            if !value.holes.is_empty() {
                check_filled_field(name)?;
            }
            let value = take(RequestPart::Value(index), value);
            headers.push((name.clone(), text(value)));
        }
        let body = TextWithHoles::parse_body(request.body)?;
        parts.body = take(RequestPart::Body, body).into();
        parts.path = text(path).into();
        parts.headers = headers.into();
        Ok(parts)
    }

    /// The parts of the request of `plan` with this index, in which nothing may be filled in.
    pub(super) fn fixed_of(
        plan: &Plan,
        index: usize,
        request: RequestRef<'a>,
    ) -> Result<Self, EncodeError> {
        let parts =
            Self::of(request).map_err(|reason| EncodeError::request(plan, index, reason))?;
        if parts.holes.is_empty() {
            Ok(parts)
        } else {
            Err(EncodeError::request(
                plan,
                index,
                "what is filled in ({{seq}}, {{rand LOW HIGH}}, {{uuid}}) needs HTTP/1.1, since \
                 brunt compresses the heads of HTTP/2 and HTTP/3 once before the run; use --http1",
            ))
        }
    }

    /// The request, over a protocol that compresses heads.
    pub(super) fn request<'b>(&'b self, plan: &'b Plan) -> Request<'b> {
        Request {
            method: self.method,
            scheme: plan.target.scheme.name(),
            authority: &plan.target.authority,
            path: &self.path,
            headers: &self.headers,
            body: &self.body,
        }
    }

    /// The holes of a part that begins at `at`.
    pub(super) fn holes_of(&self, part: RequestPart, at: usize) -> impl Iterator<Item = Hole> {
        let holes = self.holes.iter().filter(move |(other, _)| *other == part);
        holes.map(move |(_, hole)| hole.moved(at))
    }
}
