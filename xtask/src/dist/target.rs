//! What packages are built for: what each system calls the architecture, and the tools that build,
//! strip and try a program for it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// An architecture of Linux, with the C library of the machine or with one inside the program.
#[derive(Debug)]
pub(super) struct Target {
    /// The target's name in Rust.
    pub(super) triple: &'static str,
    /// The architecture's name in Debian.
    pub(super) debian: &'static str,
    /// The program holds its C library, musl, and there is an archive of it alone.
    pub(super) is_static: bool,
}

/// Debian's compiler for musl; of this machine's architecture.
const MUSL_COMPILER: &str = "musl-gcc";

const TARGETS: [Target; 3] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        debian: "amd64",
        is_static: false,
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        debian: "arm64",
        is_static: false,
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        debian: "amd64",
        is_static: true,
    },
];

impl Target {
    /// The one of this triple.
    ///
    /// # Errors
    ///
    /// There are no packages for it.
    pub(super) fn named(triple: &str) -> Result<&'static Self> {
        let target = TARGETS.iter().find(|target| target.triple == triple);
        target.with_context(|| {
            let triples = TARGETS.each_ref().map(|target| target.triple);
            let triples = triples.join(", ");
            format!("there are no packages for `{triple}`, only for {triples}")
        })
    }

    /// That of this machine.
    ///
    /// # Errors
    ///
    /// There are no packages for it.
    pub(super) fn here() -> Result<&'static Self> {
        Self::named(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
    }

    /// The architecture's name in Linux, RPM and Python.
    pub(super) fn architecture(&self) -> &'static str {
        let (architecture, _) = self.triple.split_once('-').unwrap_or_default();
        architecture
    }

    /// What the names of Debian's cross compiler and its libraries begin with.
    fn gnu(&self) -> String {
        format!("{}-linux-gnu", self.architecture())
    }

    pub(super) fn is_this_machine(&self) -> bool {
        self.architecture() == std::env::consts::ARCH
    }

    /// Programs that build and package, with the packages of Debian that hold them.
    pub(super) fn tools(&self) -> Vec<(String, String)> {
        let mut tools = vec![
            (self.binutil("gcc"), self.package("gcc")),
            (self.binutil("objcopy"), self.package("binutils")),
        ];
        let mut add = |program: &str, package: &str| tools.push((program.into(), package.into()));
        add("make", "make");
        if self.is_static {
            add(MUSL_COMPILER, "musl-tools");
        } else {
            add("dpkg-shlibdeps", "dpkg-dev");
            add("/usr/lib/rpm/find-requires", "rpm");
            add("/usr/share/doc/python3-venv/copyright", "python3-venv");
        }
        if !self.is_this_machine() {
            add(&self.emulator(), "qemu-user");
        }
        tools
    }

    /// A program of binutils, or gcc, for the target.
    pub(super) fn binutil(&self, name: &str) -> String {
        if self.is_this_machine() {
            name.to_owned()
        } else {
            format!("{}-{name}", self.gnu())
        }
    }

    /// The package of Debian that holds such a program.
    fn package(&self, name: &str) -> String {
        if self.is_this_machine() {
            name.to_owned()
        } else {
            format!("{name}-{}", self.gnu().replace('_', "-"))
        }
    }

    fn emulator(&self) -> String {
        format!("qemu-{}", self.architecture())
    }

    /// The compiler and linker of the target, as variables for cargo and for build scripts.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let name = self.triple.replace('-', "_");
        let compiler = format!("CC_{name}");
        if self.is_static {
            // Rust's own linker call has musl.
            return vec![(compiler, MUSL_COMPILER.to_owned())];
        }
        if self.is_this_machine() {
            return Vec::new();
        }
        let linker = format!("CARGO_TARGET_{}_LINKER", name.to_uppercase());
        let names = [compiler, linker];
        names.map(|name| (name, self.binutil("gcc"))).into()
    }

    /// `program` of the target, to be run on this machine.
    pub(super) fn command(&self, program: &Path) -> Command {
        if self.is_this_machine() {
            return Command::new(program);
        }
        let mut command = Command::new(self.emulator());
        command.args(["-L", &format!("/usr/{}", self.gnu())]);
        command.arg(program);
        command
    }
}
