//! Target: certificates and keys in PEM, for client and server.

use brunt_server::{Identity, certificates_from_pem};

/// Takes the input as a chain, as a key, and as both in one file.
pub fn pem(data: &[u8]) {
    if let Ok(certificates) = certificates_from_pem(data) {
        assert!(!certificates.is_empty());
        let held: usize = certificates
            .iter()
            .map(|certificate| certificate.len())
            .sum();
        assert!(held <= data.len());
    }
    // Any answer will do, as long as it is one.
    let _ = Identity::from_pem(data, data);
}
