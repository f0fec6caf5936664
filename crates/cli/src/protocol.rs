//! Which HTTP is spoken, and how TLS: from what was typed to the plan's parts, and what contradicts
//! itself.

use std::num::NonZeroU32;

use anyhow::{Result, bail};
use brunt_load::{ClientIdentity, HttpChoice, Scheme, Target, TlsSpec, TlsVersion};

use crate::args::LoadArguments;
use crate::protocol_args::ProtocolArguments;
use crate::values::TlsVersionName;

/// The parts of a plan that the protocol options make.
#[derive(Clone, Debug)]
pub(crate) struct ProtocolChoice {
    pub(crate) http: HttpChoice,
    pub(crate) tls: TlsSpec,
    pub(crate) streams: NonZeroU32,
}

impl ProtocolChoice {
    /// Looks at the options for a load on `target`; absent: the built-in server.
    pub(crate) fn new(arguments: &LoadArguments, target: Option<&Target>) -> Result<Self> {
        let typed = &arguments.protocol;
        let scheme = match target {
            Some(target) if !target.scheme.protocol().carries_http => target.scheme,
            Some(target) => target.scheme,
            None if typed.http3 => Scheme::Https,
            None => Scheme::Http,
        };
        check_http(arguments, scheme, target)?;
        check_tls(arguments, scheme, target)?;
        Ok(Self {
            // A text is one of HTTP/1.1.
            http: if typed.http1 || !arguments.raw.is_empty() {
                HttpChoice::HTTP1
            } else if typed.http2 {
                HttpChoice::HTTP2
            } else if typed.http3 {
                HttpChoice::HTTP3
            } else {
                HttpChoice::AUTO
            },
            tls: tls_spec(typed)?,
            streams: typed.streams.unwrap_or(NonZeroU32::MIN),
        })
    }
}

/// What goes with one version of HTTP only needs that version. Over TLS it is the server that
/// chooses.
fn check_http(arguments: &LoadArguments, scheme: Scheme, target: Option<&Target>) -> Result<()> {
    let typed = &arguments.protocol;
    if typed.http3 && !scheme.is_secure() {
        bail!(
            "--http3 is over TLS alone, and {} is spoken to in clear text; give an https URL",
            in_words(target)
        );
    }
    if typed.streams.is_some() && scheme == Scheme::Http && !typed.http2 {
        bail!(
            "--streams is about HTTP/2, and {} is spoken to in HTTP/1.1; add --http2, or use \
             --pipeline",
            in_words(target)
        );
    }
    Ok(())
}

/// TLS options need something that is reached over TLS, and none may make another one idle. Where
/// no certificate is looked at, any is taken: `--insecure` is always good.
fn check_tls(arguments: &LoadArguments, scheme: Scheme, target: Option<&Target>) -> Result<()> {
    let typed = &arguments.protocol;
    let is_https = |target: &Target| target.scheme.is_secure();
    // What is read beside the load may be read over TLS, whatever the load is.
    let beside = arguments
        .verify_url
        .as_ref()
        .is_some_and(|counter| is_https(&counter.target));
    let given = [
        ("--sni", typed.sni.is_some(), false),
        ("--cacert", typed.cacert.is_some(), beside),
        ("--cert", typed.cert.is_some(), beside),
        ("--tls-min", typed.tls_min.is_some(), beside),
        ("--tls-max", typed.tls_max.is_some(), beside),
        ("--tls-resume", typed.tls_resume, false),
    ];
    let idle = given
        .into_iter()
        .find(|&(_, given, has_use)| given && !has_use);
    if !scheme.is_secure()
        && let Some((option, ..)) = idle
    {
        bail!(
            "{option} is about TLS, and {} is spoken to in clear text; {}, or leave {option} out",
            in_words(target),
            match target {
                Some(target) if !target.scheme.is_of_messages() => "give an https URL",
                None => "give the https URL of a server",
                _ => "begin the server with tls://",
            }
        );
    }
    if typed.insecure && typed.cacert.is_some() {
        bail!(
            "--insecure takes any certificate, and with it --cacert verifies nothing; leave one of \
             them out"
        );
    }
    Ok(())
}

