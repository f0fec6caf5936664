//! The command line of brunt's own that does the same as one of tcpkali's.

use std::io;
use std::path::Path;

use super::options::{Content, Options};
use super::plan::Load;
use crate::{Ending, shell};

/// The command line, and what is different about it, line by line. `read` gives the content of
/// files.
///
/// # Errors
///
/// As those of the plan.
pub fn explanation(
    options: &Options,
    read: &mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
) -> Result<String, Ending> {
    if let Some((_, port)) = &options.listen {
        let words = ["brunt", "serve", "--tcp", "sink", "--tcp-listen"].map(str::to_owned);
        let words = [&words[..], &[format!("0.0.0.0:{port}")]].concat();
        let notes = match options.servers.is_empty() {
            true => "It serves until Ctrl-C, and then prints its counters.",
            false => "It serves until Ctrl-C; the load is another command line (without -l).",
        };
        return Ok(shell::explained(&words, [notes]));
    }
    let load = options.load(0, read)?;
    let mut words = vec!["brunt".to_owned()];
    if !options.is_websocket {
        words.push("tcp".to_owned());
    }
    let mut push = |option: &str, value: String| words.extend([option.to_owned(), value]);
    push("-c", options.connections.to_string());
    push("-d", format!("{}ms", options.duration_ns / 1_000_000));
    match load.per_s {
        Some(per_s) => push("-r", (per_s * f64::from(load.batch)).to_string()),
        None => push("--connection-rate", options.connect_rate.to_string()),
    }
    let message = if options.is_websocket {
        "--message"
    } else {
        "-m"
    };
    for text in messages(options, &load) {
        push(message, text);
    }
    for header in &options.headers {
        push("-H", header.clone());
    }
    if let Some(first) = &load.sent.first {
        push("--first", first.to_string());
        push("--first-reply", "none".to_owned());
    }
    match (&load.reply, options.is_websocket) {
        _ if load.holds() => words.push("--hold".to_owned()),
        (None, true) => push("--replies", "0".to_owned()),
        (Some(_), true) => push("--replies", "1".to_owned()),
        (None, false) => push("--reply", "none".to_owned()),
        (Some(pattern), false) => {
            let marker = brunt_proto::messages::escape(pattern.bytes());
            push("--reply", format!("marker={marker}"));
        }
    }
    if options.is_websocket && load.sent.is_binary {
        words.push("--binary".to_owned());
    }
    for (option, bytes) in [
        ("--sndbuf", options.send_buffer),
        ("--rcvbuf", options.receive_buffer),
    ] {
        words.extend(
            bytes
                .into_iter()
                .flat_map(|bytes| [option.to_owned(), bytes.to_string()]),
        );
    }
    if options.nagle == Some(true) {
        words.extend(["--nodelay", "off"].map(str::to_owned));
    }
    if options.is_secure {
        let tls = if options.is_websocket {
            &["--insecure"][..]
        } else {
            &["--tls", "--insecure"]
        };
        words.extend(tls.iter().copied().map(str::to_owned));
    }
    words.push(match options.is_websocket {
        true => load.target.url,
        false => options.servers[0].clone(),
    });
    let notes = [
        "-r is of all connections together: tcpkali's is of each.",
        "brunt finds how many threads the machine and the server leave room for.",
        "Response times count from the instants at which messages were due, and a verdict says \
         what limited the run.",
    ];
    let further = "brunt loads one server at a time: run one for each.";
    let further = (!load.further_targets.is_empty()).then_some(further);
    Ok(shell::explained(&words, notes.into_iter().chain(further)))
}

/// The messages as brunt takes them.
fn messages(options: &Options, load: &Load) -> Vec<String> {
    if let [message] = &options.messages[..]
        && let Content::File(path) = &message.content
        && let [template] = &load.sent.messages[..]
        && template.as_constant().is_some()
        && !message.unescapes
    {
        return vec![format!("@{}", path.display())];
    }
    load.sent.messages.iter().map(ToString::to_string).collect()
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
                "brunt tcp -c 1 -d 10000ms --connection-rate 100 -m 'a\\{{conn+1}' --first x \
                 --first-reply none --reply none --tls --insecure h:1",
            ),
            (
                "--ws --ssl -r2 -m a -m b -H X:y h:1/p",
                "brunt -c 1 -d 10000ms -r 4 --message a --message b -H X:y --replies 0 --insecure \
                 wss://h:1/p",
            ),
            (
                "-f @file --nagle=on --sndbuf 9 h:1",
                "brunt tcp -c 1 -d 10000ms --connection-rate 100 -m @@file --reply none --sndbuf 9 \
                 --nodelay off h:1",
            ),
            ("-l 80", "brunt serve --tcp sink --tcp-listen 0.0.0.0:80"),
            (
                "-c 9 h:1",
                "brunt tcp -c 9 -d 10000ms --connection-rate 100 --hold h:1",
            ),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let options = Options::parse("tcpkali", &words).expect(line);
            let explained = explanation(&options, &mut |_| Ok(b"x".to_vec())).expect(line);
            assert_eq!(explained.lines().next(), Some(expected));
        }
    }
}
