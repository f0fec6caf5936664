//! Experiments whose figures are known, in every form, compared byte for byte with `tests/golden/`.

use std::collections::BTreeMap;

use brunt_judge::{
    Capacity, CapacityOutcome, CapacityPlan, CapacityStage, CapacityStep, ChangeLimit, Compared,
    ComparedRounds, ComparedSide, EndedEarly, ExperimentKind, ObjectiveOutcome, Range, RoundRecord,
    RoundResponse, RoundUse, SingleRun, Sweep, SweepAxis, SweepPlan, SweepRound, Verdict,
};
use brunt_record::{
    Backend, ClientDescription, Environment, FailureCounts, Objective, ServerDescription,
    StatusCounts,
};
use brunt_report::{Experiment, Format, Stored, Style, read, read_stored, write_experiment};

use crate::fixtures;
use crate::golden::compare;

const MS: u64 = 1_000_000;

fn environment() -> Environment {
    Environment {
        agents: Vec::new(),
        command: Some(
            ["brunt", "sweep", "-H", "X-Token: ...", "http://host/"]
                .map(str::to_owned)
                .to_vec(),
        ),
        machine: fixtures::machine(8),
        server: Some(ServerDescription {
            name: "nginx".to_owned(),
            processes: Some(3),
            threads: Some(3),
            cpus: Some(8.0),
        }),
        client: Some(ClientDescription {
            backend: Backend::Uring,
            usable_cpus: 8,
            descriptors_limit: 1_048_576,
            ports_available: Some(28_232),
        }),
    }
}

/// A round at this rate with these response times.
fn record(per_s: f64, p50_ns: u64, verdict: Verdict) -> RoundRecord {
    let successes = per_s as u64;
    RoundRecord {
        started_unix_ms: 1_767_225_600_000,
        window_ns: 1_000 * MS,
        protocol: Some("HTTP/1.1".to_owned()),
        verdict,
        because: String::new(),
        verdict_if: None,
        undisturbed_ns: None,
        successes_per_s: Some(per_s),
        planned_per_s: None,
        response: RoundResponse {
            min_ns: Some(p50_ns / 2),
            mean_ns: Some(p50_ns + p50_ns / 10),
            p50_ns: Some(p50_ns),
            p90_ns: Some(2 * p50_ns),
            p99_ns: Some(4 * p50_ns),
            p99_9_ns: (successes > 3_688).then_some(8 * p50_ns),
            max_ns: Some(16 * p50_ns),
        },
        issued: successes + successes / 1_000,
        successes,
        errors: successes / 1_000,
        failed: 0,
        sent_again: 0,
        statuses: StatusCounts::default(),
        failures: FailureCounts::default(),
        own_parts: None,
        client: RoundUse {
            user_cpus: Some(per_s / 1e6),
            system_cpus: Some(per_s / 5e5),
            resident_bytes: Some(12 << 20),
        },
        server: Some(RoundUse {
            user_cpus: Some(per_s / 2e5),
            system_cpus: Some(per_s / 1e5),
            resident_bytes: Some(31 << 20),
        }),
        missing: if successes > 3_688 {
            BTreeMap::new()
        } else {
            BTreeMap::from([(
                "p99.9".to_owned(),
                format!("{successes} replies, 3688 are needed"),
            )])
        },
    }
}

