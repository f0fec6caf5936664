//! A server by actix-web that answers at once, with 100 bytes.

use actix_web::{get, App, HttpServer};
use bench_servers::{address, HUNDRED};

#[get("/")]
async fn hundred() -> &'static str {
    HUNDRED
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    HttpServer::new(|| App::new().service(hundred))
        .bind(address())?
        .run()
        .await
}
