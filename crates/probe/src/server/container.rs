//! Which container a name means, asked of the engine that runs it, over its socket on this machine.

use std::collections::BTreeSet;
use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use brunt_io::tls_config::PageTls;
use brunt_load::Target;
use serde_json::Value;
use thiserror::Error;

use crate::fetch::{FetchError, FetchFault, Page};

/// Hexadecimal digits from which on a name is taken for an id, and no engine is asked. Engines show
/// as many.
const ID_DIGITS_MIN: usize = 12;
/// Longest wait for an engine's answer.
const ANSWER_NS_MAX: u64 = 2_000_000_000;

/// Why it is not known which container is meant.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// No engine listens on this machine.
    #[error(
        "no container engine can be asked for `{name}`: none of these sockets is there: {sockets}; \
         set DOCKER_HOST=unix://PATH, or give --watch container:ID or cgroup:PATH"
    )]
    NoEngine {
        /// As typed.
        name: String,
        /// Where one was looked for.
        sockets: String,
    },
    /// The engines know no such container.
    #[error(
        "no container `{name}` is known at {sockets}; `docker ps` or `podman ps` lists those that \
         run"
    )]
    Unknown {
        /// As typed.
        name: String,
        /// Who was asked.
        sockets: String,
    },
    /// The engine cannot be asked.
    #[error(
        "the container engine at {} does not tell which container `{name}` is: {reason}; \
         --watch container:ID and cgroup:PATH need no engine", .socket.display()
    )]
    Unreadable {
        /// As typed.
        name: String,
        /// Who was asked.
        socket: PathBuf,
        /// Why it gave no answer.
        reason: String,
    },
}

/// The id of the container that `name` names; or `name` itself, where that is an id.
///
/// # Errors
///
/// No engine knows it.
pub(super) fn id(name: &str) -> Result<String, ContainerError> {
    id_by(name, &sockets(), ANSWER_NS_MAX)
}

/// Where engines listen, each once; those first that the user named.
fn sockets() -> Vec<PathBuf> {
    let named = ["DOCKER_HOST", "CONTAINER_HOST"]
        .into_iter()
        .filter_map(|variable| {
            let host = env::var(variable).ok()?;
            host.strip_prefix("unix://").map(PathBuf::from)
        });
    let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let mut seen = BTreeSet::new();
    named
        .chain([PathBuf::from("/var/run/docker.sock")])
        .chain(own.map(|folder| folder.join("podman/podman.sock")))
        .chain([PathBuf::from("/run/podman/podman.sock")])
        .filter(|socket| seen.insert(socket.clone()))
        .collect()
}

/// Asks one after the other, each for at most `limit_ns`, until one knows the name.
fn id_by(name: &str, sockets: &[PathBuf], limit_ns: u64) -> Result<String, ContainerError> {
    if is_id(name) {
        return Ok(name.to_owned());
    }
    let name = name.to_owned();
    let mut asked = Vec::new();
    let mut unreadable = None;
    for socket in sockets {
        match ask(&name, socket, limit_ns) {
            EngineAnswer::Id(id) => return Ok(id),
            EngineAnswer::Unknown => asked.push(socket.clone()),
            EngineAnswer::NoEngine => {}
            // Who may not ask Docker may have the container in a Podman of their own.
            EngineAnswer::Unreadable(reason) => {
                unreadable.get_or_insert((socket.clone(), reason));
            }
        }
    }
    Err(match unreadable {
        Some((socket, reason)) => ContainerError::Unreadable {
            name,
            socket,
            reason,
        },
        None if asked.is_empty() => ContainerError::NoEngine {
            name,
            sockets: list(sockets),
        },
        None => ContainerError::Unknown {
            name,
            sockets: list(&asked),
        },
    })
}

/// What an engine said.
enum EngineAnswer {
    /// The container's id.
    Id(String),
    /// There is no such container.
    Unknown,
    /// Nobody listens.
    NoEngine,
    /// Why that cannot be told.
    Unreadable(String),
}

fn ask(name: &str, socket: &Path, limit_ns: u64) -> EngineAnswer {
    // Docker's interface, which Podman has too.
    let url = format!("http://localhost/containers/{name}/json");
    let target = match Target::parse(&url, Some(socket.to_owned())) {
        Ok(target) => target,
        Err(reason) => return EngineAnswer::Unreadable(reason.to_string()),
    };
    let page = Page::new(&target, &PageTls::default()).and_then(|page| page.get(limit_ns));
    let page = match page {
        Ok(page) => page,
        Err(error) => {
            return match &error.fault {
                FetchFault::Status(404) => EngineAnswer::Unknown,
                FetchFault::Connect(reason) if is_absent(reason.kind()) => EngineAnswer::NoEngine,
                _ => EngineAnswer::Unreadable(fact(&error)),
            };
        }
    };
    let container: Option<Value> = serde_json::from_str(&page).ok();
    let id = container.as_ref().and_then(|json| json.get("Id")?.as_str());
    match id.filter(|id| is_id(id)) {
        Some(id) => EngineAnswer::Id(id.to_owned()),
        None => EngineAnswer::Unreadable("its answer has no id".to_owned()),
    }
}

