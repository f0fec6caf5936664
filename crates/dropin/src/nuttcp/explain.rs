//! The command line of brunt's own that does the same as one of nuttcp's.

use super::options::Options;
use crate::own_line::Explanation;
use crate::shell;

/// The command line, and what is different about it, line by line.
pub fn explanation(options: &Options) -> Explanation {
    let mut words = ["brunt", "tcp"].map(str::to_owned).to_vec();
    words.push(
        if options.transmits {
            "--send"
        } else {
            "--receive"
        }
        .to_owned(),
    );
    let mut push = |option: &str, value: String| words.extend([option.to_owned(), value]);
    push("-c", options.streams.to_string());
    push(
        "-d",
        format!("{}ms", (options.timeout_s * 1e3).round() as u64),
    );
    push("--warmup", "0s".to_owned());
    if let (Some(bits), true) = (options.bits_per_s, options.transmits) {
        push("--bandwidth", bits.to_string());
    }
    let window = |is_ours: bool| {
        let window = options.window_bytes;
        window.filter(|_| is_ours || options.sets_both_windows)
    };
    for (option, bytes) in [
        ("--sndbuf", window(options.transmits)),
        ("--rcvbuf", window(!options.transmits)),
        ("--mss", options.segment_bytes),
    ] {
        if let Some(bytes) = bytes {
            push(option, bytes.to_string());
        }
    }
    if !options.is_nodelay {
        push("--nodelay", "off".to_owned());
    }
    words.push(format!("{}:{}", options.host, options.port));
    let service = if options.transmits { "sink" } else { "source" };
    let notes = [
        format!(
            "nuttcp -S listens there only when it was asked on its control connection. There, \
             brunt serve --tcp {service} --tcp-listen 0.0.0.0:{} does without.",
            options.port
        ),
        "All streams go to one port: nuttcp's go to ports of their own.".to_owned(),
        "--verify-url HOST:8080/counters sets the server's count beside brunt's.".to_owned(),
    ];
    Explanation {
        line: shell::line(&words),
        notes: notes.iter().map(|note| format!("{note}\n")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    #[test]
    fn command_lines_are_translated() {
        for (line, expected) in [
            (
                "h",
                "brunt tcp --send -c 1 -d 10000ms --warmup 0s --nodelay off h:5001",
            ),
            (
                "-r -T0.5 -N4 -w64 -D -p6000 h",
                "brunt tcp --receive -c 4 -d 500ms --warmup 0s --rcvbuf 65536 h:6000",
            ),
            (
                "-R100m -wb32 -M900 -D h",
                "brunt tcp --send -c 1 -d 10000ms --warmup 0s --bandwidth 100000000 --sndbuf \
                 32768 --rcvbuf 32768 --mss 900 h:5001",
            ),
        ] {
            let words = words(line);
            let options = Options::parse(&words).expect("good");
            assert_eq!(explanation(&options).line.trim_end(), expected);
        }
    }
}
