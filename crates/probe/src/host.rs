//! Readings of the client's machine: CPU times, pressure, and brunt's quota.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use brunt_io::cpu::{CpuUse, allowed_cpus, reread};
use brunt_record::{CpuTimes, HostEvidence, HostPoint};
use procfs::parse_pressure_record;

use super::cgroup::{self, CpuQuota, SeenQuota};
use super::series::Readings;
use super::server::proc_files::tick_ns;

/// Times of all CPUs.
pub(crate) const STAT: &str = "/proc/stat";
/// Room for `/proc/stat` at first, and at most: a line per CPU has up to 120 bytes.
pub(crate) const STAT_BYTES: usize = 16 * 1024;
const STAT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Room for the first line of `/proc/stat`, which sums over all CPUs.
const SUMS_BYTES: usize = 256;
/// Room for a pressure file of two lines.
const PRESSURE_BYTES: usize = 256;

/// Reads the machine over one window: [`Self::begin`], [`Self::sample`] now and then,
/// [`Self::end`].
#[derive(Debug)]
pub(crate) struct HostReader {
    stat: io::Result<File>,
    pressure: io::Result<File>,
    quota: SeenQuota,
    ns_per_tick: u64,
    text: Vec<u8>,
    start: Start,
    latest: HostPoint,
    series: Readings<HostPoint>,
}

/// The first reading.
#[derive(Debug, Default)]
struct Start {
    at_ns: u64,
    cpus: Option<Vec<CpuTimes>>,
    sums: Sums,
}

/// Counters since the machine (the process) was started.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    cpus: Option<CpuTimes>,
    pressure_ns: Option<u64>,
    client_cpu_ns: u64,
}

impl HostReader {
    /// Opens what is to be read.
    pub(crate) fn new() -> Self {
        let of_cgroup =
            cgroup::own_unified_folder().map(|folder| File::open(folder.join("cpu.pressure")));
        Self {
            stat: File::open(STAT),
            pressure: match of_cgroup {
                Some(Ok(file)) => Ok(file),
                _ => File::open("/proc/pressure/cpu"),
            },
            quota: CpuQuota::of(None),
            ns_per_tick: tick_ns(),
            text: vec![0; STAT_BYTES],
            start: Start::default(),
            latest: HostPoint::default(),
            series: Readings::default(),
        }
    }

    /// The first reading.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        let cpus = self.read_cpus();
        self.start = Start {
            at_ns: now_ns,
            sums: self.read_sums(),
            cpus: cpus.ok(),
        };
        if let Ok(Some(quota)) = &mut self.quota {
            quota.mark();
        }
        self.series.add(HostPoint::default());
    }

    /// A reading in between.
    pub(crate) fn sample(&mut self, now_ns: u64) {
        let point = self.point(now_ns);
        self.series.add(point);
    }

    /// The last reading. What could not be read is added to `missing`.
    pub(crate) fn end(
        mut self,
        now_ns: u64,
        missing: &mut BTreeMap<String, String>,
    ) -> HostEvidence {
        let last = self.point(now_ns);
        let mut miss = |field: &str, reason: String| {
            missing.insert(format!("host.{field}"), reason);
        };
        let cpus = match (self.read_cpus(), &self.start.cpus) {
            (Ok(end), Some(start)) => difference(start, &end),
            (Err(error), _) => {
                miss("cpus", format!("/proc/stat: {error}"));
                Vec::new()
            }
            (Ok(_), None) => {
                miss("cpus", "/proc/stat could not be read at first".to_owned());
                Vec::new()
            }
        };
        let pressure_ns = self.start.sums.pressure_ns.map(|_| last.pressure_ns);
        if pressure_ns.is_none() {
            let reason = match &self.pressure {
                Err(error) => format!("/proc/pressure/cpu: {error}"),
                // The file is there where the kernel was built with it, whether or not it is on.
                Ok(_) => "the kernel keeps no pressure figures (psi=1 turns them on)".to_owned(),
            };
            miss("pressure_ns", reason);
        }
        let client_cpus = allowed_cpus().unwrap_or_else(|error| {
            miss("client_cpus", format!("sched_getaffinity: {error}"));
            Vec::new()
        });
        if let Err(unseen) = &self.quota {
            miss(
                "throttling",
                format!("whether brunt is under a CPU quota is unknown: {unseen}"),
            );
        }
        HostEvidence {
            cpus,
            client_cpus,
            pressure_ns,
            throttling: cgroup::throttling(&self.quota),
            programs: None,
            stolen: Vec::new(),
            series: self.series.finish(last),
        }
    }

    /// What was added since the first reading. What cannot be read stays as it was.
    fn point(&mut self, now_ns: u64) -> HostPoint {
        let (start, now, latest) = (self.start.sums, self.read_sums(), self.latest);
        let added = |of: fn(&Sums) -> Option<u64>, latest: u64| {
            let both = of(&now).zip(of(&start));
            both.map_or(latest, |(now, start)| now.saturating_sub(start).max(latest))
        };
        self.latest = HostPoint {
            at_ns: now_ns.saturating_sub(self.start.at_ns),
            busy_ns: added(|sums| Some(sums.cpus?.busy_ns), latest.busy_ns),
            steal_ns: added(|sums| Some(sums.cpus?.steal_ns), latest.steal_ns),
            pressure_ns: added(|sums| sums.pressure_ns, latest.pressure_ns),
            client_cpu_ns: added(|sums| Some(sums.client_cpu_ns), latest.client_cpu_ns),
        };
        self.latest
    }

    fn read_sums(&self) -> Sums {
        let mut buffer = [0; SUMS_BYTES];
        let mut pressure = [0; PRESSURE_BYTES];
        let first_line = self.stat.as_ref().ok().and_then(|stat| {
            let length = stat.read_at(&mut buffer, 0).ok()?;
            let end = buffer[..length].iter().position(|&byte| byte == b'\n')?;
            str::from_utf8(&buffer[..end]).ok()
        });
        let file = self.pressure.as_ref().ok();
        Sums {
            cpus: first_line.and_then(|line| Some(cpu_line(line, self.ns_per_tick)?.1)),
            pressure_ns: file.and_then(|file| some_ns(reread(file, &mut pressure).ok()?)),
            client_cpu_ns: CpuUse::of_process().map_or(0, CpuUse::total_ns),
        }
    }

    fn read_cpus(&mut self) -> io::Result<Vec<CpuTimes>> {
        read_cpus(&self.stat, &mut self.text, self.ns_per_tick)
    }
}

