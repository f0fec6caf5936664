//! Which HTTP is spoken, and how TLS: from what was typed to the plan's parts, and what contradicts
//! itself.

use std::num::NonZeroU32;

use anyhow::{Result, bail};
use brunt_load::{ClientIdentity, HttpChoice, Scheme, Target, TlsSpec, TlsVersion};

use crate::args::{LoadArguments, ProtocolArguments, TlsVersionName};

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
        let scheme = target.map_or(Scheme::Http, |target| target.scheme);
        check_http(arguments, scheme, target)?;
        check_tls(arguments, scheme, target)?;
        Ok(Self {
            http: match (typed.http1, typed.http2) {
                (true, _) => HttpChoice::Http1,
                (_, true) => HttpChoice::Http2,
                (false, false) => HttpChoice::Auto,
            },
            tls: tls_spec(typed)?,
            streams: typed.streams.unwrap_or(NonZeroU32::MIN),
        })
    }
}

/// What goes with one version of HTTP only needs that version.
fn check_http(arguments: &LoadArguments, scheme: Scheme, target: Option<&Target>) -> Result<()> {
    let typed = &arguments.protocol;
    if typed.streams.is_some() && scheme == Scheme::Http && !typed.http2 {
        bail!(
            "--streams is about HTTP/2, and {} is spoken to in HTTP/1.1; add --http2, or use \
             --pipeline",
            in_words(target)
        );
    }
    if arguments.pipeline > NonZeroU32::MIN && scheme == Scheme::Https && !typed.http1 {
        bail!(
            "--pipeline is about HTTP/1.1, and over TLS the server may choose HTTP/2; add --http1, \
             or use --streams"
        );
    }
    Ok(())
}

/// TLS options need something that is reached over TLS, and must leave something to be offered.
fn check_tls(arguments: &LoadArguments, scheme: Scheme, target: Option<&Target>) -> Result<()> {
    let typed = &arguments.protocol;
    let is_https = |target: &Target| target.scheme == Scheme::Https;
    // What is read beside the load may be read over TLS, whatever the load is.
    let beside = arguments.watch_url.as_ref().is_some_and(is_https)
        || arguments
            .verify_url
            .as_ref()
            .is_some_and(|counter| is_https(&counter.target));
    let given = [
        ("--sni", typed.sni.is_some(), false),
        ("--cacert", typed.cacert.is_some(), beside),
        ("--cert", typed.cert.is_some(), beside),
        ("--insecure", typed.insecure, beside),
        ("--tls-min", typed.tls_min.is_some(), beside),
        ("--tls-max", typed.tls_max.is_some(), beside),
        ("--tls-ciphers", !typed.tls_ciphers.is_empty(), beside),
        ("--tls-groups", !typed.tls_groups.is_empty(), beside),
        ("--tls-resume", typed.tls_resume, false),
    ];
    let idle = given
        .into_iter()
        .find(|&(_, given, has_use)| given && !has_use);
    if scheme == Scheme::Http
        && let Some((option, ..)) = idle
    {
        bail!(
            "{option} is about TLS, and {} is spoken to in clear text; give an https URL, or leave \
             {option} out",
            in_words(target)
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
        roots: typed.cacert.clone(),
        identity: typed.cert.as_ref().map(|certificate| ClientIdentity {
            certificate: certificate.clone(),
            key: typed.key.as_ref().unwrap_or(certificate).clone(),
        }),
        insecure: typed.insecure,
        version_min,
        version_max,
        cipher_suites: typed.tls_ciphers.clone(),
        groups: typed.tls_groups.clone(),
        resumption: typed.tls_resume,
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
