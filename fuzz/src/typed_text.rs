//! Target: what people type: URLs, durations, counts.

use brunt_load::{Target, units};

/// Takes the input as a URL, a duration and a count. A URL that is accepted gives a request target
/// and a host without blanks or control characters, and reads the same again.
pub fn typed_text(data: &[u8]) {
    let typed = String::from_utf8_lossy(data);
    // Any answer will do, as long as it is one.
    let _ = units::duration_ns(&typed);
    let _ = units::count(&typed);
    let Ok(target) = Target::parse(&typed, None) else {
        return;
    };
    for part in [&target.path, &target.authority, &target.host] {
        let clean = |byte: u8| byte.is_ascii_graphic();
        assert!(part.bytes().all(clean), "{part:?} of {typed:?}");
    }
    assert!(target.path.starts_with('/'));
    assert_eq!(Target::parse(&target.url, None), Ok(target));
}
