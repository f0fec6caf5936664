//! Target: lists of requests, as URLs and as targets.

use brunt_load::request_list::{targets, urls};

/// Takes the input as a list in each of its forms: it is read or refused, and what is read is to
/// one server.
pub fn request_list(data: &[u8]) {
    let lines = data.split(|&byte| byte == b'\n').count();
    for mut list in [urls(data, None), targets(data, None)] {
        let mut count = 0;
        let mut is_refused = false;
        for listed in &mut list {
            assert!(!is_refused, "nothing comes behind an error");
            match listed {
                Ok(listed) => {
                    assert!((1..=lines).contains(&listed.line));
                    assert!(listed.request.path.starts_with('/'));
                    count += 1;
                }
                Err(_) => is_refused = true,
            }
        }
        assert!(count <= lines);
        assert!(is_refused || (count > 0) == list.target().is_ok());
    }
}
