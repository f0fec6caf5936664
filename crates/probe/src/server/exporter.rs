//! The server as a Prometheus exporter reports it: its own process, or the whole machine. Read by
//! a thread of its own, so that a slow exporter holds nobody up.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;

use brunt_io::clock;
use brunt_io::threads;
use brunt_io::tls_config::PageTls;
use brunt_load::Target;
use brunt_record::{ServerEvidence, ServerPoint, ServerScope};

use super::WatchError;
use crate::fetch::Page;
use crate::prometheus;
use crate::series::Readings;

/// Limit of the first reading, which the load waits for, nanoseconds.
const FIRST_LIMIT_NS: u64 = 5_000_000_000;
/// Limit of one reading beside the load, nanoseconds.
const LIMIT_NS: u64 = 1_000_000_000;
/// Readings asked for while another one is in progress.
const WAITING_MAX: usize = 1;

/// Watches by an exporter.
#[derive(Debug)]
pub(super) struct ExporterWatch {
    url: String,
    name: String,
    kind: Kind,
    orders: SyncSender<()>,
    reader: JoinHandle<Option<Vec<Reading>>>,
}

/// Whose metrics they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Process,
    Host,
}

/// What a page says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Metrics {
    kind: Kind,
    cpu_user_ns: u64,
    cpu_system_ns: u64,
    /// CPUs of the machine.
    cpus: Option<u32>,
    threads: Option<u32>,
    resident_bytes: Option<u64>,
    descriptors: Option<u64>,
}

/// What a page said at an instant.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at_ns: u64,
    metrics: Metrics,
}

impl ExporterWatch {
    /// Reads the exporter once, to see what it is, and starts the thread.
    pub(super) fn new(target: &Target, tls: &PageTls) -> Result<Self, WatchError> {
        let page = Page::new(target, tls)?;
        let url = page.url().to_owned();
        let Some(Metrics { kind, .. }) = Metrics::parse(&page.get(FIRST_LIMIT_NS)?) else {
            return Err(WatchError::NoMetrics { url });
        };
        let (orders, ordered) = mpsc::sync_channel(WAITING_MAX);
        let reader = threads::spawn("watch-url", move || {
            let mut readings = Readings::default();
            let mut last = None;
            while ordered.recv().is_ok() {
                // A reading that failed leaves a gap; the next one may do better.
                if let Some(reading) = Reading::of(&page, kind) {
                    last = Some(reading);
                    readings.add(reading);
                }
            }
            last.map(|last| readings.finish(last))
        })
        .map_err(WatchError::Thread)?;
        Ok(Self {
            url,
            name: target.authority.clone(),
            kind,
            orders,
            reader,
        })
    }

    /// Asks for a reading. Without effect while one is waiting to be taken.
    pub(super) fn read(&self) {
        let _ = self.orders.try_send(());
    }

    /// Asks for the last reading and waits for it: for two time limits at most.
    pub(super) fn end(self) -> ServerEvidence {
        self.read();
        drop(self.orders);
        // Of a thread that failed there are no readings.
        let readings = self.reader.join().ok().flatten().unwrap_or_default();
        let scope = match self.kind {
            Kind::Process => ServerScope::ExporterProcess { url: self.url },
            Kind::Host => ServerScope::ExporterHost { url: self.url },
        };
        evidence(scope, self.name, &readings)
    }
}

impl Reading {
    fn of(page: &Page, kind: Kind) -> Option<Self> {
        let asked_ns = clock::now_ns();
        let text = page.get(LIMIT_NS).ok()?;
        let answered_ns = clock::now_ns();
        Some(Self {
            // The exporter looked at some instant between the two.
            at_ns: asked_ns + (answered_ns - asked_ns) / 2,
            metrics: Metrics::parse(&text).filter(|metrics| metrics.kind == kind)?,
        })
    }

    /// The reading as a point of a series that began with `first`.
    fn point(&self, first: &Self) -> ServerPoint {
        let (now, then) = (&self.metrics, &first.metrics);
        ServerPoint {
            at_ns: self.at_ns.saturating_sub(first.at_ns),
            cpu_user_ns: now.cpu_user_ns.saturating_sub(then.cpu_user_ns),
            cpu_system_ns: now.cpu_system_ns.saturating_sub(then.cpu_system_ns),
            threads: now.threads,
            resident_bytes: now.resident_bytes,
            descriptors: now.descriptors,
        }
    }
}

/// The evidence that the readings are, from the first one to the last one.
fn evidence(scope: ServerScope, name: String, readings: &[Reading]) -> ServerEvidence {
    let first = readings.first();
    let mut series: Vec<_> = readings
        .iter()
        .zip(first.into_iter().cycle())
        .map(|(reading, first)| reading.point(first))
        .collect();
    // The last reading may stand there twice.
    series.dedup_by_key(|point| point.at_ns);
    let last = series.last().copied().unwrap_or_default();
    ServerEvidence {
        scope,
        name,
        interval_ns: last.at_ns,
        cpu_user_ns: last.cpu_user_ns,
        cpu_system_ns: last.cpu_system_ns,
        cpus: first.and_then(|first| first.metrics.cpus).map(f64::from),
        cpu_list: Vec::new(),
        run_queue_wait_ns: None,
        throttling: None,
        threads: None,
        idle_cpus_used: None,
        resident_bytes_max: series.iter().filter_map(|point| point.resident_bytes).max(),
        descriptors_max: series.iter().filter_map(|point| point.descriptors).max(),
        series,
    }
}

