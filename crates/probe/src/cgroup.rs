//! The limits of a process's cgroup (versions 1 and 2): its CPU quota, how often that held the
//! process back, and the memory that is left.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use brunt_io::cpu::reread;
use brunt_record::Throttling;
use procfs::process::{MountInfo, MountInfos};
use procfs::{FromBufRead, FromRead, ProcResult, ProcessCGroup, ProcessCGroups};

/// Folders that are looked at from a cgroup upwards.
const DEPTH_MAX: usize = 64;
/// Room for a `cpu.stat`, which has about ten lines.
const STAT_BYTES: usize = 1_024;

/// The quotas of a process, `None` without any, or why they are unknown.
pub(crate) type SeenQuota = Result<Option<CpuQuota>, String>;

/// The CPU quotas that a process is under: its cgroup's own, and those of the cgroups above it.
#[derive(Debug)]
pub(crate) struct CpuQuota {
    groups: Vec<Group>,
}

/// One cgroup with a quota.
#[derive(Debug)]
struct Group {
    stat: File,
    /// The quota, CPUs.
    cpus: f64,
    /// Counters of the group at the mark.
    marked: Throttling,
}

impl CpuQuota {
    /// The CPU quota of the process `pid`, or of this process.
    pub(crate) fn of(pid: Option<u32>) -> SeenQuota {
        let (memberships, mounts) = cgroups_and_mounts(pid)
            .map_err(|error| format!("its cgroup cannot be found out ({error})"))?;
        let Some(membership) = deciding(&memberships, Controller::Cpu) else {
            return Ok(None);
        };
        let lineage = lineage(membership, &mounts, Controller::Cpu).ok_or_else(|| {
            let path = &membership.pathname;
            format!(
                "its cgroup {path} is not to be seen from here (no cgroup file system shows it)"
            )
        })?;
        let mut quota = Self {
            groups: groups(&lineage)?,
        };
        quota.mark();
        Ok((!quota.groups.is_empty()).then_some(quota))
    }

    /// Sets the mark from which [`Self::read`] counts.
    pub(crate) fn mark(&mut self) {
        for group in &mut self.groups {
            group.marked = group.read();
        }
    }

    /// The throttling since the mark (at first, since the quota was found) of the cgroup that was
    /// held back longest: where quotas are nested, one second may be counted in several of them.
    pub(crate) fn read(&self) -> Throttling {
        let groups = self.groups.iter();
        longest_held_back(groups.map(|group| group.read().since(&group.marked)))
    }

    /// CPUs that the tightest quota allows.
    pub(crate) fn cpus(&self) -> Option<f64> {
        self.groups.iter().map(|group| group.cpus).reduce(f64::min)
    }
}

impl Group {
    fn read(&self) -> Throttling {
        let mut buffer = [0; STAT_BYTES];
        reread(&self.stat, &mut buffer).map_or_else(|_| Throttling::default(), parse_stat)
    }
}

/// The throttling since the mark; absent without a quota that can be seen.
pub(crate) fn throttling(quota: &SeenQuota) -> Option<Throttling> {
    quota.as_ref().ok()?.as_ref().map(CpuQuota::read)
}

fn longest_held_back(groups: impl Iterator<Item = Throttling>) -> Throttling {
    groups
        .max_by_key(|group| (group.throttled_ns, group.throttled_periods))
        .unwrap_or_default()
}

/// Memory that this process's cgroup, and those above it, still allow, bytes; what the kernel can
/// take back from caches counts as free. Absent without a limit that can be seen.
pub(crate) fn memory_left_bytes() -> Option<u64> {
    let (memberships, mounts) = cgroups_and_mounts(None).ok()?;
    let membership = deciding(&memberships, Controller::Memory)?;
    let lineage = lineage(membership, &mounts, Controller::Memory)?;
    let left = lineage
        .folders()
        .filter_map(|folder| memory_left_in(lineage.version, folder));
    left.min()
}

fn memory_left_in(version: Version, folder: &Path) -> Option<u64> {
    let (limit, used, reclaimable) = match version {
        Version::One => (
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file ",
        ),
        Version::Two => ("memory.max", "memory.current", "inactive_file "),
    };
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let cached = || {
        let stat = read("memory.stat")?;
        let mut lines = stat.lines();
        number(lines.find_map(|line| line.strip_prefix(reclaimable))?)
    };
    // Without a limit, version 2 says `max`, and version 1 a number beyond any memory.
    let limit = number(&read(limit)?)?;
    let used = number(&read(used)?)?.saturating_sub(cached().unwrap_or(0));
    Some(limit.saturating_sub(used))
}

