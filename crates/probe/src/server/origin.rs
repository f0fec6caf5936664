//! How the processes of a server were found, and how others are looked for.

use brunt_io::backend::Peer;

use super::listener;
use super::proc_files;

/// How the processes were found, and how others are looked for once one of them has ended.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// They hold the socket that listens here.
    Listener(Peer),
    /// They have this name.
    Named(String),
    /// They are in this control group.
    Cgroup(String),
    /// They were named by their ids: nothing takes their place.
    Pids(Vec<u32>),
}

impl Origin {
    /// The processes that are to be found now.
    pub(super) fn pids(&self) -> Vec<u32> {
        match self {
            Self::Listener(peer) => listener::listening_pids(peer).unwrap_or_default(),
            Self::Named(name) => proc_files::pids_named(name),
            Self::Cgroup(group) => proc_files::pids_in_cgroup(group),
            Self::Pids(pids) => pids.clone(),
        }
    }

    /// How they were found, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Listener(Peer::Tcp(address)) => format!("listening on port {}", address.port()),
            Self::Listener(Peer::Udp(address)) => {
                format!("listening on UDP port {}", address.port())
            }
            Self::Listener(Peer::Unix(path)) => format!("listening on {}", path.display()),
            Self::Named(name) => format!("--watch {name}"),
            Self::Cgroup(group) if group.starts_with('/') => format!("--watch cgroup:{group}"),
            Self::Cgroup(id) => format!("--watch container:{id}"),
            Self::Pids(pids) => {
                let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
                format!("--watch {}", pids.join(" "))
            }
        }
    }
}
