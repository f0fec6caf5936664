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
    /// They are in the control group with this path.
    Cgroup(String),
    /// They are in this container.
    Container {
        /// Its id or name, as typed.
        name: String,
        /// Its id.
        id: String,
    },
    /// They were named by their ids: nothing takes their place.
    Pids(Vec<u32>),
}

impl Origin {
    /// The processes that are to be found now.
    pub(super) fn pids(&self) -> Vec<u32> {
        match self {
            Self::Listener(peer) => listener::listening_pids(peer).unwrap_or_default(),
            Self::Named(name) => proc_files::pids_named(name),
            Self::Cgroup(path) => proc_files::pids_in_cgroup(path),
            Self::Container { id, .. } => proc_files::pids_in_container(id),
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
            Self::Cgroup(path) => format!("--watch cgroup:{path}"),
            Self::Container { name, .. } => format!("--watch container:{name}"),
            Self::Pids(pids) => {
                let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
                format!("--watch {}", pids.join(" "))
            }
        }
    }
}
