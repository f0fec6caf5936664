//! Requests with places that are filled in: their parts as they are encoded, with holes there.

use std::borrow::Cow;

use brunt_load::{Plan, RequestRef};
use brunt_proto::holes::{Hole, PlaceholderError, TextWithHoles};
use brunt_proto::http1::RequestPart;
use thiserror::Error;

use super::EncodeError;

/// Something is filled in where heads are compressed.
#[derive(Debug, Error)]
#[error(
    "what is filled in ({{{{seq}}}}, {{{{rand LOW HIGH}}}}, {{{{uuid}}}}) needs HTTP/1.1, since \
     brunt compresses the heads of HTTP/2 and HTTP/3 once before the run; use --http1"
)]
struct NeedsHttp1;

/// Why the parts of a request are none.
#[derive(Debug, Error)]
pub(super) enum PartsError {
    /// What stands in braces is not filled in.
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
    /// How long the request is would be known to nobody.
    #[error(transparent)]
    Framing(#[from] HoleInFraming),
}

/// Something is filled into a field that says where a request or a connection ends.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("nothing is filled into {0}, which says where a request ends; write it out")]
pub struct HoleInFraming(String);

impl HoleInFraming {
    /// What is wrong where something is filled into the field of this name; absent where nothing
    /// is.
    pub(super) fn of(name: &str) -> Option<Self> {
        let names = ["Content-Length", "Transfer-Encoding", "Connection"];
        let is_of_framing = names.iter().any(|it| it.eq_ignore_ascii_case(name));
        is_of_framing.then(|| Self(name.to_owned()))
    }
}

/// What a request consists of, with zeros in its holes.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) path: Cow<'a, str>,
    pub(super) headers: Cow<'a, [(String, String)]>,
    pub(super) body: Cow<'a, [u8]>,
    /// The holes of each part that has any, from its start on.
    holes: Vec<(RequestPart, Vec<Hole>)>,
}

impl<'a> Parts<'a> {
    /// The parts of a request that does not come as text.
    pub(super) fn of(request: RequestRef<'a>) -> Result<Self, PartsError> {
        let mut parts = Self {
            path: request.path.into(),
            headers: request.headers.into(),
            body: request.body.into(),
            holes: Vec::new(),
        };
        if !request.has_placeholders {
            return Ok(parts);
        }
        let text = |text: TextWithHoles| String::from_utf8_lossy(&text.bytes).into_owned();
        let mut note = |part, found: &mut TextWithHoles| {
            if !found.holes.is_empty() {
                parts.holes.push((part, std::mem::take(&mut found.holes)));
            }
        };
        let mut path = TextWithHoles::parse(request.path.as_bytes())?;
        note(RequestPart::Path, &mut path);
        let mut headers = Vec::with_capacity(request.headers.len());
        for (index, (name, value)) in request.headers.iter().enumerate() {
            let mut value = TextWithHoles::parse(value.as_bytes())?;
            if !value.holes.is_empty()
                && let Some(error) = HoleInFraming::of(name)
            {
                return Err(error.into());
            }
            note(RequestPart::Value(index), &mut value);
            headers.push((name.clone(), text(value)));
        }
        let mut body = TextWithHoles::parse_body(request.body)?;
        note(RequestPart::Body, &mut body);
        parts.path = text(path).into();
        parts.headers = headers.into();
        parts.body = body.bytes.into();
        Ok(parts)
    }

    /// The same of a request in which nothing may be filled in, that of `plan` with this index.
    pub(super) fn fixed_of(
        plan: &Plan,
        (index, request): (usize, RequestRef<'a>),
    ) -> Result<Self, EncodeError> {
        let parts = Self::of(request).map_err(|it| EncodeError::request(plan, index, it))?;
        if parts.is_fixed() {
            Ok(parts)
        } else {
            Err(EncodeError::request(plan, index, NeedsHttp1))
        }
    }

    /// Whether nothing is filled in.
    pub(super) fn is_fixed(&self) -> bool {
        self.holes.is_empty()
    }

    /// The holes of a part that begins at `at`.
    pub(super) fn holes_of(&self, part: RequestPart, at: usize) -> impl Iterator<Item = Hole> {
        let holes = self.holes.iter().filter(move |(other, _)| *other == part);
        holes.flat_map(move |(_, holes)| holes.iter().map(move |hole| hole.moved(at)))
    }
}
