//! How connections over TLS end: with close_notify, also those that are open at the end of a run.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use brunt_io::tls_peer::{Authority, Peer, serve_all};
use brunt_proto::tls::ServerSide;

use crate::common::{Kind, choice, expect_valid, lifetime, plan, run};

/// Beyond any delay of a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn they_end_with_close_notify(kind: Kind) {
    let identity = Authority::new("any").identity("127.0.0.1");
    let side = Arc::new(ServerSide::new(identity.options(&[])).expect("an identity"));
    let (ends, ended) = mpsc::channel();
    let address = serve_all(move |mut peer: Peer| {
        let mut plain = Vec::new();
        let mut is_there = peer.secure(&side);
        while is_there {
            is_there = peer.take(&mut plain);
            if plain.ends_with(b"\r\n\r\n") {
                plain.clear();
                peer.give(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
        // The test may be over.
        let _ = ends.send(peer.is_ended());
    });
    let mut plan = plan(&format!("https://{address}/"), choice(kind));
    plan.connection.tls.insecure = true;
    let run = run(plan);
    expect_valid(&run, "over TLS");
    // One was there before the run.
    for number in 0..=lifetime(&run).connections_opened {
        let is_ended = ended.recv_timeout(PATIENCE).expect("it ends");
        assert!(is_ended, "{kind:?}: end {number} is a cut");
    }
}

crate::common::on_both_kernels![they_end_with_close_notify];
