//! Where rounds were measured: the machine, the server and the client, told once for all of them.

use serde::{Deserialize, Serialize};

use crate::{Backend, MachineDescription, Run, ServerScope};

/// Machine, server and client of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// How brunt was called, a word each, without what may be secret; absent where that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// What the agents are called that made the load, in the order of their workers; absent where
    /// one process made all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The machine that brunt ran on; of a fleet, that of the coordinator.
    pub machine: MachineDescription,
    /// The server, where it was watched in the first round; null where it was not.
    pub server: Option<ServerDescription>,
    /// What of brunt ran, of a fleet the first agent; null before a round was measured.
    pub client: Option<ClientDescription>,
}

/// A server, as it was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerDescription {
    /// Name of its process, such as `nginx`; empty where it was not watched.
    pub name: String,
    /// What its replies name as their software (`Server`), such as `nginx/1.22.1`; null where they
    /// name none.
    pub software: Option<String>,
    /// Processes of the server that were watched; null where it is on another machine.
    pub processes: Option<u32>,
    /// Threads of the server, all processes together; null where unknown.
    pub threads: Option<u32>,
    /// CPUs that it may use; null where unknown.
    pub cpus: Option<f64>,
}

/// What of brunt ran, and its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientDescription {
    /// The backend.
    pub backend: Backend,
    /// CPUs that it may use.
    pub usable_cpus: u32,
    /// File descriptors that it may have.
    pub descriptors_limit: u64,
    /// Local ports that its source addresses offer; null for a Unix socket.
    pub ports_available: Option<u64>,
}

impl Environment {
    /// Adds what the server's replies name as its software.
    pub fn name_software(&mut self, software: String) {
        self.server.get_or_insert_default().software = Some(software);
    }

    /// Adds what a round showed of server and client.
    pub fn add(&mut self, run: &Run) {
        let names = run.agents.iter().filter_map(|it| it.fleet.as_ref());
        self.agents = names.map(|agent| agent.name.clone()).collect();
        let agent = run.first();
        self.client = Some(ClientDescription {
            backend: agent.backend,
            usable_cpus: agent.host.usable_cpus,
            descriptors_limit: agent.limits.descriptors_limit,
            ports_available: agent.limits.ports_available,
        });
        let Some(server) = ServerDescription::of(run) else {
            return;
        };
        let software = self.server.take().and_then(|server| server.software);
        self.server = Some(ServerDescription { software, ..server });
    }
}

impl ServerDescription {
    /// What a round showed of the server, but for its software; absent where it was not watched.
    pub fn of(run: &Run) -> Option<Self> {
        let server = run.first().evidence.server.as_ref()?;
        let processes = match &server.scope {
            ServerScope::Processes { pids, .. } => u32::try_from(pids.len()).ok(),
            ServerScope::OwnThreads => None,
        };
        Some(Self {
            name: server.name.clone(),
            software: None,
            processes,
            threads: server.threads.map(|threads| threads.count),
            cpus: server.cpus,
        })
    }
}
