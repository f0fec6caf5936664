//! A server by axum that answers at once, with 100 bytes.

use axum::routing::get;
use axum::serve::ListenerExt;
use axum::Router;
use bench_servers::{address, HUNDRED};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let router = Router::new().route("/", get(|| async { HUNDRED }));
    let listener = TcpListener::bind(address()).await?.tap_io(|stream| {
        // Whether replies wait for further bytes; nothing else depends on it.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await
}
