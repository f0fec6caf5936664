//! What an agent lets others have it do: load targets that it was told of, and nothing that reads
//! its files.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use brunt_load::{Plan, Target, Watch};
use thiserror::Error;

/// Why an agent does not do what a plan says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// A server that it names is none of those that the agent may load or read from.
    #[error(
        "this agent may not load {host}:{port}; start it with --allow-target {host}:{port} to \
         allow that"
    )]
    Target {
        /// Name or address of the server, as in the plan.
        host: String,
        /// Its port.
        port: u16,
    },
    /// It names a socket among the files of the machine.
    #[error("a plan from elsewhere may not name the socket {}", .0.display())]
    UnixSocket(PathBuf),
    /// It names a process of the machine.
    #[error("a plan from elsewhere may not name a process of this machine")]
    Process,
    /// Its requests come from a program that it does not hold.
    #[error("a plan from elsewhere may not have its requests made by a program")]
    Generated,
    /// Its requests come from a script.
    #[error(
        "this agent runs no scripts; start it with --allow-scripts to let whoever may speak as \
         coordinator run programs there"
    )]
    Script,
}

/// Why a text names no target that could be allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` names no target; give HOST or HOST:PORT, an address of IPv6 in brackets")]
pub struct AllowedTargetError(String);

/// A server that an agent may load: all ports of a host, or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTarget {
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
}

impl AllowedTarget {
    fn holds(&self, target: &Target) -> bool {
        let is_port = self.port.is_none_or(|port| port == target.port);
        is_port && self.host.eq_ignore_ascii_case(&target.host)
    }
}

impl FromStr for AllowedTarget {
    type Err = AllowedTargetError;

    fn from_str(typed: &str) -> Result<Self, AllowedTargetError> {
        let error = || AllowedTargetError(typed.to_owned());
        let (host, port) = match typed.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(error)?;
                let port = rest.strip_prefix(':');
                if port.is_none() && !rest.is_empty() {
                    return Err(error());
                }
                (host, port)
            }
            None => match typed.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (typed, None),
            },
        };
        let port = port.map(str::parse).transpose().map_err(|_| error())?;
        let is_host = !host.is_empty() && !host.contains(['/', '@', ' ', '*']);
        match is_host {
            true => Ok(Self {
                host: host.to_owned(),
                port,
            }),
            false => Err(error()),
        }
    }
}

/// As it is typed.
impl fmt::Display for AllowedTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(out, "[{}]", self.host)?,
            false => out.write_str(&self.host)?,
        }
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

/// Whether an agent that may load `allowed` (any target, where it is empty) does what `plan` says.
///
/// # Errors
///
/// It does not.
pub fn admit(plan: &Plan, allowed: &[AllowedTarget]) -> Result<(), AdmissionError> {
    if !matches!(plan.watch, Watch::Auto | Watch::Off) {
        return Err(AdmissionError::Process);
    }
    let counter = plan.server_counter.iter().map(|it| &it.target);
    for target in plan.targets().chain(counter) {
        if let Some(path) = &target.unix_socket {
            return Err(AdmissionError::UnixSocket(path.clone()));
        }
        if !allowed.is_empty() && !allowed.iter().any(|it| it.holds(target)) {
            return Err(AdmissionError::Target {
                host: target.host.clone(),
                port: target.port,
            });
        }
    }
    match plan.is_generated {
        true => Err(AdmissionError::Generated),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use brunt_load::{PlanFile, RequestSet, RequestSpec, ServerCounter};

    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url, None).expect("a URL")
    }

    fn plan(url: &str) -> Plan {
        Plan::new(target(url), RequestSet::one(RequestSpec::get("/")))
    }

    fn allowed(typed: &[&str]) -> Vec<AllowedTarget> {
        let read = typed.iter().map(|typed| typed.parse());
        read.collect::<Result<_, _>>().expect("targets")
    }

    #[test]
    fn only_targets_of_the_list_are_loaded() {
        for (url, typed, is_allowed) in [
            ("http://host/", &[][..], true),
            ("http://host/", &["host"], true),
            ("http://HOST:81/", &["host"], true),
            ("http://host:81/", &["other", "host:81"], true),
            ("http://host:81/", &["host:80"], false),
            ("http://host.example/", &["host"], false),
            ("http://[::1]:7/", &["[::1]:7"], true),
            ("http://[::1]:7/", &["[::1]"], true),
            ("http://127.0.0.1/", &["localhost"], false),
        ] {
            let admitted = admit(&plan(url), &allowed(typed));
            assert_eq!(admitted.is_ok(), is_allowed, "{url} {typed:?}");
        }
    }

    #[test]
    fn pages_beside_the_load_are_targets_too() {
        let mut counted = plan("http://host/");
        counted.server_counter = Some(ServerCounter {
            target: target("http://metadata/"),
            path: None,
        });
        let mut further = plan("http://host/");
        further.further_targets = vec![target("http://metadata/")];
        for plan in [counted, further] {
            assert_eq!(
                admit(&plan, &allowed(&["host"])),
                Err(AdmissionError::Target {
                    host: "metadata".to_owned(),
                    port: 80
                })
            );
            assert_eq!(admit(&plan, &[]), Ok(()));
        }
    }

    #[test]
    fn nothing_of_the_machine_is_named() {
        let mut with_socket = plan("http://host/");
        with_socket.target.unix_socket = Some("/run/docker.sock".into());
        let mut with_process = plan("http://host/");
        with_process.watch = Watch::Process(1);
        let mut with_script = plan("http://host/");
        with_script.is_generated = true;
        for (plan, words) in [
            (with_socket, "/run/docker.sock"),
            (with_process, "process"),
            (with_script, "program"),
        ] {
            let error = admit(&plan, &[]).expect_err("it is refused").to_string();
            assert!(error.contains(words), "{error}");
        }
        // The content of files is in a plan, their paths cannot be.
        let mut with_file = plan("https://host/");
        with_file.tls.roots = Some(PlanFile::At("/etc/shadow".into()));
        assert!(serde_json::to_vec(&with_file).is_err());
    }

    #[test]
    fn what_is_allowed_reads_as_it_was_typed() {
        for typed in ["host", "host:81", "127.0.0.1:1", "[::1]", "[::1]:7"] {
            let read: AllowedTarget = typed.parse().expect("a target");
            assert_eq!(read.to_string(), typed);
        }
    }

    #[test]
    fn what_names_no_target_is_refused() {
        for wrong in [
            "",
            ":80",
            "host:",
            "host:x",
            "host:99999",
            "http://host",
            "[::1",
            "[::1]7",
            "*",
        ] {
            assert!(wrong.parse::<AllowedTarget>().is_err(), "{wrong}");
        }
    }
}
