//! `brunt ab`: what it refuses.

use crate::support::process::brunt;

#[test]
fn what_brunt_does_not_have_is_said() {
    for option in ["-fTLS1.1", "-ZAES128-SHA", "-n99999999"] {
        let outcome = brunt(&format!("ab {option} https://127.0.0.1:1/"));
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.starts_with("brunt: -"), "{outcome:?}");
    }
}
