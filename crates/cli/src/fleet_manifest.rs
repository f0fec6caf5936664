//! `brunt fleet manifest`: agents in Kubernetes, as YAML for `kubectl apply`.
//!
//! A Job has one agent per node. Unless a NATS server is named, there is one, too, with passwords
//! and a certificate of its own.

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_fleet::{Broker, Job};
use clap::Args;

use crate::broker_args::{BrokerArguments, text};
use crate::fleet_args::LeaveArguments;
use crate::local_broker::users;
use crate::message;
use crate::values::{positive_duration, whole_u32};

/// Where the Secret is mounted.
const SECRETS: &str = "/etc/brunt";
/// Where the NATS server of the manifest is, in its namespace.
const OWN_URL: &str = "tls://brunt-nats:4222";

/// Options of a manifest.
#[derive(Debug, Args)]
#[command(
    override_usage = "brunt fleet manifest --agents N --image IMAGE [OPTIONS]",
    after_help = "Prints a Job with one agent per node and, without --nats, a NATS server with \
        new passwords and a new certificate in a Secret. With --nats, the Secret has the files \
        that are given; where none is, the Secret brunt-fleet is to be there already, with \
        USER:PASSWORD under the key `agent`.\n\
        brunt fleet manifest --agents 4 --image registry.example/brunt:0.1.0 | kubectl apply -f -\n\
        See docs/fleet.md."
)]
pub(crate) struct ManifestArguments {
    /// Agents, each on a node of its own
    #[arg(long, value_name = "N", value_parser = whole_u32)]
    agents: NonZeroU32,
    /// Image with brunt, of the same version as the coordinator's
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Image of the NATS server that is started
    #[arg(
        long,
        value_name = "IMAGE",
        default_value = "nats:2",
        conflicts_with = "nats"
    )]
    nats_image: String,
    /// CPUs of each agent
    #[arg(long, value_name = "QUANTITY", default_value = "2")]
    cpu: String,
    /// Memory of each agent
    #[arg(long, value_name = "QUANTITY", default_value = "1Gi")]
    memory: String,
    /// Longest wait of an agent for its coordinator: it holds its node until then
    #[arg(long, value_name = "TIME", default_value = "1h", help_heading = "Agent",
          value_parser = time)]
    wait: String,
    #[command(flatten)]
    leave: LeaveArguments,
    #[command(flatten)]
    broker: BrokerArguments,
}

/// A time, as it was typed.
fn time(typed: &str) -> Result<String, String> {
    positive_duration(typed).map(|_| typed.to_owned())
}

/// A file of the Secret that an agent reads: the option that names it, and its key.
type SecretFile = (&'static str, &'static str);

const CREDENTIALS: SecretFile = ("--nats-credentials", "agent");
const ROOTS: SecretFile = ("--nats-ca", "ca.pem");
const CERTIFICATE: SecretFile = ("--nats-cert", "agent-cert.pem");
const KEY: SecretFile = ("--nats-key", "agent-key.pem");

/// Prints the manifest.
pub(crate) fn run(arguments: &ManifestArguments) -> Result<ExitCode> {
    let mut documents = Vec::new();
    let broker = &arguments.broker;
    let (url, files) = match broker.nats.as_deref() {
        None => {
            documents.push(secret(&own_server()?));
            documents.push(server(&arguments.nats_image));
            documents.push(SERVICE.to_owned());
            (OWN_URL, vec![CREDENTIALS, ROOTS])
        }
        Some(url) => {
            let (files, secret) = elsewhere(broker, url)?;
            documents.extend(secret);
            (url, files)
        }
    };
    documents.push(agents(arguments, url, &files)?);
    message::output(&documents.join("---\n"));
    Ok(ExitCode::SUCCESS)
}

/// What agents read to speak to a NATS server that is there already, and the Secret with that;
/// absent where it is to be there, too.
fn elsewhere(broker: &BrokerArguments, url: &str) -> Result<(Vec<SecretFile>, Option<String>)> {
    let mut given = given(broker)?;
    let is_there = given.is_empty() && !broker.nats_insecure;
    if is_there {
        given.push((CREDENTIALS, "agent:password".to_owned()));
    }
    let credentials = given.iter().find(|(file, _)| *file == CREDENTIALS);
    // It is said now what an agent would say there.
    let as_there = Broker {
        url: url.to_owned(),
        credentials: credentials.map(|(_, text)| text.parse()).transpose()?,
        roots: None,
        identity: broker.nats_cert.clone().zip(broker.nats_key.clone()),
        allows_open: broker.nats_insecure,
    };
    as_there.check()?;
    let files = given.iter().map(|(file, _)| *file).collect();
    let entries: Vec<_> = given
        .into_iter()
        .map(|((_, key), text)| (key, text))
        .collect();
    let is_own = !is_there && !entries.is_empty();
    Ok((files, is_own.then(|| secret(&entries))))
}

