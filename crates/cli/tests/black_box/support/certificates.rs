//! Certificates of the test's own: an authority, and what it signs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tempfile::TempDir;

/// A host name that every server certificate is for, beside the server's address.
pub(crate) const NAME: &str = "server.test";

/// An authority whose certificate and all that it signed lie in a temporary directory.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Certificate and key in one file.
    pub(crate) both: PathBuf,
}

impl Authority {
    /// Makes one.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // No two have the same name, or the one would be taken for the other.
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut parameters = called(&format!("authority {number}"));
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(parameters, key).expect("its own certificate");
        std::fs::write(directory.path().join("roots.pem"), issuer.pem()).expect("it is ours");
        Self { issuer, directory }
    }

    /// The file of the authority's certificate.
    pub(crate) fn roots(&self) -> PathBuf {
        self.directory.path().join("roots.pem")
    }

    /// The options that make brunt trust it.
    pub(crate) fn trusted(&self) -> String {
        format!("--cacert {}", self.roots().display())
    }

    /// The options that make brunt trust it in a run against `url`; empty where `url` does not
    /// speak TLS.
    pub(crate) fn trusted_at(&self, url: &str) -> String {
        if url.starts_with("https:") {
            self.trusted()
        } else {
            String::new()
        }
    }

    /// A certificate for a server at `address`, which may also be called [`NAME`].
    pub(crate) fn server(&self, address: SocketAddr) -> Identity {
        self.issue(&format!("server-{}", address.port()), |parameters| {
            parameters.not_before = date_time_ymd(2020, 1, 1);
            Self::names(&[&address.ip().to_string(), NAME], parameters);
        })
    }

    /// A certificate for a server at `address` that has been out of date for years.
    pub(crate) fn expired(&self, address: SocketAddr) -> Identity {
        self.issue("expired", |parameters| {
            parameters.not_before = date_time_ymd(2019, 1, 1);
            parameters.not_after = date_time_ymd(2020, 1, 1);
            Self::names(&[&address.ip().to_string()], parameters);
        })
    }

    /// A certificate for a server that is called otherwise.
    pub(crate) fn misnamed(&self) -> Identity {
        self.issue("misnamed", |parameters| {
            Self::names(&["other.test"], parameters)
        })
    }

    /// A certificate for a client.
    pub(crate) fn client(&self) -> Identity {
        self.issue("client", |parameters| {
            parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        })
    }

    fn names(names: &[&str], parameters: &mut CertificateParams) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let named = CertificateParams::new(names).expect("names in ASCII");
        parameters.subject_alt_names = named.subject_alt_names;
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    }

    fn issue(&self, file: &str, shape: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut parameters = called(file);
        shape(&mut parameters);
        let key = KeyPair::generate().expect("a key");
        let signed = parameters.signed_by(&key, &self.issuer);
        let certificate = signed.expect("a certificate").pem();
        let key = key.serialize_pem();
        let write = |suffix: &str, text: &str| {
            let path = self.path().join(format!("{file}{suffix}.pem"));
            std::fs::write(&path, text).expect("it is ours");
            path
        };
        Identity {
            both: write("-both", &format!("{certificate}{key}")),
            certificate: write("", &certificate),
            key: write("-key", &key),
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// A certificate whose subject is none of the others: OpenSSL takes one whose subject is that of
/// its issuer for signed by itself.
fn called(subject: &str) -> CertificateParams {
    let mut parameters = CertificateParams::new([]).expect("no names");
    let subjects = &mut parameters.distinguished_name;
    subjects.push(DnType::CommonName, subject);
    parameters
}
