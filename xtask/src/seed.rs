//! The seed of those random plans and inputs that differ from one commit to the next.

use crate::shell;
use crate::workspace::Workspace;

/// Names the seed to the tests.
pub(crate) const VARIABLE: &str = "BRUNT_SEED";

/// The seed that the environment names, or else one that follows from the commit: the same again
/// for whoever checks the same commit.
pub(crate) fn of(workspace: &Workspace) -> u64 {
    let named = std::env::var(VARIABLE).ok();
    if let Some(seed) = named.and_then(|typed| typed.parse().ok()) {
        return seed;
    }
    let mut git = std::process::Command::new("git");
    git.current_dir(workspace.root())
        .args(["rev-parse", "HEAD"]);
    shell::output(&mut git).map_or(0, |commit| from_commit(&commit))
}

/// The first 32 bits of a commit's hash; 0 where `commit` is none.
fn from_commit(commit: &str) -> u64 {
    let digits = commit.get(..8);
    digits.map_or(0, |digits| u64::from_str_radix(digits, 16).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_the_beginning_of_a_commit() {
        assert_eq!(from_commit("0e8fcaa1c7\n"), 0x0e8f_caa1);
        assert_eq!(from_commit("fatal: not a git repository"), 0);
        assert_eq!(from_commit(""), 0);
    }
}
