//! Who may use whom: the layers of the workspace, as one table.

use super::Finding;

/// Each crate and the crates of ours that it may depend on, in any kind of dependency. Downwards
/// only: a crate that others use knows nothing of them.
const ALLOWED: &[(&str, &[&str])] = &[
    // What plan, run and report need to know of each protocol.
    ("brunt-protocols", &[]),
    ("brunt-proto", &[]),
    // How messages are framed and filled in is part of a plan.
    ("brunt-load", &["brunt-protocols", "brunt-proto"]),
    // A stored run holds the plan.
    ("brunt-record", &["brunt-protocols", "brunt-load"]),
    (
        "brunt-judge",
        &["brunt-protocols", "brunt-load", "brunt-record"],
    ),
    ("brunt-io", &["brunt-proto", "brunt-load"]),
    (
        // It shows the accounts of its machine as those that are read of a real one.
        "brunt-testkit",
        &[
            "brunt-io",
            "brunt-proto",
            "brunt-load",
            "brunt-record",
            "brunt-server",
        ],
    ),
    (
        // Pages of servers are fetched by the protocol that the load speaks.
        "brunt-probe",
        &["brunt-io", "brunt-proto", "brunt-load", "brunt-record"],
    ),
    (
        "brunt-engine",
        &[
            "brunt-io",
            "brunt-probe",
            "brunt-proto",
            "brunt-load",
            "brunt-record",
            "brunt-judge",
        ],
    ),
    ("brunt-server", &["brunt-io", "brunt-proto", "brunt-load"]),
    (
        "brunt-experiment",
        &["brunt-engine", "brunt-load", "brunt-record", "brunt-judge"],
    ),
    (
        "brunt-report",
        &["brunt-load", "brunt-record", "brunt-judge"],
    ),
    ("brunt-script", &["brunt-load"]),
    (
        // An agent makes a run, and the coordinator merges and judges what agents measured.
        "brunt-fleet",
        &[
            "brunt-engine",
            "brunt-io",
            "brunt-judge",
            "brunt-load",
            "brunt-record",
            "brunt-report",
        ],
    ),
    (
        // A plan out of a command line, and a text out of a run: load is made elsewhere. What
        // strangers wrote is shown as reports show it.
        "brunt-dropin",
        &[
            "brunt-engine",
            "brunt-proto",
            "brunt-load",
            "brunt-record",
            "brunt-judge",
            "brunt-report",
            "brunt-script",
        ],
    ),
    (
        "brunt",
        &[
            "brunt-proto",
            "brunt-load",
            "brunt-record",
            "brunt-judge",
            "brunt-io",
            "brunt-probe",
            "brunt-engine",
            "brunt-experiment",
            "brunt-server",
            "brunt-report",
            "brunt-script",
            "brunt-dropin",
            "brunt-fleet",
        ],
    ),
    (
        // Pages beside the load are parsed, and what the kernel says.
        "brunt-fuzz",
        &[
            "brunt-fleet",
            "brunt-proto",
            "brunt-record",
            "brunt-judge",
            "brunt-io",
            "brunt-probe",
            "brunt-server",
            "brunt-report",
        ],
    ),
    ("xtask", &["brunt-report", "brunt-fuzz"]),
];

/// Pairs that only tests and examples may make: the engine's own tests load the reference server,
/// and run in simulation.
const ALLOWED_IN_TESTS: &[(&str, &str)] = &[
    ("brunt", "brunt-testkit"),
    ("brunt-engine", "brunt-server"),
    ("brunt-engine", "brunt-testkit"),
    ("brunt-experiment", "brunt-testkit"),
    ("brunt-server", "brunt-testkit"),
    ("brunt-testkit", "brunt-engine"),
    ("brunt-testkit", "brunt-judge"),
];

/// Whether `name` may use `used` as a dependency of its tests alone.
pub(super) fn is_for_tests(name: &str, used: &str) -> bool {
    ALLOWED_IN_TESTS.contains(&(name, used))
}

/// What the rule needs of one package of the workspace.
pub(super) struct Manifest {
    /// Path from the workspace's root.
    pub(super) path: String,
    pub(super) name: String,
    /// The packages of the workspace that it depends on, without those that its tests may use.
    pub(super) uses: Vec<String>,
}

pub(super) fn check(manifests: &[Manifest]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in manifests {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == manifest.name) else {
            findings.push(Finding::new(
                &manifest.path,
                1,
                format!(
                    "`{}` has no place in the layers: add it to the table in \
                     xtask/src/tidy/imports.rs",
                    manifest.name
                ),
            ));
            continue;
        };
        for used in &manifest.uses {
            if !allowed.contains(&used.as_str()) {
                findings.push(Finding::new(
                    &manifest.path,
                    1,
                    format!(
                        "`{}` must not use `{used}`: move what both need into a crate below both \
                         (ARCHITECTURE.md, layers)",
                        manifest.name
                    ),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, uses: &[&str]) -> Manifest {
        Manifest {
            path: format!("crates/{name}/Cargo.toml"),
            name: name.to_owned(),
            uses: uses.iter().map(|used| (*used).to_owned()).collect(),
        }
    }

    #[test]
    fn downwards_is_allowed() {
        let good = [
            manifest("brunt-proto", &[]),
            manifest("brunt-engine", &["brunt-proto", "brunt-record"]),
            manifest("brunt", &["brunt-report", "brunt-engine", "brunt-server"]),
        ];
        assert_eq!(check(&good), []);
    }

    #[test]
    fn upwards_sideways_and_unknown_are_refused() {
        let cases = [
            (manifest("brunt-proto", &["brunt-load"]), "`brunt-load`"),
            (
                manifest("brunt-engine", &["brunt-load", "brunt-server"]),
                "`brunt-server`",
            ),
            (
                manifest("brunt-report", &["brunt-engine"]),
                "`brunt-engine`",
            ),
            (manifest("brunt-new", &[]), "no place"),
        ];
        for (bad, part) in cases {
            let findings = check(&[bad]);
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].message.contains(part), "{findings:?}");
        }
    }

    #[test]
    fn the_table_has_no_cycle() {
        // Kahn: take away whatever uses nothing that is left.
        let mut left: Vec<_> = ALLOWED.to_vec();
        loop {
            let names: Vec<&str> = left.iter().map(|(name, _)| *name).collect();
            let before = left.len();
            left.retain(|(_, uses)| uses.iter().any(|used| names.contains(used)));
            if left.len() == before {
                break;
            }
        }
        assert!(left.is_empty(), "{left:?}");
    }
}
