//! A server by hyper that answers at once, with 100 bytes.

use std::convert::Infallible;

use bench_servers::{address, HUNDRED};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

async fn hundred(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(HUNDRED.as_bytes())));
    let plain = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    Ok(response)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind(address()).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            // A client that closes its connection is no concern of the others.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(hundred))
                .await;
        });
    }
}
