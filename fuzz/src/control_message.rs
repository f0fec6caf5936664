//! Target: control messages beside received bytes.

use brunt_io::receive_stamps::{CONTROL_BYTES, stamp_in};

/// Takes the input as what the kernel wrote: a stamp is taken from a whole message alone.
pub fn control_message(data: &[u8]) {
    if stamp_in(data).is_some() {
        let whole = &data[..CONTROL_BYTES];
        assert!(stamp_in(whole).is_some());
    }
    for length in 0..CONTROL_BYTES.min(data.len()) {
        assert_eq!(stamp_in(&data[..length]), None);
    }
}
