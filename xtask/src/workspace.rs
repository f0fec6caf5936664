//! Where the workspace is and what `cargo metadata` says about it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};

/// The workspace that this program belongs to.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Finds the workspace from the place of this package.
    ///
    /// # Errors
    ///
    /// The package is not in a directory of the workspace's root.
    pub(crate) fn find() -> Result<Self> {
        // At run time where cargo runs us: a moved checkout keeps its built binaries.
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest_dir)
            .parent()
            .context("xtask has no parent directory")?
            .to_path_buf();
        Ok(Self { root })
    }

    /// The directory of the workspace's `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The packages of the workspace and their dependencies with all features, for this machine's
    /// platform.
    ///
    /// # Errors
    ///
    /// `cargo metadata` fails.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        self.metadata_with(&target, &["--all-features"])
    }

    /// The packages of the workspace and their dependencies, for the platform `target` and with the
    /// features that are built by default.
    ///
    /// # Errors
    ///
    /// `cargo metadata` fails.
    pub(crate) fn metadata_of_target(&self, target: &str) -> Result<Metadata> {
        self.metadata_with(target, &[])
    }

    fn metadata_with(&self, target: &str, options: &[&str]) -> Result<Metadata> {
        let options = [&["--filter-platform", target], options].concat();
        let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        let mut command = MetadataCommand::new();
        command.current_dir(&self.root).other_options(options);
        command.exec().context("`cargo metadata` failed")
    }
}
