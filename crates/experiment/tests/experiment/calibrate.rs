//! Calibrations against a simulated server, on machines whose readings are constructed: what is
//! believed, what is repeated, and what is refused.

use brunt_engine::{Phase, Progress, Rounds, prepare_simulated};
use brunt_experiment::{Bench, CalibrateError, Calibrated, Doubt, Doubtful, Others, calibrate};
use brunt_load::{Plan, Round};
use brunt_measure::{Backend, CpuTimes, HostPoint, Run};
use brunt_sim::{Costs, ServiceTime, SimMachine, SimServer, SimSettings, Stall};

const MS: u64 = 1_000_000;
const STEP_NS: u64 = 200 * MS;
const QUIET: Others = Others {
    cpus: 2,
    used_cpus: 0.0,
    stolen_cpus: 0.0,
};
const BUSY: Others = Others {
    used_cpus: 0.97,
    ..QUIET
};

/// A machine of two CPUs.
struct Machine {
    /// What is read before the first step, one after the other; then nothing.
    before: Vec<Others>,
    /// What is read in the run of this number, from 0.
    during: Box<dyn Fn(usize) -> Others>,
    /// What a send takes in it.
    send_ns: Box<dyn Fn(usize) -> u64>,
    /// How much longer than asked each answer takes, beside a known delay.
    late_ns: u64,
    /// Steps that were run.
    steps: Vec<String>,
}

impl Machine {
    fn quiet() -> Self {
        Self {
            before: Vec::new(),
            during: Box::new(|_| QUIET),
            send_ns: Box::new(|_| 10_000),
            late_ns: 0,
            steps: Vec::new(),
        }
    }

    fn calibrate(&mut self, doubtful: Doubtful) -> Result<Calibrated, CalibrateError<String>> {
        calibrate(self, &[Backend::Sim], 2, STEP_NS, doubtful)
    }

    fn doubt(&mut self) -> Doubt {
        match self.calibrate(Doubtful::Refused) {
            Err(CalibrateError::Doubt(doubt)) => doubt,
            other => panic!("no doubt: {other:?}"),
        }
    }
}

impl Bench for Machine {
    type Error = String;

    fn serve(&mut self, _: u32, _: bool) -> Result<String, String> {
        Ok("simulated".to_owned())
    }

