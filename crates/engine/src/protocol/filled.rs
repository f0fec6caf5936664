//! Requests with places that are filled in: their parts as they are encoded, with holes there; and
//! requests that are given byte by byte: what their text means.

use std::borrow::Cow;

use brunt_load::{Plan, RequestRef, RequestSpec};
use brunt_proto::holes::{Hole, PlaceholderError, TextWithHoles};
use brunt_proto::http1::{
    RequestKind, RequestPart, RequestTextError, TextParts, TextRequest, scan_requests,
};
use brunt_proto::http2::Request;
use thiserror::Error;

use super::EncodeError;

/// Why a text makes no requests, or what stands in braces cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RawRequestsError {
    /// The text is not one of requests.
    #[error(transparent)]
    Text(#[from] RequestTextError),
    /// The text holds several requests.
    #[error("it holds {0} requests; give each as a text of its own")]
    Several(usize),
    /// What stands in braces is not filled in.
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
    /// How long the request is would be known to nobody.
    #[error("nothing is filled into {0}, which says where a request ends; write it out")]
    Framing(String),
    /// A request ends in what is filled in.
    #[error("the lengths that it states end a request within a placeholder; correct them")]
    EndInHole,
}

/// What is wrong where something is filled into the field of this name; absent where nothing is.
fn framing_fault(name: &str) -> Option<RawRequestsError> {
    let names = ["Content-Length", "Transfer-Encoding", "Connection"];
    let is_of_framing = names.iter().any(|known| known.eq_ignore_ascii_case(name));
    is_of_framing.then(|| RawRequestsError::Framing(name.to_owned()))
}

