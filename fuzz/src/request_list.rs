//! Target: lists of requests, as URLs and as targets.

use brunt_load::request_list::fuzz_request_list;

/// Takes the input as a list in each of its forms.
pub fn request_list(data: &[u8]) {
    fuzz_request_list(data);
}