/// The files that are given for agents, and what is in them.
fn given(broker: &BrokerArguments) -> Result<Vec<(SecretFile, String)>> {
    let files = [
        (CREDENTIALS, &broker.nats_credentials),
        (ROOTS, &broker.nats_ca),
        (CERTIFICATE, &broker.nats_cert),
        (KEY, &broker.nats_key),
    ];
    let given = files.into_iter();
    let given = given.filter_map(|(file, path)| Some((file, path.as_ref()?)));
    given
        .map(|(file, path)| Ok((file, text(file.0, path)?)))
        .collect()
}

/// A text in YAML: as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The Secret with these texts.
fn secret(entries: &[(&str, String)]) -> String {
    let entries = entries.iter();
    let entries: String = entries
        .map(|(name, text)| format!("  {name}: {}\n", quoted(text)))
        .collect();
    format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: brunt-fleet\nstringData:\n{entries}")
}

/// Passwords, a certificate, and the configuration of the NATS server that has them.
fn own_server() -> Result<[(&'static str, String); 5]> {
    let names = ["brunt-nats", "localhost"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names);
    let made = made.context("cannot make a certificate")?;
    let [coordinator, agent] =
        ["coordinator", "agent"].map(|user| format!("{user}:{}", Job::fresh().name()));
    let configuration = format!(
        "listen: \"0.0.0.0:4222\"\n\
         tls {{ cert_file: \"{SECRETS}/ca.pem\", key_file: \"{SECRETS}/key.pem\" }}\n{}",
        users(&coordinator, &agent)
    );
    Ok([
        ("coordinator", coordinator),
        ("agent", agent),
        ("ca.pem", made.cert.pem()),
        ("key.pem", made.signing_key.serialize_pem()),
        ("nats.conf", configuration),
    ])
}

/// Where a container finds files of the Secret.
const MOUNTED: &str = "          volumeMounts:
            - {name: secrets, mountPath: /etc/brunt, readOnly: true}
";

/// Those of these keys.
fn volume(keys: &[&str]) -> String {
    let keys = keys.iter();
    let items: String = keys
        .map(|key| format!("              - {{key: {key}, path: {key}}}\n"))
        .collect();
    format!(
        "      volumes:
        - name: secrets
          secret:
            secretName: brunt-fleet
            items:
{items}"
    )
}

/// The NATS server.
fn server(image: &str) -> String {
    let image = quoted(image);
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: brunt-nats
spec:
  replicas: 1
  selector:
    matchLabels: {{app: brunt-nats}}
  template:
    metadata:
      labels: {{app: brunt-nats}}
    spec:
      automountServiceAccountToken: false
      containers:
        - name: nats
          image: {image}
          args: [\"-c\", \"{SECRETS}/nats.conf\"]
          ports:
            - containerPort: 4222
          readinessProbe:
            tcpSocket: {{port: 4222}}
{MOUNTED}{}",
        volume(&["nats.conf", "ca.pem", "key.pem"])
    )
}

/// Where agents find it.
const SERVICE: &str = "apiVersion: v1
kind: Service
metadata:
  name: brunt-nats
spec:
  selector: {app: brunt-nats}
  ports:
    - port: 4222
";

/// The agents, with these files of the Secret. Each has its index in its name, as Kubernetes fills
/// it in.
fn agents(arguments: &ManifestArguments, url: &str, files: &[SecretFile]) -> Result<String> {
    let mut words = vec!["agent".to_owned()];
    let mut add = |option: &str, value: &str| words.extend([option, value].map(str::to_owned));
    add("--nats", url);
    for (option, key) in files {
        add(option, &format!("{SECRETS}/{key}"));
    }
    add("--job", arguments.broker.job()?.name());
    add("--wait", &arguments.wait);
    add("--name", "agent-$(JOB_COMPLETION_INDEX)");
    for target in &arguments.leave.allow_target {
        add("--allow-target", &target.to_string());
    }
    for (is_given, option) in [
        (arguments.leave.allow_scripts, "--allow-scripts"),
        (arguments.broker.nats_insecure, "--nats-insecure"),
    ] {
        words.extend(is_given.then(|| option.to_owned()));
    }
    let words = words.iter().map(|word| quoted(word));
    let words: String = words
        .map(|word| format!("            - {word}\n"))
        .collect();
    let (mounted, volume) = match files {
        [] => Default::default(),
        files => {
            let keys: Vec<_> = files.iter().map(|(_, key)| *key).collect();
            (MOUNTED, volume(&keys))
        }
    };
    let resources = format!(
        "{{cpu: {}, memory: {}}}",
        quoted(&arguments.cpu),
        quoted(&arguments.memory)
    );
    let (count, image) = (arguments.agents, quoted(&arguments.image));
    Ok(format!(
        "apiVersion: batch/v1
kind: Job
metadata:
  name: brunt-agents
spec:
  completionMode: Indexed
  completions: {count}
  parallelism: {count}
  backoffLimit: 0
  ttlSecondsAfterFinished: 3600
  template:
    metadata:
      labels: {{app: brunt-agents}}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels: {{app: brunt-agents}}
      containers:
        - name: agent
          image: {image}
          command: [\"/usr/bin/brunt\"]
          args:
{words}          resources:
            requests: {resources}
            limits: {resources}
          securityContext:
            runAsNonRoot: true
            runAsUser: 65534
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {{drop: [ALL]}}
{mounted}{volume}"
    ))
}