/// The folder of this process's cgroup in the hierarchy of version 2, where it is mounted.
pub(crate) fn own_unified_folder() -> Option<PathBuf> {
    let (memberships, mounts) = cgroups_and_mounts(None).ok()?;
    let is_unified = |one: &&ProcessCGroup| version(one, Controller::Cpu) == Some(Version::Two);
    let unified = memberships.iter().find(is_unified)?;
    Some(lineage(unified, &mounts, Controller::Cpu)?.folder)
}

/// What a cgroup may limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    Cpu,
    Memory,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Where the cgroup of a process is, and up to where the cgroups above it can be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lineage {
    version: Version,
    folder: PathBuf,
    top: PathBuf,
}

impl Lineage {
    /// The folder of the cgroup, and those of the ones above it.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folder
            .ancestors()
            .take_while(|folder| folder.starts_with(&self.top))
            .take(DEPTH_MAX)
    }
}

/// The cgroups of a process, and the mounts as this process sees them: it is the one that opens the
/// files.
fn cgroups_and_mounts(pid: Option<u32>) -> ProcResult<(Vec<ProcessCGroup>, Vec<MountInfo>)> {
    let member = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let memberships = ProcessCGroups::from_file(format!("/proc/{member}/cgroup"))?;
    let mounts = fs::read("/proc/self/mountinfo")?;
    let mounts = String::from_utf8_lossy(&mounts);
    // Of the others there may be many.
    let of_cgroups = mounts.lines().filter(|line| line.contains(" - cgroup"));
    let of_cgroups = of_cgroups.collect::<Vec<_>>().join("\n");
    let mounts = MountInfos::from_buf_read(of_cgroups.as_bytes())?;
    Ok((memberships.0, mounts.0))
}

/// The hierarchy's version, where a membership may bring a limit of the controller.
fn version(membership: &ProcessCGroup, controller: Controller) -> Option<Version> {
    match &membership.controllers[..] {
        [] if membership.hierarchy == 0 => Some(Version::Two),
        names if names.iter().any(|name| name == controller.name()) => Some(Version::One),
        _ => None,
    }
}

/// The membership that says which limit there is: the controller is either in version 1, or in
/// version 2.
fn deciding(memberships: &[ProcessCGroup], controller: Controller) -> Option<&ProcessCGroup> {
    let of_version = |wanted| {
        let mut all = memberships.iter();
        all.find(|membership| version(membership, controller) == Some(wanted))
    };
    of_version(Version::One).or_else(|| of_version(Version::Two))
}

/// A cgroup as folders; none when no mount shows it.
fn lineage(
    membership: &ProcessCGroup,
    mounts: &[MountInfo],
    controller: Controller,
) -> Option<Lineage> {
    let version = version(membership, controller)?;
    mounts.iter().find_map(|mount| {
        let is_it = match version {
            Version::One => {
                mount.fs_type == "cgroup" && mount.super_options.contains_key(controller.name())
            }
            Version::Two => mount.fs_type == "cgroup2",
        };
        let below = is_it.then(|| below(&membership.pathname, &mount.root))??;
        let mut folder = mount.mount_point.clone();
        if !below.is_empty() {
            folder.push(below);
        }
        Some(Lineage {
            version,
            folder,
            top: mount.mount_point.clone(),
        })
    })
}

/// The path of a cgroup below a mount whose top is the cgroup `root`; none when it is not there.
pub(crate) fn below<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    // A cgroup outside of this process's cgroup namespace is shown as `/../other`.
    if path.split('/').any(|name| name == "..") {
        return None;
    }
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_matches('/'))
}

