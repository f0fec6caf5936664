//! Numbers as the C library reads and prints them, what several tools make of them, and what
//! OpenSSL calls the cipher suites and groups of TLS that brunt has.

use std::num::NonZeroU32;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// A number from 1 on: 1 for 0, and at most what fits.
pub(crate) fn at_least_1(number: u64) -> NonZeroU32 {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

/// The digits that a text begins with, as a number that is at most what fits, and what is behind
/// them. Without digits there is no number.
pub(crate) fn digits(typed: &str) -> (Option<u64>, &str) {
    let end = typed.find(|letter: char| !letter.is_ascii_digit());
    let (digits, rest) = typed.split_at(end.unwrap_or(typed.len()));
    let number = (!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX));
    (number, rest)
}

/// A number with up to six significant digits, as `%g` prints it.
pub(crate) fn general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..6).contains(&exponent) {
        let places = (5 - exponent).unsigned_abs() as usize;
        without_zeros(&format!("{value:.places$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let exponent = exponent.unsigned_abs();
        format!("{}e{sign}{exponent:02}", without_zeros(digits))
    }
}

/// The part of so many that one of several has: the first ones have one more where they are uneven.
pub(crate) fn share(all: u64, parts: u64, number: u64) -> u64 {
    all / parts + u64::from(number < all % parts)
}

/// The standard deviation of a sample with this mean; 0 of fewer than two.
pub(crate) fn deviation(values: impl ExactSizeIterator<Item = f64>, mean: f64) -> f64 {
    let others = values.len().saturating_sub(1).max(1);
    let squares = values.fold(0.0, |sum, value| sum + (value - mean).powi(2));
    (squares / others as f64).sqrt()
}

/// Microseconds of a time as [`Times`] keeps them: an hour and more is kept exactly.
pub(crate) fn short_us(us: u64) -> u32 {
    u32::try_from(us).unwrap_or(u32::MAX)
}

/// Times in order, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times(Vec<u32>);

impl Times {
    /// Sorts `us`, which may be in any order.
    pub(crate) fn of(mut us: Vec<u32>) -> Self {
        us.sort_unstable();
        Self(us)
    }

    /// How many there are.
    pub(crate) fn total(&self) -> u64 {
        self.0.len() as u64
    }

    /// The one in this place from 0; the longest beyond the end; 0 of none.
    pub(crate) fn at(&self, place: u64) -> u64 {
        let place = place.min(self.total().saturating_sub(1));
        self.0.get(place as usize).copied().unwrap_or(0).into()
    }

    pub(crate) fn longest(&self) -> u64 {
        self.at(u64::MAX)
    }

    /// All together.
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().copied().map(u64::from).sum()
    }

    /// The mean in whole microseconds; 0 of none.
    pub(crate) fn mean(&self) -> u64 {
        self.sum() / self.total().max(1)
    }

    /// The standard deviation from the whole mean.
    pub(crate) fn deviation(&self) -> f64 {
        deviation(self.0.iter().copied().map(f64::from), self.mean() as f64)
    }
}

/// OpenSSL's names of the cipher suites of TLS 1.2 that brunt has.
pub(crate) const SUITES: [&str; 6] = [
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
];
/// The cipher suites of TLS 1.3, which OpenSSL and the IANA registry name alike.
pub(crate) const SUITES_OF_1_3: [&str; 3] = [
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
];
/// Groups of key exchange, as OpenSSL and as the IANA registry name them.
pub(crate) const GROUPS: [(&str, &str); 8] = [
    ("X25519", "x25519"),
    ("P-256", "secp256r1"),
    ("prime256v1", "secp256r1"),
    ("secp256r1", "secp256r1"),
    ("P-384", "secp384r1"),
    ("secp384r1", "secp384r1"),
    ("X25519MLKEM768", "X25519MLKEM768"),
    ("SecP256r1MLKEM768", "SecP256r1MLKEM768"),
];

/// The IANA registry's name of one of [`SUITES`].
pub(crate) fn iana_suite(openssl: &str) -> String {
    let name = openssl.replace("-AES", "-WITH-AES-");
    let name = name.replace("-CHACHA20-POLY1305", "-WITH-CHACHA20-POLY1305-SHA256");
    format!("TLS_{name}").replace('-', "_")
}

/// OpenSSL's name of a suite by that of the IANA registry.
pub(crate) fn openssl_suite(iana: &str) -> &str {
    let named = SUITES
        .into_iter()
        .find(|openssl| iana_suite(openssl) == iana);
    named.unwrap_or(iana)
}

/// OpenSSL's words for the key of a group; absent where it has none.
pub(crate) fn temporary_key(group: &str) -> Option<String> {
    let text = match group.to_ascii_lowercase().as_str() {
        "x25519" => "X25519 253 bits",
        "secp256r1" => "ECDH P-256 256 bits",
        "secp384r1" => "ECDH P-384 384 bits",
        "secp521r1" => "ECDH P-521 521 bits",
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_the_c_library_prints_them() {
        for (value, text) in [
            (0.0, "0"),
            (3.0, "3"),
            (1.25, "1.25"),
            (0.1234, "0.1234"),
            (123_456.789, "123457"),
            (0.333_333_333, "0.333333"),
            (1e8, "1e+08"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_012_5, "1.25e-05"),
            (100.0, "100"),
            (999_999.9, "1e+06"),
        ] {
            assert_eq!(general(value), text, "{value}");
        }
    }
}
