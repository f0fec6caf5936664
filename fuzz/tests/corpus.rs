//! Runs every fuzz target over its committed inputs and over seeded mutations of them.
#![expect(
    clippy::disallowed_methods,
    reason = "the product starts its threads elsewhere"
)]

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use brunt_fuzz::{TARGETS, Target};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Mutations per target and seed. A count and not a time, so that a failure comes again.
const MUTATIONS: u64 = 40_000;

/// Targets that get fewer, so that theirs take as long: a handshake of TLS is slow, and so are a
/// server's long answers.
const MUTATIONS_OF_SLOW_TARGETS: [(&str, u64); 2] = [("server_http2", 3_000), ("tls", 1_500)];

/// A mutated input grows no longer than this.
const MAX_INPUT_BYTES: usize = 4096;

/// The seed of the mutations that are tried each time, unless `BRUNT_FUZZ_SEED` gives another.
const DEFAULT_SEED: u64 = 1;
/// The seed of the check, of as many mutations more: `cargo xtask test` takes another one for each
/// commit.
const CHECK_VARIABLE: &str = "BRUNT_SEED";

fn package_path(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

/// The file names in a directory, sorted.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", directory.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The committed inputs of a target, with their names.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = package_path("corpus").join(target);
    names_in(&directory)
        .into_iter()
        .map(|name| {
            let bytes = fs::read(directory.join(&name)).unwrap();
            (name, bytes)
        })
        .collect()
}

/// How often a target's inputs are mutated.
fn mutations(target: &str) -> u64 {
    let slow = MUTATIONS_OF_SLOW_TARGETS;
    let own = slow.iter().find(|(name, _)| *name == target);
    own.map_or(MUTATIONS, |(_, mutations)| *mutations)
}

/// Runs the target; when it panics, says on what.
fn run(target: Target, input: &[u8], origin: &dyn Fn() -> String) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        eprintln!(
            "failed on {}, input b\"{}\"",
            origin(),
            input.escape_ascii()
        );
        resume_unwind(panic);
    }
}

/// Changes the input in one to four ways, perhaps with parts of `other`.
fn mutate(input: &mut Vec<u8>, other: &[u8], rng: &mut Pcg64Mcg) {
    /// Bytes and words that parsers decide by.
    const TOKENS: [&str; 16] = [
        "\r\n",
        "\n",
        "\r",
        "\0",
        " ",
        "\t",
        ":",
        ",",
        ";",
        "0",
        "-1",
        "\u{80}",
        "\r\n\r\n",
        "HTTP/1.1 ",
        "18446744073709551616",
        "ffffffffffffffff",
    ];
    for _ in 0..rng.random_range(1..=4) {
        let place = rng.random_range(0..=input.len());
        let end = rng.random_range(place..=input.len());
        match rng.random_range(0..8) {
            0 if place < input.len() => input[place] ^= 1 << rng.random_range(0..8),
            1 if place < input.len() => input[place] = rng.random(),
            2 => input.truncate(place),
            3 => drop(input.drain(place..end)),
            4 => {
                let range = input[place..end].to_vec();
                input.splice(end..end, range);
            }
            5 => {
                let token = TOKENS[rng.random_range(0..TOKENS.len())];
                input.splice(place..place, token.bytes());
            }
            6 => {
                let start = rng.random_range(0..=other.len());
                let length = rng.random_range(0..=other.len() - start);
                input.splice(place..end, other[start..start + length].iter().copied());
            }
            _ => {
                input.truncate(place);
                input.extend_from_slice(&other[rng.random_range(0..=other.len())..]);
            }
        }
        input.truncate(MAX_INPUT_BYTES);
    }
}

#[test]
fn committed_inputs() {
    for &(name, target) in TARGETS {
        let inputs = corpus(name);
        assert!(!inputs.is_empty(), "no input in corpus/{name}");
        run(target, b"", &|| format!("{name}: nothing"));
        for (file, input) in &inputs {
            run(target, input, &|| format!("corpus/{name}/{file}"));
        }
    }
}

/// Each target in turn, on every CPU: nothing else of this binary takes long.
#[test]
fn mutated_inputs() {
    let seed_of = |variable: &str| -> Option<u64> {
        let text = std::env::var(variable).ok()?;
        Some(
            text.parse()
                .unwrap_or_else(|_| panic!("{variable} is a number")),
        )
    };
    let seeds = match seed_of("BRUNT_FUZZ_SEED") {
        Some(seed) => vec![seed],
        None => [DEFAULT_SEED]
            .into_iter()
            .chain(seed_of(CHECK_VARIABLE))
            .collect(),
    };
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&(name, target)) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            for &seed in &seeds {
                mutated(name, target, seed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
}

fn mutated(name: &str, target: Target, seed: u64) {
    let inputs = corpus(name);
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    for round in 0..mutations(name) {
        let mut pick = || &inputs[rng.random_range(0..inputs.len())].1;
        let (mut input, other) = (pick().clone(), pick());
        mutate(&mut input, other, &mut rng);
        run(target, &input, &|| {
            format!("{name}: BRUNT_FUZZ_SEED={seed}, mutation {round}")
        });
    }
}

/// Handshakes are slow: few inputs, but none of them from the corpus.
#[test]
fn tls_survives_any_input_and_any_damage() {
    let mut rng = Pcg64Mcg::seed_from_u64(DEFAULT_SEED);
    for round in 0..64 {
        let mut random = |bytes_max| -> Vec<u8> {
            let bytes = rng.random_range(0..bytes_max);
            (0..bytes).map(|_| rng.random()).collect()
        };
        let (garbage, damage) = (random(400), random(8));
        let kind = rng.random_range(0..64_u8) << 2 | 2;
        run(brunt_fuzz::tls, &garbage, &|| format!("garbage {round}"));
        for first in [kind, kind | 1] {
            let input = [&[first], &damage[..]].concat();
            run(brunt_fuzz::tls, &input, &|| format!("damage {round}"));
        }
    }
}

#[test]
fn every_target_has_its_corpus() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let corpora: BTreeSet<String> = names_in(&package_path("corpus")).into_iter().collect();
    assert_eq!(corpora, targets);
}
