//! Alternative services (RFC 7838): where an origin says that it speaks HTTP/3, too.

use std::num::NonZeroU16;

/// The longest name of a host.
const HOST_BYTES_MAX: usize = 255;
/// HTTP/3 (RFC 9114 section 3.1).
const HTTP3: &[u8] = b"h3";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// Where an origin speaks HTTP/3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// A name or an address, this without brackets; absent: the origin's.
    pub host: Option<String>,
    /// The port of UDP.
    pub port: NonZeroU16,
}

/// What the answer of a server in HTTP/1.1 that begins with these bytes says of HTTP/3. Absent
/// while its final head is not complete.
pub fn of_answer(mut bytes: &[u8]) -> Option<Option<Alternative>> {
    loop {
        let end = bytes
            .windows(END_OF_HEAD.len())
            .position(|it| it == END_OF_HEAD)?;
        let (head, rest) = bytes.split_at(end + END_OF_HEAD.len());
        // Interim answers (RFC 9110 section 15.2) come before it.
        if !head.starts_with(b"HTTP/1.1 1") {
            return Some(of_head(head));
        }
        bytes = rest;
    }
}

/// The first alternative with HTTP/3 that a head names.
fn of_head(head: &[u8]) -> Option<Alternative> {
    let lines = head.split(|&byte| byte == b'\n').skip(1);
    let mut values = lines.filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let is_it = line[..colon].eq_ignore_ascii_case(b"alt-svc");
        is_it.then(|| line[colon + 1..].trim_ascii())
    });
    values.find_map(http3_alternative)
}

/// The first alternative with HTTP/3 that the value of an Alt-Svc field names. Those that are
/// malformed, and those that are not for later requests (`ma=0`), are passed over.
pub fn http3_alternative(mut value: &[u8]) -> Option<Alternative> {
    while !value.is_empty() {
        let (member, rest) = split(value, b',');
        value = rest;
        if let Some(alternative) = of_member(member) {
            return Some(alternative);
        }
    }
    None
}

/// The alternative in a member of the list, if it has HTTP/3.
fn of_member(member: &[u8]) -> Option<Alternative> {
    let (service, mut parameters) = split(member, b';');
    let (protocol, authority) = split(service, b'=');
    if protocol.trim_ascii() != HTTP3 {
        return None;
    }
    while !parameters.is_empty() {
        let (parameter, rest) = split(parameters, b';');
        parameters = rest;
        let (name, age) = split(parameter, b'=');
        let age = unquoted(age.trim_ascii());
        let is_stale = !age.is_empty() && age.iter().all(|&digit| digit == b'0');
        if name.trim_ascii() == b"ma" && is_stale {
            return None;
        }
    }
    let authority = authority.trim_ascii();
    if authority.first() != Some(&b'"') {
        return None;
    }
    of_authority(&unquoted(authority))
}

/// The alternative at `[host]:port`.
fn of_authority(authority: &[u8]) -> Option<Alternative> {
    let colon = authority.iter().rposition(|&byte| byte == b':')?;
    let (host, port) = (&authority[..colon], &authority[colon + 1..]);
    let digits = std::str::from_utf8(port).ok()?;
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let port = digits.parse().ok()?;
    let is_address = host.starts_with(b"[") && host.ends_with(b"]");
    let host = if is_address {
        &host[1..host.len() - 1]
    } else {
        host
    };
    let is_of_host = |byte: u8| match byte {
        b':' => is_address,
        _ => byte.is_ascii_alphanumeric() || b".-_".contains(&byte),
    };
    if host.len() > HOST_BYTES_MAX || !host.iter().all(|&byte| is_of_host(byte)) {
        return None;
    }
    let host = String::from_utf8(host.to_vec()).ok()?;
    Some(Alternative {
        host: (!host.is_empty()).then_some(host),
        port,
    })
}

