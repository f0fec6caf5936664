//! The step `dist`: the program as people install it: an archive, packages of three kinds, and the
//! sums of all. The same commit gives the same bytes, in any folder.

mod archive;
mod build;
mod debian;
mod floor;
mod licences;
mod rpm;
mod sums;
mod symbols;
mod target;
mod tools;
mod tree;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use self::floor::GlibcVersion;
use self::target::Target;
use self::tree::Tree;
use crate::shell;
use crate::workspace::Workspace;

/// Whom packages name where nobody says who builds them. The forms of packages want an address; the
/// domain `invalid` is reserved for ones that reach nobody (RFC 2606 section 2).
const NOBODY: (&str, &str) = ("The developers of brunt", "brunt@packages.invalid");

/// What was asked for on the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    target: &'static Target,
    /// The newest glibc that the program may need.
    glibc_max: Option<GlibcVersion>,
    /// A program to package in place of a built one.
    program: Option<PathBuf>,
}

/// What all packages are made from.
struct Release<'a> {
    root: &'a Path,
    target: &'static Target,
    version: String,
    /// What the program is, in a line.
    summary: String,
    /// Who builds the packages: a name, and an address in angle brackets.
    maintainer: String,
    /// Where brunt is at home, if `Cargo.toml` says it.
    homepage: Option<String>,
    /// The time that files and packages bear, seconds since 1970.
    epoch_s: u64,
    /// Where packages go.
    directory: PathBuf,
    /// Where packages are put together; emptied before.
    scratch: PathBuf,
}

impl Release<'_> {
    /// The line about brunt's home that begins with `name`, if brunt has one.
    fn home_line(&self, name: &str) -> String {
        let homepage = self.homepage.as_ref();
        homepage.map_or_else(String::new, |it| format!("{name} {it}\n"))
    }

    /// The day that files bear, in a form of `date`.
    fn date(&self, form: &str) -> Result<String> {
        let mut date = Command::new("date");
        date.env("LC_ALL", "C").args(["--utc", form, "--date"]);
        let text = shell::output(date.arg(format!("@{}", self.epoch_s)));
        Ok(text.context("`date` fails")?.trim().to_owned())
    }
}

impl Options {
    /// Reads `[--target TRIPLE] [--glibc-max VERSION] [--program FILE]`.
    ///
    /// # Errors
    ///
    /// Anything else; the message quotes it.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut triple = None;
        let mut glibc_max = None;
        let mut program = None;
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.with_context(|| format!("{name} needs a value"))
            };
            match name.as_str() {
                "--target" => triple = Some(value()?.clone()),
                "--glibc-max" => glibc_max = Some(value()?.parse()?),
                "--program" => program = Some(PathBuf::from(value()?)),
                other => bail!("`dist` does not take `{other}`"),
            }
        }
        Ok(Self {
            target: Target::named(triple.as_deref())?,
            glibc_max,
            program,
        })
    }
}

