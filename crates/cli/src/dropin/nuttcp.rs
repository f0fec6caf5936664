//! brunt in place of nuttcp's client: a server of nuttcp's is asked on its control connection, and
//! reports there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use brunt_dropin::nuttcp::{self, Options, ServerReport};
use brunt_io::threads;
use brunt_record::{RequestLog, Run};

use super::{explain, job, open_outputs, print};
use crate::run::FrontEnd;

/// How long a connection, and each line of the server, may take.
const REPLY_LIMIT: Duration = Duration::from_secs(10);
/// Bytes that a server may say, at most.
const SAID_BYTES_MAX: u64 = 1 << 20;

/// Runs the command line `words` of nuttcp.
pub(super) fn run(words: &[String]) -> Result<ExitCode> {
    let options = Options::parse(words)?;
    if options.explains {
        return Ok(explain(&nuttcp::explanation(&options)));
    }
    let pipeline = open_outputs(options.brunt_report.as_deref())?;
    let control = Control::open(&options)?;
    let address = match options.host == options.control_host {
        true => control.peer,
        false => resolve(&options, &options.host, options.port)?,
    };
    let plan = options.plan(address.ip())?;
    let limit = Duration::from_secs_f64(options.timeout_s) + REPLY_LIMIT;
    let said = control.ask(&options, limit)?;
    let is_live = options.transmits && options.interval_s > 0.0;
    let prefix = is_live.then(|| nuttcp::prefix(&options));
    let reader = threads::spawn("brunt-nuttcp", move || listen(said, prefix));
    let mut nuttcp = Nuttcp {
        options: &options,
        reader: Some(reader.context("cannot start a thread")?),
    };
    pipeline.run(job(plan), &mut nuttcp)
}

/// The text of a run.
struct Nuttcp<'a> {
    options: &'a Options,
    /// Reads what the server says of the run; absent when it was asked.
    reader: Option<JoinHandle<std::io::Result<String>>>,
}

impl FrontEnd for Nuttcp<'_> {
    fn report(&mut self, run: &Run, _log: &RequestLog) -> Result<()> {
        let said = self.reader.take().map(JoinHandle::join);
        let Some(Ok(text)) = said else {
            bail!("the server's report cannot be read");
        };
        let report = ServerReport::of(&text.context("the server's report cannot be read")?);
        print(&nuttcp::intervals(self.options, run));
        print(&nuttcp::report(self.options, run, &report));
        Ok(())
    }

    fn exit_code(&mut self, _run: &Run, _usual: ExitCode) -> Result<ExitCode> {
        Ok(ExitCode::SUCCESS)
    }
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
        let stream = TcpStream::connect_timeout(&peer, REPLY_LIMIT).with_context(|| {
            format!("connect: cannot reach nuttcp -S at {peer} (its control port, -P)")
        })?;
        stream.set_read_timeout(Some(REPLY_LIMIT))?;
        stream.set_write_timeout(Some(REPLY_LIMIT))?;
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
            bail!("what listens at {peer} is not a server of nuttcp");
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
