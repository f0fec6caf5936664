//! Values of h2load's options: numbers, sizes, durations and header fields as it reads them.

use super::wrong::error;
use crate::Ending;

const SECOND_NS: u64 = 1_000_000_000;

/// An integer without a sign; `name` is for the message.
pub(super) fn number(name: &str, typed: &str) -> Result<u64, Ending> {
    digits(typed)
        .filter(|(_, rest)| rest.is_empty())
        .map(|(number, _)| number)
        .ok_or_else(|| error(&format!("{name}: bad option value: {typed}")))
}

/// Digits at the beginning, within 63 bits, and what is behind them.
fn digits(typed: &str) -> Option<(u64, &str)> {
    let end = typed.find(|letter: char| !letter.is_ascii_digit());
    let (digits, rest) = typed.split_at(end.unwrap_or(typed.len()));
    let number = digits.parse().ok()?;
    i64::try_from(number).ok()?;
    Some((number, rest))
}

/// An integer with one of the units k, m and g, which are powers of 1,024.
pub(super) fn size(typed: &str) -> Option<u64> {
    let (number, unit) = digits(typed)?;
    let unit: u64 = match unit {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// Nanoseconds of an integer with a unit: h, m, s, ms; seconds without.
pub(super) fn duration_ns(typed: &str) -> Option<u64> {
    let (number, unit) = digits(typed)?;
    let unit_ns = match &*unit.to_ascii_lowercase() {
        "h" => 3_600 * SECOND_NS,
        "m" => 60 * SECOND_NS,
        "" | "s" => SECOND_NS,
        "ms" => 1_000_000,
        _ => return None,
    };
    number.checked_mul(unit_ns)
}

/// Size of a header table; `option` is for messages.
pub(super) fn table_bytes(option: &str, typed: &str) -> Result<u32, Ending> {
    let bytes =
        size(typed).ok_or_else(|| error(&format!("--{option}: Bad option value: {typed}")))?;
    u32::try_from(bytes).map_err(|_| {
        error(&format!(
            "--{option}: Value too large.  It should be less than or equal to {}",
            u32::MAX
        ))
    })
}

/// Longest payload of a frame.
pub(super) fn frame_bytes(typed: &str) -> Result<u32, Ending> {
    let bytes = size(typed)
        .ok_or_else(|| error(&format!("--max-frame-size: bad option value: {typed}")))?;
    match u32::try_from(bytes).unwrap_or(u32::MAX) {
        ..16_384 => Err(error("--max-frame-size: minimum 16384")),
        16_777_216.. => Err(error("--max-frame-size: maximum 16777215")),
        bytes => Ok(bytes),
    }
}

/// The largest value of so many bits.
pub(super) fn window_bytes(option: &str, typed: &str) -> Result<u32, Ending> {
    let bits = number("", typed).ok().filter(|&bits| bits <= 30);
    let bits = bits.ok_or_else(|| {
        error(&format!(
            "{option}: specify the integer in the range [0, 30], inclusive"
        ))
    })?;
    Ok((1 << bits) - 1)
}

/// A header field: its name in lower case, and its value.
pub(super) fn header(typed: &str) -> Result<(String, String), Ending> {
    let mut letters = typed.chars();
    let first = letters.next().map_or(0, char::len_utf8);
    // The colon before a pseudo header is not the one behind its name.
    let colon = typed[first..].find(':').map(|at| first + at);
    let Some(colon) = colon.filter(|&at| !(at == 1 && typed.starts_with(':'))) else {
        return Err(error(&format!("-H: invalid header: {typed}")));
    };
    let value = typed[colon + 1..].trim_start_matches(|it: char| it.is_ascii_whitespace());
    if value.is_empty() {
        let line = format!("-H: invalid header - value missing: {}", &typed[..colon]);
        return Err(error(&line));
    }
    Ok((typed[..colon].to_ascii_lowercase(), value.to_owned()))
}

/// Host, and port where one is given.
pub(super) fn host_and_port(typed: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match typed.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (
                host,
                rest.strip_prefix(':').or(rest.is_empty().then_some(""))?,
            )
        }
        // An address of IPv6 without brackets has no port.
        None if typed.matches(':').count() > 1 => (typed, ""),
        None => typed.split_once(':').unwrap_or((typed, "")),
    };
    let port = match port {
        "" => None,
        port => Some(port.parse::<u16>().ok()?),
    };
    // Port 0 stands for that of the URI.
    (!host.is_empty()).then(|| (host.to_owned(), port.filter(|&port| port > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        for (typed, bytes) in [
            ("10", Some(10)),
            ("10K", Some(10_240)),
            ("2m", Some(2 << 20)),
            ("1g", Some(1 << 30)),
            ("1x", None),
            ("", None),
            ("-1", None),
            ("9223372036854775808", None),
        ] {
            assert_eq!(size(typed), bytes, "{typed}");
        }
        for (typed, ns) in [
            ("0", Some(0)),
            ("2", Some(2 * SECOND_NS)),
            ("3S", Some(3 * SECOND_NS)),
            ("1m", Some(60 * SECOND_NS)),
            ("5ms", Some(5_000_000)),
            ("1H", Some(3_600 * SECOND_NS)),
            ("1.5", None),
            ("1 s", None),
        ] {
            assert_eq!(duration_ns(typed), ns, "{typed}");
        }
    }

    #[test]
    fn fields_and_hosts() {
        let named = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(header("X-A: b:c "), named("x-a", "b:c "));
        assert_eq!(header(":method:PUT"), named(":method", "PUT"));
        for wrong in ["x", "::a", "", "x:", "x:  "] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
        for (typed, expected) in [
            ("h", Some(("h", None))),
            ("h:80", Some(("h", Some(80)))),
            ("h:", Some(("h", None))),
            ("[::1]:9", Some(("::1", Some(9)))),
            ("[::1]", Some(("::1", None))),
            ("::1", Some(("::1", None))),
            (":", None),
            (":80", None),
            ("h:x", None),
            ("h:65536", None),
        ] {
            let found = host_and_port(typed);
            let found = found.as_ref().map(|(host, port)| (host.as_str(), *port));
            assert_eq!(found, expected, "{typed}");
        }
    }
}
