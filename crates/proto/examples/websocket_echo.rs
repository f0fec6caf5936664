//! Sends back what a WebSocket fuzzing server sends, case by case, so that the client can be judged
//! by it: `websocket_echo HOST:PORT [AGENT]` asks an Autobahn-style server for its cases, runs all
//! of them and has the server write its report.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use brunt_proto::Limits;
use brunt_proto::websocket::{Client, ClientEvent, Kind, Offer, Settings, put_frame};

/// How long a server may say nothing.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = arguments.next().ok_or("give HOST:PORT of the server")?;
    let agent = arguments.next().unwrap_or_else(|| "brunt".to_owned());
    let count = exchange(&server, "/getCaseCount")?;
    let count: u32 = String::from_utf8(count)?.trim().parse()?;
    for case in 1..=count {
        let path = format!("/runCase?case={case}&agent={agent}");
        // What the server makes of it is in its report.
        let _ = exchange(&server, &path);
    }
    exchange(&server, &format!("/updateReports?agent={agent}"))?;
    println!("{count} cases");
    Ok(())
}

/// Echoes all messages until the server closes; gives the first of them.
fn exchange(server: &str, path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let offer = Offer::new(path, server, &[], &[])?;
    let limits = Limits::default();
    let settings = Settings {
        offer: &offer,
        is_strict: true,
        limits: &limits,
    };
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let (mut client, mut out) = (Client::default(), Vec::new());
    client.open(&offer, *b"no random number", &mut out);
    stream.write_all(&out)?;
    let (mut message, mut first) = (Vec::new(), None);
    let mut buffer = vec![0; 64 * 1024];
    let mut key = [1, 2, 3, 4];
    let mut is_open = true;
    while is_open {
        let length = match stream.read(&mut buffer) {
            // It did not wait for the echo.
            Err(_) if first.is_some() => 0,
            read => read?,
        };
        is_open = length > 0;
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            out.clear();
            key = key.map(|byte: u8| byte.wrapping_mul(5).wrapping_add(1));
            let received = client.receive(rest, settings, key, &mut out, |piece| {
                message.extend_from_slice(piece.bytes);
            });
            let progress = match received {
                Ok(progress) => progress,
                Err(error) => {
                    stream.write_all(&out)?;
                    return Err(error.into());
                }
            };
            rest = &rest[progress.consumed..];
            if let Some(ClientEvent::Message { kind, .. }) = progress.event {
                let opcode = Kind::opcode(kind);
                put_frame(&mut out, opcode, &message, Some(key));
                first.get_or_insert_with(|| message.clone());
                message.clear();
            }
            // A server that has said all may be gone.
            is_open &= stream.write_all(&out).is_ok();
        }
    }
    Ok(first.unwrap_or_default())
}
