//! Target: control messages beside received bytes.

use brunt_io::receive_stamps::{CONTROL_BYTES, stamp_in};

/// Takes the input as what the kernel wrote. A stamp is taken from a whole message alone, whatever
/// follows it.
pub fn control_message(data: &[u8]) {
    let stamp = stamp_in(data);
    if stamp.is_some() {
        // The kernel's header begins with the length of the message.
        let (length, _) = data.split_first_chunk().expect("a header");
        let whole = &data[..usize::from_ne_bytes(*length)];
        assert_eq!(stamp_in(whole), stamp);
    }
    for length in 0..CONTROL_BYTES.min(data.len()) {
        assert_eq!(stamp_in(&data[..length]), None);
    }
}
