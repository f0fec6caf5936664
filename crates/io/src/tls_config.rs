//! The TLS configuration of a run, from its plan: files are read, the system's roots found,
//! protocols offered.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use brunt_load::{ClientIdentity, Plan, PlanFile, ProtocolSpec, Scheme, Target, TlsSpec};
use brunt_proto::tls::{
    ALPN_HTTP1, CertificateFault, ClientOptions, ClientSide, ConfigError, is_encrypted_key,
};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{KeyLog, KeyLogFile};
use thiserror::Error;

use crate::files;

/// Names a file for the secrets of TLS sessions, for tools that decrypt captured traffic.
const KEY_LOG_VARIABLE: &str = "SSLKEYLOGFILE";
/// Most rights that a file with session secrets may have: its owner's to read and write.
const KEY_LOG_MODE: u32 = 0o600;

/// Why TLS cannot be spoken as the plan wants it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsConfigError {
    /// A file, or the system's root certificates, cannot be used; why, and what to do.
    #[error("{0}")]
    Files(String),
    /// The settings do not go together.
    #[error(transparent)]
    Settings(#[from] ConfigError),
}

/// What to do about a certificate in binary form.
const DER_HINT: &str = "; it looks like DER, which `openssl x509 -inform der` converts";

/// What all TLS sessions of a run share; absent in clear text.
///
/// # Errors
///
/// A file cannot be used, there are no roots, or the settings do not go together.
pub fn for_target(plan: &Plan) -> Result<Option<ClientSide>, TlsConfigError> {
    side_of(plan, &plan.connection.tls)
}

/// What all TLS sessions with a simulated server share; absent in clear text. Nobody vouches for
/// such a server's certificate: any is taken.
pub fn for_simulation(plan: &Plan) -> Result<Option<ClientSide>, TlsConfigError> {
    let spec = TlsSpec {
        roots: None,
        insecure: true,
        ..plan.connection.tls.clone()
    };
    side_of(plan, &spec)
}

fn side_of(plan: &Plan, spec: &TlsSpec) -> Result<Option<ClientSide>, TlsConfigError> {
    if !plan.target.scheme.is_secure() {
        return Ok(None);
    }
    client_side(spec, &plan.target.host, &offered(&plan.connection.protocol)).map(Some)
}

/// What is offered (ALPN) where this is to be spoken, in the order of preference.
fn offered(spec: &ProtocolSpec) -> Vec<&'static [u8]> {
    let names = spec.protocols().iter().filter_map(|protocol| protocol.alpn);
    names.map(str::as_bytes).collect()
}

/// What makes a certificate with this fault pass.
pub fn remedy(fault: CertificateFault) -> &'static str {
    match fault {
        CertificateFault::Issuer => {
            "give its root with --cacert FILE, or take any certificate with -k"
        }
        CertificateFault::Name => {
            "ask for a name that it has with --sni NAME, or take any certificate with -k"
        }
        CertificateFault::Other => "take any certificate with -k",
    }
}

/// TLS towards pages beside the load: as towards the target, in HTTP/1.1. The name that `--sni`
/// gives is sent to the target's host alone. Pages of other hosts are asked for by their own names.
#[derive(Clone, Debug, Default)]
pub struct PageTls {
    spec: TlsSpec,
    target_host: String,
}

impl PageTls {
    /// The settings for a target on `target_host`.
    pub fn new(spec: &TlsSpec, target_host: &str) -> Self {
        Self {
            spec: spec.clone(),
            target_host: target_host.to_owned(),
        }
    }

    /// What the sessions with a page's server share; absent in clear text. Errors as in
    /// [`for_target`].
    pub fn side(&self, page: &Target) -> Result<Option<ClientSide>, TlsConfigError> {
        if page.scheme == Scheme::Http {
            return Ok(None);
        }
        let mut spec = self.spec.clone();
        if page.host != self.target_host {
            spec.server_name = None;
            // Of the target's own certificate; others are verified against the system's.
            spec.roots_der.clear();
        }
        client_side(&spec, &page.host, &[ALPN_HTTP1]).map(Some)
    }
}

fn client_side(spec: &TlsSpec, host: &str, alpn: &[&[u8]]) -> Result<ClientSide, TlsConfigError> {
    let mut roots = match &spec.roots {
        Some(file) => certificates(file, "--cacert")?,
        None if spec.insecure || !spec.roots_der.is_empty() => Vec::new(),
        None => system_roots()?,
    };
    roots.extend(spec.roots_der.iter().cloned().map(CertificateDer::from));
    Ok(ClientSide::new(ClientOptions {
        server_name: spec.name_for(host).to_owned(),
        asks_by_name: spec.asks_by_name,
        roots,
        insecure: spec.insecure,
        identity: spec.identity.as_ref().map(identity).transpose()?,
        version_min: spec.version_min,
        version_max: spec.version_max,
        cipher_suites: spec.cipher_suites.clone(),
        groups: spec.groups.clone(),
        resumption: spec.resumption,
        alpn: alpn.iter().map(|name| name.to_vec()).collect(),
        key_log: key_log(std::env::var_os(KEY_LOG_VARIABLE).as_deref())?,
    })?)
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let error = found.errors.first().map(|error| format!(" ({error})"));
        return Err(TlsConfigError::Files(format!(
            "this system has no root certificates to verify the server's with{}; give a file with \
             --cacert, or take any certificate with -k",
            error.unwrap_or_default()
        )));
    }
    Ok(found.certs)
}