/// Reads each CPU's times.
pub(crate) fn read_cpus(
    stat: &io::Result<File>,
    text: &mut Vec<u8>,
    ns_per_tick: u64,
) -> io::Result<Vec<CpuTimes>> {
    let copy = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
    let stat = stat.as_ref().map_err(copy)?;
    let length = read_until(stat, text, b"\nintr")?;
    let lines = String::from_utf8_lossy(&text[..length]);
    Ok(cpu_lines(&lines, ns_per_tick))
}

/// Reads the start of a file up to and with `mark`, into a buffer that grows as needed; returns how
/// much is there.
fn read_until(file: &File, buffer: &mut Vec<u8>, mark: &[u8]) -> io::Result<usize> {
    let mut length = 0;
    loop {
        let count = file.read_at(&mut buffer[length..], length as u64)?;
        // The mark may have been cut in two.
        let from = length.saturating_sub(mark.len());
        length += count;
        let has_mark = buffer[from..length]
            .windows(mark.len())
            .any(|bytes| bytes == mark);
        if count == 0 || has_mark || length >= STAT_BYTES_MAX {
            return Ok(length);
        }
        if length == buffer.len() {
            buffer.resize(2 * length, 0);
        }
    }
}

/// The lines of `/proc/stat` that are about one CPU.
fn cpu_lines(stat: &str, ns_per_tick: u64) -> Vec<CpuTimes> {
    let times_of = |line| match cpu_line(line, ns_per_tick)? {
        (Some(cpu), times) => Some(CpuTimes { cpu, ..times }),
        (None, _) => None,
    };
    stat.lines().filter_map(times_of).collect()
}

/// A line `cpuN user nice system idle iowait irq softirq steal guest guest_nice` in clock ticks,
/// or the one for all CPUs, which has no number. Time in guests is part of `user` and `nice`.
fn cpu_line(line: &str, ns_per_tick: u64) -> Option<(Option<u32>, CpuTimes)> {
    let mut fields = line.split_ascii_whitespace();
    let number = fields.next()?.strip_prefix("cpu")?;
    let cpu = match number {
        "" => None,
        number => Some(number.parse().ok()?),
    };
    // Old kernels have fewer columns.
    let mut ticks = [0_u64; 8];
    for (place, field) in ticks.iter_mut().zip(fields) {
        *place = field.parse().ok()?;
    }
    let [user, nice, system, idle, io_wait, irq, softirq, steal] =
        ticks.map(|ticks| ticks.saturating_mul(ns_per_tick));
    let sum = |parts: &[u64]| parts.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
    let times = CpuTimes {
        cpu: 0,
        busy_ns: sum(&[user, nice, system, irq, softirq]),
        softirq_ns: softirq,
        steal_ns: steal,
        idle_ns: sum(&[idle, io_wait]),
    };
    Some((cpu, times))
}

/// What the CPUs that were online at both readings did in between.
pub fn difference(start: &[CpuTimes], end: &[CpuTimes]) -> Vec<CpuTimes> {
    let since_start = |end: &CpuTimes| {
        let start = start.iter().find(|start| start.cpu == end.cpu)?;
        Some(CpuTimes {
            cpu: end.cpu,
            busy_ns: end.busy_ns.saturating_sub(start.busy_ns),
            softirq_ns: end.softirq_ns.saturating_sub(start.softirq_ns),
            steal_ns: end.steal_ns.saturating_sub(start.steal_ns),
            // The kernel's account of it is known to step back now and then.
            idle_ns: end.idle_ns.saturating_sub(start.idle_ns),
        })
    };
    end.iter().filter_map(since_start).collect()
}

