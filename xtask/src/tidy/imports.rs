//! Who may use whom: the layers of the workspace, as one table.

use super::Finding;

/// Each crate and the crates of ours that it may depend on, in any kind of dependency, without what
/// their names begin with. Downwards only: a crate that others use knows nothing of them.
const ALLOWED: &[(&str, &str)] = &[
    ("proto", ""),
    // How messages are framed and filled in is part of a plan.
    ("load", "proto"),
    // A stored run holds the plan.
    ("record", "load"),
    ("judge", "load record"),
    ("io", "proto load"),
    // It shows the accounts of its machine as those that are read of a real one.
    ("testkit", "io proto load record server"),
    // Pages of servers are fetched by the protocol that the load speaks.
    ("probe", "io proto load record"),
    ("engine", "io probe proto load record judge"),
    ("server", "io proto load"),
    ("experiment", "engine load record judge"),
    ("report", "load record judge"),
    ("script", "load"),
    // An agent makes a run, and the coordinator merges and judges what agents measured.
    ("fleet", "engine io judge load record report"),
    // A plan out of a command line, and a text out of a run: load is made elsewhere. What
    // strangers wrote is shown as reports show it.
    ("dropin", "engine proto load record judge report script"),
    (
        "brunt",
        "proto load record judge io probe engine experiment server report script dropin fleet",
    ),
    // Pages beside the load are parsed, and what the kernel says.
    ("fuzz", "fleet proto record judge io probe server report"),
    ("xtask", "report fuzz"),
];

/// Pairs that only tests and examples may make: the engine's own tests load the reference server,
/// and run in simulation.
const ALLOWED_IN_TESTS: &[(&str, &str)] = &[
    ("brunt", "testkit"),
    ("engine", "server"),
    ("engine", "testkit"),
    ("experiment", "testkit"),
    ("server", "testkit"),
    ("testkit", "engine"),
    ("testkit", "judge"),
];

/// Whether `name` may use `used` as a dependency of its tests alone.
pub(super) fn is_for_tests(name: &str, used: &str) -> bool {
    ALLOWED_IN_TESTS.contains(&(short(name), short(used)))
}

fn short(name: &str) -> &str {
    name.strip_prefix("brunt-").unwrap_or(name)
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
    for Manifest { path, name, uses } in manifests {
        let mut refuse = |message| findings.push(Finding::new(path, 1, message));
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == short(name)) else {
            refuse(format!(
                "`{name}` has no place in the layers: add it to the table in \
                 xtask/src/tidy/imports.rs"
            ));
            continue;
        };
        for used in uses {
            if allowed.split(' ').all(|other| other != short(used)) {
                refuse(format!(
                    "`{name}` must not use `{used}`: move what both need into a crate below both \
                     (ARCHITECTURE.md, crates)"
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
}
