//! Target: files of `brunt calibrate`.

use brunt_report::{calibration_from_json, calibration_to_json};

/// Takes the input as a stored calibration. One that is accepted reads back as the same.
pub fn calibration(data: &[u8]) {
    let Ok(calibration) = calibration_from_json(&mut &data[..]) else {
        return;
    };
    let json = calibration_to_json(&calibration).expect("what was read can be written");
    let again = calibration_from_json(&mut json.as_bytes()).expect("what was written can be read");
    assert_eq!(calibration, again);
}
