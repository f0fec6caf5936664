//! Whether a server speaks HTTP/3, too: one request over TCP, whose answer may say so.

use std::fmt;

use brunt_io::blocking::{Deadline, Link, LinkError};
use brunt_load::Plan;
use brunt_proto::Limits;
use brunt_proto::alt_svc::{self, Alternative};
use brunt_proto::http1::Request;
use brunt_proto::tls::{ClientSide, TlsError};

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
    let request = Request {
        method: "HEAD",
        path: &plan.target.path,
        host: &plan.target.authority,
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
        if !is_open || received.len() > most_bytes {
            return Err(Unknown::Failed("its answer has no end".to_owned()));
        }
    }
}