/// How TLS is spoken.
fn tls_spec(typed: &ProtocolArguments) -> Result<TlsSpec> {
    let default = TlsSpec::default();
    let version_min = typed.tls_min.map_or(default.version_min, version);
    let version_max = typed.tls_max.map_or(default.version_max, version);
    if version_min > version_max {
        bail!("--tls-min 1.3 is above --tls-max 1.2: no version is left to offer");
    }
    Ok(TlsSpec {
        server_name: typed.sni.clone(),
        roots: typed.cacert.clone().map(Into::into),
        identity: typed.cert.as_ref().map(|certificate| ClientIdentity {
            certificate: certificate.clone().into(),
            key: typed.key.as_ref().unwrap_or(certificate).clone().into(),
        }),
        insecure: typed.insecure,
        version_min,
        version_max,
        resumption: typed.tls_resume,
        ..default
    })
}

fn version(name: TlsVersionName) -> TlsVersion {
    match name {
        TlsVersionName::Tls12 => TlsVersion::Tls12,
        TlsVersionName::Tls13 => TlsVersion::Tls13,
    }
}

fn in_words(target: Option<&Target>) -> &str {
    target.map_or("the built-in server", |target| &target.url)
}

#[cfg(test)]
mod tests {

    use clap::Parser;

    use super::*;
    use crate::args::Arguments;

    /// What the words after `brunt` make of the protocol, their URL included.
    fn choice(typed: &str) -> Result<ProtocolChoice> {
        let words = ["brunt"].into_iter().chain(typed.split_whitespace());
        let arguments = Arguments::try_parse_from(words)?.load;
        let url = arguments.url.as_ref();
        let target = url.map(|url| Target::parse(url, None)).transpose()?;
        ProtocolChoice::new(&arguments, target.as_ref())
    }

    fn good(typed: &str) -> ProtocolChoice {
        choice(typed).unwrap_or_else(|error| panic!("{typed}: {error}"))
    }

    #[test]
    fn the_protocol_is_what_was_typed() {
        for (typed, http, streams) in [
            ("", HttpChoice::AUTO, 1),
            ("http://host/", HttpChoice::AUTO, 1),
            ("https://host/", HttpChoice::AUTO, 1),
            ("--pipeline 8 http://host/", HttpChoice::AUTO, 1),
            (
                "--pipeline 8 --streams 8 https://host/",
                HttpChoice::AUTO,
                8,
            ),
            ("--http1", HttpChoice::HTTP1, 1),
            ("--http1 --pipeline 8 https://host/", HttpChoice::HTTP1, 1),
            ("--pipeline 8 https://host/", HttpChoice::AUTO, 1),
            ("--http2", HttpChoice::HTTP2, 1),
            ("--http2 --streams 10", HttpChoice::HTTP2, 10),
            (
                "--http2 --streams 1k http://host/",
                HttpChoice::HTTP2,
                1_000,
            ),
            ("--streams 10 https://host/", HttpChoice::AUTO, 10),
            (
                "--http2 --unix-socket /s https://host/",
                HttpChoice::HTTP2,
                1,
            ),
        ] {
            let choice = good(typed);
            assert_eq!(
                (choice.http, choice.streams.get()),
                (http, streams),
                "{typed}"
            );
            assert_eq!(choice.tls, TlsSpec::default(), "{typed}");
        }
    }

