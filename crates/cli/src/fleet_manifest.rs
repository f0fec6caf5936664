//! `brunt fleet manifest`: agents in Kubernetes, as YAML for `kubectl apply`.
//!
//! A Job has one agent per node. Unless a NATS server is named, there is one, too, with passwords
//! and a certificate of its own.

use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brunt_fleet::{AllowedTarget, Broker, Job};
use clap::Args;

use crate::local_broker::users;
use crate::message;
use crate::values::whole_u32;

/// How long an agent waits for its coordinator: a Job is not to hold nodes for ever.
const WAIT: &str = "1h";
/// Where the Secret is mounted.
const SECRETS: &str = "/etc/brunt";
/// Where the NATS server of the manifest is, in its namespace.
const OWN_URL: &str = "tls://brunt-nats:4222";

/// Options of a manifest.
#[derive(Debug, Args)]
#[command(
    override_usage = "brunt fleet manifest --agents N --image IMAGE [OPTIONS]",
    after_help = "Prints a Job with one agent per node and, without --nats, a NATS server with \
        new passwords and a new certificate in a Secret.\n\
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
    /// NATS server that is there already; the Secret brunt-fleet has USER:PASSWORD for it under the
    /// key `agent`
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    /// Image of the NATS server that is started
    #[arg(
        long,
        value_name = "IMAGE",
        default_value = "nats:2",
        conflicts_with = "nats"
    )]
    nats_image: String,
    /// Name of the job that the agents serve
    #[arg(long, value_name = "NAME", default_value = "brunt", value_parser = str::parse::<Job>)]
    job: Job,
    /// Have the agents load this server only; may be given again [default: any]
    #[arg(long, value_name = "HOST[:PORT]")]
    allow_target: Vec<String>,
    /// CPUs of each agent
    #[arg(long, value_name = "QUANTITY", default_value = "2")]
    cpu: String,
    /// Memory of each agent
    #[arg(long, value_name = "QUANTITY", default_value = "1Gi")]
    memory: String,
}

/// Prints the manifest.
pub(crate) fn run(arguments: &ManifestArguments) -> Result<ExitCode> {
    for target in &arguments.allow_target {
        target.parse::<AllowedTarget>()?;
    }
    let mut documents = Vec::new();
    if arguments.nats.is_none() {
        documents.push(secret()?);
        documents.push(server(&arguments.nats_image));
        documents.push(SERVICE.to_owned());
    }
    documents.push(agents(arguments)?);
    message::output(&documents.join("---\n"));
    Ok(ExitCode::SUCCESS)
}

/// A text in YAML: as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Passwords, a certificate, and the configuration of the NATS server that has them.
fn secret() -> Result<String> {
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
    let entries = [
        ("coordinator", coordinator),
        ("agent", agent),
        ("ca.pem", made.cert.pem()),
        ("key.pem", made.signing_key.serialize_pem()),
        ("nats.conf", configuration),
    ];
    let entries = entries.map(|(name, text)| format!("  {name}: {}\n", quoted(&text)));
    Ok(format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: brunt-fleet\nstringData:\n{}",
        entries.concat()
    ))
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
          volumeMounts:
            - {{name: secrets, mountPath: {SECRETS}, readOnly: true}}
      volumes:
        - name: secrets
          secret:
            secretName: brunt-fleet
            items:
              - {{key: nats.conf, path: nats.conf}}
              - {{key: ca.pem, path: ca.pem}}
              - {{key: key.pem, path: key.pem}}
"
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

/// The agents. Each has its index in its name, as Kubernetes fills it in.
fn agents(arguments: &ManifestArguments) -> Result<String> {
    let url = arguments.nats.as_deref().unwrap_or(OWN_URL);
    // It is said now what an agent would say there.
    let as_there = Broker {
        url: url.to_owned(),
        credentials: Some("agent:password".parse()?),
        ..Broker::default()
    };
    as_there.check()?;
    let credentials = format!("{SECRETS}/agent");
    let mut words = vec!["agent", "--nats", url, "--nats-credentials", &credentials];
    let certificate = format!("{SECRETS}/ca.pem");
    let mut files = vec!["agent"];
    if arguments.nats.is_none() {
        words.extend(["--nats-ca", &certificate]);
        files.push("ca.pem");
    }
    words.extend(["--job", arguments.job.name(), "--wait", WAIT]);
    words.extend(["--name", "agent-$(JOB_COMPLETION_INDEX)"]);
    for target in &arguments.allow_target {
        words.extend(["--allow-target", target]);
    }
    let words = words.into_iter().map(quoted);
    let words: String = words
        .map(|word| format!("            - {word}\n"))
        .collect();
    let files = files.into_iter();
    let files: String = files
        .map(|file| format!("              - {{key: {file}, path: {file}}}\n"))
        .collect();
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
          volumeMounts:
            - {{name: secrets, mountPath: {SECRETS}, readOnly: true}}
      volumes:
        - name: secrets
          secret:
            secretName: brunt-fleet
            items:
{files}"
    ))
}
