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
        .args(["rev-parse", "--short=8", "HEAD"]);
    let commit = shell::output(&mut git).unwrap_or_default();
    // 0 outside of a repository.
    u64::from_str_radix(commit.trim(), 16).unwrap_or(0)
}