/// The total of the line `some` of a pressure file, which is in microseconds.
fn some_ns(pressure: &str) -> Option<u64> {
    // Not all of the file: old kernels have no second line.
    let some = pressure.lines().find(|line| line.starts_with("some "))?;
    let record = parse_pressure_record(some).ok()?;
    Some(record.total.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 10_000_000;

    #[test]
    fn a_line_of_a_cpu_is_read() {
        let times = |cpu, busy, softirq, steal, idle| {
            (
                cpu,
                CpuTimes {
                    cpu: 0,
                    busy_ns: busy * TICK_NS,
                    softirq_ns: softirq * TICK_NS,
                    steal_ns: steal * TICK_NS,
                    idle_ns: idle * TICK_NS,
                },
            )
        };
        for (line, expected) in [
            (
                "cpu  949344 558389 696126 1698752 283291 0 196232 3134 0 0",
                Some(times(None, 2_400_091, 196_232, 3_134, 1_982_043)),
            ),
            // Time in a guest is in user time already.
            (
                "cpu3 10 2 3 4 5 6 7 8 9 2",
                Some(times(Some(3), 28, 7, 8, 9)),
            ),
            ("cpu0 10 2 3 4", Some(times(Some(0), 15, 0, 0, 4))),
            ("cpu0", Some(times(Some(0), 0, 0, 0, 0))),
            ("cpu0 10 x 3 4", None),
            ("cpux 1 2 3 4", None),
            ("intr 48458222 0", None),
            ("", None),
        ] {
            assert_eq!(cpu_line(line, TICK_NS), expected, "{line:?}");
        }
        let (_, most) = cpu_line("cpu 18446744073709551615 9 9 9", TICK_NS).expect("read");
        assert_eq!(most.busy_ns, u64::MAX);
    }

    #[test]
    fn cpus_are_told_apart_from_their_sum() {
        let stat = "cpu  9 0 0 0\ncpu0 4 0 0 0\ncpu2 5 0 0 0\nintr 1\nctxt 2\n";
        let cpus: Vec<_> = cpu_lines(stat, 1)
            .iter()
            .map(|cpu| (cpu.cpu, cpu.busy_ns))
            .collect();
        assert_eq!(cpus, [(0, 4), (2, 5)]);
    }

    #[test]
    fn only_cpus_that_stayed_are_compared_and_nothing_is_negative() {
        let times = |cpu, busy_ns, idle_ns| CpuTimes {
            cpu,
            busy_ns,
            idle_ns,
            ..CpuTimes::default()
        };
        let start = [times(0, 10, 50), times(1, 10, 50)];
        let end = [times(1, 30, 49), times(4, 9, 9)];
        assert_eq!(difference(&start, &end), [times(1, 20, 0)]);
    }

    #[test]
    fn pressure_is_the_total_of_some() {
        for (text, ns) in [
            (
                "some avg10=7.92 avg60=2.65 avg300=0.99 total=4769654169\n\
                 full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
                Some(4_769_654_169_000),
            ),
            ("full avg10=0.00 total=7\n", None),
            ("some avg10=0.00 total=x\n", None),
            ("", None),
        ] {
            assert_eq!(some_ns(text), ns, "{text:?}");
        }
    }

    #[test]
    fn a_file_is_read_as_far_as_its_mark_however_small_the_buffer() {
        let file = File::open("/proc/self/status").expect("a file of several lines");
        for size in [1, 7, 64, 4_096] {
            let mut buffer = vec![0; size];
            let length = read_until(&file, &mut buffer, b"\nPid:").expect("read");
            let text = str::from_utf8(&buffer[..length]).expect("text");
            assert!(
                text.starts_with("Name:") && text.contains("\nPid:"),
                "{size}"
            );
        }
    }

    #[test]
    fn a_machine_that_cannot_be_read_is_said_to_be_so() {
        let mut reader = HostReader::new();
        reader.stat = Err(io::ErrorKind::PermissionDenied.into());
        reader.pressure = Err(io::ErrorKind::NotFound.into());
        reader.begin(5);
        reader.sample(10);
        let mut missing = BTreeMap::new();
        let evidence = reader.end(25, &mut missing);
        assert!(evidence.cpus.is_empty());
        assert_eq!(evidence.pressure_ns, None);
        assert!(missing["host.cpus"].contains("permission denied"));
        assert!(missing["host.pressure_ns"].contains("not found"));
        let instants: Vec<_> = evidence.series.iter().map(|point| point.at_ns).collect();
        assert_eq!(instants, [0, 5, 20]);
        assert!(evidence.series.iter().all(|point| point.busy_ns == 0));
        assert!(!evidence.client_cpus.is_empty());
    }
}