/// A server that takes 0.5 ms and has 40 places.
pub(crate) fn sweep(rounds: u32) -> Sweep {
    let values: Vec<f64> = [
        1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0,
    ]
    .into();
    let measured = (0..rounds).flat_map(|round| {
        values.iter().map(move |&value| {
            let off = 1.0 + 0.01 * f64::from(round * 7 % 5) - 0.02;
            let per_s = value.min(40.0) * 2_000.0 * off;
            let p50_ns = (value.max(40.0) / 40.0 * 0.5e6 / off) as u64;
            let verdict = match value {
                ..40.0 => Verdict::ConcurrencyLimited,
                ..60.0 => Verdict::Inconclusive,
                _ => Verdict::ServerLimited,
            };
            SweepRound {
                value,
                round,
                record: record(per_s, p50_ns, verdict),
            }
        })
    });
    Sweep {
        kind: ExperimentKind::Sweep,
        format: Sweep::FORMAT,
        brunt_version: "0.1.0".to_owned(),
        plan: SweepPlan {
            url: "http://192.0.2.1:8080/".to_owned(),
            varied: SweepAxis::Connections,
            values: values.clone(),
            rounds,
            seed: Some(7),
            window_ns: Some(1_000 * MS),
            warmup_ns: 1_000 * MS,
            round_warmup_ns: 100 * MS,
        },
        load: Some(fixtures::all()[0].1.plan.clone()),
        environment: environment(),
        broke_off: None,
        rounds: measured.collect(),
    }
}

/// Cut short in the middle of its second round, against a server elsewhere.
fn sweep_cut_short() -> Sweep {
    let mut sweep = sweep(2);
    sweep.rounds.truncate(14);
    sweep.plan.seed = None;
    sweep.environment = Environment::default();
    sweep.load = None;
    for round in &mut sweep.rounds {
        round.record.server = None;
    }
    sweep
}

/// A limit of how far this may fall.
fn fall(compared: Compared, change: f64) -> ChangeLimit {
    ChangeLimit {
        compared,
        change,
        is_rise: false,
    }
}

fn comparison(ratio: f64, limits: Vec<ChangeLimit>) -> ComparedRounds {
    let side = |url: &str, ratio: f64| ComparedSide {
        label: None,
        url: url.to_owned(),
        server: None,
        rounds: (0..10)
            .map(|round| {
                let off = 1.0 + 0.004 * f64::from(round * 7 % 5);
                let p50_ns = (1e6 / ratio) as u64;
                record(20_000.0 * ratio * off, p50_ns, Verdict::ServerLimited)
            })
            .collect(),
        single_run: None,
    };
    ComparedRounds {
        kind: ExperimentKind::Comparison,
        format: ComparedRounds::FORMAT,
        brunt_version: "0.1.0".to_owned(),
        load: Some(fixtures::all()[0].1.plan.clone()),
        environment: environment(),
        compared: vec![Compared::SuccessesPerS],
        limits,
        pairs_planned: Some(10),
        looks: None,
        ended_early: None,
        sides: vec![side("http://old/", 1.0), side("http://new/", ratio)],
    }
}

/// Slower by more than is allowed, and one pair that does not count.
fn comparison_exceeded() -> ComparedRounds {
    let mut compared = comparison(0.9, vec![fall(Compared::SuccessesPerS, -0.05)]);
    compared.sides[1].rounds[3].verdict = Verdict::ClientLimited;
    compared
}

/// A comparison with a lower bound: brunt was the limit of the second side in every round, also in
/// the pairs that replaced others.
fn comparison_at_least() -> ComparedRounds {
    let mut compared = comparison(263.0, Vec::new());
    for round in &mut compared.sides[1].rounds {
        round.verdict = Verdict::ClientLimited;
    }
    for side in &mut compared.sides {
        let again = side.rounds[0].clone();
        side.rounds.push(again);
    }
    compared.sides[0].rounds[2].verdict = Verdict::ServerFailed;
    compared
}

/// Brunt was the limit of both, in all rounds.
fn comparison_client() -> ComparedRounds {
    let mut compared = comparison(1.1, Vec::new());
    for side in &mut compared.sides {
        side.rounds.truncate(3);
        for round in &mut side.rounds {
            round.verdict = Verdict::ClientLimited;
        }
    }
    compared.ended_early = Some(EndedEarly::ClientLimited);
    compared
}

/// What the verdict says of a round in which brunt was the limit.
const BRUNT_LIMITED: &str = "brunt was the limit; the server may do more";

