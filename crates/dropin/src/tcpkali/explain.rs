//! The command line of brunt's own that does the same as one of tcpkali's.

use super::options::{Content, Message, Options};
use crate::shell;

/// The command line, and what is different about it, line by line.
pub fn explanation(options: &Options) -> String {
    let mut words = ["brunt", "tcp"].map(str::to_owned).to_vec();
    let mut push = |option: &str, value: String| words.extend([option.to_owned(), value]);
    push("-c", options.connections.to_string());
    push("-d", format!("{}ms", options.duration_ns / 1_000_000));
    match options.rate_in_all() {
        Some(rate) => push("-r", rate.to_string()),
        None => push("--connection-rate", options.connect_rate.to_string()),
    }
    for message in &options.messages {
        push("-m", typed(message));
    }
    for first in &options.first {
        push("--first", typed(first));
        push("--first-reply", "none".to_owned());
    }
    match &options.marker {
        Some(marker) => push("--reply", format!("marker={}", typed(marker))),
        None => push("--reply", "none".to_owned()),
    }
    if options.is_secure {
        words.extend(["--tls", "--insecure"].map(str::to_owned));
    }
    words.push(options.server.clone());
    let notes = [
        "-r is of all connections together: tcpkali's is of each.",
        "brunt finds how many threads the machine and the server leave room for.",
        "Response times count from the instants at which messages were due, and a verdict says \
         what limited the run.",
    ];
    shell::explained(&words, notes)
}

/// A message as brunt takes it.
fn typed(message: &Message) -> String {
    match &message.content {
        Content::File(path) => format!("@{}", path.display()),
        Content::Typed(text) => {
            let text = text.replace("\\{connection.uid}", "\u{0}");
            let text = text.replace('{', "\\{").replace('\u{0}', "{conn}");
            match message.unescapes {
                true => text,
                false => text.replace('\\', "\\\\").replace("\\\\{", "\\{"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_translated() {
        for (line, expected) in [
            (
                "-c 5 -T 2s -r10 -em PING\\n --latency-marker PONG h:1",
                "brunt tcp -c 5 -d 2000ms -r 50 -m 'PING\\n' --reply marker=PONG h:1",
            ),
            (
                "-m a{\\{connection.uid} -1 x --ssl h:1",
                "brunt tcp -c 1 -d 10000ms --connection-rate 100 -m 'a\\{{conn}' --first x \
                 --first-reply none --reply none --tls --insecure h:1",
            ),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let options = Options::parse("tcpkali", &words).expect(line);
            assert_eq!(explanation(&options).lines().next(), Some(expected));
        }
    }
}