impl Metrics {
    /// Reads a page. The machine's metrics count where they are there: an exporter of a machine
    /// has those of its own process as well. `None` where there are neither.
    fn parse(text: &str) -> Option<Self> {
        let mut host = HostSums::default();
        let mut process = ProcessSums::default();
        let is_wanted = |name: &str| name.starts_with("node_") || name.starts_with("process_");
        for sample in prometheus::samples_of(text, is_wanted) {
            host.add(&sample);
            process.add(&sample);
        }
        host.metrics().or_else(|| process.metrics())
    }
}

/// Metrics of a machine.
#[derive(Debug, Default)]
struct HostSums {
    cpus: BTreeSet<String>,
    user_s: f64,
    system_s: f64,
    memory_bytes: Option<f64>,
    available_bytes: Option<f64>,
}

impl HostSums {
    fn add(&mut self, sample: &prometheus::Sample<'_>) {
        match sample.name {
            "node_cpu_seconds_total" => {
                let Some((cpu, mode)) = sample.label("cpu").zip(sample.label("mode")) else {
                    return;
                };
                if !self.cpus.contains(cpu) {
                    self.cpus.insert(cpu.to_owned());
                }
                match mode {
                    "idle" | "iowait" | "steal" => {}
                    "user" | "nice" => self.user_s += sample.value,
                    _ => self.system_s += sample.value,
                }
            }
            "node_memory_MemTotal_bytes" => self.memory_bytes = Some(sample.value),
            "node_memory_MemAvailable_bytes" => self.available_bytes = Some(sample.value),
            _ => {}
        }
    }

    fn metrics(&self) -> Option<Metrics> {
        let used_bytes = self.memory_bytes.zip(self.available_bytes);
        (!self.cpus.is_empty()).then(|| Metrics {
            kind: Kind::Host,
            cpu_user_ns: nanoseconds(self.user_s),
            cpu_system_ns: nanoseconds(self.system_s),
            cpus: Some(self.cpus.len() as u32),
            threads: None,
            resident_bytes: used_bytes.map(|(all, available)| (all - available) as u64),
            descriptors: None,
        })
    }
}

/// Metrics of a process, or of several on one page in sum.
#[derive(Debug, Default)]
struct ProcessSums {
    cpu_s: Option<f64>,
    user_s: Option<f64>,
    system_s: Option<f64>,
    threads: Option<f64>,
    resident_bytes: Option<f64>,
    descriptors: Option<f64>,
}

impl ProcessSums {
    fn add(&mut self, sample: &prometheus::Sample<'_>) {
        let sum = match sample.name {
            "process_cpu_seconds_total" => &mut self.cpu_s,
            "process_cpu_user_seconds_total" => &mut self.user_s,
            "process_cpu_system_seconds_total" => &mut self.system_s,
            "process_threads" => &mut self.threads,
            "process_resident_memory_bytes" => &mut self.resident_bytes,
            "process_open_fds" => &mut self.descriptors,
            _ => return,
        };
        *sum = Some(sum.unwrap_or(0.0) + sample.value);
    }

    fn metrics(&self) -> Option<Metrics> {
        // Only some libraries report user and system apart.
        let (user_s, system_s) = match (self.user_s.zip(self.system_s), self.cpu_s) {
            (Some(both), _) => both,
            (None, Some(cpu_s)) => (cpu_s, 0.0),
            (None, None) => return None,
        };
        Some(Metrics {
            kind: Kind::Process,
            cpu_user_ns: nanoseconds(user_s),
            cpu_system_ns: nanoseconds(system_s),
            cpus: None,
            // Casts keep within the type's range.
            threads: self.threads.map(|count| count as u32),
            resident_bytes: self.resident_bytes.map(|bytes| bytes as u64),
            descriptors: self.descriptors.map(|count| count as u64),
        })
    }
}

/// Casts keep within the type's range, and what is no number is 0.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::tests::{ok, serve, target};

    const S: u64 = 1_000_000_000;

    /// Metrics as a node exporter prints them, shortened.
    const NODE: &str = r#"# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 19034.52