/// Two runs that were stored before, at this ratio of their rates.
fn comparison_stored(ratio: f64, verdict: Verdict) -> ComparedRounds {
    let mut compared = comparison(ratio, vec![fall(Compared::SuccessesPerS, -0.02)]);
    for (side, file) in compared.sides.iter_mut().zip(["old.json", "new.json"]) {
        side.url = "http://192.0.2.1:8080/".to_owned();
        side.rounds.truncate(1);
        let round = &side.rounds[0];
        let ns = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let around = [
            ("successes_per_s", round.successes_per_s, 0.01),
            ("p50", ns(round.response.p50_ns), 0.03),
            ("p90", ns(round.response.p90_ns), 0.03),
            ("p99", ns(round.response.p99_ns), 0.03),
        ];
        let ranges = around.into_iter().filter_map(|(name, value, by)| {
            let [low, high] = [1.0 - by, 1.0 + by].map(|times| value.map(|value| value * times));
            let (low, high) = low.zip(high)?;
            Some((name.to_owned(), Range { low, high }))
        });
        side.single_run = Some(SingleRun {
            file: file.to_owned(),
            brunt_version: "0.1.0".to_owned(),
            ranges: ranges.collect(),
            missing: BTreeMap::from([(
                "p99.9".to_owned(),
                "requests that were never answered may lie within it".to_owned(),
            )]),
        });
    }
    let because = match verdict {
        Verdict::ClientLimited => BRUNT_LIMITED,
        _ => "the server was at its limit; the figures describe it",
    };
    compared.sides[1].rounds[0].verdict = verdict;
    compared.sides[1].rounds[0].because = because.to_owned();
    compared
}

fn capacity(holds: f64) -> Capacity {
    capacity_that_ends(holds, CapacityOutcome::Missed)
}

/// Brunt was the limit before the server was.
fn capacity_of_client() -> Capacity {
    capacity_that_ends(4_000.0, CapacityOutcome::ClientLimited)
}

/// A search in which all rates beyond `holds` have the outcome `beyond`.
fn capacity_that_ends(holds: f64, beyond: CapacityOutcome) -> Capacity {
    let objective = Objective::ResponseQuantile {
        q: 0.99,
        below_ns: 10 * MS,
    };
    let plan = CapacityPlan {
        url: "http://192.0.2.1:8080/".to_owned(),
        objectives: vec![objective.clone(), Objective::Errors { below: 0.01 }],
        tolerance: 0.02,
        first_per_s: 500.0,
        least_per_s: 1.0,
        most_per_s: 1e6,
        window_ns: 2_000 * MS,
        warmup_ns: 500 * MS,
        budget_ns: 180_000 * MS,
    };
    let mut search = brunt_judge::CapacitySearch::new(&plan);
    let mut steps: Vec<CapacityStep> = Vec::new();
    while let Some(brunt_judge::CapacityNext {
        stage,
        rate_per_s,
        window_ns,
    }) = search.next()
    {
        // One step in a short window is unlucky.
        let is_unlucky = stage == CapacityStage::Bisection
            && beyond == CapacityOutcome::Missed
            && steps.iter().all(|step| step.stage != stage);
        let is_met = rate_per_s <= holds && !is_unlucky;
        let p99_ns = if is_met { 4.0e6 } else { 70.0e6 };
        let outcome = if is_met { CapacityOutcome::Met } else { beyond };
        let (verdict, because) = match outcome {
            CapacityOutcome::ClientLimited => (Verdict::ClientLimited, BRUNT_LIMITED),
            _ => (Verdict::RateLimited, ""),
        };
        let mut record = record(rate_per_s.min(holds), p99_ns as u64 / 4, verdict);
        record.because = because.to_owned();
        record.planned_per_s = Some(rate_per_s);
        record.window_ns = window_ns;
        let step = CapacityStep {
            stage,
            rate_per_s,
            outcome,
            because: because.to_owned(),
            is_disturbed: false,
            objectives: vec![ObjectiveOutcome {
                objective: objective.clone(),
                measured: Some(p99_ns),
                bound: Some(1.1 * p99_ns),
                is_met,
                reason: None,
            }],
            took_ns: window_ns + 500 * MS,
            record,
        };
        search.tell(&step);
        steps.push(step);
    }
    Capacity {
        kind: ExperimentKind::Capacity,
        format: Capacity::FORMAT,
        brunt_version: "0.1.0".to_owned(),
        plan,
        load: Some(fixtures::all()[0].1.plan.clone()),
        environment: environment(),
        broke_off: None,
        steps,
    }
}

