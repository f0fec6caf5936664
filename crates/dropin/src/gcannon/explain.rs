//! The command line of brunt's own that does the same as one of gcannon's.

use std::num::NonZeroU32;

use super::options::Options;
use super::plan::plan;
use crate::own_line::{Made, OwnLine};
use crate::{Ending, Explanation};

/// The command line, for a machine with so many CPUs, with the contents of the files.
///
/// # Errors
///
/// As those of the plan.
pub fn explanation(
    options: &Options,
    files: &[Vec<u8>],
    cpus: NonZeroU32,
) -> Result<Explanation, Ending> {
    let plan = plan(options, files, 1)?;
    let made = match options.raw.is_empty() || options.message.is_some() {
        true => Made::Set,
        false => Made::Raw(options.raw.clone()),
    };
    let has_holes = plan.requests.requests().any(|it| it.placeholders.is_some());
    let line = OwnLine::of(&plan, &made, cpus)
        .noting(
            "without -t brunt finds how many threads the machine and the server leave room for.",
        )
        .noting("without --warmup a warm-up of 1 s comes first.")
        .noting_if(
            plan.requests.count() > 1,
            "the files are sent in turns, equally often; gcannon moves on to the next file when a \
             connection is replaced, so that without -r quick ones are sent more often.",
        )
        .noting_if(
            has_holes,
            "all threads together send each number of {SEQ:START} once; --seed repeats the numbers \
             of {RAND:LOW:HIGH}.",
        )
        .noting_if(
            options.message.is_none(),
            "a reply without a length ends with its connection; for gcannon it ends with its head.",
        )
        .noting_if(
            options.message.is_some(),
            "messages of the server are replies; gcannon counts pings and closes, too.",
        );
    Ok(line.explanation())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    #[test]
    fn command_lines_are_translated() {
        let get = "GET /{RAND:1:9} HTTP/1.1\r\nHost: o:81\r\n\r\n";
        for (line, expected, note) in [
            (
                "-c 4 -d 5 http://h/",
                "brunt -c 4 -t 1 -d 5s --warmup 0s -T 3600s --drain 1s --setup-timeout 10s \
                 http://h/\n",
                "ends with its connection",
            ),
            (
                "-R a,b -c 4 -d 5 -p 2 -r 9",
                "brunt -c 4 -t 1 -d 5s --warmup 0s -T 3600s --drain 1s --setup-timeout 10s \
                 --pipeline 2 --requests-per-connection 9 --raw @a --raw @b http://o:81/\n",
                "equally often",
            ),
            (
                "-c 4 -d 5 -p 2 --ws http://h/c",
                "brunt -c 4 -t 1 -d 5s --warmup 0s -T 3600s --drain 1s --setup-timeout 10s \
                 --depth 2 --message hello ws://h/c\n",
                "pings",
            ),
        ] {
            let options = Options::parse(&words(&format!("--explain {line}"))).expect(line);
            assert!(options.explains, "{line}");
            let files = vec![get.as_bytes().to_vec(); options.raw.len()];
            let explained = explanation(&options, &files, NonZeroU32::MIN).expect(line);
            assert_eq!(explained.line, expected, "{line}");
            assert!(
                explained.notes.contains(note),
                "{line}: {}",
                explained.notes
            );
        }
    }
}