/// What happened. What some of these errors advise is for pages that the user chose.
fn fact(error: &FetchError) -> String {
    match &error.fault {
        FetchFault::Connect(reason) => reason.to_string(),
        FetchFault::Status(status) => format!("it answered with status {status}"),
        FetchFault::Timeout { limit_ms } => format!("no complete answer within {limit_ms} ms"),
        FetchFault::TooLarge => "its answer is over 4 MiB".to_owned(),
        _ => error.to_string(),
    }
}

/// Whether nothing listens there.
fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

fn is_id(text: &str) -> bool {
    text.len() >= ID_DIGITS_MIN && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn list(sockets: &[PathBuf]) -> String {
    let paths = sockets.iter().map(|socket| socket.display().to_string());
    paths.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use std::thread::JoinHandle;

    use brunt_io::threads;

    use super::*;

    const ID: &str = "4f1c7d2e9a0b4f1c7d2e9a0b4f1c7d2e9a0b4f1c7d2e9a0b4f1c7d2e9a0b4f1c";

    /// An engine that answers one request. Gives what it was asked.
    fn engine(socket: &Path, answer: &str) -> JoinHandle<String> {
        let listener = UnixListener::bind(socket).unwrap();
        let answer = answer.to_owned();
        let body = move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut asked = [0; 4_096];
            let length = peer.read(&mut asked).unwrap();
            // One who has heard enough may be gone.
            let _ = peer.write_all(answer.as_bytes());
            String::from_utf8_lossy(&asked[..length]).into_owned()
        };
        threads::spawn("engine", body).unwrap()
    }

    fn reply(status: &str, body: &str) -> String {
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nApi-Version: 1.47\r\nContent-Type: application/json\r\n\
             Ostype: linux\r\nServer: Docker/27.3.1 (linux)\r\nContent-Length: {length}\r\n\r\n\
             {body}"
        )
    }

    #[test]
    fn the_engine_that_knows_a_name_gives_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let sockets: Vec<_> = ["none", "first", "second"]
            .into_iter()
            .map(|name| folder.path().join(name))
            .collect();
        let unknown = reply("404 Not Found", r#"{"message":"No such container: web"}"#);
        let known = reply(
            "200 OK",
            &format!(r#"{{"Id":"{ID}","State":{{"Pid":17}}}}"#),
        );
        let engines = [engine(&sockets[1], &unknown), engine(&sockets[2], &known)];
        assert_eq!(id_by("web", &sockets, ANSWER_NS_MAX).unwrap(), ID);
        for engine in engines {
            let asked = engine.join().unwrap();
            assert!(
                asked.starts_with("GET /containers/web/json HTTP/1.1\r\n"),
                "{asked}"
            );
        }
    }

    #[test]
    fn an_id_is_asked_of_nobody() {
        for typed in [ID, &ID[..12]] {
            assert_eq!(id_by(typed, &[], ANSWER_NS_MAX).unwrap(), typed);
        }
    }

    #[test]
    fn an_answer_that_is_of_no_use_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let long = reply("200 OK", &"x".repeat(5 << 20));
        for (number, (answer, words)) in [
            (reply("404 Not Found", "{}"), "no container `web` is known"),
            (reply("200 OK", "{}"), "has no id"),
            (reply("200 OK", r#"{"Id":"../../x"}"#), "has no id"),
            (reply("200 OK", "no JSON"), "has no id"),
            (reply("500 Internal Server Error", ""), "status 500"),
            (long, "over 4 MiB"),
            ("no HTTP\r\n\r\n".to_owned(), "not an HTTP/1.1 reply"),
        ]
        .into_iter()
        .enumerate()
        {
            let socket = folder.path().join(number.to_string());
            let engine = engine(&socket, &answer);
            let message = id_by("web", &[socket], ANSWER_NS_MAX)
                .unwrap_err()
                .to_string();
            assert!(message.contains(words), "{message}");
            engine.join().unwrap();
        }
    }

    #[test]
    fn an_engine_that_cannot_be_asked_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let [silent, refused, knows, knows_not] =
            ["silent", "file/socket", "knows", "knows_not"].map(|name| folder.path().join(name));
        // It takes the connection, and says nothing.
        let _silent = UnixListener::bind(&silent).unwrap();
        // A folder that is none stands for one that may not be entered: root may enter all.
        std::fs::write(folder.path().join("file"), "").unwrap();

        let known = engine(&knows, &reply("200 OK", &format!(r#"{{"Id":"{ID}"}}"#)));
        let sockets = [silent.clone(), refused.clone(), knows];
        assert_eq!(id_by("web", &sockets, 300_000_000).unwrap(), ID);
        known.join().unwrap();

        for (socket, words) in [
            (silent, "no complete answer within 300 ms"),
            (refused, "Not a directory"),
        ] {
            let unknown = engine(&knows_not, &reply("404 Not Found", "{}"));
            let place = socket.display().to_string();
            let message = id_by("web", &[socket, knows_not.clone()], 300_000_000)
                .unwrap_err()
                .to_string();
            assert!(
                message.contains(words) && message.contains(&place),
                "{message}"
            );
            unknown.join().unwrap();
            std::fs::remove_file(&knows_not).unwrap();
        }
    }

    #[test]
    fn without_an_engine_the_places_are_named_where_one_was_looked_for() {
        let message = id_by("web", &["/nonexistent/engine".into()], ANSWER_NS_MAX)
            .unwrap_err()
            .to_string();
        assert!(message.contains("/nonexistent/engine"), "{message}");
    }
}
