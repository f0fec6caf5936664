//! The options of `brunt serve`.

use crate::support::process::brunt;
use crate::support::serve::Serve;

#[test]
fn there_is_no_simulated_server() {
    let help = brunt("serve --help");
    assert_eq!(help.code, Some(0));
    assert!(help.stdout.contains("epoll"), "{}", help.stdout);
    assert!(!help.stdout.contains("sim"), "{}", help.stdout);
    let refused = brunt("serve --backend sim");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("auto, uring, epoll"), "{refused:?}");
}

#[test]
fn it_tells_how_late_its_delayed_answers_were() {
    for options in [&["--spin"][..], &[]] {
        let server = Serve::start_with(options);
        assert_eq!(server.counters().lateness_ns_max, None);
        for path in ["/delay/1ms", "/delay/1.5ms", "/"] {
            assert_eq!(server.get(path), "");
        }
        let counters = server.counters();
        assert_eq!((counters.replies, counters.replies_delayed), (3, 2));
        assert!(counters.lateness_ns_mean.is_some());
        assert!(counters.lateness_ns_mean <= counters.lateness_ns_max);
    }
}