/// What is before and behind the first `at` outside of quotes; nothing behind where there is none.
fn split(text: &[u8], at: u8) -> (&[u8], &[u8]) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let place = text.iter().position(|&byte| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match byte {
            _ if was_escaped => false,
            b'\\' if is_quoted => {
                is_escaped = true;
                false
            }
            b'"' => {
                is_quoted = !is_quoted;
                false
            }
            _ => byte == at && !is_quoted,
        }
    });
    match place {
        Some(place) => (&text[..place], &text[place + 1..]),
        None => (text, &[]),
    }
}

/// The content of a quoted string (RFC 9110 section 5.6.4), or the text itself.
fn unquoted(text: &[u8]) -> Vec<u8> {
    let inner = text.strip_prefix(b"\"");
    let Some(inner) = inner.and_then(|inner| inner.strip_suffix(b"\"")) else {
        return text.to_vec();
    };
    let mut is_escaped = false;
    let content = inner.iter().filter(|&&byte| {
        is_escaped = byte == b'\\' && !is_escaped;
        !is_escaped
    });
    content.copied().collect()
}

/// Reads a field, and an answer, that somebody else wrote.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz_alt_svc(data: &[u8]) {
    for alternative in http3_alternative(data)
        .into_iter()
        .chain(of_answer(data).flatten())
    {
        let host = alternative.host.unwrap_or_default();
        assert!(host.len() <= HOST_BYTES_MAX);
        assert!(host.bytes().all(|byte| byte.is_ascii_graphic()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_alternative_with_http_3_is_found() {
        for (value, expected) in [
            ("h3=\":443\"", Some((None, 443))),
            ("h3=\":443\"; ma=86400", Some((None, 443))),
            (
                "h2=\"a.example:8000\", h3-29=\":444\" , h3=\"b.example:8443\";ma=60;persist=1",
                Some((Some("b.example"), 8_443)),
            ),
            ("h3=\"[2001:db8::1]:443\"", Some((Some("2001:db8::1"), 443))),
            ("h2=\"a,h3=:1;x\\\"\", h3=\":2\"", Some((None, 2))),
            ("h3=\"\\:4\\4\\3\"", Some((None, 443))),
            ("h3=\":1\"; ma=0, h3=\":2\"", Some((None, 2))),
            ("h3=\":0\", h3=\":65536\", h3=\":x\", h3=\":+1\"", None),
            ("h3=\":\", h3=\"\", h3=, h3, =\":1\", ,", None),
            ("h3=:443", None),
            ("h3=\"a b:443\", h3=\"a/b:443\", h3=\"::1:443\"", None),
            ("H3=\":443\"", None),
            ("clear", None),
            ("", None),
        ] {
            let found = http3_alternative(value.as_bytes());
            let found = found.map(|found| (found.host, found.port.get()));
            let expected = expected.map(|(host, port)| (host.map(str::to_owned), port));
            assert_eq!(found, expected, "{value}");
            for cut in 0..value.len() {
                fuzz_alt_svc(&value.as_bytes()[..cut]);
            }
        }
        assert_eq!(
            of_answer(b"HTTP/1.1 200 OK\r\nAlt-Svc: h3=\":1\"\r\n"),
            None
        );
        for (fields, port) in [
            ("alt-svc:h3=\":1\"\r\nAlt-Svc: h3=\":2\"\r\n", Some(1)),
            (
                "Server: x\r\nALT-SVC: clear\r\nAlt-Svc: h3=\":2\"\r\n",
                Some(2),
            ),
            ("Alt-Svc\r\nX-Alt-Svc: h3=\":2\"\r\n", None),
        ] {
            let answer = format!(
                "HTTP/1.1 103 Early Hints\r\nAlt-Svc: h3=\":9\"\r\n\r\n\
                 HTTP/1.1 200 OK\r\n{fields}\r\n"
            );
            let found = of_answer(answer.as_bytes()).expect("a head");
            assert_eq!(found.map(|found| found.port.get()), port, "{fields}");
            for cut in 0..answer.len() {
                assert_eq!(of_answer(&answer.as_bytes()[..cut]), None);
            }
        }
        let long = format!("h3=\"{}:443\"", "a".repeat(HOST_BYTES_MAX + 1));
        assert_eq!(http3_alternative(long.as_bytes()), None);
    }
}
