//! The command line of brunt's own that does the same as one of httperf's.

use super::number::general;
use super::options::{Options, Period, Uris, Workload};
use crate::shell;

/// The command line, and what is different about it, line by line.
pub fn explanation(options: &Options) -> String {
    let mut words = vec!["brunt".to_owned()];
    let mut notes = Vec::new();
    let mut push = |option: &str, value: String| words.extend([option.to_owned(), value]);
    match &options.period {
        Period::Sequential => push("-c", "1".to_owned()),
        Period::Fixed(period_s) => push("--connection-rate", general(1.0 / period_s)),
        Period::Exponential(mean_s) => {
            push("--connection-rate", general(1.0 / mean_s));
            push("--arrivals", "poisson".to_owned());
        }
        Period::Uniform(least_s, most_s) => {
            push("--connection-rate", general(2.0 / (least_s + most_s)));
            push("--arrivals", "uniform".to_owned());
        }
        Period::Steps(steps) => {
            let first_s = steps.first().map_or(1.0, |&(period_s, _)| period_s);
            push("--connection-rate", general(1.0 / first_s));
            notes.push("--connection-rate has one stage, the first of --period.".to_owned());
        }
    }
    match &options.workload {
        Workload::Calls { connections, calls } => {
            push("--requests-per-connection", calls.to_string());
            let all = u64::from(*connections) * u64::from(*calls);
            push("-n", all.to_string());
            if options.burst > 1 {
                push("--pipeline", options.burst.to_string());
            }
        }
        Workload::Sessions {
            sessions,
            calls,
            think_s,
        } => {
            push("--requests-per-connection", calls.to_string());
            let all = u64::from(*sessions) * u64::from(*calls);
            push("-n", all.to_string());
            push("--think-time", format!("{think_s}s"));
            if options.burst > 1 {
                notes.push("Bursts are for --sessions FILE, indented.".to_owned());
            }
        }
        Workload::Log { think_s, path, .. } => {
            push("--sessions", path.display().to_string());
            push("--think-time", format!("{think_s}s"));
            notes.push("--sessions lasts as long as -d says (10 s), over and over.".to_owned());
        }
    }
    if options.timeout_s > 0.0 {
        let seconds = options.timeout_s + options.think_timeout_s;
        push("-T", format!("{seconds}s"));
    }
    if let Some(method) = options.method.as_ref().filter(|method| *method != "GET") {
        push("-m", method.clone());
    }
    if let Some(name) = &options.server_name {
        push("-H", format!("Host: {name}"));
    }
    let header = options.add_header.as_deref().unwrap_or_default();
    for line in header.split("\\n").filter(|line| !line.is_empty()) {
        push("-H", line.to_owned());
    }
    if options.is_secure {
        words.push("--insecure".to_owned());
    }
    let scheme = if options.is_secure { "https" } else { "http" };
    let own = if options.is_secure { 443 } else { 80 };
    let port = match options.port {
        port if port == own => String::new(),
        port => format!(":{port}"),
    };
    words.push(format!(
        "{scheme}://{}{port}{}",
        options.server, options.uri
    ));
    if options.uris != Uris::One {
        notes.push("Several paths are for --urls FILE, a path per line.".to_owned());
    }
    notes.extend([
        "Requests have no User-Agent, and Host names the port.".to_owned(),
        "Response times have percentiles; a verdict says what limited it.".to_owned(),
    ]);
    shell::explained(&words, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_translated() {
        for (line, expected) in [
            (
                "--server h --port 81 --uri /x --rate 100 --num-conns 300 --num-calls 5 \
                 --timeout 5 --hog",
                "brunt --connection-rate 100 --requests-per-connection 5 -n 1500 -T 5s \
                 http://h:81/x",
            ),
            (
                "--wsess 9,2,0.5 --server h --ssl --add-header X:y\\n",
                "brunt -c 1 --requests-per-connection 2 -n 18 --think-time 0.5s -H X:y --insecure \
                 https://h/",
            ),
            (
                "--wsesslog 9,1,u.log --period e0.1 --server h",
                "brunt --connection-rate 10 --arrivals poisson --sessions u.log --think-time 1s \
                 http://h/",
            ),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let options = Options::parse("httperf", &words).expect(line);
            assert_eq!(explanation(&options).lines().next(), Some(expected));
        }
    }
}
