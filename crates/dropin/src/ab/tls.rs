//! What ab's options say of TLS, and its lines about it.

use brunt_load::{ClientIdentity, TlsSpec, TlsVersion};
use brunt_record::Run;

use super::options::Options;
use crate::Ending;
use crate::tls_names::{SUITES, SUITES_OF_1_3, openssl_suite, temporary_key};

/// Words for many suites at once.
const GROUPS: [&str; 12] = [
    "ALL",
    "DEFAULT",
    "HIGH",
    "ECDHE",
    "EECDH",
    "kECDHE",
    "kEECDH",
    "AES",
    "AESGCM",
    "TLSv1.2",
    "aRSA",
    "COMPLEMENTOFDEFAULT",
];

/// What was negotiated, in ab's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tls {
    /// `SSL/TLS Protocol:`.
    pub(super) protocol: String,
    /// `Server Temp Key:`; absent where the key exchange has a kind that ab has no words for.
    pub(super) temporary_key: Option<String>,
    /// `TLS Server Name:`; absent where none is sent.
    pub(super) server_name: Option<String>,
}

/// What was negotiated in `run`; absent in clear text.
pub(super) fn negotiated(options: &Options, run: &Run) -> Option<Tls> {
    let tls = run.first().negotiated.tls.as_ref()?;
    let version = tls.version.replace("TLS ", "TLSv");
    let suite = openssl_suite(&tls.cipher_suite);
    let bits = if suite.contains("AES128") || suite.contains("AES_128") {
        128
    } else {
        256
    };
    Some(Tls {
        protocol: format!("{version},{suite},{bits}"),
        temporary_key: tls.group.as_deref().and_then(temporary_key),
        server_name: options.server_name().map(str::to_owned),
    })
}

impl Options {
    /// The name that is asked for in the handshake.
    fn server_name(&self) -> Option<&str> {
        let is_address = self.url.host.parse::<std::net::IpAddr>().is_ok();
        (!is_address && self.asks_by_name).then_some(&self.url.host)
    }

    /// How TLS is spoken.
    ///
    /// # Errors
    ///
    /// Versions or cipher suites that brunt does not have.
    pub(super) fn tls(&self) -> Result<TlsSpec, Ending> {
        let (version_min, version_max) = self.versions()?;
        let identity = self.identity.as_ref().map(|file| ClientIdentity {
            certificate: file.clone().into(),
            key: file.clone().into(),
        });
        Ok(TlsSpec {
            insecure: true,
            asks_by_name: self.asks_by_name,
            identity,
            version_min,
            version_max,
            cipher_suites: self.suites(version_max)?,
            ..TlsSpec::default()
        })
    }

    fn versions(&self) -> Result<(TlsVersion, TlsVersion), Ending> {
        use TlsVersion::{Tls12, Tls13};
        // What ab does not know it takes as all.
        match self.tls_protocol.as_deref().map(str::to_ascii_uppercase) {
            Some(name) if name == "TLS1.2" => Ok((Tls12, Tls12)),
            Some(name) if name == "TLS1.3" => Ok((Tls13, Tls13)),
            Some(name) if name == "TLS1" || name == "TLS1.1" || name == "SSL3" => {
                let line = format!(
                    "brunt: -f {name}: brunt speaks TLS 1.2 and 1.3, since RFC 8996 has retired \
                     what is older; give -f TLS1.2"
                );
                Err(Ending::error(&line, 1))
            }
            _ => Ok((Tls12, Tls13)),
        }
    }

    /// The suites of `-Z`, in its order; empty for all.
    fn suites(&self, newest: TlsVersion) -> Result<Vec<String>, Ending> {
        let Some(typed) = &self.cipher_suites else {
            return Ok(Vec::new());
        };
        let mut suites = Vec::new();
        for word in typed.split([':', ',', ' ']) {
            if GROUPS.contains(&word) {
                suites.extend(SUITES.iter().map(|(_, iana)| *iana));
            }
            let named = SUITES.iter().filter(|(openssl, _)| *openssl == word);
            suites.extend(named.map(|(_, iana)| *iana));
        }
        for word in typed.split([':', ',', ' ']) {
            if let Some(without) = word.strip_prefix(['!', '-']) {
                let name = |iana: &str| SUITES.iter().find(|(_, it)| *it == iana).map(|it| it.0);
                suites.retain(|iana| name(iana) != Some(without));
            }
        }
        let mut seen = Vec::new();
        suites.retain(|iana| {
            let is_new = !seen.contains(iana);
            seen.push(*iana);
            is_new
        });
        if suites.is_empty() {
            let names: Vec<&str> = SUITES.iter().map(|(openssl, _)| *openssl).collect();
            let line = format!(
                "brunt: -Z {typed}: brunt has none of these for TLS 1.2; give some of {}",
                names.join(":")
            );
            return Err(Ending::error(&line, 1));
        }
        if newest == TlsVersion::Tls13 {
            suites.splice(0..0, SUITES_OF_1_3);
        }
        Ok(suites.into_iter().map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn spec(line: &str) -> Result<TlsSpec, Ending> {
        let words = words(line);
        Options::parse("ab", &words).expect(line).tls()
    }

    #[test]
    fn versions_and_suites_are_taken_as_openssl_names_them() {
        use TlsVersion::{Tls12, Tls13};
        for (line, versions, suites) in [
            ("https://h/", (Tls12, Tls13), 0),
            ("-f TLS1.2 https://h/", (Tls12, Tls12), 0),
            ("-f tls1.3 https://h/", (Tls13, Tls13), 0),
            ("-f ALL https://h/", (Tls12, Tls13), 0),
            ("-f SSL2 https://h/", (Tls12, Tls13), 0),
            (
                "-f TLS1.2 -Z ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA https://h/",
                (Tls12, Tls12),
                1,
            ),
            (
                "-Z HIGH:!ECDHE-RSA-AES128-GCM-SHA256 https://h/",
                (Tls12, Tls13),
                8,
            ),
        ] {
            let spec = spec(line).expect(line);
            assert_eq!((spec.version_min, spec.version_max), versions, "{line}");
            assert_eq!(spec.cipher_suites.len(), suites, "{line}");
            assert!(spec.insecure && spec.asks_by_name);
        }
        let spec = spec("-I -E f.pem https://h/").expect("good");
        assert!(!spec.asks_by_name);
        let identity = spec.identity.expect("given");
        assert_eq!(identity.key, "f.pem".into());
    }

    #[test]
    fn what_brunt_does_not_have_is_said() {
        for (line, words) in [
            (
                "-f TLS1.1 https://h/",
                "brunt: -f TLS1.1: brunt speaks TLS 1.2",
            ),
            (
                "-Z AES128-SHA https://h/",
                "brunt: -Z AES128-SHA: brunt has none",
            ),
        ] {
            let ending = spec(line).expect_err(line);
            assert!(ending.stderr.starts_with(words), "{ending:?}");
        }
    }
}
