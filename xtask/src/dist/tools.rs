//! The programs that packages are made with: all are there, or it is said what to install.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::target::Target;

/// Programs, and the packages of Debian and Ubuntu that hold them.
const TOOLS: [(&str, &str); 9] = [
    ("make", "make"),
    ("objcopy", "binutils"),
    ("tar", "tar"),
    ("gzip", "gzip"),
    ("xz", "xz-utils"),
    ("dpkg-deb", "dpkg"),
    ("rpmbuild", "rpm"),
    ("python3", "python3"),
    ("sha256sum", "coreutils"),
];

/// # Errors
///
/// One is missing.
pub(super) fn check(target: &Target) -> Result<()> {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&search_path).collect();
    let own = target.tools();
    let own = own.iter().map(|(program, package)| (&**program, *package));
    let missing = missing(TOOLS.into_iter().chain(own), &folders);
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    bail!(
        "programs are missing that packages are made with: {packages}\n\
         on Debian or Ubuntu:  sudo apt-get install --yes {packages}"
    )
}

fn missing<'a>(
    tools: impl Iterator<Item = (&'a str, &'a str)>,
    folders: &[impl AsRef<Path>],
) -> Vec<&'a str> {
    let is_missing = |program: &str| {
        let mut paths = folders.iter().map(|folder| folder.as_ref().join(program));
        !paths.any(|path| path.is_file())
    };
    let missing = tools.filter(|(program, _)| is_missing(program));
    missing.map(|(_, package)| package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_folder_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tar"), "").unwrap();
        let tools = [("tar", "tar"), ("rpmbuild", "rpm")];
        assert_eq!(missing(tools.into_iter(), &[folder.path()]), ["rpm"]);
    }
}