/// The certificates of one file with the key in another, or in the same one.
///
/// # Errors
///
/// A file cannot be used.
pub fn identity(
    files: &ClientIdentity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsConfigError> {
    Ok((
        certificates(&files.certificate, "--cert")?,
        private_key(&files.key, key_option(files))?,
    ))
}

/// Reads the files that a plan names, so that it holds what is in them and can go to another
/// process.
///
/// # Errors
///
/// A file cannot be read.
pub fn read_files(spec: &mut TlsSpec) -> Result<(), TlsConfigError> {
    let key_option = spec.identity.as_ref().map_or("--key", key_option);
    let read = |file: &mut PlanFile, option| -> Result<(), TlsConfigError> {
        if file.unread().is_some() {
            *file = PlanFile::Content {
                name: file.name(),
                bytes: content(file, option)?.into_owned(),
            };
        }
        Ok(())
    };
    if let Some(roots) = &mut spec.roots {
        read(roots, "--cacert")?;
    }
    if let Some(ClientIdentity { certificate, key }) = &mut spec.identity {
        read(certificate, "--cert")?;
        read(key, key_option)?;
    }
    Ok(())
}

/// The option that names the key: one file may hold both.
fn key_option(identity: &ClientIdentity) -> &'static str {
    if identity.key == identity.certificate {
        "--cert"
    } else {
        "--key"
    }
}

/// All certificates of a PEM file, which this option names; what else it holds is passed over.
///
/// # Errors
///
/// The file cannot be read, or holds none.
pub fn certificates(
    file: &PlanFile,
    option: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let text = content(file, option)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|reason| unusable(file, option, &damage(&reason)))?;
    if found.is_empty() {
        // A SEQUENCE with a length of two bytes, as of any certificate.
        let is_der = text.starts_with(&[0x30, 0x82]);
        let hint = if is_der { DER_HINT } else { "" };
        let words = format!("holds no certificate in PEM form (-----BEGIN CERTIFICATE-----){hint}");
        return Err(unusable(file, option, &words));
    }
    Ok(found)
}

/// A file of no use, with what is said of it.
fn unusable(file: &PlanFile, option: &str, words: &str) -> TlsConfigError {
    TlsConfigError::Files(format!("{} ({option}) {words}", file.name()))
}

fn damage(reason: &pem::Error) -> String {
    format!("is damaged: {reason}")
}

/// The first private key of a PEM file.
fn private_key(file: &PlanFile, option: &str) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
    let text = content(file, option)?;
    if is_encrypted_key(&text) {
        return Err(TlsConfigError::Files(format!(
            "the private key in {} ({option}) is encrypted; decrypt it with `openssl pkey`",
            file.name()
        )));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|reason| match reason {
        pem::Error::NoItemsFound => {
            let words = "holds no private key in PEM form (PKCS #8, PKCS #1 or SEC 1); name the \
                         file that does with --key FILE";
            unusable(file, option, words)
        }
        reason => unusable(file, option, &damage(&reason)),
    })
}

/// What is in a file.
fn content<'a>(file: &'a PlanFile, option: &str) -> Result<Cow<'a, [u8]>, TlsConfigError> {
    match file {
        PlanFile::At(path) => {
            let bytes = files::read_file(path, files::PEM_BYTES_MAX);
            bytes.map(Cow::Owned).map_err(|reason| {
                let path = path.display();
                TlsConfigError::Files(format!("cannot read {path} ({option}): {reason}"))
            })
        }
        PlanFile::Content { bytes, .. } => Ok(Cow::Borrowed(bytes)),
        PlanFile::Withheld { name } => Err(TlsConfigError::Files(format!(
            "what is in {name} ({option}) was left out of the plan; give it again"
        ))),
    }
}

