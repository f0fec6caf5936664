//! `brunt httperf`: sessions over several connections.

use crate::support::keeping::Keeping;
use crate::support::process::success;

#[test]
fn a_session_whose_connections_are_closed_goes_on() {
    let server = Keeping::start();
    let (host, port) = (server.address.ip(), server.address.port());
    let line = format!("httperf --server={host} --port={port} --wsess=3,3,0.02 --uri=/close");
    let outcome = success(&line);
    let told = "(3/3)\nSession: avg 3.00 connections/session";
    assert!(outcome.stdout.contains(told), "{}", outcome.stdout);
    assert_eq!(server.sequences().len(), 9);
}
