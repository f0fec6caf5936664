//! What h2load offers in the handshake, in OpenSSL's words, and what is negotiated.

use brunt_judge::RunFigures;
use brunt_load::HttpChoice;
use brunt_record::Run;

use super::typed::Typed;
use super::wrong::error;
use crate::Ending;
use crate::tls_names::{GROUPS, SUITES, SUITES_OF_1_3, openssl_suite, temporary_key};

/// What a list of protocols (ALPN) offers; what brunt does not know is left out. The first one says
/// whether it is spoken over QUIC.
pub(super) fn offered(list: &str) -> Result<HttpChoice, Ending> {
    match list.split(',').next() {
        Some("h3") => return Ok(HttpChoice::HTTP3),
        Some("h3-29") => {
            let line = "brunt: h3-29 is a draft of HTTP/3; give --alpn-list=h3";
            return Err(error(line));
        }
        _ => {}
    }
    let has = |protocol: &str| list.split(',').any(|it| it == protocol);
    match (has("h2"), has("http/1.1")) {
        (true, true) => Ok(HttpChoice::AUTO),
        (true, false) => Ok(HttpChoice::HTTP2),
        (false, true) => Ok(HttpChoice::HTTP1),
        (false, false) => Err(error(&format!(
            "brunt: --alpn-list={list}: brunt speaks h2 and http/1.1, or h3 where it is the first; \
             give one of them"
        ))),
    }
}

/// What is offered of TLS 1.3 unless something else is asked for.
const USUAL_OF_1_3: &str =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
/// What is offered of TLS 1.2 unless something else is asked for, as far as brunt has it.
const USUAL: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
                     ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
                     ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

/// Cipher suites in their order, IANA names.
pub(super) fn suites(typed: &Typed) -> Result<Vec<String>, Ending> {
    let of_1_3: Vec<(&str, &str)> = SUITES_OF_1_3.iter().map(|&name| (name, name)).collect();
    let list = typed.ciphers_of_1_3.as_deref().unwrap_or(USUAL_OF_1_3);
    let mut suites = named("--tls13-ciphers", list, &of_1_3)?;
    let list = typed.ciphers.as_deref().unwrap_or(USUAL);
    suites.extend(named("--ciphers", list, &SUITES)?);
    Ok(suites)
}

/// Groups of key exchange in their order, IANA names; empty for the usual ones.
pub(super) fn groups(list: Option<&str>) -> Result<Vec<String>, Ending> {
    list.map_or_else(|| Ok(Vec::new()), |list| named("--groups", list, &GROUPS))
}

/// The IANA names of those of a list that are known; at least one has to be.
fn named(option: &str, list: &str, known: &[(&str, &str)]) -> Result<Vec<String>, Ending> {
    let mut names: Vec<String> = Vec::new();
    for word in list.split(':') {
        let of_word = known
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(word));
        if let Some((_, iana)) = of_word
            && !names.iter().any(|name| name == iana)
        {
            names.push((*iana).to_owned());
        }
    }
    if names.is_empty() {
        let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        return Err(error(&format!(
            "brunt: {option} {list}: brunt has none of these; give some of {}",
            known.join(":")
        )));
    }
    Ok(names)
}

/// The lines about what was negotiated; empty in clear text.
pub(super) fn lines(run: &Run) -> String {
    let Some(tls) = &run.first().negotiated.tls else {
        return String::new();
    };
    let version = tls.version.replace("TLS ", "TLSv");
    // QUIC does not tell it.
    let suite = match run.summary().lifetime.quic.is_none() {
        true => format!("Cipher: {}\n", openssl_suite(&tls.cipher_suite)),
        false => String::new(),
    };
    let key = tls.group.as_deref().and_then(temporary_key);
    let key = key.map_or_else(String::new, |key| {
        // h2load has other names than ab for the same curves.
        let key = key.replace("P-256", "prime256v1");
        let key = key.replace("P-384", "secp384r1");
        format!("Server Temp Key: {key}\n")
    });
    format!("TLS Protocol: {version}\n{suite}{key}")
}

#[cfg(test)]
mod tests {
    use super::super::options::Options;
    use super::*;
    use crate::shell::words;

    #[test]
    fn lists_are_openssls() {
        assert_eq!(offered("h2,h2-16,h2-14,http/1.1"), Ok(HttpChoice::AUTO));
        assert_eq!(offered("http/1.1,h2"), Ok(HttpChoice::AUTO));
        assert_eq!(offered("h2"), Ok(HttpChoice::HTTP2));
        assert_eq!(offered("http/1.1"), Ok(HttpChoice::HTTP1));
        assert_eq!(offered("h3,h3-29"), Ok(HttpChoice::HTTP3));
        assert_eq!(offered("h2,h3"), Ok(HttpChoice::HTTP2));
        for list in ["foo", "h3-29", "h3-29,h3", "foo,h3", ""] {
            assert!(offered(list).is_err(), "{list}");
        }
        let options = |line: &str| {
            let words = words(line);
            Options::parse(&words).expect(line).tls.cipher_suites
        };
        let names = options("--ciphers AES128-SHA:ECDHE-RSA-AES128-GCM-SHA256 u");
        assert_eq!(names.len(), 4);
        assert_eq!(names[3], "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
        let usual = options("u");
        assert_eq!((&*usual[0], usual.len()), ("TLS_AES_128_GCM_SHA256", 9));
        let expected = ["x25519", "secp256r1", "secp384r1"].map(str::to_owned);
        assert_eq!(
            groups(Some("X25519:P-256:P-384:P-521")),
            Ok(expected.to_vec())
        );
        let ending = groups(Some("P-521")).expect_err("none");
        assert!(
            ending
                .stderr
                .starts_with("brunt: --groups P-521: brunt has none of these")
        );
    }
}