    #[test]
    fn tls_is_what_was_typed() {
        type Change = fn(&mut TlsSpec);
        let cases: [(&str, Change); 7] = [
            ("--sni name.example", |spec| {
                spec.server_name = Some("name.example".to_owned());
            }),
            ("--cacert ca.pem", |spec| spec.roots = Some("ca.pem".into())),
            ("-k", |spec| spec.insecure = true),
            ("--tls-min 1.3", |spec| spec.version_min = TlsVersion::Tls13),
            ("--tls-max 1.2", |spec| spec.version_max = TlsVersion::Tls12),
            ("--tls-min 1.2 --tls-max 1.3", |_| {}),
            ("--tls-resume", |spec| spec.resumption = true),
        ];
        for (typed, change) in cases {
            let mut expected = TlsSpec::default();
            change(&mut expected);
            let choice = good(&format!("{typed} https://host/"));
            assert_eq!(choice.tls, expected, "{typed}");
        }
    }

    #[test]
    fn a_key_may_lie_with_its_certificate() {
        for (typed, key) in [
            ("--cert both.pem https://host/", "both.pem"),
            ("--cert both.pem --key key.pem https://host/", "key.pem"),
        ] {
            let identity = good(typed).tls.identity.expect(typed);
            assert_eq!(identity.certificate, "both.pem".into(), "{typed}");
            assert_eq!(identity.key, key.into(), "{typed}");
        }
    }

    #[test]
    fn tls_may_be_for_what_is_read_beside_the_load() {
        for typed in [
            "-k --verify-url https://host/status http://host/",
            "--cacert ca.pem --verify-url https://host/status http://host/",
            "--cert c --tls-min 1.3 --verify-url https://host/status http://host/",
        ] {
            good(typed);
        }
        for typed in ["--sni name", "--tls-resume"] {
            let typed = format!("{typed} --verify-url https://host/ http://host/");
            assert!(choice(&typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn contradictions() {
        for (typed, words) in [
            ("--http1 --http2", "'--http1' cannot be used with '--http2'"),
            ("--http1 --streams 2", "cannot be used with '--streams <N>'"),
            (
                "--http2 --pipeline 2",
                "cannot be used with '--pipeline <N>'",
            ),
            (
                "--streams 2 --pipeline 2 http://host/",
                "--streams is about HTTP/2",
            ),
            (
                "--no-keepalive --streams 2 https://host/",
                "cannot be used with '--streams <N>'",
            ),
            ("--streams 0 --http2", "at least 1"),
            (
                "--streams 2 http://host/",
                "http://host/ is spoken to in HTTP/1.1",
            ),
            (
                "--streams 2",
                "the built-in server is spoken to in HTTP/1.1",
            ),
            ("--key key.pem https://host/", "--cert <FILE>"),
            (
                "-k --cacert ca.pem https://host/",
                "--cacert verifies nothing",
            ),
            (
                "--tls-min 1.3 --tls-max 1.2 https://host/",
                "no version is left",
            ),
            ("--tls-min 1.1 https://host/", "1.2, 1.3"),
            ("--sni https://host/ https://host/", "host name alone"),
            ("-m 10 https://host/", "--streams 10"),
            ("--http3 --tls-resume", "cannot be used with '--tls-resume'"),
        ] {
            let error = choice(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{typed}: {error}");
        }
    }

    #[test]
    fn tls_options_need_tls() {
        for typed in [
            "--sni name",
            "--cacert ca.pem",
            "--cert c.pem",
            "--cert c.pem --key k.pem",
            "--tls-min 1.2",
            "--tls-max 1.3",
            "--tls-resume",
        ] {
            let option = typed.split(' ').next().expect("a word");
            for (url, name, remedy) in [
                ("http://host/", "http://host/", "an https URL"),
                ("", "the built-in server", "the https URL"),
            ] {
                let error = choice(&format!("{typed} {url}"))
                    .expect_err(typed)
                    .to_string();
                for words in [option, name, "clear text", remedy] {
                    assert!(error.contains(words), "{typed} {url}: {error}");
                }
            }
        }
        for typed in ["-k", "-k http://host/"] {
            good(typed);
        }
    }
}
