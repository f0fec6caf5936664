//! The step `dist`: the program as people install it: an archive, packages of three kinds, and the
//! sums of all. The same commit gives the same bytes, in any folder. What packages hold stands in
//! crates/cli/Cargo.toml and pyproject.toml.

mod build;
mod licences;
mod packages;
mod symbols;
mod target;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::target::Target;
use crate::servers;
use crate::workspace::Workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// What to build for, as Rust calls it; this machine without it.
    #[arg(long, value_name = "TRIPLE", value_parser = Target::named)]
    target: Option<&'static Target>,
    /// The newest platform of Python that the program may need, such as manylinux_2_31, which
    /// names a version of glibc.
    #[arg(long, value_name = "PLATFORM")]
    compatibility: Option<String>,
    /// The profile of cargo to build with.
    #[arg(long, default_value = "dist")]
    profile: String,
}

/// What all packages are made from.
struct Release<'a> {
    root: &'a Path,
    target: &'static Target,
    profile: &'a str,
    version: String,
    /// The time that files and packages bear, seconds since 1970.
    epoch_s: u64,
    /// Variables for cargo and the tools that package.
    environment: Vec<(String, String)>,
    target_directory: PathBuf,
    /// Where cargo puts the program.
    built: PathBuf,
    /// Where packages go.
    packages: PathBuf,
}

impl Release<'_> {
    fn program(&self) -> PathBuf {
        self.built.join("brunt")
    }

    /// How the name of the archive begins, and that of its symbols.
    fn name(&self) -> String {
        let linkage = if self.target.is_static { "-static" } else { "" };
        let architecture = self.target.architecture();
        format!("brunt-{}-{architecture}-linux{linkage}", self.version)
    }
}

/// Builds and packages. Nothing is built where a tool for the rest is missing.
///
/// # Errors
///
/// A tool is missing (the message says what to install), the build fails, the program needs a newer
/// glibc than it may, or a dependency comes without its licence.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let target = match options.target {
        Some(target) => target,
        None => Target::here()?,
    };
    let tools = target.tools();
    let tools: Vec<(&str, &str)> = tools.iter().map(|(a, b)| (&**a, &**b)).collect();
    servers::require(&tools)?;
    let metadata = workspace.metadata_of_target(target.triple)?;
    let package = metadata.packages.iter().find(|it| it.name == "brunt");
    let package = package.context("the workspace has no package `brunt`")?;
    let target_directory = metadata.target_directory.as_std_path();
    let epoch_s = build::epoch_s(workspace)?;
    let folder = match options.profile.as_str() {
        "dev" => "debug",
        profile => profile,
    };
    let release = Release {
        root: workspace.root(),
        target,
        profile: &options.profile,
        version: package.version.to_string(),
        epoch_s,
        environment: build::environment(workspace, target, epoch_s)?,
        target_directory: target_directory.into(),
        built: target_directory.join(target.triple).join(folder),
        packages: target_directory.join("packages"),
    };
    if !target.is_static {
        packages::install_tools(&release.target_directory)?;
    }
    build::build(&release)?;
    remove_other_versions(&release)?;
    symbols::split(&release)?;
    tree::lay(&release, &licences::text(&metadata, package)?)?;
    packages::archive(&release)?;
    if !target.is_static {
        packages::package(&release, options.compatibility.as_deref())?;
    }
    packages::sum(&release)?;
    println!("dist: in {}", release.packages.display());
    Ok(())
}

/// Removes packages of other versions; the sums would name them.
fn remove_other_versions(release: &Release<'_>) -> Result<()> {
    let cannot = || format!("cannot empty {}", release.packages.display());
    fs::create_dir_all(&release.packages).with_context(cannot)?;
    for item in fs::read_dir(&release.packages).with_context(cannot)? {
        let path = item.with_context(cannot)?.path();
        if !path.to_string_lossy().contains(&release.version) {
            fs::remove_file(path).with_context(cannot)?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(cannot)?;
    }
    fs::write(path, text).with_context(cannot)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("cannot copy {} to {}", from.display(), to.display());
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(cannot)?;
    }
    fs::copy(from, to).with_context(cannot)?;
    Ok(())
}
