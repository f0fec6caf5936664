//! brunt in place of nuttcp's client: a server of nuttcp's is asked on its control connection, and
//! reports there.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use brunt_dropin::nuttcp::{self, NuttcpOptions, ServerReport};
use brunt_io::blocking::Deadline;
use brunt_io::threads;

use super::{job, open_outputs, print};
use crate::session::Interrupts;

/// How long the exchange before the load may take, and the server's report after it.
const REPLY_LIMIT: Duration = Duration::from_secs(10);
/// How long a server may take for its report once a signal came, nanoseconds.
const SIGNAL_NS: u64 = 700_000_000;
/// Bytes that a server may say, at most.
const REPLY_BYTES_MAX: u64 = 1 << 20;

/// Runs the command line `words` of nuttcp.
pub(super) fn run(words: &[String]) -> Result<ExitCode> {
    let options = NuttcpOptions::parse(words)?;
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let asking = options.clone();
    let asked = pipeline
        .interrupts
        .unless_came("brunt-nuttcp", move || ask(&asking));
    let (address, replies) = asked??;
    let plan = options.plan(address.ip())?;
    let is_live = options.transmits() && options.interval_s > 0.0;
    let prefix = is_live.then(|| nuttcp::prefix(&options));
    let reader = threads::spawn("brunt-nuttcp", move || listen(replies, prefix));
    let reader = reader.context("cannot start a thread")?;
    let interrupts = pipeline.interrupts.clone();
    let mut measured = pipeline.measure(job(plan), || (), None)?;
    let reported = await_text(reader, &interrupts).map(|text| {
        let report = ServerReport::of(&text);
        print(&nuttcp::intervals(&options, &measured.run));
        print(&nuttcp::report(&options, &measured.run, &report));
    });
    measured.write(reported)?;
    Ok(ExitCode::SUCCESS)
}

/// What the server says of the load; nothing, where it takes long and a signal came.
fn await_text(reader: JoinHandle<io::Result<String>>, interrupts: &Interrupts) -> Result<String> {
    let mut patience: Option<Deadline> = None;
    let is_over = || {
        let mut limit = || *patience.get_or_insert_with(|| Deadline::after(SIGNAL_NS));
        interrupts.came() && limit().left().is_err()
    };
    let text = threads::run_unless("brunt-nuttcp-end", move || reader.join(), is_over);
    match text.context("cannot start a thread")? {
        None => Ok(String::new()),
        Some(Ok(text)) => text.context("the server's report cannot be read"),
        Some(Err(_)) => bail!("the server's report cannot be read"),
    }
}

/// What the server says on its control connection, all of it before a deadline.
struct Replies {
    stream: TcpStream,
    deadline: Deadline,
}

impl Read for Replies {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let timed_out = || io::Error::from(ErrorKind::TimedOut);
        let left = self.deadline.left().map_err(|_| timed_out())?;
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => timed_out(),
            _ => error,
        })
    }
}

/// Asks the server for the load. Gives where its streams go, and what the server says of it.
fn ask(options: &NuttcpOptions) -> Result<(SocketAddr, BufReader<Replies>)> {
    let mut control = ControlConnection::open(options)?;
    let address = if options.host == options.control_host {
        control.peer
    } else {
        resolve(options, &options.host, options.port)?
    };
    control.ask(options)?;
    let mut replies = control.replies;
    // Streams are opened and drained in less than one of the two.
    let limit = Duration::from_secs_f64(options.timeout_s) + 2 * REPLY_LIMIT;
    replies.get_mut().deadline = after(limit);
    Ok((address, replies))
}

fn after(limit: Duration) -> Deadline {
    Deadline::after(limit.as_nanos().try_into().unwrap_or(u64::MAX))
}

/// The control connection.
struct ControlConnection {
    replies: BufReader<Replies>,
    peer: SocketAddr,
}

impl ControlConnection {
    fn open(options: &NuttcpOptions) -> Result<Self> {
        let NuttcpOptions {
            control_host,
            control_port,
            ..
        } = options;
        let peer = resolve(options, control_host, *control_port)?;
        let stream = TcpStream::connect_timeout(&peer, REPLY_LIMIT).with_context(|| {
            format!("connect: cannot reach nuttcp -S at {peer} (its control port, -P)")
        })?;
        stream.set_write_timeout(Some(REPLY_LIMIT))?;
        let deadline = after(REPLY_LIMIT);
        let replies = BufReader::new(Replies { stream, deadline });
        Ok(Self { replies, peer })
    }

    /// Says what the server is to do.
    fn ask(&mut self, options: &NuttcpOptions) -> Result<()> {
        let peer = self.peer;
        self.say(nuttcp::HELLO)?;
        if !nuttcp::is_hello(&self.hear()?) {
            bail!("what listens at {peer} is not a server of nuttcp");
        }
        self.say(&nuttcp::parameters(options))?;
        if let Some(reason) = nuttcp::refusal(&self.hear()?) {
            bail!("{reason}");
        }
        Ok(())
    }

    fn say(&mut self, line: &str) -> Result<()> {
        let replies = self.replies.get_mut();
        replies
            .stream
            .write_all(line.as_bytes())
            .context("the server ended the control connection")
    }

    fn hear(&mut self) -> Result<String> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.replies).take(REPLY_BYTES_MAX);
        bounded
            .read_until(b'\n', &mut line)
            .context("the server says nothing on its control connection")?;
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

/// What the server says of the load, without the lines over time, which are printed as they come,
/// behind the prefix.
fn listen(replies: BufReader<Replies>, prefix: Option<String>) -> io::Result<String> {
    let mut text = String::new();
    let mut had_lines = false;
    for line in replies.take(REPLY_BYTES_MAX).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        let line = brunt_report::printable(&line);
        match &*line {
            "DONE" if had_lines => print("\n"),
            "DONE" => {}
            line => match &prefix {
                Some(prefix) if !line.starts_with("nuttcp") => {
                    had_lines = true;
                    print(&format!("{prefix}{line}\n"));
                }
                _ => text.push_str(&format!("{line}\n")),
            },
        }
    }
    Ok(text)
}

fn resolve(options: &NuttcpOptions, host: &str, port: u16) -> Result<SocketAddr> {
    let wrong = || format!("bad hostname or address: {host}");
    let mut addresses = (host, port).to_socket_addrs().with_context(wrong)?;
    let is_wanted =
        |address: &SocketAddr| options.is_ipv6.is_none_or(|six| address.is_ipv6() == six);
    let address = addresses.find(is_wanted);
    address.with_context(wrong)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_line_that_drips_ends_with_the_limit_of_the_exchange() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let peer = listener.local_addr().expect("it is bound");
        let stream = TcpStream::connect(peer).expect("it listens");
        let (mut other, _) = listener.accept().expect("it came");
        let drip = threads::spawn("drip", move || {
            while other.write_all(b"H").is_ok() {
                threads::sleep(10_000_000);
            }
        });
        let deadline = Deadline::after(200_000_000);
        let replies = BufReader::new(Replies { stream, deadline });
        let mut control = ControlConnection { replies, peer };
        let error = control.hear().expect_err("the line has no end");
        let reason = error.downcast_ref::<io::Error>();
        assert_eq!(reason.map(io::Error::kind), Some(ErrorKind::TimedOut));
        drop(control);
        drip.expect("a thread").join().expect("no panic");
    }
}
