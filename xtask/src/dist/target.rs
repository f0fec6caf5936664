//! What packages are built for: what each system calls the architecture, and the tools that build,
//! strip and try a program for it.

use std::process::Command;

use anyhow::{Result, bail};

/// An architecture of Linux, with the C library of the machine or with one inside the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The target's name in Rust.
    pub(super) triple: &'static str,
    /// The architecture's name in Linux, RPM and Python.
    pub(super) architecture: &'static str,
    /// The architecture's name in Debian.
    pub(super) debian: &'static str,
    /// The program holds its C library, musl, and there is an archive of it alone.
    pub(super) is_static: bool,
    /// What the names of Debian's cross compiler and its libraries begin with.
    gnu: &'static str,
    /// The package of Debian that compiles and links for it from other machines.
    cross_package: &'static str,
}

/// Debian's compiler for musl; of this machine's architecture.
const MUSL_COMPILER: &str = "musl-gcc";

const TARGETS: [Target; 3] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        architecture: "x86_64",
        debian: "amd64",
        is_static: false,
        gnu: "x86_64-linux-gnu",
        cross_package: "gcc-x86-64-linux-gnu",
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        architecture: "aarch64",
        debian: "arm64",
        is_static: false,
        gnu: "aarch64-linux-gnu",
        cross_package: "gcc-aarch64-linux-gnu",
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        architecture: "x86_64",
        debian: "amd64",
        is_static: true,
        gnu: "x86_64-linux-gnu",
        cross_package: "gcc-x86-64-linux-gnu",
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
                TARGETS.map(|target| target.triple).join(", ")
            ),
        }
    }

    /// How the names of its archive and symbols end.
    pub(super) fn label(&self) -> String {
        let linkage = if self.is_static { "-static" } else { "" };
        format!("{}-linux{linkage}", self.architecture)
    }

    /// Whether a file of the folder of packages was made for it.
    pub(super) fn has_made(&self, file: &str) -> bool {
        let is_static = file.contains("-static.");
        is_static == self.is_static
            && [self.architecture, self.debian]
                .iter()
                .any(|it| file.contains(it))
    }

    fn is_this_machine(&self) -> bool {
        self.architecture == std::env::consts::ARCH
    }

    /// Programs that only a build for another machine needs, with their packages.
    pub(super) fn tools(&self) -> Vec<(String, &'static str)> {
        let mut tools = match self.is_this_machine() {
            true => vec![("gcc".to_owned(), "gcc")],
            false => vec![
                (self.binutil("gcc"), self.cross_package),
                (self.emulator(), "qemu-user"),
            ],
        };
        if self.is_static {
            tools.push((MUSL_COMPILER.to_owned(), "musl-tools"));
        }
        tools
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
        let name = self.triple.replace('-', "_");
        if self.is_static {
            // Rust's own linker call has musl.
            return vec![(format!("CC_{name}"), MUSL_COMPILER.to_owned())];
        }
        if self.is_this_machine() {
            return Vec::new();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_removes_what_was_made_for_its_target_alone() {
        let glibc = Target::named(Some("x86_64-unknown-linux-gnu")).unwrap();
        let musl = Target::named(Some("x86_64-unknown-linux-musl")).unwrap();
        let arm = Target::named(Some("aarch64-unknown-linux-gnu")).unwrap();
        for (file, maker) in [
            (format!("brunt-1.0.0-{}.tar.gz", glibc.label()), glibc),
            (format!("brunt-1.0.0-{}.tar.gz", musl.label()), musl),
            (format!("brunt-1.0.0-{}.debug", musl.label()), musl),
            (format!("brunt-1.0.0-{}.debug", arm.label()), arm),
            ("brunt_1.0.0_amd64.deb".to_owned(), glibc),
            ("brunt_1.0.0_arm64.deb".to_owned(), arm),
        ] {
            for target in [glibc, musl, arm] {
                assert_eq!(target.has_made(&file), target == maker, "{file}");
            }
        }
    }
}
