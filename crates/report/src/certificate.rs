//! The certificate of `brunt calibrate`, stored and taken back: bounded, and refused with a reason.

use std::io::{self, Read};

use brunt_record::Calibration;
use serde::Deserialize;
use serde_json::error::Category;
use thiserror::Error;

use crate::foreign;

/// The largest certificate that is read: 1 MiB.
pub const CERTIFICATE_BYTES_MAX: u64 = 1 << 20;

/// Why a stored certificate could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The input gave an error.
    #[error("cannot read the calibration")]
    Input(#[from] io::Error),
    /// The input is over the limit.
    #[error("over {limit_bytes} bytes: no calibration is that large; run `brunt calibrate` again")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The input is not JSON, or ends inside it.
    #[error("not JSON ({0}); run `brunt calibrate` again")]
    NotJson(serde_json::Error),
    /// The certificate is stored in the layout of another version.
    #[error(
        "stored in format {found}, and this version reads format {known}; \
         run `brunt calibrate` again"
    )]
    OtherFormat {
        /// The format number of the input.
        found: u64,
        /// The format number that is read.
        known: u32,
    },
    /// A field is missing, or holds what no calibration can have put there.
    #[error("not a complete calibration ({0}); run `brunt calibrate` again")]
    Field(serde_json::Error),
}

/// The stored form of `calibration`: indented JSON with a newline at the end.
///
/// # Errors
///
/// When a value has no JSON form.
pub fn calibration_to_json(calibration: &Calibration) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    foreign::write_json(&mut bytes, calibration)?;
    bytes.push(b'\n');
    // What is no UTF-8 is no JSON either.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads what [`calibration_to_json`] gave. Fields that this version does not know are ignored.
///
/// # Errors
///
/// See [`CertificateError`]; nothing is repaired or guessed.
pub fn calibration_from_json(json: &mut dyn Read) -> Result<Calibration, CertificateError> {
    let mut bytes = Vec::new();
    json.take(CERTIFICATE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > CERTIFICATE_BYTES_MAX {
        return Err(CertificateError::TooLarge {
            limit_bytes: CERTIFICATE_BYTES_MAX,
        });
    }
    let refusal = |error: serde_json::Error| match error.classify() {
        Category::Syntax | Category::Eof => CertificateError::NotJson(error),
        Category::Data | Category::Io => CertificateError::Field(error),
    };
    let Envelope { format } = serde_json::from_slice(&bytes).map_err(refusal)?;
    if format != u64::from(Calibration::FORMAT) {
        return Err(CertificateError::OtherFormat {
            found: format,
            known: Calibration::FORMAT,
        });
    }
    serde_json::from_slice(&bytes).map_err(refusal)
}

/// What is looked at before the whole certificate is.
#[derive(Deserialize)]
struct Envelope {
    format: u64,
}
