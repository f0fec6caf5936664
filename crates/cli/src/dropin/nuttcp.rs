//! brunt in place of nuttcp's client: a server of nuttcp's is asked on its control connection, and
//! reports there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use brunt_dropin::nuttcp::{self, Options, ServerReport};
use brunt_dropin::verdict_line;
use brunt_engine::{Phase, Progress, RunObserver};
use brunt_io::threads;
use brunt_judge::Judged;

use super::{destination, explain, measure, print};
use crate::message;

/// How long a connection, and each line of the server, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that a server may say, at most.
const SAID_BYTES_MAX: u64 = 1 << 20;

/// Runs the command line `words` of nuttcp.
pub(super) fn run(words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(words)?;
    if options.explains {
        return Ok(explain(&nuttcp::explanation(&options)));
    }
    let destination = destination(options.brunt_report.as_deref())?;
    let (run, report) = match transfer(&options) {
        Ok(done) => done,
        Err(error) => {
            destination.abandon();
            return Err(error);
        }
    };
    print(&nuttcp::intervals(&options, &run));
    print(&nuttcp::report(&options, &run, &report));
    let judged = Judged::of(&run);
    message::print(&verdict_line(&judged));
    destination.write(&judged)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the server, makes the run, and reads what the server says of it.
fn transfer(options: &Options) -> Result<(brunt_record::Run, ServerReport)> {
    let control = Control::open(options)?;
    let address = match options.host == options.control_host {
        true => control.peer,
        false => resolve(options, &options.host, options.port)?,
    };
    let plan = options.plan(address.ip())?;
    let limit = Duration::from_secs_f64(options.timeout_s) + PATIENCE;
    let said = control.ask(options, limit)?;
    let is_live = options.transmits && options.interval_s > 0.0;
    let prefix = is_live.then(|| nuttcp::prefix(options));
    let reader = threads::spawn("brunt-nuttcp", move || listen(said, prefix));
    let reader = reader.context("cannot start a thread")?;
    let run = measure(plan, Vec::new(), "", &mut Quiet)?;
    let text = match reader.join() {
        Ok(text) => text.context("the server's report cannot be read")?,
        Err(_) => bail!("the server's report cannot be read"),
    };
    Ok((run, ServerReport::of(&text)))
}

/// The control connection.
struct Control {
    stream: BufReader<TcpStream>,
    peer: SocketAddr,
}

impl Control {
    fn open(options: &Options) -> Result<Self> {
        let Options {
            control_host,
            control_port,
            ..
        } = options;
        let peer = resolve(options, control_host, *control_port)?;
        let stream = TcpStream::connect_timeout(&peer, PATIENCE).with_context(|| {
            format!("connect: cannot reach nuttcp -S at {peer} (its control port, -P)")
        })?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::new(stream),
            peer,
        })
    }

    /// Says what the server is to do. Gives the connection, on which the rest comes.
    fn ask(mut self, options: &Options, limit: Duration) -> Result<BufReader<TcpStream>> {
        let peer = self.peer;
        self.say(nuttcp::HELLO)?;
        if !nuttcp::is_hello(&self.hear()?) {
            bail!("what listens at {peer} is no server of nuttcp's");
        }
        self.say(&nuttcp::parameters(options))?;
        if let Some(reason) = nuttcp::refusal(&self.hear()?) {
            bail!("{reason}");
        }
        self.stream.get_ref().set_read_timeout(Some(limit))?;
        Ok(self.stream)
    }

    fn say(&mut self, line: &str) -> Result<()> {
        let stream = self.stream.get_mut();
        stream
            .write_all(line.as_bytes())
            .context("the server ended the control connection")
    }

    fn hear(&mut self) -> Result<String> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.stream).take(SAID_BYTES_MAX);
        bounded
            .read_until(b'\n', &mut line)
            .context("the server says nothing on its control connection")?;
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

/// What the server says of the load, without the lines over time, which are printed as they come,
/// behind the prefix.
fn listen(said: BufReader<TcpStream>, prefix: Option<String>) -> std::io::Result<String> {
    let mut text = String::new();
    let mut had_lines = false;
    for line in said.take(SAID_BYTES_MAX).split(b'\n') {
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

fn resolve(options: &Options, host: &str, port: u16) -> Result<SocketAddr> {
    let is_wanted = |address: &SocketAddr| {
        let wanted = options.is_ipv6;
        wanted.is_none_or(|is_ipv6| address.is_ipv6() == is_ipv6)
    };
    let mut addresses = (host, port)
        .to_socket_addrs()
        .with_context(|| format!("bad hostname or address: {host}"))?;
    let address = addresses.find(is_wanted);
    address.with_context(|| format!("bad hostname or address: {host}"))
}

struct Quiet;

impl RunObserver for Quiet {
    fn progress(&mut self, _phase: Phase, _progress: &Progress) {}
}
