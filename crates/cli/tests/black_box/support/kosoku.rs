//! kosoku, a fuzzing peer with the cases of Autobahn, as a child process; and a client that echoes
//! what it sends, over the code that a run uses.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use brunt_proto::Limits;
use brunt_proto::websocket::{ClientEvent, Offer, Settings, WebSocketClient, put_frame};
use serde_json::Value;
use tempfile::TempDir;

use super::foreign::{free_address, of_pypi, start_accepting};
use super::process::Process;
use super::{PATIENCE, wait_for};

/// Framing, pings, reserved bits, opcodes, fragmentation, UTF-8, closes, automatic fragmentation.
/// The others are of speed (9) and of compression (12 and 13), which brunt does not speak.
const GROUPS: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 10];
/// The cases that ask whether texts are UTF-8, which brunt's client does not look at.
const OF_UTF8: &str = "6.";
/// Cases that run at once.
const AT_ONCE: usize = 8;

/// The outcomes of cases: how many there were of each.
pub(crate) type Outcomes = BTreeMap<String, u32>;

/// Runs kosoku as a client of the server at `url`.
pub(crate) fn judge_server(url: &str) -> Outcomes {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = kosoku("fuzzingclient", url, directory.path());
    command.args(["--parallelism", &AT_ONCE.to_string()]);
    Process::start(command).wait().exits(0);
    outcomes(&directory, |_| true)
}

/// Runs kosoku as the server of brunt's client, which echoes.
pub(crate) fn judge_client() -> Outcomes {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let address = free_address();
    let command = kosoku("fuzzingserver", &address.to_string(), directory.path());
    let _server = start_accepting(command, address);
    let cases = echo(address, "/getCaseCount").expect("it counts its cases");
    let cases = String::from_utf8(cases).expect("text");
    let (cases, next) = (cases.trim().parse().expect("a number"), AtomicU32::new(1));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && case <= cases
                {
                    // What the server makes of it is in its report.
                    let _ = echo(address, &format!("/runCase?case={case}&agent=brunt"));
                }
            });
        }
    });
    echo(address, "/updateReports?agent=brunt").expect("it writes its report");
    outcomes(&directory, |case| !case.starts_with(OF_UTF8))
}

fn kosoku(mode: &str, address: &str, directory: &Path) -> Command {
    let program = |name| of_pypi("kosoku-0.1.0", name);
    let mut command = Command::new(program("python3"));
    command
        .arg(program("kosoku"))
        .args(["--mode", mode, address]);
    command.arg("--outdir").arg(directory);
    for group in GROUPS {
        command.args(["--include", &format!("{group}.*")]);
    }
    command
}

/// What a report, which is being written, has of some of its cases. A case that is passed, but for
/// how the connection was closed, counts as that.
fn outcomes(directory: &TempDir, is_looked_at: impl Fn(&str) -> bool) -> Outcomes {
    let is_index = |path: &PathBuf| path.file_name().is_some_and(|name| name == "index.json");
    let cases = wait_for("the report is written", || {
        let mut files: Vec<PathBuf> = vec![directory.path().into()];
        while let Some(path) = files.pop() {
            if is_index(&path) {
                return serde_json::from_slice::<Value>(&std::fs::read(path).ok()?).ok();
            }
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            files.extend(entries.map(|entry| entry.path()));
        }
        None
    });
    let agents = cases.as_object().expect("agents");
    let mut outcomes = Outcomes::new();
    for (name, case) in agents
        .values()
        .flat_map(|cases| cases.as_object())
        .flatten()
        .filter(|(name, _)| is_looked_at(name))
    {
        let [behaviour, close] = ["behavior", "behaviorClose"].map(|key| case[key].as_str());
        let outcome = match (behaviour, close) {
            (Some("OK"), Some("OK") | None) => "OK".to_owned(),
            (Some("INFORMATIONAL"), _) => "INFORMATIONAL".to_owned(),
            other => format!("{name}: {other:?}"),
        };
        *outcomes.entry(outcome).or_default() += 1;
    }
    outcomes
}

/// Echoes all messages until the server closes; gives the first of them.
fn echo(server: SocketAddr, path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let offer = Offer::new(path, &server.to_string(), &[], &[])?;
    let limits = Limits::default();
    let settings = Settings {
        offer: &offer,
        limits: &limits,
    };
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let (mut client, mut out) = (WebSocketClient::default(), Vec::new());
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
                put_frame(&mut out, kind.opcode(), &message, Some(key));
                first.get_or_insert_with(|| message.clone());
                message.clear();
            }
            // A server that has said all may be gone.
            is_open &= stream.write_all(&out).is_ok();
        }
    }
    Ok(first.unwrap_or_default())
}
