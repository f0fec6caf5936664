//! `packaging/ci/comment`, with a program in the place of GitHub's that knows one pull request.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Answers what the script asks, and notes what it changes.
const GH: &str = r#"#!/usr/bin/env bash
jq=.
for ((at = 1; at <= $#; at++)); do
    case ${!at} in
        --jq) next=$((at + 1)); jq=${!next} ;;
        --method) echo "${@:at + 1:2}" >>"$CALLS" ;;
    esac
done
case $2 in
    graphql) echo '{"data":{"viewer":{"login":"job[bot]"}}}' | jq -r "$jq" ;;
    --paginate) jq -r "$jq" <<<"$COMMENTS" ;;
esac
"#;

#[test]
fn only_comments_of_the_jobs_own_user_are_renewed() {
    let foreign = r#"{"id":1,"user":{"login":"eve"},"body":"<!-- brunt compare -->\n"}"#;
    let other = r#"{"id":2,"user":{"login":"job[bot]"},"body":"hello"}"#;
    let own = r#"{"id":3,"user":{"login":"job[bot]"},"body":"<!-- brunt compare -->\n"}"#;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str| directory.path().join(name);
    fs::write(place("gh"), GH).expect("the directory is ours");
    fs::set_permissions(place("gh"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    fs::write(place("report.md"), "report").expect("the directory is ours");
    let path = std::env::var("PATH").expect("there is one");
    for (comments, expected) in [
        (vec![], "POST repos/o/n/issues/5/comments\n"),
        (vec![foreign, other], "POST repos/o/n/issues/5/comments\n"),
        (vec![foreign, own], "PATCH repos/o/n/issues/comments/3\n"),
    ] {
        let status = Command::new("../../packaging/ci/comment")
            .env("PATH", format!("{}:{path}", directory.path().display()))
            .env("COMMENTS", format!("[{}]", comments.join(",")))
            .env("CALLS", place("calls"))
            .env("REPOSITORY", "o/n")
            .env("PULL_REQUEST", "5")
            .env("REPORT", place("report.md"))
            .status();
        assert!(status.expect("it starts").success());
        let calls = fs::read_to_string(place("calls")).expect("it was called");
        assert_eq!(calls, expected, "{comments:?}");
        fs::remove_file(place("calls")).expect("it is ours");
    }
}