    fn stop_serving(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn run(&mut self, step: &str, plan: Plan) -> Result<Run, String> {
        let number = self.steps.len();
        self.steps.push(step.to_owned());
        let mut server = SimServer::default();
        if step.contains("delays") {
            server.service = ServiceTime::Constant(MS + self.late_ns);
        }
        if step.contains("stalls") {
            server.stall = Some(Stall {
                silence_ns: STEP_NS / 10,
                period_ns: STEP_NS.try_into().expect("some"),
            });
        }
        let settings = SimSettings {
            server,
            costs: Costs {
                send_ns: (self.send_ns)(number),
                ..Costs::default()
            },
            ..SimSettings::new(1)
        };
        let round = Round::of(&plan);
        let mut machine = SimMachine::new(settings);
        let prepared = prepare_simulated(plan, &mut machine).map_err(|error| error.to_string())?;
        let control = prepared.control();
        let mut session = prepared.open(&mut machine, &control);
        let run = session.round(&round, &mut |_: Phase, _: &Progress| {});
        let mut run = run.map_err(|error| error.to_string())?;
        let (others, interval_ns) = ((self.during)(number), run.window_ns);
        let of_window = |cpus: f64| (cpus * interval_ns as f64) as u64;
        let own_ns = of_window(0.9);
        let evidence = &mut run.agents[0].evidence;
        evidence.interval_ns = interval_ns;
        evidence.host.client_cpus = vec![0, 1];
        let times = |cpu, busy_ns, steal_ns| CpuTimes {
            cpu,
            busy_ns,
            steal_ns,
            ..CpuTimes::default()
        };
        evidence.host.cpus = vec![
            times(0, own_ns, of_window(others.stolen_cpus)),
            times(1, of_window(others.used_cpus), 0),
            // Not for brunt, and so no matter to it.
            times(2, of_window(1.0), of_window(1.0)),
        ];
        evidence.host.series = vec![HostPoint {
            client_cpu_ns: own_ns,
            ..HostPoint::default()
        }];
        Ok(run)
    }

    fn others(&mut self) -> Result<Option<Others>, String> {
        let has_reading = !self.before.is_empty();
        Ok(has_reading.then(|| self.before.remove(0)))
    }
}

#[test]
fn a_quiet_machine_is_believed() {
    let mut machine = Machine::quiet();
    let calibrated = machine.calibrate(Doubtful::Refused).expect("no doubt");
    assert_eq!(calibrated.notes, Vec::<String>::new());
    let ceilings = calibrated.ceilings.len();
    assert_eq!((ceilings, calibrated.accuracy.len()), (1, 1));
    // Each ceiling was measured twice.
    let requests = machine
        .steps
        .iter()
        .filter(|step| step.contains("requests"));
    assert_eq!((requests.count(), machine.steps.len()), (2, 6));
}

#[test]
fn a_busy_machine_is_refused_before_any_load() {
    let mut machine = Machine::quiet();
    machine.before = vec![BUSY; 3];
    let doubt = machine.doubt();
    assert!(matches!(doubt, Doubt::Busy { .. }), "{doubt:?}");
    for part in ["before the first step", "0.97 CPUs of 2", "0.10"] {
        assert!(doubt.to_string().contains(part), "{part}: {doubt}");
    }
    assert_eq!(machine.steps, Vec::<String>::new());

    // What passes is waited for.
    machine.before = vec![BUSY, BUSY, QUIET];
    machine.calibrate(Doubtful::Refused).expect("no doubt");

    let stolen = Others {
        stolen_cpus: 0.3,
        ..QUIET
    };
    let mut machine = Machine::quiet();
    machine.before = vec![stolen; 3];
    let doubt = machine.doubt();
    assert!(matches!(doubt, Doubt::Stolen { .. }), "{doubt:?}");
}

#[test]
fn what_begins_meanwhile_is_repeated_and_then_refused() {
    let mut machine = Machine::quiet();
    machine.during = Box::new(|number| if number == 1 { BUSY } else { QUIET });
    machine.calibrate(Doubtful::Refused).expect("no doubt");
    assert_eq!(machine.steps.len(), 7, "{:?}", machine.steps);

    let mut machine = Machine::quiet();
    machine.during = Box::new(|number| if number >= 4 { BUSY } else { QUIET });
    let doubt = machine.doubt();
    assert!(doubt.to_string().contains("known delays"), "{doubt}");
    assert_eq!(machine.steps.len(), 4 + 3);
}

#[test]
fn ceilings_that_do_not_agree_are_refused() {
    let slow_first = |number| if number == 0 { 30_000 } else { 10_000 };
    let mut machine = Machine::quiet();
    machine.send_ns = Box::new(slow_first);
    let calibrated = machine.calibrate(Doubtful::Refused).expect("no doubt");
    assert_eq!(machine.steps.len(), 7, "{:?}", machine.steps);
    // The one that is confirmed counts, not the slow one.
    let plain = Machine::quiet().calibrate(Doubtful::Refused);
    let per_s = |calibrated: &Calibrated| calibrated.ceilings[0].requests_per_s;
    assert_eq!(per_s(&calibrated), per_s(&plain.expect("no doubt")));

    let mut machine = Machine::quiet();
    machine.send_ns = Box::new(|number| 10_000 << number);
    let doubt = machine.doubt();
    assert!(matches!(doubt, Doubt::Apart { times: 4, .. }), "{doubt:?}");
    assert!(doubt.to_string().contains("4 measurements"), "{doubt}");
}

#[test]
fn known_times_that_are_not_found_are_refused() {
    let mut machine = Machine::quiet();
    machine.late_ns = 12 * MS;
    let doubt = machine.doubt();
    assert!(matches!(doubt, Doubt::Inexact { .. }), "{doubt:?}");
    assert!(doubt.to_string().contains("off by 12."), "{doubt}");
}

#[test]
fn without_a_store_doubts_are_notes_and_nothing_is_repeated_in_vain() {
    let mut machine = Machine::quiet();
    machine.before = vec![BUSY; 3];
    machine.during = Box::new(|_| BUSY);
    let calibrated = machine.calibrate(Doubtful::Noted).expect("notes");
    assert_eq!((machine.steps.len(), calibrated.ceilings.len()), (4, 1));
    assert_eq!(calibrated.notes.len(), 5, "{:?}", calibrated.notes);
}