/// Builds and packages. Nothing is built where a tool for the rest is missing.
///
/// # Errors
///
/// A tool is missing (the message says what to install), the build fails, the program needs a newer
/// glibc than it may, or a dependency comes without its licence.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let target = options.target;
    tools::check(target)?;
    let metadata = workspace.metadata_of_target(target.triple)?;
    let package = metadata.packages.iter().find(|it| it.name == "brunt");
    let package = package.context("the workspace has no package `brunt`")?;
    let epoch_s = epoch_s(workspace)?;
    let target_directory = metadata.target_directory.as_std_path();
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build::build(workspace, target_directory, target, epoch_s)?,
    };
    let glibc = floor::of(&program, target)?;
    if let (Some(glibc), Some(max)) = (glibc, options.glibc_max)
        && glibc > max
    {
        bail!("the program needs glibc {glibc}, and may need {max} at most");
    }
    let directory = target_directory.join("packages");
    let release = Release {
        root: workspace.root(),
        target,
        version: package.version.to_string(),
        summary: package.description.clone().unwrap_or_default(),
        maintainer: maintainer(|name| std::env::var(name).ok()),
        homepage: package.homepage.clone().or(package.repository.clone()),
        epoch_s,
        scratch: directory.join("scratch"),
        directory,
    };
    empty(&release)?;
    let program = symbols::split(&release, &program)?;
    let third_party = licences::text(&metadata, package)?;
    let tree = Tree::gather(&release, &program, &third_party)?;
    archive::write(&release, &tree)?;
    if let Some(glibc) = glibc {
        debian::write(&release, &tree, glibc)?;
        rpm::write(&release, &tree)?;
        wheel::write(&release, &tree, glibc)?;
    }
    fs::remove_dir_all(&release.scratch).context("cannot remove the scratch folder")?;
    let sums = sums::write(&release)?;
    let needs = match glibc {
        Some(glibc) => format!("glibc {glibc} or later"),
        None => "no library".to_owned(),
    };
    println!(
        "{sums}dist: needs {needs}; in {}",
        release.directory.display()
    );
    Ok(())
}

/// Removes what an earlier build for this target has left. Packages for others stay, and are summed
/// up with those to come.
fn empty(release: &Release<'_>) -> Result<()> {
    create(&release.directory)?;
    let cannot = || format!("cannot empty {}", release.directory.display());
    for item in fs::read_dir(&release.directory).with_context(cannot)? {
        let path = item.with_context(cannot)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let target = release.target;
        let is_old = target.has_made(&name) || name == sums::NAME;
        if path == release.scratch {
            fs::remove_dir_all(&path).with_context(cannot)?;
        } else if is_old {
            fs::remove_file(&path).with_context(cannot)?;
        }
    }
    create(&release.scratch)
}

/// Who builds, by `DEBFULLNAME` and `DEBEMAIL`, which Debian's own tools read too.
fn maintainer(variable: impl Fn(&str) -> Option<String>) -> String {
    let given = |name| variable(name).filter(|value| !value.is_empty());
    let name = given("DEBFULLNAME").unwrap_or_else(|| NOBODY.0.to_owned());
    let address = given("DEBEMAIL").unwrap_or_else(|| NOBODY.1.to_owned());
    format!("{name} <{address}>")
}

/// The time of the commit, unless `SOURCE_DATE_EPOCH` says another.
fn epoch_s(workspace: &Workspace) -> Result<u64> {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let mut git = Command::new("git");
    git.current_dir(workspace.root());
    let text = given.or_else(|| shell::output(git.args(["log", "-1", "--format=%ct"])));
    let text = text.context("git does not tell the time of the commit: set SOURCE_DATE_EPOCH")?;
    let seconds = text.trim().parse();
    seconds.with_context(|| format!("SOURCE_DATE_EPOCH is not a number: {text}"))
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        create(folder)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        create(folder)?;
    }
    fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn packages_name_who_builds_them() {
        assert_eq!(
            maintainer(|_| Some(String::new())),
            "The developers of brunt <brunt@packages.invalid>"
        );
        let given = |name: &str| Some(format!("the {name}"));
        assert_eq!(maintainer(given), "the DEBFULLNAME <the DEBEMAIL>");
    }

    #[test]
    fn options_are_read_and_others_refused() {
        let options = parse("--target aarch64-unknown-linux-gnu --glibc-max 2.31").unwrap();
        assert_eq!(options.target.debian, "arm64");
        assert_eq!(options.glibc_max, Some("2.31".parse().unwrap()));
        for (words, part) in [
            ("--target mips-unknown-linux-gnu", "only for x86_64"),
            (
                "--target aarch64-unknown-linux-musl",
                "x86_64-unknown-linux-musl",
            ),
            ("--glibc-max", "needs a value"),
            ("--glibc-max new", "`new`"),
            ("--fast", "`--fast`"),
        ] {
            let message = format!("{:#}", parse(words).unwrap_err());
            assert!(message.contains(part), "{message}");
        }
    }
}
