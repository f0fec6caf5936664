//! What packages are built for: what each system calls the architecture, and the tools that build,
//! strip and try a program for it.

use std::process::Command;

use anyhow::{Result, bail};

/// An architecture of Linux with glibc.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The target's name in Rust.
    pub(super) triple: &'static str,
    /// The architecture's name in Linux, RPM and Python.
    pub(super) architecture: &'static str,
    /// The architecture's name in Debian.
    pub(super) debian: &'static str,
    /// What the names of Debian's cross compiler and its libraries begin with.
    gnu: &'static str,
    /// The package of Debian that compiles and links for it from other machines.
    cross_package: &'static str,
}

const TARGETS: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        architecture: "x86_64",
        debian: "amd64",
        gnu: "x86_64-linux-gnu",
        cross_package: "gcc-x86-64-linux-gnu",
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        architecture: "aarch64",
        debian: "arm64",
        gnu: "aarch64-linux-gnu",
        cross_package: "gcc-aarch64-linux-gnu",
    },
];

impl Target {
    /// The one of this triple, or of this machine.
    ///
    /// # Errors
    ///
    /// There are no packages for it.
    pub(super) fn named(triple: Option<&str>) -> Result<&'static Self> {
        let here = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let triple = triple.unwrap_or(&here);
        match TARGETS.iter().find(|target| target.triple == triple) {
            Some(target) => Ok(target),
            None => bail!(
                "there are no packages for `{triple}`, only for {}",
                TARGETS.map(|target| target.triple).join(" and ")
            ),
        }
    }

    fn is_this_machine(&self) -> bool {
        self.architecture == std::env::consts::ARCH
    }

    /// Programs that only a build for another machine needs, with their packages.
    pub(super) fn tools(&self) -> Vec<(String, &'static str)> {
        match self.is_this_machine() {
            true => vec![("gcc".to_owned(), "gcc")],
            false => vec![
                (self.binutil("gcc"), self.cross_package),
                (self.emulator(), "qemu-user"),
            ],
        }
    }

    /// A program of binutils, or gcc, for the target.
    pub(super) fn binutil(&self, name: &str) -> String {
        match self.is_this_machine() {
            true => name.to_owned(),
            false => format!("{}-{name}", self.gnu),
        }
    }

    fn emulator(&self) -> String {
        format!("qemu-{}", self.architecture)
    }

    /// The compiler and linker of the target, as variables for cargo and for build scripts.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        if self.is_this_machine() {
            return Vec::new();
        }
        let name = self.triple.replace('-', "_");
        let compiler = self.binutil("gcc");
        vec![
            (format!("CC_{name}"), compiler.clone()),
            (
                format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()),
                compiler,
            ),
        ]
    }

    /// `program` of the target, to be run on this machine.
    pub(super) fn command(&self, program: &std::path::Path) -> Command {
        if self.is_this_machine() {
            return Command::new(program);
        }
        let mut command = Command::new(self.emulator());
        command.args(["-L", &format!("/usr/{}", self.gnu)]);
        command.arg(program);
        command
    }
}