node_cpu_seconds_total{cpu="0",mode="iowait"} 31.5
node_cpu_seconds_total{cpu="0",mode="irq"} 0
node_cpu_seconds_total{cpu="0",mode="nice"} 0.5
node_cpu_seconds_total{cpu="0",mode="softirq"} 2.25
node_cpu_seconds_total{cpu="0",mode="steal"} 7.75
node_cpu_seconds_total{cpu="0",mode="system"} 10
node_cpu_seconds_total{cpu="0",mode="user"} 20
node_cpu_seconds_total{cpu="1",mode="idle"} 19080.02
node_cpu_seconds_total{cpu="1",mode="system"} 5
node_cpu_seconds_total{cpu="1",mode="user"} 15
node_cpu_guest_seconds_total{cpu="0",mode="user"} 3
node_memory_MemAvailable_bytes 3.0e+09
node_memory_MemTotal_bytes 4.5e+09
process_cpu_seconds_total 0.42
process_open_fds 9
"#;

    /// Metrics as a program with the usual client library prints them.
    const PROCESS: &str = "# TYPE process_cpu_seconds_total counter\n\
                           process_cpu_seconds_total 12.5\nprocess_max_fds 1.048576e+06\n\
                           process_open_fds 17\nprocess_resident_memory_bytes 2.4879104e+07\n\
                           process_start_time_seconds 1.73e+09\ngo_threads 8\n";

    /// Metrics as programs that run on Node.js print them.
    const NODE_JS: &str = "process_cpu_user_seconds_total 3.5\n\
                           process_cpu_system_seconds_total 1.5\nprocess_cpu_seconds_total 5\n";

    #[test]
    fn pages_of_machines_and_processes() {
        let host = Metrics::parse(NODE).unwrap();
        assert_eq!((host.kind, host.cpus), (Kind::Host, Some(2)));
        assert_eq!(host.cpu_user_ns, 35 * S + S / 2);
        assert_eq!(host.cpu_system_ns, 17 * S + S / 4);
        assert_eq!(
            (host.resident_bytes, host.descriptors),
            (Some(1_500_000_000), None)
        );

        let process = Metrics::parse(PROCESS).unwrap();
        assert_eq!((process.kind, process.cpus), (Kind::Process, None));
        assert_eq!(
            (process.cpu_user_ns, process.cpu_system_ns),
            (12 * S + S / 2, 0)
        );
        assert_eq!(process.resident_bytes, Some(24_879_104));
        assert_eq!((process.descriptors, process.threads), (Some(17), None));

        let split = Metrics::parse(NODE_JS).unwrap();
        assert_eq!(
            (split.cpu_user_ns, split.cpu_system_ns),
            (7 * S / 2, 3 * S / 2)
        );
    }

    #[test]
    fn pages_without_cpu_are_of_no_use() {
        for text in [
            "",
            "<html>",
            "process_open_fds 3\n",
            "node_cpu_seconds_total 3\n",
        ] {
            assert_eq!(Metrics::parse(text), None, "{text}");
        }
    }

    #[test]
    fn figures_that_are_none_do_no_harm() {
        let text = "process_cpu_seconds_total NaN\nprocess_threads -1\n\
                    process_resident_memory_bytes +Inf\n";
        let metrics = Metrics::parse(text).unwrap();
        assert_eq!((metrics.cpu_user_ns, metrics.threads), (0, Some(0)));
        assert_eq!(metrics.resident_bytes, Some(u64::MAX));
    }

    #[test]
    fn the_interval_is_that_of_the_exporters_readings() {
        let reading = |at_ns, cpu_s: &str| Reading {
            at_ns,
            metrics: Metrics::parse(&PROCESS.replace("12.5", cpu_s)).unwrap(),
        };
        let readings = [
            reading(5 * S, "12.5"),
            reading(6 * S, "13"),
            reading(8 * S, "15.5"),
            reading(8 * S, "15.5"),
        ];
        let scope = ServerScope::ExporterProcess { url: String::new() };
        let found = evidence(scope.clone(), "h".to_owned(), &readings);
        assert_eq!((found.interval_ns, found.cpu_ns()), (3 * S, 3 * S));
        assert_eq!(found.cpus_used(), Some(1.0));
        let at: Vec<_> = found.series.iter().map(|point| point.at_ns).collect();
        assert_eq!(at, [0, S, 3 * S]);
        assert_eq!(found.descriptors_max, Some(17));

        let nothing = evidence(scope, "h".to_owned(), &[]);
        assert_eq!((nothing.cpus_used(), nothing.series.len()), (None, 0));
    }

    #[test]
    fn an_exporter_is_read_at_the_edges() {
        let later = PROCESS.replace("12.5", "14.5");
        let address = serve(vec![ok(PROCESS), ok(PROCESS), ok(&later)]);
        let watch = ExporterWatch::new(&target(address), &PageTls::default()).unwrap();
        watch.read();
        let evidence = watch.end();
        let url = format!("http://{address}/page");
        assert_eq!(evidence.scope, ServerScope::ExporterProcess { url });
        assert_eq!(evidence.name, address.to_string());
        assert!(evidence.cpu_ns() == 2 * S || evidence.series.len() == 1);
    }

    #[test]
    fn a_page_of_no_use_is_an_error() {
        let address = serve(vec![ok("go_threads 8\n")]);
        let error = ExporterWatch::new(&target(address), &PageTls::default()).unwrap_err();
        assert!(
            error.to_string().contains("process_cpu_seconds_total"),
            "{error}"
        );
        let address = serve(vec![b"HTTP/1.1 404 No\r\n\r\n".to_vec()]);
        let error = ExporterWatch::new(&target(address), &PageTls::default()).unwrap_err();
        assert!(matches!(error, WatchError::Exporter(_)), "{error}");
    }
}
