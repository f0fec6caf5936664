//! Whether a server speaks HTTP/3, too: one request over TCP, whose answer may say so.

use std::fmt;

use brunt_io::blocking::{Deadline, Link, LinkError};
use brunt_load::Plan;
use brunt_proto::Limits;
use brunt_proto::alt_svc::{self, Alternative};
use brunt_proto::holes::{Notation, TextWithHoles};
use brunt_proto::http1::Request;
use brunt_proto::tls::{ClientSide, TlsError};

/// What an answer in HTTP/1.1 or 1.0 begins with.
const HTTP_1: &[u8] = b"HTTP/1.";

/// Why nothing is known of HTTP/3.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// The request cannot be sent, or its answer cannot be read.
    Failed(String),
    /// The answer names none.
    NotNamed,
}

impl fmt::Display for Unknown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(reason) => {
                write!(
                    formatter,
                    "the server cannot be asked for HTTP/3 ({reason})"
                )
            }
            Self::NotNamed => formatter.write_str("the server names no HTTP/3 in Alt-Svc"),
        }
    }
}

impl From<LinkError> for Unknown {
    fn from(error: LinkError) -> Self {
        Self::Failed(match error {
            LinkError::Timeout => "no answer in time".to_owned(),
            LinkError::Lost(reason) => reason.to_string(),
            LinkError::NotTls => "it does not speak TLS".to_owned(),
            LinkError::Tls(TlsError::NoCommonProtocol) => "it speaks no HTTP/1.1".to_owned(),
            LinkError::Tls(reason) => reason.to_string(),
        })
    }
}

/// Asks in HTTP/1.1 for the head of what the plan requests (HEAD), on a connection that is just
/// open: where the server says that HTTP/3 is spoken (RFC 9114 section 3.1). `side` offers
/// HTTP/1.1.
pub(crate) fn ask(
    plan: &Plan,
    side: &ClientSide,
    mut link: Link,
    deadline: Deadline,
) -> Result<Alternative, Unknown> {
    let first = plan.requests.first();
    let fields = first.map_or(&[][..], |first| first.headers);
    let mut hosts = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = hosts
        .next()
        .map_or(&plan.target.authority, |(_, value)| value);
    let written = TextWithHoles::parse(plan.target.path.as_bytes(), Notation::Doubled);
    let is_filled_in = first.is_some_and(|first| first.placeholders.is_some());
    let path = match written.ok().filter(|_| is_filled_in) {
        Some(filled) => String::from_utf8_lossy(&filled.bytes).into_owned(),
        None => plan.target.path.clone(),
    };
    let request = Request {
        method: "HEAD",
        path: &path,
        host,
        headers: &[],
        body: &[],
        close: true,
    };
    let request = request.encode();
    let request = request.map_err(|reason| Unknown::Failed(reason.to_string()))?;
    link.secure(side, deadline)?;
    link.send(&request, deadline)?;
    let (mut received, most_bytes) = (Vec::new(), Limits::default().head_bytes as usize);
    loop {
        let is_open = link.receive(&mut received, deadline)?;
        if let Some(alternative) = alt_svc::of_answer(&received) {
            link.close(deadline);
            return alternative.ok_or(Unknown::NotNamed);
        }
        let begins = &received[..received.len().min(HTTP_1.len())];
        let fault = if !HTTP_1.starts_with(begins) {
            "its answer is not HTTP/1.1".to_owned()
        } else if received.len() > most_bytes {
            format!("its head is longer than {most_bytes} bytes")
        } else if !is_open {
            "it closed the connection".to_owned()
        } else {
            continue;
        };
        return Err(Unknown::Failed(fault));
    }
}
