//! `--early-data`: requests before the handshake is complete, as the command line and the report
//! have them.

use crate::support::process::brunt;
use crate::support::run::RunReport;
use crate::support::serve::Serve;

fn serve(directory: &tempfile::TempDir, options: &[&str]) -> Serve {
    let options = [&["--http3"], options].concat();
    Serve::start_secure(&directory.path().join("cert.pem"), &options)
}

fn line(server: &Serve, options: &str) -> String {
    let certificate = server.certificate().display();
    format!(
        "--cacert {certificate} -c 2 -n 60 --requests-per-connection 5 --http3 --tls-resume \
         {options} {}",
        server.url("")
    )
}

#[test]
fn the_report_says_of_how_many_connections_early_data_was_taken() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = serve(&directory, &["--early-data"]);
    let before = server.counters().requests;
    let outcome = brunt(&line(&server, "--early-data"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(server.counters().requests - before, 60);
    let text = &outcome.stdout;
    assert!(
        text.contains("early data of ") && text.contains(", of 0 rejected"),
        "{text}"
    );
    assert!(text.contains("sessions resumed, early data"), "{text}");
    let stored = brunt(&line(
        &server,
        "--early-data=any -m POST -b x --format json",
    ));
    let report = RunReport::of(stored);
    assert_eq!(report.requests().answered, 60);
}

#[test]
fn without_tickets_for_it_no_early_data_is_sent_and_the_report_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = serve(&directory, &[]);
    let outcome = brunt(&line(&server, "--early-data"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let words = "no early data was sent: no session allowed it";
    assert!(outcome.stdout.contains(words), "{}", outcome.stdout);
}

#[test]
fn early_data_needs_what_it_is_about() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = serve(&directory, &["--early-data"]);
    for (typed, expected) in [
        (
            line(&server, "--early-data -m POST -b x"),
            "POST is not a safe method",
        ),
        (
            "--http3 --early-data https://127.0.0.1:9/".to_owned(),
            "--tls-resume",
        ),
        (
            "--tls-resume --early-data https://127.0.0.1:9/".to_owned(),
            "--http3",
        ),
    ] {
        let outcome = brunt(&typed);
        assert_eq!(outcome.code, Some(2), "{typed}: {outcome:?}");
        assert!(outcome.stderr.contains(expected), "{typed}: {outcome:?}");
    }
}
