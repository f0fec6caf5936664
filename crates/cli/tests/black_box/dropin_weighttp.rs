//! `brunt weighttp`: its requests, its JSON, its text of older versions, its exit codes.

use crate::support::keeping::Keeping;
use crate::support::process::{Process, binary, tool};

#[test]
fn the_text_of_older_versions_is_chosen_by_switch_or_variable() {
    let server = Keeping::start();
    let url = server.url("/");
    let by_switch = tool("weighttp", false, &["--text", "-n", "3", "URL"], &url);
    let mut command = binary();
    command.env("BRUNT_WEIGHTTP", "0.4");
    command.args(["weighttp", "-n", "3", &url]);
    let by_variable = Process::start(command).wait();
    for outcome in [by_switch, by_variable] {
        outcome.exits(0).assert_prints(&[
            "starting benchmark...\nspawning thread #1: 1 concurrent requests, 3 total requests\n",
            "progress: 100% done\n\nfinished in 0 sec, ",
            "\nrequests: 3 total, 3 started, 3 done, 3 succeeded, 0 failed, 0 errored\n",
            "\nstatus codes: 3 2xx, 0 3xx, 0 4xx, 0 5xx\ntraffic: ",
        ]);
    }
}