/// What a request consists of, with zeros in its holes.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    method: &'a str,
    pub(super) path: Cow<'a, str>,
    pub(super) headers: Cow<'a, [(String, String)]>,
    pub(super) body: Cow<'a, [u8]>,
    /// The holes of each part that has any, from its start on.
    holes: Vec<(RequestPart, Vec<Hole>)>,
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
                && let Some(fault) = framing_fault(name)
            {
                return Err(fault);
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

    /// The parts of the request of `plan` with this index, in which nothing may be filled in.
    pub(super) fn fixed_of(
        plan: &Plan,
        (index, request): (usize, RequestRef<'a>),
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
        holes.flat_map(move |(_, holes)| holes.iter().map(move |hole| hole.moved(at)))
    }
}

/// The requests that `text` holds, in order, in each of which `{{seq}}`, `{{rand LOW HIGH}}` and
/// `{{uuid}}` are filled in each time it is sent. Lengths in the text are those of what is sent.
///
/// # Errors
///
/// The first fault in the text, whose place is that in the text with numbers filled in.
pub fn raw_requests(text: &[u8]) -> Result<Vec<RequestSpec>, RawRequestsError> {
    let filled = TextWithHoles::parse(text)?;
    let written = |at| filled.written_at(at).ok_or(RawRequestsError::EndInHole);
    let requests = scan_requests(&filled.bytes).map_err(|fault| {
        // With a length of zero, what follows is no request.
        let mut places = filled.holes.iter().map(|hole| hole.at as usize);
        places
            .find_map(|at| hole_in_framing(&filled.bytes, at))
            .unwrap_or(fault.into())
    })?;
    let requests = requests.into_iter().map(|request| {
        let range = request.range.clone();
        let is_within = |at: u32| range.contains(&(at as usize));
        let mut holes = filled.holes.iter().filter(|hole| is_within(hole.at));
        let head = &filled.bytes[..request.body_start];
        let mut places = holes.clone().map(|hole| hole.at as usize);
        if let Some(fault) = places.find_map(|at| hole_in_framing(head, at)) {
            return Err(fault);
        }
        if holes.next().is_none() {
            return Ok(spec(&filled.bytes, &request));
        }
        let request = TextRequest {
            range: written(range.start)?..written(range.end)?,
            body_start: written(request.body_start)?,
            ..request
        };
        Ok(RequestSpec {
            has_placeholders: true,
            ..spec(text, &request)
        })
    });
    requests.collect()
}

/// What is wrong where something is filled in at a place of `head`; absent where nothing is, and
/// behind the head.
fn hole_in_framing(head: &[u8], at: usize) -> Option<RawRequestsError> {
    let before = head.get(..at)?;
    let line = before.rsplit(|&byte| byte == b'\n').next()?;
    let (name, _) = std::str::from_utf8(line).ok()?.split_once(':')?;
    framing_fault(name.trim())
}

/// The requests that `text` holds, in order, each to be sent exactly as it is there. They have the
/// method, path, header fields and body that their texts say.
///
/// # Errors
///
/// The first fault in the text, in wrk's words.
pub fn verbatim_requests(text: &[u8]) -> Result<Vec<RequestSpec>, RequestTextError> {
    let requests = scan_requests(text)?;
    Ok(requests.iter().map(|request| spec(text, request)).collect())
}

fn spec(text: &[u8], request: &TextRequest) -> RequestSpec {
    let parts = TextParts::of(text, request);
    let word = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    RequestSpec {
        method: word(parts.method),
        path: word(parts.url),
        headers: parts
            .fields()
            .map(|(name, value)| (word(name), word(value)))
            .collect(),
        body: parts.body.to_vec(),
        text: Some(text[request.range.clone()].to_vec()),
        has_placeholders: false,
    }
}

/// What the response to the one request of `text` depends on.
pub(super) fn kind_of(text: &[u8]) -> Result<RequestKind, RawRequestsError> {
    match &scan_requests(text)?[..] {
        [only] => Ok(only.kind),
        several => Err(RawRequestsError::Several(several.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_text_is_split_where_its_filled_one_is() {
        let text = b"POST /a/{{rand 1 500}} HTTP/1.1\r\nContent-Length: 15\r\n\r\nid={{seq 10000}}\
            GET /\\{{b}} HTTP/1.1\r\n\r\nGET /\\{{c}}?{{seq}} HTTP/1.1\r\n\r\n";
        let requests = raw_requests(text).expect("three");
        let named: Vec<_> = requests
            .iter()
            .map(|request| (request.name(), request.has_placeholders))
            .collect();
        assert_eq!(
            named,
            [
                ("POST /a/{{rand 1 500}}".to_owned(), true),
                ("/{{b}}".to_owned(), false),
                ("/\\{{c}}?{{seq}}".to_owned(), true)
            ]
        );
        assert_eq!(requests[0].body, b"id={{seq 10000}}");
        let texts: Vec<u8> = requests
            .iter()
            .flat_map(|request| request.text.clone().expect("given"))
            .collect();
        let sent = String::from_utf8_lossy(text).replacen("\\", "", 1);
        assert_eq!(texts, sent.as_bytes());
        let short = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n{{seq 10000}}";
        for (text, words) in [
            (&short[..], "invalid HTTP method at 4:5"),
            (
                &b"POST / HTTP/1.1\r\ncontent-length: {{rand 1 1}}\r\n\r\nz"[..],
                "nothing is filled into content-length",
            ),
            (&b"GET /{{seq x}} HTTP/1.1\r\n\r\n"[..], "{{seq START}}"),
            (&b"GET /{{seq}} HTTP/1.1\r\n"[..], "incomplete request"),
        ] {
            let error = raw_requests(text).expect_err("no requests").to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_text_is_split_into_its_requests() {
        let text =
            b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 1\r\n\r\nz";
        let [a, b] = &verbatim_requests(text).expect("requests")[..] else {
            panic!("two requests");
        };
        assert_eq!(
            (a.name(), b.name()),
            ("/a".to_owned(), "POST /b".to_owned())
        );
        assert_eq!(a.headers, [("Host".to_owned(), "x".to_owned())]);
        assert_eq!(b.body, b"z");
        let texts = [a, b].map(|spec| spec.text.clone().expect("given"));
        assert_eq!(texts.concat(), text);
        let error = kind_of(text).expect_err("two");
        assert_eq!(
            error.to_string(),
            "it holds 2 requests; give each as a text of its own"
        );
    }
}
