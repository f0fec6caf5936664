//! What the servers of others have in common: their programs, an address of the test's own, and a
//! start that is waited for.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use super::process::Process;
use super::wait_for;

/// Where servers may be beside the search path, which often lacks these.
const DIRECTORIES: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The body of every file and reply that is loaded.
pub(crate) fn body() -> String {
    "x".repeat(99) + "\n"
}

/// The path of a server's program.
pub(crate) fn program(name: &str) -> PathBuf {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search_path)
        .chain(DIRECTORIES.map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            panic!("{name} is not installed; `cargo xtask servers` installs it, or says how")
        })
}

/// A program of the environment in which `cargo xtask servers` installs a package of PyPI, as
/// NAME-VERSION.
pub(crate) fn of_pypi(package: &str, program: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let path = target.join(package).join("bin").join(program);
    assert!(
        path.exists(),
        "{package} is missing; `cargo xtask servers` installs it, or says how"
    );
    path
}

/// An address of loopback that no other test uses, with a free port. Clients connect from
/// 127.0.0.x, so that none of theirs can take the port before the server does.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(
        127,
        64 | (high & 63),
        low,
        NEXT.fetch_add(1, Ordering::Relaxed),
    );
    let listener = TcpListener::bind((own, 0)).expect("a free port");
    listener.local_addr().expect("it is bound")
}

/// Starts a server and waits until it accepts at `address`.
pub(crate) fn start_accepting(command: Command, address: SocketAddr) -> Process {
    let mut process = Some(Process::start(command));
    wait_for("the server accepts", || {
        if process.as_mut().is_some_and(|server| !server.is_running())
            && let Some(ended) = process.take()
        {
            panic!("it ended at once: {:?}", ended.wait());
        }
        TcpStream::connect(address).ok()
    });
    process.expect("it is running")
}
