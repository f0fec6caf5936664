//! What OpenSSL calls the cipher suites and groups of TLS that brunt has.

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
