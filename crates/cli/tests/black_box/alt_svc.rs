//! `--http3=alt-svc`: HTTP/3 where a server says over TCP that it speaks it.

use crate::support::process::brunt;
use crate::support::run::RunReport;
use crate::support::serve::Serve;

fn line(server: &Serve, options: &str) -> String {
    let certificate = server.certificate().display();
    let url = server.url("");
    format!("--cacert {certificate} -c 2 -n 20 --http3=alt-svc {options} {url}")
}

#[test]
fn http_3_is_spoken_where_the_server_names_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let certificate = directory.path().join("cert.pem");
    let server = Serve::start_secure(&certificate, &["--http3"]);
    let outcome = brunt(&line(&server, ""));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("HTTP/3"), "{}", outcome.stdout);
    let report = RunReport::of(brunt(&line(&server, "--format json")));
    assert_eq!(report.requests().answered, 20);
}

#[test]
fn else_it_is_what_tcp_negotiates_and_the_report_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Serve::start_secure(&directory.path().join("cert.pem"), &[]);
    let outcome = brunt(&line(&server, ""));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = &outcome.stdout;
    assert!(text.contains("HTTP/2"), "{text}");
    assert!(
        text.contains("the server names no HTTP/3 in Alt-Svc"),
        "{text}"
    );
}

#[test]
fn in_clear_text_it_is_refused() {
    let outcome = brunt("--http3=alt-svc http://127.0.0.1:9/");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("give an https URL"), "{outcome:?}");
}
