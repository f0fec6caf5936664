//! Target: control messages beside received bytes.

/// Takes the input as what the kernel wrote.
pub fn control_message(data: &[u8]) {
    brunt_io::receive_stamps::fuzz_control_message(data);
}
