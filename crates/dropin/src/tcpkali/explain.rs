//! The command line of brunt's own that does the same as one of tcpkali's.

use std::io;
use std::num::NonZeroU32;
use std::path::Path;

use brunt_load::{RequestOrder, RequestSet};

use super::options::{Content, Options};
use super::plan::Load;
use crate::own_line::{Made, OwnLine};
use crate::{Ending, Explanation, shell};

/// Longer messages are not typed as often as they are written at once.
const TYPED_BYTES_MAX: usize = 1_024;

/// The command line, for a machine with so many CPUs. `read` gives the content of files.
///
/// # Errors
///
/// As those of the plan.
pub fn explanation(
    options: &Options,
    cpus: NonZeroU32,
    read: &mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
) -> Result<Explanation, Ending> {
    if let Some((_, port)) = &options.listen {
        return Ok(listening(options, *port));
    }
    let mut plan = options.plan(cpus, 0, read)?;
    let load = options.load(0, read)?;
    let written = plan.requests.messages().iter();
    let is_typed = written
        .clone()
        .all(|it| it.template.bytes_max() <= TYPED_BYTES_MAX);
    let batch = NonZeroU32::new(load.batch).filter(|_| !is_typed && !load.holds());
    let mut made = Made::Set;
    if let Some(batch) = batch {
        // As many in flight as are one write, each a message.
        plan.requests = RequestSet::messages_in(RequestOrder::ConnectionTurns, load.sent.specs())
            .unwrap_or(plan.requests);
        plan.pipeline = batch.max(plan.pipeline);
        plan.model = options.model_of(
            &load,
            load.per_s.map(|per_s| per_s * f64::from(batch.get())),
        )?;
    }
    if let Some(file) = file(options, &load).filter(|_| load.batch == 1 || batch.is_some()) {
        made = Made::Typed(vec![file]);
    }
    let line = OwnLine::of(&plan, &made, cpus)
        .noting_if(
            load.per_s.is_some(),
            "-r is of all connections together: tcpkali's is of each.",
        )
        .noting(
            "without -t brunt finds how many threads the machine and the server leave room for.",
        );
    Ok(line.explanation())
}

/// Taking connections, beside a load or without one.
fn listening(options: &Options, port: u16) -> Explanation {
    let words = ["brunt", "serve", "--tcp", "sink", "--tcp-listen"].map(str::to_owned);
    let words = [&words[..], &[format!("0.0.0.0:{port}")]].concat();
    let notes = match options.servers.is_empty() {
        true => "brunt: it serves until Ctrl-C, and then prints its counters.\n",
        false => "brunt: it serves until Ctrl-C; the load is another command line (without -l).\n",
    };
    Explanation {
        line: shell::line(&words),
        notes: notes.to_owned(),
    }
}

/// The file whose content is the message, as brunt takes it.
fn file(options: &Options, load: &Load) -> Option<String> {
    let [message] = &options.messages[..] else {
        return None;
    };
    let Content::File(path) = &message.content else {
        return None;
    };
    let [template] = &load.sent.messages[..] else {
        return None;
    };
    let is_whole = template.as_constant().is_some() && !message.unescapes;
    is_whole.then(|| format!("@{}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    #[test]
    fn command_lines_are_translated() {
        let usual = "--warmup 0s -T 100s --drain 1s --setup-timeout";
        for (line, expected) in [
            (
                "-c 5 -T 2s -r10 -em PING\\n --latency-marker PONG h:1",
                format!(
                    "brunt tcp -c 5 -t 1 -r 50 -d 2s {usual} 2s --connect-timeout 1s --depth 1000 \
                     -m 'PING\\n' --reply marker=PONG h:1"
                ),
            ),
            (
                "-m a{\\{connection.uid} -1 x --ssl h:1",
                format!(
                    "brunt tcp -c 1 -t 1 --connection-rate 100 -d 10s {usual} 10s \
                     --connect-timeout 1s --depth 1024 -m 'a\\{{{{conn+1}}' --reply none --first x \
                     --first-reply none --tls --insecure h:1"
                ),
            ),
            (
                "--ws --ssl -r2 -m a -m b -H X:y h:1/p",
                format!(
                    "brunt -c 1 -t 1 -r 4 -d 10s {usual} 10s --connect-timeout 1s --message a \
                     --message b -H 'X: y' --replies 0 --insecure \
                     --order connection wss://h:1/p"
                ),
            ),
            (
                "-f @file --nagle=on --sndbuf 9 h:1",
                format!(
                    "brunt tcp -c 1 -t 1 --connection-rate 100 -d 10s {usual} 10s \
                     --connect-timeout 1s --depth 65536 --nodelay off --sndbuf 9 -m @@file --reply \
                     none h:1"
                ),
            ),
            (
                "-l 80",
                "brunt serve --tcp sink --tcp-listen 0.0.0.0:80".to_owned(),
            ),
            (
                "-c 9 --latency-marker b -m b -1 b --latency-marker-skip 1 -r1 h:1",
                format!(
                    "brunt tcp -c 9 -t 1 -r 9 -d 10s {usual} 10s --connect-timeout 1s --depth 100 \
                     -m b --reply marker=b --first b --first-reply marker=b h:1"
                ),
            ),
            (
                "-c 9 h:1",
                "brunt tcp -c 9 -t 1 --hold --connection-rate 100 -d 10s -T 100s --drain 1s \
                     --setup-timeout 10s --connect-timeout 1s h:1"
                    .to_owned(),
            ),
        ] {
            let words = words(line);
            let options = Options::parse("tcpkali", &words).expect(line);
            let read = &mut |_: &Path| Ok(b"x".to_vec());
            let explained = explanation(&options, NonZeroU32::MIN, read).expect(line);
            assert_eq!(explained.line, format!("{expected}\n"), "{line}");
        }
    }
}