/// The cgroups of a lineage that have a quota.
fn groups(lineage: &Lineage) -> Result<Vec<Group>, String> {
    let unseen = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    // Without this folder, files that are not there would say that there is no quota.
    fs::metadata(&lineage.folder).map_err(|error| unseen(&lineage.folder, error))?;
    let mut found = Vec::new();
    for folder in lineage.folders() {
        // The topmost cgroup has no such file, nor has one that the controller is off for.
        let read = |name: &str| {
            let path = folder.join(name);
            match fs::read_to_string(&path) {
                Ok(text) => Ok(Some(text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(unseen(&path, error)),
            }
        };
        let limit = match lineage.version {
            Version::One => read("cpu.cfs_quota_us")?
                .zip(read("cpu.cfs_period_us")?)
                .and_then(|(quota_us, period_us)| quota_cpus(&quota_us, &period_us)),
            Version::Two => read("cpu.max")?.and_then(|limit| {
                let (quota_us, period_us) = limit.split_once(' ')?;
                quota_cpus(quota_us, period_us)
            }),
        };
        if let Some(cpus) = limit {
            let path = folder.join("cpu.stat");
            found.push(Group {
                stat: File::open(&path).map_err(|error| unseen(&path, error))?,
                cpus,
                marked: Throttling::default(),
            });
        }
    }
    Ok(found)
}

/// The quota in CPUs. None without one, which is written as `-1` (version 1) or `max` (version 2).
pub(crate) fn quota_cpus(quota_us: &str, period_us: &str) -> Option<f64> {
    let quota_us: u64 = quota_us.trim().parse().ok()?;
    let period_us: u64 = period_us.trim().parse().ok()?;
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// The counters in a `cpu.stat` of either version; 0 for those that are not there.
pub(crate) fn parse_stat(text: &str) -> Throttling {
    let mut throttling = Throttling::default();
    for line in text.lines() {
        let (name, value) = line.split_once(' ').unwrap_or_default();
        let Ok(value) = value.trim().parse::<u64>() else {
            continue;
        };
        match name {
            "nr_periods" => throttling.periods = value,
            "nr_throttled" => throttling.throttled_periods = value,
            "throttled_usec" => throttling.throttled_ns = value.saturating_mul(1_000),
            "throttled_time" => throttling.throttled_ns = value,
            _ => {}
        }
    }
    throttling
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const UNIFIED: &str =
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const DOCKER: &str = "\
700 690 0:29 /docker/ab12 /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:17 - cgroup cgroup \
         rw,cpu,cpuacct
";

    /// Where the cgroups of all these are mounted.
    const MOUNTS: &str = "/sys/fs/cgroup";

    /// The version of the cgroup that decides on a limit, with its folder and the top of those,
    /// below [`MOUNTS`]; or that it cannot be seen, or is none.
    fn found(memberships: &str, mounts: &str, controller: Controller) -> String {
        let memberships =
            ProcessCGroups::from_buf_read(memberships.as_bytes()).expect("memberships");
        let mounts = MountInfos::from_buf_read(mounts.as_bytes()).expect("mounts");
        let Some(membership) = deciding(&memberships.0, controller) else {
            return "none".to_owned();
        };
        let Some(lineage) = lineage(membership, &mounts.0, controller) else {
            return format!("unseen {}", membership.pathname);
        };
        let below = |path: &Path| {
            below(&path.display().to_string(), MOUNTS)
                .unwrap()
                .to_owned()
        };
        let (folder, top) = (below(&lineage.folder), below(&lineage.top));
        format!("{:?} /{folder} /{top}", lineage.version)
    }

    #[test]
    fn the_cgroup_of_a_process_is_found_below_a_mount() {
        // Mounts, controller, memberships, and what is found.
        let cases = "
            The controller is in one of the two hierarchies; here, in the first.
            hybrid cpu 2:cpuacct:/ 1:cpu:/a/b 0::/ => One /cpu/a/b /cpu
            hybrid cpu 4:memory:/a 0::/x => Two /unified/x /unified
            unified cpu 0::/user.slice/run-1.scope => Two /user.slice/run-1.scope /
            That of memory may be another one.
            hybrid memory 4:memory:/a/b 1:cpu:/c 0::/x => One /memory/a/b /memory
            hybrid memory 1:cpu:/c 0::/x => Two /unified/x /unified
            In a container without a cgroup namespace, paths are the host's.
            docker cpu 4:cpu,cpuacct:/docker/ab12 => One /cpu,cpuacct /cpu,cpuacct
            docker cpu 4:cpu,cpuacct:/docker/ab12/x => One /cpu,cpuacct/x /cpu,cpuacct
            Other cgroups cannot be seen from inside.
            docker cpu 4:cpu,cpuacct:/docker/ab123 => unseen /docker/ab123
            docker cpu 4:cpu,cpuacct:/ => unseen /
            unified cpu 0::/../other => unseen /../other
            nothing cpu 0::/ => unseen /
            Without the controller, there is no quota.
            hybrid cpu 4:memory:/a => none
            unified cpu => none";
        for case in cases.lines() {
            let Some((asked, expected)) = case.split_once(" => ") else {
                continue;
            };
            let mut words = asked.split_whitespace();
            let mounts = match words.next().expect("mounts") {
                "hybrid" => HYBRID,
                "unified" => UNIFIED,
                "docker" => DOCKER,
                _ => "",
            };
            let controller = match words.next().expect("a controller") {
                "memory" => Controller::Memory,
                _ => Controller::Cpu,
            };
            let memberships: String = words.map(|word| format!("{word}\n")).collect();
            assert_eq!(found(&memberships, mounts, controller), expected, "{case}");
        }
    }

    #[test]
    fn memory_that_is_left_counts_caches_as_free() {
        const ONE: [&str; 2] = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
        const TWO: [&str; 2] = ["memory.max", "memory.current"];
        const UNLIMITED: &str = "9223372036854771712\n";
        const UNLIMITED_LEFT: u64 = 9_223_372_036_854_771_112;
        let stat = "cache 9\ninactive_file 30\ntotal_inactive_file 300\n";
        for (version, names, limit, used, stat, left) in [
            (Version::One, ONE, "1000\n", "600\n", "", Some(400)),
            (Version::One, ONE, "1000\n", "600\n", stat, Some(700)),
            (Version::One, ONE, "1000\n", "2000\n", stat, Some(0)),
            (
                Version::One,
                ONE,
                UNLIMITED,
                "600\n",
                "",
                Some(UNLIMITED_LEFT),
            ),
            (Version::Two, TWO, "1000\n", "600\n", stat, Some(430)),
            (Version::Two, TWO, "max\n", "600\n", stat, None),
            (Version::Two, ONE, "1000\n", "600\n", stat, None),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            for (name, text) in names
                .into_iter()
                .chain(["memory.stat"])
                .zip([limit, used, stat])
            {
                fs::write(folder.path().join(name), text).expect("it is ours");
            }
            let found = memory_left_in(version, folder.path());
            assert_eq!(found, left, "{version:?} {limit} {used}");
        }
    }

    #[test]
    fn files_that_cannot_be_seen_are_not_taken_for_no_quota() {
        let lineage = |folder: &str| Lineage {
            version: Version::Two,
            folder: PathBuf::from(folder),
            top: PathBuf::from(folder),
        };
        let unseen = groups(&lineage("/nonexistent/cgroup")).expect_err("no folder");
        assert!(unseen.contains("/nonexistent/cgroup"), "{unseen}");
        // A folder without the file of a quota, as the topmost cgroup's.
        assert!(groups(&lineage("/proc/self")).is_ok_and(|groups| groups.is_empty()));
        let ended = CpuQuota::of(Some(u32::MAX)).expect_err("no process");
        assert!(ended.contains("cannot be found out"), "{ended}");
    }

    #[test]
    fn cgroups_above_are_looked_at_up_to_the_mount() {
        let lineage = Lineage {
            version: Version::One,
            folder: PathBuf::from("/sys/fs/cgroup/cpu/a/b"),
            top: PathBuf::from("/sys/fs/cgroup/cpu"),
        };
        let folders: Vec<_> = lineage.folders().collect();
        let expected = [
            "/sys/fs/cgroup/cpu/a/b",
            "/sys/fs/cgroup/cpu/a",
            "/sys/fs/cgroup/cpu",
        ];
        assert_eq!(folders, expected.map(Path::new));
    }

    #[test]
    fn quotas_are_in_cpus() {
        for (quota_us, period_us, cpus) in [
            ("50000\n", "100000\n", Some(0.5)),
            ("400000", "100000\n", Some(4.0)),
            ("-1\n", "100000\n", None),
            ("max", "100000\n", None),
            ("0", "100000", None),
            ("50000", "0", None),
            ("", "", None),
        ] {
            assert_eq!(quota_cpus(quota_us, period_us), cpus, "{quota_us:?}");
        }
    }

    fn throttling(periods: u64, throttled_periods: u64, throttled_ns: u64) -> Throttling {
        Throttling {
            periods,
            throttled_periods,
            throttled_ns,
        }
    }

    #[test]
    fn throttling_is_read_in_both_versions() {
        for (text, expected) in [
            (
                "nr_periods 30\nnr_throttled 4\nthrottled_time 81234567\n\
                 nr_bursts 0\nburst_time 0\n",
                throttling(30, 4, 81_234_567),
            ),
            (
                "usage_usec 9\nuser_usec 5\nnr_periods 7\nnr_throttled 2\nthrottled_usec 1500\n",
                throttling(7, 2, 1_500_000),
            ),
            ("usage_usec 9\nuser_usec 5\n", throttling(0, 0, 0)),
            (
                "nr_periods x\nnr_throttled\nthrottled_usec 18446744073709551615",
                throttling(0, 0, u64::MAX),
            ),
            ("", throttling(0, 0, 0)),
        ] {
            assert_eq!(parse_stat(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_cgroup_that_was_held_back_longest_counts() {
        let own = throttling(14, 4, 705).since(&throttling(10, 1, 5));
        assert_eq!(own, throttling(4, 3, 700));
        let above = throttling(9, 0, 0).since(&throttling(10, 40, 9_000));
        assert_eq!(above, throttling(0, 0, 0));
        for (groups, expected) in [
            (vec![own, above], own),
            (vec![above, own], own),
            (vec![own, throttling(50, 4, 700)], throttling(50, 4, 700)),
            (vec![], Throttling::default()),
        ] {
            assert_eq!(longest_held_back(groups.into_iter()), expected);
        }
    }
}