/// Experiments by name.
pub(crate) fn all() -> Vec<(&'static str, Experiment)> {
    let stored = |verdict| comparison_stored(0.94, verdict);
    let sweeps = [
        ("sweep", sweep(3)),
        ("sweep-intervals", sweep(10)),
        ("sweep-cut-short", sweep_cut_short()),
    ];
    let comparisons = [
        ("comparison", comparison(1.08, Vec::new())),
        ("comparison-exceeded", comparison_exceeded()),
        ("comparison-at-least", comparison_at_least()),
        ("comparison-client", comparison_client()),
        ("comparison-stored", stored(Verdict::ServerLimited)),
        ("comparison-stored-client", stored(Verdict::ClientLimited)),
    ];
    let searches = [
        ("capacity", capacity(1_000.0)),
        ("capacity-client", capacity_of_client()),
    ];
    let sweeps = sweeps.map(|(name, found)| (name, Experiment::Sweep(found)));
    let comparisons = comparisons.map(|(name, found)| (name, Experiment::Comparison(found)));
    let searches = searches.map(|(name, found)| (name, Experiment::Capacity(found)));
    sweeps
        .into_iter()
        .chain(comparisons)
        .chain(searches)
        .collect()
}

/// Those of which every form is compared: of the others, the text.
pub(crate) const IN_EVERY_FORM: [&str; 3] = ["sweep-intervals", "comparison-exceeded", "capacity"];