/// Where session secrets go, when the environment asks for it.
fn key_log(variable: Option<&OsStr>) -> Result<Option<Arc<dyn KeyLog>>, TlsConfigError> {
    let Some(path) = variable.filter(|path| !path.is_empty()).map(Path::new) else {
        return Ok(None);
    };
    // The library would pass over a file that it cannot write. The mode is the one that it makes
    // the file with.
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(KEY_LOG_MODE)
        .open(path);
    let metadata = file.and_then(|file| file.metadata());
    let shown = path.display();
    let metadata = metadata.map_err(|reason| {
        TlsConfigError::Files(format!(
            "cannot write {shown} ({KEY_LOG_VARIABLE}): {reason}"
        ))
    })?;
    let mode = metadata.permissions().mode() & 0o777;
    // Pipes and devices keep nothing.
    if metadata.is_file() && mode & !KEY_LOG_MODE != 0 {
        return Err(TlsConfigError::Files(format!(
            "{shown} ({KEY_LOG_VARIABLE}) may be read or written by others (mode {mode:o}), and \
             session keys are secret; `chmod 600 {shown}`, or name another file"
        )));
    }
    Ok(Some(Arc::new(KeyLogFile::new())))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::tls_peer::{Authority, Identity};

    struct Files(tempfile::TempDir);

    impl Files {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, contents: &[u8]) -> PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, contents).unwrap();
            path
        }
    }

    /// Why these settings are of no use.
    fn refusal(spec: &TlsSpec) -> String {
        client_side(spec, "example.org", &[])
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn files_with_roots() {
        let files = Files::new();
        let (one, other) = (Authority::new("One"), Authority::new("Other"));
        let bundle = format!("# One\n{}\n# Other\n{}", one.pem(), other.pem());
        let path = files.write("bundle.pem", bundle.as_bytes());
        assert_eq!(
            certificates(&path.into(), "--cacert").unwrap(),
            [one.certificate(), other.certificate()]
        );
        let damaged = one.pem().replace("-----END", "!----END");
        let key = one.identity("example.org").key_pem;
        let none = "holds no certificate in PEM form";
        for (contents, words) in [
            (&b""[..], none),
            (b"certificates\n", none),
            (key.as_bytes(), none),
            (&one.certificate(), "it looks like DER"),
            (damaged.as_bytes(), "is damaged"),
        ] {
            let roots = Some(files.write("roots", contents).into());
            let message = refusal(&TlsSpec {
                roots,
                ..TlsSpec::default()
            });
            assert!(
                message.contains(words) && message.contains("roots (--cacert)"),
                "{words}: {message}"
            );
        }
        let message = refusal(&TlsSpec {
            roots: Some("/nowhere/roots.pem".into()),
            insecure: true,
            ..TlsSpec::default()
        });
        assert!(
            message.starts_with("cannot read /nowhere/roots.pem (--cacert): No such file"),
            "{message}"
        );
    }

    #[test]
    fn files_with_an_identity() {
        let files = Files::new();
        let authority = Authority::new("One");
        let [own, other]: [Identity; 2] = ["a", "b"].map(|name| authority.identity(name));
        let certificate = files.write("own.pem", own.certificate_pem.as_bytes());
        let spec = |key: &Path| TlsSpec {
            insecure: true,
            identity: Some(ClientIdentity {
                certificate: certificate.clone().into(),
                key: key.to_owned().into(),
            }),
            ..TlsSpec::default()
        };
        let both = format!("{}{}", own.key_pem, own.certificate_pem);
        for contents in [&own.key_pem, &both] {
            let key = files.write("key", contents.as_bytes());
            assert!(client_side(&spec(&key), "example.org", &[]).is_ok());
        }
        let encrypted = own.key_pem.replace("PRIVATE", "ENCRYPTED PRIVATE");
        for (contents, words) in [
            (&other.key_pem, "cannot be used"),
            (&other.certificate_pem, "(--key) holds no private key"),
            (&encrypted, "key (--key) is encrypted"),
        ] {
            let key = files.write("key", contents.as_bytes());
            let message = refusal(&spec(&key));
            assert!(message.contains(words), "{words}: {message}");
        }
        let message = refusal(&spec(&certificate));
        assert!(
            message.contains("own.pem (--cert) holds no private key")
                && message.ends_with("with --key FILE"),
            "{message}"
        );
    }

    #[test]
    fn session_secrets_are_written_where_the_environment_says() {
        let files = Files::new();
        assert!(key_log(None).unwrap().is_none());
        assert!(key_log(Some(OsStr::new(""))).unwrap().is_none());
        let path = files.0.path().join("keys");
        assert!(key_log(Some(path.as_os_str())).unwrap().is_some());
        let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, KEY_LOG_MODE);
        for mode in [0o640, 0o604, 0o620, 0o666] {
            set_mode(mode);
            let message = key_log(Some(path.as_os_str())).unwrap_err().to_string();
            let typed = format!("`chmod 600 {}`", path.display());
            assert!(message.contains(&typed), "{message}");
        }
        set_mode(0o600);
        assert!(key_log(Some(path.as_os_str())).unwrap().is_some());
        let message = key_log(Some(files.0.path().as_os_str()))
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("cannot write ") && message.contains("(SSLKEYLOGFILE)"),
            "{message}"
        );
    }

    #[test]
    fn settings_that_do_not_go_together_are_refused() {
        let message = refusal(&TlsSpec {
            insecure: true,
            cipher_suites: vec!["NULL".to_owned()],
            ..TlsSpec::default()
        });
        assert!(message.contains("\"NULL\" is not known"), "{message}");
    }

    #[test]
    fn pages_are_asked_for_by_the_name_of_the_target_on_its_host_alone() {
        let spec = TlsSpec {
            insecure: true,
            server_name: Some("not a name".to_owned()),
            ..TlsSpec::default()
        };
        let tls = PageTls::new(&spec, "target.example");
        let side = |url: &str| tls.side(&Target::parse(url, None).unwrap());
        assert!(side("https://target.example:8443/page").is_err());
        assert!(side("https://other.example/page").unwrap().is_some());
        assert!(side("http://target.example/page").unwrap().is_none());
    }
}
