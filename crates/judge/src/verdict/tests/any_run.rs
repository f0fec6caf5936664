//! Stored runs whose numbers make no sense: judged without a panic, in finite words, and never in
//! favour of figures that a failing client spoils.

use brunt_record::{FailureKind, Run};
use proptest::prelude::*;
use serde_json::Value;

use super::bend::*;
use crate::invariants::INVARIANTS;
use crate::invariants::sample::over_tls;
use crate::verdict::signals::SIGNALS;
use crate::verdict::tests::bend::{closed, open, overloaded, remote};
use crate::verdict::{AccusedSide, Grade, Verdict};
use crate::{RunFigures, SignalId, check};

/// Numbers in `value`, without those of histograms, which are checked when they are read.
fn numbers(value: &Value) -> usize {
    match value {
        Value::Number(_) => 1,
        Value::Array(items) => items.iter().map(numbers).sum(),
        Value::Object(fields) => fields.values().map(numbers).sum(),
        _ => 0,
    }
}

/// Puts `new` in place of the `place`-th number.
fn replace(value: &mut Value, place: &mut usize, new: &Value) {
    match value {
        Value::Number(_) if *place == 0 => {
            *value = new.clone();
            *place = usize::MAX;
        }
        Value::Number(_) if *place != usize::MAX => *place -= 1,
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, place, new)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| replace(field, place, new)),
        _ => (),
    }
}

/// Streams that were refused and not processed, and a server that allows no more of them.
fn http2() -> Run {
    let mut run = closed();
    streams(&mut run, 10);
    over_tls(&mut run);
    run.agents[0].negotiated.note = Some("the server allows 10 streams".to_owned());
    failed(&mut run, FailureKind::StreamRefused, 9);
    failed(&mut run, FailureKind::NotProcessed, 9);
    run
}

/// Runs with all that can be in one.
fn runs() -> Vec<Value> {
    let full: Bend = |run| {
        halved(run, 80);
        same_cpus(run, 1_900);
        throttled(run, 30);
        server_throttled(run, 30);
        upload(run, 30, 30);
        answered_with(run, 429, 10);
    };
    let local = [closed(), open(), overloaded(), http2()];
    let runs = local.into_iter().chain([closed(), open()].map(remote));
    let stored = runs.map(|mut run| {
        if run.agents[0].evidence.server.is_some() {
            full(&mut run);
        }
        serde_json::to_value(run).expect("a run serialises")
    });
    stored.collect()
}

fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::from(0)),
        Just(Value::from(1)),
        Just(Value::from(u32::MAX)),
        Just(Value::from(u64::MAX)),
        Just(Value::from(i64::MIN)),
        Just(Value::from(f64::MAX)),
        Just(Value::from(-1e300)),
        Just(Value::from(5e-324)),
        (0_u64..100_000_000_000).prop_map(Value::from),
        (-10.0..10.0_f64).prop_map(Value::from),
    ]
}

fn verify(run: &Run) {
    assert_eq!(check(run).len(), INVARIANTS.len());
    let judgement = run.judge();
    assert_eq!(judgement.signals.len(), SIGNALS.len());
    assert_eq!(run.judge(), judgement);
    let details = judgement.signals.iter().map(|signal| &signal.detail);
    let words = details.chain([&judgement.because]).chain(&judgement.advice);
    for words in words {
        for word in words.split(|letter: char| !letter.is_alphanumeric()) {
            assert!(!matches!(word, "NaN" | "inf"), "{words}");
        }
        assert!(!words.is_empty() && words.len() < 2_000, "{words}");
    }
    for id in &judgement.decisive {
        let found = judgement.signal(*id).expect("a signal of the run");
        assert_ne!(found.grade, Grade::Unknown, "{id}");
    }
    assert!(judgement.decisive.len() <= 3);
    let mut signals = judgement.signals.iter();
    let client_fails =
        signals.any(|signal| signal.side == AccusedSide::Client && signal.grade == Grade::Fail);
    let speaks_of_others = matches!(
        judgement.verdict,
        Verdict::ServerLimited
            | Verdict::ConcurrencyLimited
            | Verdict::RateLimited
            | Verdict::NetworkLimited
    );
    // A rate that was met was met, however late brunt was.
    let is_met = judgement.verdict == Verdict::RateLimited
        && judgement.decisive.first() == Some(&SignalId::PlannedRate);
    let is_unsafe = client_fails && speaks_of_others && !is_met;
    assert!(!is_unsafe, "{judgement:#?}");
}

#[test]
fn a_run_without_anything_is_judged() {
    let mut run = closed();
    run.agents[0].workers.clear();
    run.agents[0].evidence = Default::default();
    run.latencies = Default::default();
    verify(&run);
    run.window_ns = 0;
    verify(&run);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_stored_run_is_judged(
        which in 0_usize..6,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any_number()), 1..6),
    ) {
        let mut stored = runs().swap_remove(which);
        for (place, new) in changes {
            let mut changed = stored.clone();
            replace(&mut changed, &mut place.index(numbers(&stored)), &new);
            // A number that its field cannot hold is refused.
            if serde_json::from_value::<Run>(changed.clone()).is_ok() {
                stored = changed;
            }
        }
        let run: Run = serde_json::from_value(stored).expect("it was read before");
        verify(&run);
    }
}