pub(crate) fn written(experiment: &Experiment, format: Format) -> String {
    let mut bytes = Vec::new();
    write_experiment(experiment, format, &Style::default(), &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn text_csv_and_markdown() {
    for (name, experiment) in all() {
        let forms = [
            ("txt", Format::Text),
            ("csv", Format::Csv),
            ("md", Format::Markdown),
        ];
        // Only a comparison has all of them.
        let is_comparison = matches!(experiment, Experiment::Comparison(_));
        for (ending, format) in forms.into_iter().take(if is_comparison { 3 } else { 2 }) {
            let page = written(&experiment, format);
            // A sweep of few rounds is one of many without the last row.
            let is_text = format == Format::Text && name != "sweep";
            if is_text || IN_EVERY_FORM.contains(&name) {
                compare(&format!("experiment.{name}.{ending}"), &page);
            }
            if format == Format::Text {
                let wide = page.lines().find(|line| line.chars().count() > 80);
                assert_eq!(wide, None, "{name}");
            }
        }
    }
}

#[test]
fn what_is_stored_reads_back_as_it_was() {
    for (name, experiment) in all() {
        let json = written(&experiment, Format::Json);
        if name == "comparison-exceeded" {
            compare(&format!("experiment.{name}.json"), &json);
        }
        let back = read_stored(&mut json.as_bytes()).unwrap();
        assert_eq!(back, Stored::Experiment(Box::new(experiment)), "{name}");
        let error = read(&mut json.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("not a run"), "{error}");
        let other = json.replacen("\"format\": ", "\"format\": 9", 1);
        let error = read_stored(&mut other.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("of a newer version"), "{error}");
    }
    let odd = read_stored(&mut "{\"kind\": \"else\", \"format\": 1}".as_bytes());
    assert!(odd.is_err());
}

#[test]
fn a_search_beside_other_programs_says_that_the_rate_may_be_higher() {
    let with = |disturbed: usize| {
        let mut found = capacity(1_000.0);
        let rates = found.steps.iter_mut();
        let mut missed = rates.filter(|step| step.outcome == CapacityOutcome::Missed);
        for step in missed.by_ref().take(disturbed) {
            step.is_disturbed = true;
        }
        let json = written(&Experiment::Capacity(found), Format::Json);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        value["says"].as_str().unwrap().to_owned()
    };
    assert!(!with(1).contains("disturbed"), "{}", with(1));
    let says = with(3);
    let words = "disturbed 3 of 15 steps: on a quiet machine the rate may be higher";
    assert!(says.ends_with(words), "{says}");
}

#[test]
fn a_comparison_names_its_sides_and_what_was_kept() {
    let limits = [
        (Compared::ServerCpu, 0.03),
        (Compared::ServerCpu, 0.3),
        (Compared::ResponseQuantile(0.5), 0.2),
    ];
    let limits = limits.map(|(compared, change)| ChangeLimit {
        compared,
        change,
        is_rise: true,
    });
    let mut found = comparison(1.0, limits.to_vec());
    found.compared = vec![Compared::ResponseQuantile(0.5), Compared::ServerCpu];
    found.sides.push(found.sides[1].clone());
    found.sides.push(found.sides[1].clone());
    let labels = ["base", "change", "third", "fourth"];
    for (side, label) in found.sides.iter_mut().zip(labels) {
        side.label = Some(label.to_owned());
        side.server = Some(ServerDescription {
            name: format!("server-of-{label}"),
            ..ServerDescription::default()
        });
    }
    for round in &mut found.sides[1].rounds {
        let server = round.server.as_mut().unwrap();
        server.user_cpus = server.user_cpus.map(|cpus| 1.2 * cpus);
    }
    let all = Experiment::Comparison(found.clone());
    let comment = written(&all, Format::Markdown);
    for words in [
        "    FAILED      --fail-if cpu > +3.0 %: change uses ",
        "    passed      --fail-if cpu > +30 %: change uses ",
        "    passed      --fail-if p50 > +20 %: no difference shown between base and fourth",
    ] {
        assert!(comment.contains(words), "{words}: {comment}");
    }
    let text = written(&all, Format::Text);
    for label in labels {
        assert!(text.contains(&format!("server-of-{label}")), "{text}");
    }
    // What got worse is not shown as good, nor is what is exceeded a mere warning.
    found.limits.clear();
    let page = |found| written(&Experiment::Comparison(found), Format::Html);
    let verdict = |trust: &str| format!("<section class=\"verdict {trust}\"");
    assert!(page(found.clone()).contains(&verdict("warning")));
    found.limits.push(limits[0]);
    assert!(page(found).contains(&verdict("refusal")));
    // A command is no name.
    let mut commands = comparison(1.1, Vec::new());
    for side in &mut commands.sides {
        side.label = Some("./server -p 8080".to_owned());
    }
    let text = written(&Experiment::Comparison(commands), Format::Text);
    assert!(text.contains("B is 10 % faster"), "{text}");
}

#[test]
fn a_limit_within_the_interval_is_open() {
    let mut compared = comparison(1.0, vec![fall(Compared::SuccessesPerS, -0.001)]);
    for (place, round) in compared.sides[1].rounds.iter_mut().enumerate() {
        let off = 1.0 + 0.002 * (place as f64 - 4.5);
        round.successes_per_s = round.successes_per_s.map(|per_s| per_s * off);
    }
    let text = |compared: &ComparedRounds| {
        let compared = Experiment::Comparison(compared.clone());
        written(&compared, Format::Text)
    };
    let one = text(&compared);
    let open = "\nundecided   --fail-if rate < -0.1 %: too few rounds to tell (B: ";
    assert!(one.contains(open), "{one}");
    // The same pairs tell less where they were looked at more often.
    let width = |compared: &ComparedRounds| {
        let change = compared.comparisons()[0].change.unwrap();
        change.high - change.low
    };
    let before = width(&compared);
    compared.looks = Some(4);
    assert!(width(&compared) > before);
}
