//! The step `servers`: the real servers that the black-box tests load must be installed.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// A server that tests start by themselves, on a port and with a configuration of their own.
struct Server {
    program: &'static str,
    /// The package of Debian and Ubuntu that holds it.
    package: &'static str,
}

const SERVERS: &[Server] = &[Server {
    program: "nginx",
    package: "nginx",
}];

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
    let missing = missing_packages(SERVERS, &directories);
    if missing.is_empty() {
        println!("servers: all installed");
        return Ok(());
    }
    if !is_root()? || find("apt-get", &directories).is_none() {
        bail!("{}", instruction(&missing));
    }
    shell::run(&mut apt_get(&["update"]))?;
    let mut install = apt_get(&["install", "--yes", "--no-install-recommends"]);
    shell::run(install.args(&missing))?;
    let missing = missing_packages(SERVERS, &directories);
    if !missing.is_empty() {
        bail!("installed, and still not found: {}", missing.join(", "));
    }
    Ok(())
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
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
        "the tests need real servers that are not installed: {packages}\n\
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
        std::fs::write(directory.path().join("present"), "").unwrap();
        let directories = [PathBuf::from("/nonexistent"), directory.path().into()];
        assert_eq!(missing_packages(TWO, &directories), ["package-of-absent"]);
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
