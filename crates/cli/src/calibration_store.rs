//! Where certificates of `brunt calibrate` lie: one file per machine and version, in the user's
//! state directory (XDG Base Directory Specification).

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use brunt_io::cpu::usable_cpus;
use brunt_probe::machine::processor_model;
use brunt_record::Calibration;

use crate::replace::Replacement;

/// FNV-1a of 64 bits: enough to tell apart the few machines that share a home directory.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
/// Rights of the directory, as the specification asks.
const DIRECTORY_MODE: u32 = 0o700;

/// The machine's properties on which a certificate depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// The machine's name in the network.
    name: String,
    /// What distinguishes it from others of that name: `/etc/machine-id`, else the name again.
    id: String,
    /// Release of its kernel.
    kernel: String,
    /// Model of its processor.
    processor: String,
}

/// A certificate's place, kept open while it is being made.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// Put there when it is complete, so that a reader sees the old certificate or the new one.
    replacement: Replacement,
}

impl Machine {
    /// The one that brunt runs on.
    pub(crate) fn this() -> Self {
        let line = |path: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let line = text.trim();
            (!line.is_empty()).then(|| line.to_owned())
        };
        let unknown = || "unknown".to_owned();
        let name = line("/proc/sys/kernel/hostname").unwrap_or_else(unknown);
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            id: line("/etc/machine-id").unwrap_or_else(|| name.clone()),
            name,
            kernel: line("/proc/sys/kernel/osrelease").unwrap_or_else(unknown),
            processor: processor_model(&processors).unwrap_or_else(unknown),
        }
    }

    /// The machine's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The machine's name, kernel and processor.
    pub(crate) fn in_words(&self) -> String {
        format!("{} · Linux {} · {}", self.name, self.kernel, self.processor)
    }

    /// The name of its file: another kernel, processor, number of CPUs or version of brunt needs
    /// another certificate.
    fn file_name(&self, usable_cpus: u32, version: &str) -> String {
        let cpus = usable_cpus.to_string();
        let parts = [&self.id, &self.kernel, &self.processor, &cpus, version];
        let mut hash = FNV_OFFSET;
        for part in parts {
            // A zero byte between the parts, which none of them holds.
            for byte in part.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
            }
        }
        format!("calibration-{hash:016x}.json")
    }
}

impl Place {
    /// Opens the place of this machine's certificate for writing; what lies there stays.
    pub(crate) fn open(machine: &Machine) -> Result<Self> {
        let directory = directory().context(
            "there is no place for the certificate: neither XDG_STATE_HOME nor HOME is an \
             absolute path; set one, or use --no-store",
        )?;
        let name = file_name_of(machine);
        let created = DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(&directory);
        let path = directory.join(name);
        let opened = created.and_then(|()| Replacement::beside(&path));
        let replacement = opened.with_context(|| {
            format!(
                "cannot store the certificate in {}; set XDG_STATE_HOME, or use --no-store",
                directory.display()
            )
        })?;
        Ok(Self { path, replacement })
    }

    /// What lies there, in words.
    pub(crate) fn kept(&self) -> String {
        let path = self.path.display();
        match self.path.exists() {
            true => format!("What was stored before stays as {path}"),
            false => format!("There is no {path}"),
        }
    }

    /// Stores the certificate, in place of an older one, and gives its path.
    pub(crate) fn store(mut self, calibration: &Calibration) -> Result<PathBuf> {
        let text = brunt_report::calibration_to_json(calibration)?;
        let path = self.path;
        let written = self.replacement.file().write_all(text.as_bytes());
        written
            .and_then(|()| self.replacement.put())
            .with_context(|| format!("cannot store the certificate as {}", path.display()))?;
        Ok(path)
    }
}

/// The certificate of this machine and version; absent when there is none.
///
/// # Errors
///
/// There is one, and it cannot be read.
pub(crate) fn load() -> Result<Option<Calibration>> {
    let Some(directory) = directory() else {
        return Ok(None);
    };
    let path = directory.join(file_name_of(&Machine::this()));
    read(&path).with_context(|| path.display().to_string())
}

fn read(path: &Path) -> Result<Option<Calibration>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(brunt_report::calibration_from_json(&mut file)?))
}

fn file_name_of(machine: &Machine) -> String {
    machine.file_name(usable_cpus(), env!("CARGO_PKG_VERSION"))
}

/// `brunt` in the user's state directory.
pub(crate) fn directory() -> Option<PathBuf> {
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    directory_in(path("XDG_STATE_HOME"), path("HOME"))
}

/// `brunt` in the state directory that the two variables give; paths that are not absolute do not
/// count.
fn directory_in(state: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let state = state.filter(absolute).or_else(|| {
        let home = home.filter(absolute)?;
        Some(home.join(".local/state"))
    })?;
    Some(state.join("brunt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            name: "a".to_owned(),
            id: "b".to_owned(),
            kernel: "6.1".to_owned(),
            processor: "c".to_owned(),
        }
    }

    #[test]
    fn what_makes_a_difference_makes_another_file() {
        let name = machine().file_name(2, "0.1.0");
        assert_eq!(name, machine().file_name(2, "0.1.0"));
        let changed = |change: fn(&mut Machine)| {
            let mut machine = machine();
            change(&mut machine);
            machine.file_name(2, "0.1.0")
        };
        for other in [
            changed(|machine| machine.id = "c".to_owned()),
            changed(|machine| machine.kernel = "6.2".to_owned()),
            changed(|machine| machine.processor = "d".to_owned()),
            // The same letters, split elsewhere.
            changed(|machine| {
                machine.id = "b6".to_owned();
                machine.kernel = ".1".to_owned();
            }),
            machine().file_name(3, "0.1.0"),
            machine().file_name(2, "0.1.1"),
        ] {
            assert_ne!(name, other);
        }
        // The machine's name may change with the network that it is in.
        assert_eq!(name, changed(|machine| machine.name = "z".to_owned()));
        assert_eq!(name.len(), "calibration-0123456789abcdef.json".len());
    }

    #[test]
    fn the_directory_follows_the_environment() {
        for (state, home, expected) in [
            (Some("/s"), Some("/h"), Some("/s/brunt")),
            (None, Some("/h"), Some("/h/.local/state/brunt")),
            (Some(""), Some("/h"), Some("/h/.local/state/brunt")),
            (Some("s"), Some("/h"), Some("/h/.local/state/brunt")),
            (None, Some("h"), None),
            (None, None, None),
        ] {
            let path = |text: Option<&str>| text.map(PathBuf::from);
            assert_eq!(directory_in(path(state), path(home)), path(expected));
        }
    }
}
