//! What the states of a script have in common: addresses, what was decided of threads, and the
//! outcome of the run.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::distribution::Distribution;
use crate::error::ScriptError;
use crate::lua::State;

/// Most different addresses that one script can have.
const ADDRESSES_MAX: usize = 4_096;

/// The figures of a run that `done` is called with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Counts.
    pub summary: Summary,
    /// Microseconds of each batch of requests.
    pub latency: Distribution,
    /// Requests a second: one value per worker and 100 ms.
    pub requests: Distribution,
}

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Length of the run, microseconds.
    pub duration_us: u64,
    /// Complete responses of any status.
    pub requests: u64,
    /// Bytes of responses, after decryption.
    pub bytes: u64,
    /// Connections that could not be made.
    pub connect_errors: u64,
    /// Connections that failed while something was read.
    pub read_errors: u64,
    /// Connections that failed while something was sent.
    pub write_errors: u64,
    /// Responses with a status of 400 or more.
    pub status_errors: u64,
    /// Requests that took too long.
    pub timeouts: u64,
}

/// What the states of a script have in common.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    threads: Vec<Thread>,
    addresses: Mutex<Vec<SocketAddr>>,
    notes: Mutex<Notes>,
}

/// What one call leaves for another one, perhaps of another state.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) outcome: Option<Outcome>,
    /// Why a call into the script is about to fail, where Lua would only have words for it.
    pub(crate) failure: Option<ScriptError>,
    /// Where the target is by its own name: what threads connect to that choose no address.
    pub(crate) target: Option<SocketAddr>,
    /// What took a connection last.
    pub(crate) connected: Option<SocketAddr>,
    /// Why the last address that did not take a connection did not.
    pub(crate) connect_error: Option<String>,
}

/// A thread of the script's: a worker.
#[derive(Debug, Default)]
struct Thread {
    /// The Lua state of the thread; absent while its worker has it.
    state: Mutex<Option<State>>,
    is_stopped: AtomicBool,
    /// Where its connections go: a place in the addresses.
    address: Mutex<Option<usize>>,
}

impl Shared {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads: (0..threads).map(|_| Thread::default()).collect(),
            ..Self::default()
        }
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The state of a thread, or the place for it.
    pub(crate) fn state(&self, thread: usize) -> Option<MutexGuard<'_, Option<State>>> {
        self.threads.get(thread).map(|thread| lock(&thread.state))
    }

    /// The number of an address, which may be new; absent where there are too many.
    pub(crate) fn address_id(&self, address: SocketAddr) -> Option<usize> {
        let mut addresses = lock(&self.addresses);
        if let Some(id) = addresses.iter().position(|known| *known == address) {
            return Some(id);
        }
        if addresses.len() >= ADDRESSES_MAX {
            return None;
        }
        addresses.push(address);
        Some(addresses.len() - 1)
    }

    /// The address with this number.
    pub(crate) fn address(&self, id: usize) -> Option<SocketAddr> {
        lock(&self.addresses).get(id).copied()
    }

    /// The number of the address that a thread connects to.
    pub(crate) fn thread_address(&self, thread: usize) -> Option<usize> {
        *lock(&self.threads.get(thread)?.address)
    }

    pub(crate) fn set_thread_address(&self, thread: usize, id: usize) {
        if let Some(thread) = self.threads.get(thread) {
            *lock(&thread.address) = Some(id);
        }
    }

    pub(crate) fn stop(&self, thread: usize) {
        if let Some(thread) = self.threads.get(thread) {
            thread.is_stopped.store(true, Ordering::Relaxed);
        }
    }

    /// What was stopped before a run runs nevertheless, as in wrk.
    pub(crate) fn start_all(&self) {
        for thread in &self.threads {
            thread.is_stopped.store(false, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_stopped(&self, thread: usize) -> bool {
        let thread = self.threads.get(thread);
        thread.is_some_and(|thread| thread.is_stopped.load(Ordering::Relaxed))
    }

    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        lock(&self.notes)
    }
}

/// Locks whatever happened to others that had it locked: what is kept here is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The parts of a URL as wrk gives them to scripts: nothing in them is normalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptTarget {
    /// `http` or `https`.
    pub scheme: String,
    /// Name or address, without brackets.
    pub host: String,
    /// The port as typed; absent without one.
    pub port: Option<String>,
    /// Path, query and fragment as typed; `/` without a path.
    pub path: String,
    /// The whole URL, as typed.
    pub url: String,
}

impl ScriptTarget {
    /// Takes a URL apart; `None` where it has no scheme or no host.
    pub fn from_url(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let authority = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed.split_once(']')?;
                (host, after.strip_prefix(':'))
            }
            None => match authority.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if scheme.is_empty() || host.is_empty() {
            return None;
        }
        Some(Self {
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            port: port.filter(|port| !port.is_empty()).map(str::to_owned),
            path: if rest.starts_with('/') { rest } else { "/" }.to_owned(),
            url: url.to_owned(),
        })
    }

    /// What addresses are looked up with, beside the host: the port, or the scheme.
    pub fn service(&self) -> &str {
        self.port.as_deref().unwrap_or(&self.scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> (String, String, Option<String>, String) {
        let target = ScriptTarget::from_url(url).expect(url);
        (target.scheme, target.host, target.port, target.path)
    }

    fn expected(
        scheme: &str,
        host: &str,
        port: Option<&str>,
        path: &str,
    ) -> (String, String, Option<String>, String) {
        (
            scheme.into(),
            host.into(),
            port.map(Into::into),
            path.into(),
        )
    }

    #[test]
    fn paths_are_as_typed() {
        let path = "/p/a?q=1#frag";
        let url = format!("http://h:8080{path}");
        assert_eq!(parts(&url), expected("http", "h", Some("8080"), path));
        assert_eq!(parts("http://h"), expected("http", "h", None, "/"));
        assert_eq!(parts("http://h?x=1"), expected("http", "h", None, "/"));
    }

    #[test]
    fn hosts_may_be_addresses() {
        assert_eq!(
            parts("https://[::1]:8443/x"),
            expected("https", "::1", Some("8443"), "/x")
        );
        assert_eq!(parts("http://u:p@h/"), expected("http", "h", None, "/"));
    }

    #[test]
    fn what_has_no_host_is_no_target() {
        assert_eq!(ScriptTarget::from_url("localhost:80"), None);
        assert_eq!(ScriptTarget::from_url("http:///x"), None);
    }
}
