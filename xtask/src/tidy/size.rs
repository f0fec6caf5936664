//! The size of a file: what is large was built or downloaded, and is not source.

use super::Finding;

const BYTES_MAX: u64 = 1 << 20;

pub(super) fn check(path: &str, bytes: u64) -> Option<Finding> {
    (bytes > BYTES_MAX).then(|| {
        let message = format!("{bytes} bytes, over {BYTES_MAX}: remove it, or make it where used");
        Finding::new(path, 1, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_files_are_refused() {
        assert_eq!(check("a.json", BYTES_MAX), None);
        assert!(check("a.whl", BYTES_MAX + 1).is_some());
    }
}
