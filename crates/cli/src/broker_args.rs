//! How the coordinator and the agents of a fleet find each other: options of a broker.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use brunt_fleet::{Broker, Credentials, Job, NamedBroker};
use clap::Args;

use crate::source::Source;

/// The job that is meant unless another one is named.
const JOB: &str = "brunt";

/// Options of a broker.
#[derive(Debug, Args)]
pub(crate) struct BrokerArguments {
    /// NATS server that the fleet speaks over: nats://HOST:PORT, or tls://HOST:PORT, which is needed
    /// unless the server is on this machine
    #[arg(long, help_heading = "Broker", value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// File with USER:PASSWORD for that server, on one line; - is standard input
    #[arg(long, help_heading = "Broker", value_name = "FILE", requires = "nats")]
    pub(crate) nats_credentials: Option<PathBuf>,
    /// PEM file of the roots to trust for that server [default: those of the system]
    #[arg(long, help_heading = "Broker", value_name = "FILE", requires = "nats")]
    pub(crate) nats_ca: Option<PathBuf>,
    /// PEM file of a client certificate for that server
    #[arg(long, help_heading = "Broker", value_name = "FILE", requires_all = ["nats", "nats_key"])]
    pub(crate) nats_cert: Option<PathBuf>,
    /// PEM file of the private key that goes with --nats-cert
    #[arg(
        long,
        help_heading = "Broker",
        value_name = "FILE",
        requires = "nats_cert"
    )]
    pub(crate) nats_key: Option<PathBuf>,
    /// Speak to a server on another machine in clear text or without credentials, too: whoever can
    /// reach it can have agents make load
    #[arg(long, help_heading = "Broker", requires = "nats")]
    pub(crate) nats_insecure: bool,
    /// Name of the job: agents serve the coordinator that names the same one [default: brunt]
    #[arg(long, help_heading = "Broker", value_name = "NAME", requires = "nats",
          value_parser = str::parse::<Job>)]
    pub(crate) job: Option<Job>,
}

impl BrokerArguments {
    /// The broker that is named, if any.
    pub(crate) fn named(&self) -> Result<Option<NamedBroker>> {
        let Some(url) = &self.nats else {
            return Ok(None);
        };
        Ok(Some(NamedBroker {
            broker: self.broker(url)?,
            job: self.job()?,
            options: self.options(),
        }))
    }

    /// The options with which an agent on this machine finds the broker.
    fn options(&self) -> Vec<String> {
        let files = [
            ("--nats-ca", &self.nats_ca),
            ("--nats-credentials", &self.nats_credentials),
            ("--nats-cert", &self.nats_cert),
            ("--nats-key", &self.nats_key),
        ];
        let files = files.into_iter().filter_map(|(option, path)| {
            let path = path.as_ref()?.to_string_lossy().into_owned();
            Some([option.to_owned(), path])
        });
        let url = self.nats.iter();
        let url = url.map(|url| ["--nats".to_owned(), url.clone()]);
        let mut options: Vec<String> = url.chain(files).flatten().collect();
        if self.nats_insecure {
            options.push("--nats-insecure".to_owned());
        }
        options
    }

    /// The broker at `url`.
    fn broker(&self, url: &str) -> Result<Broker> {
        let credentials = self.nats_credentials.as_ref().map(|path| {
            let read = text("--nats-credentials", path)?.parse::<Credentials>();
            read.with_context(|| format!("{} holds no credentials", path.display()))
        });
        let broker = Broker {
            url: url.to_owned(),
            credentials: credentials.transpose()?,
            roots: self.nats_ca.clone(),
            identity: self.nats_cert.clone().zip(self.nats_key.clone()),
            allows_open: self.nats_insecure,
        };
        broker.check()?;
        Ok(broker)
    }

    /// The job.
    fn job(&self) -> Result<Job> {
        match &self.job {
            Some(job) => Ok(job.clone()),
            None => Ok(JOB.parse()?),
        }
    }
}

/// What is in the file of `option`, or on standard input for `-`.
fn text(option: &str, path: &Path) -> Result<String> {
    let source = match path == Path::new("-") {
        true => Source::StandardInput,
        false => Source::File(path.into()),
    };
    source.read_text(option)
}
