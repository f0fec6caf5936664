//! What users of other tools type, and what brunt says to it.

use crate::support::certificates::Authority;
use crate::support::nginx::{Nginx, Site};
use crate::support::process::{brunt, refused};
use crate::support::serve::Serve;

/// Servers that are spoken to in clear text where they speak TLS: some send an alert, nginx a page.
#[test]
fn a_port_of_tls_is_named() {
    let authority = Authority::new();
    let site = Site::secure(false, |address| authority.server(address));
    let _nginx = Nginx::start_sites(std::slice::from_ref(&site));
    let server = Serve::start_secure(&[]);
    for secure in [site.url("/100.html"), server.url("/")] {
        let clear = secure.replacen("https:", "http:", 1);
        // So long that no worker comes late to a hundredth of it, beside other tests.
        let outcome = brunt(&format!("-t 1 -c 2 -r 20 -d 3s --warmup 0s {clear}")).exits(1);
        let advice = format!("the server speaks TLS at that port: {secure}");
        assert!(outcome.unbroken().contains(&advice), "{outcome:?}");
    }
    for secure in [site.url("/100.html"), server.url("/websocket")] {
        let clear = secure.replacen("https:", "ws:", 1);
        let outcome = brunt(&format!("--message hello -n 1 {clear}"));
        let advice = "use wss:// in place of ws://";
        refused(&outcome, advice);
    }
    // One that finds fault with the request alone.
    let clear = Serve::start();
    let outcome = brunt(&format!("-c 2 -n 10 {}", clear.url("/status/400")));
    assert!(!outcome.stdout.contains("TLS"), "{outcome:?}");
    assert!(outcome.stdout.contains("--show-errors"), "{outcome:?}");
}
