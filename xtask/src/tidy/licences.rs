//! Licences of dependencies: only permissive ones, so that brunt can be used and passed on freely.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, Package, PackageId};
use spdx::{Expression, LicenseReq, ParseMode};

use super::Finding;

/// Licences that ask for no more than their own text and a notice. An exception (`WITH`) only adds
/// permissions.
const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Checks every package that ends up in a program of the workspace, or runs while it is built.
/// Dependencies of tests alone are passed on to nobody.
///
/// # Errors
///
/// The metadata has no dependency graph.
pub(super) fn check(metadata: &Metadata) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in built_packages(metadata, &metadata.workspace_members)? {
        if let Some(message) = complaint(package.license.as_deref()) {
            findings.push(Finding::new(
                "Cargo.lock",
                1,
                format!("{} {}: {message}", package.name, package.version),
            ));
        }
    }
    Ok(findings)
}

/// What is wrong with a licence as declared, if anything.
fn complaint(licence: Option<&str>) -> Option<String> {
    let advice = "choose another library, or add the licence to xtask/src/tidy/licences.rs if it \
                  is permissive";
    let Some(licence) = licence else {
        return Some(format!("states no SPDX licence: {advice}"));
    };
    // Lax: older packages write "MIT/Apache-2.0".
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) if expression.evaluate(is_permissive) => None,
        Ok(_) => Some(format!("licence `{licence}` is not permissive: {advice}")),
        Err(error) => Some(format!(
            "licence `{licence}` cannot be read ({}): {advice}",
            error.reason
        )),
    }
}

fn is_permissive(requirement: &LicenseReq) -> bool {
    requirement
        .license
        .id()
        .is_some_and(|id| PERMISSIVE.contains(&id.name))
}

/// The packages from outside that `roots` need, normally or to build, sorted by name.
///
/// # Errors
///
/// The metadata has no dependency graph.
pub(crate) fn built_packages<'a>(
    metadata: &'a Metadata,
    roots: &'a [PackageId],
) -> Result<Vec<&'a Package>> {
    let resolve = metadata
        .resolve
        .as_ref()
        .context("`cargo metadata` gave no dependency graph")?;
    let nodes: HashMap<&PackageId, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let mut seen: HashSet<&PackageId> = roots.iter().collect();
    let mut queue: Vec<&PackageId> = seen.iter().copied().collect();
    while let Some(id) = queue.pop() {
        for dependency in nodes.get(id).into_iter().flat_map(|node| &node.deps) {
            let built = dependency
                .dep_kinds
                .iter()
                .any(|kind| kind.kind != DependencyKind::Development);
            if built && seen.insert(&dependency.pkg) {
                queue.push(&dependency.pkg);
            }
        }
    }
    let packages = metadata.packages.iter();
    let mut packages: Vec<&Package> = packages
        .filter(|package| seen.contains(&package.id) && package.source.is_some())
        .collect();
    packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissive_expressions_pass() {
        for licence in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR GPL-3.0-only",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ] {
            assert_eq!(complaint(Some(licence)), None, "{licence}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for (licence, part) in [
            (Some("GPL-3.0-only"), "not permissive"),
            (Some("MIT AND GPL-2.0-or-later"), "not permissive"),
            (Some("LicenseRef-Own"), "not permissive"),
            (Some("as you like"), "cannot be read"),
            (None, "states no"),
        ] {
            let message = complaint(licence).expect("refused");
            assert!(message.contains(part), "{message}");
        }
    }
}
