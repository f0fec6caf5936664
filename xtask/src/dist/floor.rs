//! The oldest glibc that a program runs with: the newest version of a symbol that it asks for.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail};

use super::target::Target;
use crate::shell;

/// A version of glibc, such as 2.31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GlibcVersion {
    major: u32,
    minor: u32,
}

impl FromStr for GlibcVersion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut numbers = text.split('.').map(str::parse);
        // A third number says nothing of symbols that are used here.
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok(Self { major, minor }),
            _ => bail!("no version of glibc: `{text}`"),
        }
    }
}

impl fmt::Display for GlibcVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

/// What `program` needs; absent for a static program.
///
/// # Errors
///
/// It cannot be read, needs no glibc though it is not static, or needs a library though it is.
pub(super) fn of(program: &Path, target: &Target) -> Result<Option<GlibcVersion>> {
    let objdump = |option| {
        let mut objdump = Command::new(target.binutil("objdump"));
        let said = shell::output(objdump.arg(option).arg(program));
        said.with_context(|| format!("objdump cannot read {}", program.display()))
    };
    if target.is_static {
        let headers = objdump("-p")?;
        return match headers
            .lines()
            .find(|line| line.trim().starts_with("NEEDED"))
        {
            Some(needed) => bail!("{} is not static: {}", program.display(), needed.trim()),
            None => Ok(None),
        };
    }
    let newest = newest(&objdump("-T")?)?;
    let newest = newest.with_context(|| format!("{} asks for no glibc", program.display()))?;
    Ok(Some(newest))
}

/// The newest in a table of symbols.
fn newest(table: &str) -> Result<Option<GlibcVersion>> {
    let mut newest = None;
    for part in table.split("GLIBC_").skip(1) {
        let is_number = |it: &char| it.is_ascii_digit() || *it == '.';
        let number: String = part.chars().take_while(is_number).collect();
        // GLIBC_PRIVATE and GLIBC_ABI_... are no versions.
        if !number.is_empty() {
            newest = newest.max(Some(number.parse()?));
        }
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let table = "\
0000 DF *UND* 0000 (GLIBC_2.2.5) read
0000 DF *UND* 0000 (GLIBC_2.30) gettid
0000 DF *UND* 0000 (GLIBC_2.9) pipe2
0000 DF *UND* 0000 (GLIBC_PRIVATE) hidden
0000 DF *UND* 0000 (GCC_3.0) _Unwind_Resume
";
        let newest = newest(table).unwrap().unwrap();
        assert_eq!(newest.to_string(), "2.30");
        assert!(newest > "2.4".parse().unwrap());
        assert!(newest < "2.31".parse().unwrap());
        assert_eq!(super::newest("").unwrap(), None);
    }
}
