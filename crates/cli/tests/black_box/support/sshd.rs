//! sshd as a child process, and an ssh that knows it by two names.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::foreign::{free_address, program, start_accepting};
use super::process::Process;

/// Where sshd keeps what it must not trust, if it runs as root; a service would make it.
const EMPTY: &str = "/run/sshd";

/// An sshd of the test's own.
#[derive(Debug)]
pub(crate) struct Sshd {
    _process: Process,
    directory: TempDir,
}

impl Sshd {
    /// Starts one that finds programs in `path`. Its host is known as each of `hosts`, as
    /// `stranger` with a key that is not its own, and as `nowhere` where nobody listens.
    pub(crate) fn start(path: &str, hosts: &[&str]) -> Self {
        let address = free_address();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let place = |name: &str| directory.path().join(name);
        let [host, user] = ["host", "user"].map(|name| key(&place(name)));
        let write = |name: &str, text: &str| {
            std::fs::write(place(name), text).expect("the directory is ours");
        };
        write("authorized_keys", &user);
        write("known_hosts", &format!("host {host}stranger {user}"));
        let shown = |name: &str| place(name).display().to_string();
        write(
            "sshd_config",
            &format!(
                "ListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
                 StrictModes no\nUsePAM no\nPasswordAuthentication no\n\
                 KbdInteractiveAuthentication no\nSetEnv PATH=\"{path}\"\n",
                shown("host"),
                shown("authorized_keys")
            ),
        );
        let (ip, port) = (address.ip(), address.port());
        let mut names = String::new();
        for name in hosts {
            let _ = writeln!(
                names,
                "Host {name}\nHostName {ip}\nPort {port}\nHostKeyAlias host"
            );
        }
        write(
            "ssh_config",
            &format!(
                "{names}Host stranger\nHostName {ip}\nPort {port}\nHostKeyAlias stranger\n\
                 Host nowhere\nHostName {ip}\nPort 1\n\
                 Host *\nIdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\n\
                 GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n",
                shown("user"),
                shown("known_hosts")
            ),
        );
        // Whoever calls ssh finds these hosts in the configuration of the user.
        let own = format!(
            "#!/bin/sh\nexec {} -F {} \"$@\"\n",
            program("ssh").display(),
            shown("ssh_config")
        );
        std::fs::create_dir(place("bin")).expect("the directory is ours");
        write("bin/ssh", &own);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place("bin/ssh"), mode).expect("the file is ours");
        if rustix::process::geteuid().is_root() {
            std::fs::create_dir_all(EMPTY).expect("root may");
        }
        let mut command = Command::new(program("sshd"));
        command.args(["-D", "-e", "-f"]).arg(place("sshd_config"));
        Self {
            _process: start_accepting(command, address),
            directory,
        }
    }

    /// The directory with an `ssh` that knows the hosts.
    pub(crate) fn programs(&self) -> PathBuf {
        self.directory.path().join("bin")
    }
}

/// Makes a key; gives its public part, on a line.
fn key(path: &Path) -> String {
    let mut command = Command::new(program("ssh-keygen"));
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]);
    command.arg(path);
    Process::start(command).wait().exits(0);
    std::fs::read_to_string(path.with_extension("pub")).expect("it was written")
}
