//! The certificate of `brunt calibrate`, printed, stored and taken back.

use brunt_report::{
    CERTIFICATE_BYTES_MAX, CertificateError, Style, calibration_from_json, calibration_text,
    calibration_to_json,
};
use serde_json::{Value, json};

use crate::fixtures;
use crate::golden::compare;

fn stored() -> String {
    calibration_to_json(&fixtures::calibration()).unwrap()
}

fn error(json: &str) -> CertificateError {
    match calibration_from_json(&mut json.as_bytes()) {
        Ok(_) => panic!("accepted: {json:.100}"),
        Err(error) => error,
    }
}

fn changed(pointer: &str, value: Value) -> String {
    let mut stored: Value = serde_json::from_str(&stored()).unwrap();
    *stored.pointer_mut(pointer).unwrap() = value;
    stored.to_string()
}

#[test]
fn the_certificate_for_people() {
    let text = calibration_text(&fixtures::calibration(), &Style::default());
    compare("calibration.txt", &text);
}

#[test]
fn a_certificate_with_little_in_it() {
    let mut little = fixtures::calibration();
    little.ceilings.clear();
    little.accuracy.clear();
    little.limits.uring_refused = Some("kernel.io_uring_disabled is 2\u{1b}[31m".to_owned());
    let text = calibration_text(&little, &Style::default());
    compare("calibration.little.txt", &text);
}

#[test]
fn no_line_is_wider_than_the_page() {
    for width in [64, 80, 100, 160] {
        let style = Style {
            width,
            ..Style::default()
        };
        for line in calibration_text(&fixtures::calibration(), &style).lines() {
            assert!(line.chars().count() <= width.into(), "at {width}: {line:?}");
            assert!(!line.ends_with(' '), "at {width}: {line:?}");
        }
    }
}

#[test]
fn what_is_stored_is_read_back_whole() {
    let again = calibration_from_json(&mut stored().as_bytes()).unwrap();
    assert_eq!(again, fixtures::calibration());
}

#[test]
fn what_cannot_be_believed_is_refused() {
    for (text, is_right) in [
        (
            "brunt".to_owned(),
            (|it| matches!(it, CertificateError::NotJson(_))) as fn(&CertificateError) -> bool,
        ),
        (stored()[..400].to_owned(), |it| {
            matches!(it, CertificateError::NotJson(_))
        }),
        ("{}".to_owned(), |it| {
            matches!(it, CertificateError::Field(_))
        }),
        ("[1]".to_owned(), |it| {
            matches!(it, CertificateError::Field(_))
        }),
        (changed("/format", json!(2)), |it| {
            matches!(it, CertificateError::OtherFormat { found: 2, known: 1 })
        }),
        (changed("/ceilings/0/workers", json!(-1)), |it| {
            matches!(it, CertificateError::Field(_))
        }),
        (changed("/clock/read_ns", json!("fast")), |it| {
            matches!(it, CertificateError::Field(_))
        }),
        (" ".repeat(CERTIFICATE_BYTES_MAX as usize + 1), |it| {
            matches!(it, CertificateError::TooLarge { .. })
        }),
    ] {
        let error = error(&text);
        assert!(is_right(&error), "{text:.60}: {error:?}");
        assert!(error.to_string().contains("brunt calibrate"), "{error}");
    }
}
