//! How many lines of code each crate may have. A line counts if it holds code of the product: blank
//! lines, comments and tests do not count.

use std::collections::BTreeMap;

use super::Finding;
use super::source::Source;

/// The most lines of code per crate. A number goes down with each step that makes its crate
/// smaller, and goes up only in a commit that says why.
const LINES_MAX: &[(&str, usize)] = &[
    ("bench", 63),
    ("cli", 6_142),
    ("dropin", 7_459),
    ("engine", 10_998),
    ("experiment", 801),
    ("fleet", 3_591),
    ("fuzz", 406),
    ("io", 5_498),
    ("judge", 8_995),
    ("load", 4_980),
    ("probe", 3_696),
    ("proto", 10_995),
    ("record", 4_670),
    ("report", 5_986),
    ("script", 2_000),
    ("server", 6_296),
    ("testkit", 4_265),
    ("xtask", 1_995),
];

/// Where the table stands.
const TABLE: &str = "xtask/src/tidy/budget.rs";

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        *lines.entry(crate_of(&source.path)).or_default() += source.product_lines();
    }
    lines
        .into_iter()
        .filter_map(|(name, lines)| {
            let budget = LINES_MAX.iter().find(|(known, _)| *known == name);
            let most = budget.map_or(0, |(_, most)| *most);
            let message = format!("{name} has {lines} lines of code, over its budget of {most}");
            (lines > most).then(|| Finding::new(TABLE, 1, message))
        })
        .collect()
}

/// The crate in which a file lies: the folder below `crates`, or the first folder of its path.
fn crate_of(path: &str) -> &str {
    let below = path.strip_prefix("crates/").unwrap_or(path);
    below.split('/').next().unwrap_or(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text).unwrap()
    }

    #[test]
    fn a_crate_above_its_budget_is_named() {
        let text = "fn f() {}\n".repeat(64);
        let sources = [
            source("bench/a.rs", &text),
            source("bench/b/tests.rs", &text),
        ];
        let messages: Vec<String> = check(&sources).into_iter().map(|f| f.message).collect();
        assert_eq!(
            messages,
            ["bench has 64 lines of code, over its budget of 63"]
        );
        assert_eq!(check(&sources[1..]), []);
    }
}
