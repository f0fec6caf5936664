//! What users of other tools type, and what brunt says to it.

use crate::support::process::brunt_with;
use crate::support::serve::Serve;

#[test]
fn what_was_meant_is_said() {
    let server = Serve::start();
    let url = server.url("/");
    for (typed, words) in [
        (vec!["-z", "10s", &url], "-d TIME"),
        (
            vec!["-c10", "-n100", "-t2s", &url],
            "the length of a run is -d 2s",
        ),
        (vec!["-n", "10s", &url], "the length of a run is -d 10s"),
        (vec!["-q", "10", &url], "a rate is -r 10"),
        (vec!["-q", "10"], "a rate is -r 10"),
        (vec!["-R", "2000", &url], "-r RATE"),
        (vec!["-k", &url], "-k of ab"),
        (vec!["-d", "{\"a\": 1}", &url], "a body is given with -b"),
        (
            vec!["-T", "text/plain", &url],
            "-H 'Content-Type: text/plain'",
        ),
        (vec!["-X", "POST", &url], "-m METHOD"),
        (vec!["-a", "user:password", &url], "-u USER:PASSWORD"),
        (vec!["--body-file", "x", &url], "-b @FILE"),
        (
            vec![&url, &url],
            "one URL is loaded at a time, and there are 2",
        ),
        (
            vec![&url, "-c", "2", "http://other/"],
            "run brunt once for each",
        ),
    ] {
        let outcome = brunt_with(&typed);
        assert_eq!(outcome.code, Some(2), "{typed:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "", "{typed:?}");
        assert!(outcome.stderr.contains(words), "{typed:?}: {outcome:?}");
        assert!(
            !outcome.stderr.contains("subcommand"),
            "{typed:?}: {outcome:?}"
        );
    }
    assert_eq!(server.counters().requests, 0);
}

#[test]
fn what_means_the_same_elsewhere_is_taken() {
    let server = Serve::start();
    let url = server.url("/");
    for typed in [
        vec!["-c4", "-n100", &url],
        vec!["-t1", "-c4", "-d100ms", "--latency", &url],
        vec![
            "-H",
            "Accept: */*",
            "-m",
            "GET",
            "-n",
            "10",
            "-c",
            "2",
            &url,
        ],
    ] {
        let outcome = brunt_with(&typed);
        assert_eq!(outcome.code, Some(0), "{typed:?}: {outcome:?}");
    }
}
