//! What a reader of the simulated machine and server would have found.

use brunt_record::{
    CpuTimes, Evidence, HostEvidence, OtherPrograms, ProgramUse, ServerEvidence, ServerScope,
    ServerThreads, Stolen,
};

use super::ledger::{Ledger, Spent};
use super::settings::{SimHost, SimSettings};

/// The evidence of a run whose workers have these accounts.
pub(crate) fn evidence(settings: &SimSettings, ledgers: &[Ledger]) -> Evidence {
    let mut evidence = Evidence::default();
    let mut miss = |field: &str, why: &str| {
        let why = format!("simulation: {why}");
        evidence.missing.insert(field.to_owned(), why);
    };
    miss("network", "there is no network interface");
    let Some(host) = settings.host else {
        for field in ["host", "server"] {
            miss(field, "nothing of a machine was read");
        }
        return evidence;
    };
    miss("host.pressure_ns", "it is not simulated");
    let server = server(settings, ledgers);
    if server.is_none() {
        miss("server", "it has no limit that it could reach");
    }
    let lengths_ns = ledgers.iter().map(|ledger| ledger.window.length_ns());
    Evidence {
        interval_ns: lengths_ns.max().unwrap_or(0),
        host: HostEvidence {
            cpus: (0..)
                .zip(ledgers)
                .map(|(cpu, ledger)| cpu_times(cpu, host, ledger))
                .chain(server_cpus(settings, ledgers))
                .collect(),
            programs: Some(programs(host, ledgers)),
            stolen: stolen(ledgers),
            client_cpus: (0..ledgers.len() as u32).collect(),
            ..HostEvidence::default()
        },
        server,
        ..evidence
    }
}

fn cpu_times(cpu: u32, host: SimHost, ledger: &Ledger) -> CpuTimes {
    let busy_ns = ledger.thread_use().cpu_user_ns + others_ns(host, ledger);
    times(cpu, ledger, busy_ns, ledger.stolen_ns)
}

/// A CPU that was idle for the rest of the window.
fn times(cpu: u32, ledger: &Ledger, busy_ns: u64, steal_ns: u64) -> CpuTimes {
    let length_ns = ledger.window.length_ns();
    CpuTimes {
        cpu,
        busy_ns,
        softirq_ns: 0,
        steal_ns,
        idle_ns: length_ns.saturating_sub(busy_ns + steal_ns),
    }
}

/// The number of the first CPU of the servers, where the hypervisor takes those: each has one of
/// which its places have equal parts.
fn first_server_cpu(ledgers: &[Ledger]) -> u32 {
    ledgers.len() as u32
}

/// The CPUs of the servers, where the hypervisor takes them.
fn server_cpus(settings: &SimSettings, ledgers: &[Ledger]) -> Vec<CpuTimes> {
    let is_taken = settings.host.is_some_and(|host| host.bursts.is_some());
    let Some(places) = settings.server.concurrency.filter(|_| is_taken) else {
        return Vec::new();
    };
    let places = u64::from(places.get());
    let of_server = |(cpu, ledger): (u32, &Ledger)| {
        let stolen_ns = ledger.server_stolen_ns / places;
        times(cpu, ledger, ledger.served_ns / places, stolen_ns)
    };
    let cpus = (first_server_cpu(ledgers)..).zip(ledgers);
    cpus.map(of_server).collect()
}

/// When the hypervisor took which CPU.
fn stolen(ledgers: &[Ledger]) -> Vec<Stolen> {
    let of_workers = (0..)
        .zip(ledgers)
        .flat_map(|(cpu, ledger)| ledger.stolen.stretches(cpu));
    let first = first_server_cpu(ledgers);
    let of_servers = (first..)
        .zip(ledgers)
        .flat_map(|(cpu, ledger)| ledger.server_stolen.stretches(cpu));
    let mut stolen: Vec<_> = of_workers.chain(of_servers).collect();
    stolen.sort_by_key(|stretch| stretch.from_ns);
    stolen
}

/// What another process used, where there is one.
fn programs(host: SimHost, ledgers: &[Ledger]) -> OtherPrograms {
    let cpu_ns = ledgers.iter().map(|ledger| others_ns(host, ledger)).sum();
    let program = ProgramUse {
        name: "another".to_owned(),
        cpu_ns,
    };
    OtherPrograms {
        cpu_ns,
        largest: Vec::from_iter((cpu_ns > 0).then_some(program)),
    }
}

/// For how long another process ran.
fn others_ns(host: SimHost, ledger: &Ledger) -> u64 {
    let window = ledger.window;
    let (mut at_ns, mut sum_ns) = (window.start_ns, 0);
    while at_ns < window.end_ns {
        at_ns = match host.taken(at_ns) {
            Some((Spent::Queued, until_ns)) => {
                sum_ns += until_ns.min(window.end_ns) - at_ns;
                until_ns
            }
            Some((_, until_ns)) => until_ns,
            None => host.next_ns(at_ns),
        };
    }
    sum_ns
}

/// The servers of all workers as one. Absent where they have no limit.
fn server(settings: &SimSettings, ledgers: &[Ledger]) -> Option<ServerEvidence> {
    let places = settings.server.concurrency?;
    let lengths_ns = ledgers.iter().map(|ledger| ledger.window.length_ns());
    let interval_ns = lengths_ns.max().unwrap_or(0);
    let served_ns = ledgers.iter().map(|ledger| ledger.served_ns).sum::<u64>();
    // Each place is a thread, and all take turns.
    let count = places.get().saturating_mul(ledgers.len() as u32);
    let each_ns = served_ns / u64::from(count.max(1));
    let is_active = each_ns >= interval_ns / 20;
    let is_saturated = each_ns >= interval_ns / 10 * 9;
    Some(ServerEvidence {
        scope: ServerScope::Processes {
            pids: Vec::new(),
            found_by: "simulation".to_owned(),
        },
        name: "sim".to_owned(),
        interval_ns,
        cpu_user_ns: served_ns,
        cpu_system_ns: 0,
        cpus: Some(f64::from(count)),
        cpu_list: server_cpus(settings, ledgers)
            .iter()
            .map(|times| times.cpu)
            .collect(),
        run_queue_wait_ns: None,
        throttling: None,
        threads: Some(ServerThreads {
            count,
            active: if is_active { count } else { 0 },
            saturated: if is_saturated { count } else { 0 },
            busiest_cpu_ns: each_ns,
            saturated_cpu_ns: if is_saturated { served_ns } else { 0 },
        }),
        idle_cpus_used: Some(0.0),
        resident_bytes_max: None,
        descriptors_max: None,
        series: Vec::new(),
    })
}
