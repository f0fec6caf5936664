//! How the simulated server reads HTTP/1.1: as far as it must to count and frame requests.

const HEAD_END: &[u8] = b"\r\n\r\n";

/// What the server needs to know of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReceivedRequest {
    /// The reply has no body.
    pub(super) is_head: bool,
    /// The client asks for the end of the connection.
    pub(super) closes: bool,
}

/// Finds the requests in the bytes of one connection, however they are cut.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// The beginning of a head that is not complete.
    gathered: Vec<u8>,
    /// The request whose body is being read, and the bytes of it to come.
    body: Option<(ReceivedRequest, u64)>,
}

impl Scanner {
    /// Takes `bytes`; `found` gets each request with the bytes up to its end.
    pub(super) fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(usize, ReceivedRequest)) {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &bytes[taken..];
            if let Some((request, left)) = &mut self.body {
                let skipped = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                taken += skipped;
                *left -= skipped as u64;
                if *left == 0 {
                    found(taken, *request);
                    self.body = None;
                }
                continue;
            }
            let (length, head) = self.take_head(rest);
            taken += length;
            match head {
                Some((request, 0)) => found(taken, request),
                Some((request, body_bytes)) => self.body = Some((request, body_bytes)),
                None => {}
            }
        }
    }

    /// Takes bytes of a head: how many and, when they complete it, what it says: the request and
    /// the length of its body.
    fn take_head(&mut self, bytes: &[u8]) -> (usize, Option<(ReceivedRequest, u64)>) {
        if self.gathered.is_empty()
            && let Some(start) = bytes.windows(4).position(|window| window == HEAD_END)
        {
            let end = start + HEAD_END.len();
            return (end, Some(read(&bytes[..end])));
        }
        for (index, &byte) in bytes.iter().enumerate() {
            self.gathered.push(byte);
            if self.gathered.ends_with(HEAD_END) {
                let head = read(&self.gathered);
                self.gathered.clear();
                return (index + 1, Some(head));
            }
        }
        (bytes.len(), None)
    }
}

fn read(head: &[u8]) -> (ReceivedRequest, u64) {
    let mut request = ReceivedRequest {
        is_head: head.starts_with(b"HEAD "),
        ..ReceivedRequest::default()
    };
    let mut body_bytes = 0;
    for line in head.split(|&byte| byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            continue;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let digits = str::from_utf8(value).ok();
            body_bytes = digits.and_then(|digits| digits.parse().ok()).unwrap_or(0);
        } else if name.eq_ignore_ascii_case(b"connection") {
            request.closes = value.eq_ignore_ascii_case(b"close");
        }
    }
    (request, body_bytes)
}
