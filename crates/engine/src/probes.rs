//! What is read beside a round: machine, network and server while the window lasts, and the
//! server's own count before and after.

use std::collections::BTreeMap;
use std::sync::Arc;

use brunt_io::tls_config::PageTls;
use brunt_io::{clock, threads};
use brunt_load::{Plan, ServerCounter, Work};
use brunt_probe::observer::{Observer, Sources};
use brunt_probe::server::ServerWatch;
use brunt_probe::server_count::{CounterReader, Reading, ServerCountError};
use brunt_probe::server_window::{EdgesReader, WindowReader};
use brunt_record::{Evidence, Window};

use crate::failure::RunError;
use crate::observer::{Control, Phase, Progress, RunObserver};
use crate::prepare::Prepared;

/// Between two readings of the server's count after the run.
const COUNT_PAUSE_NS: u64 = 100_000_000;
/// How long brunt goes on reading a count that still rises.
const COUNT_LIMIT_NS: u64 = 1_000_000_000;
/// How long an interrupted run waits for what is read last, from the end of its drain.
const INTERRUPTED_NS: u64 = 200_000_000;

/// Everything that is read beside one round.
pub(crate) struct Probes {
    /// The observer of the machine; absent where nothing is to be read.
    machine: Option<Observer>,
    /// The server's own counts of what it received and of what it sent, as they were before the
    /// first connection of the run, with what reads them.
    counts: [Option<(CounterReader, Reading)>; 2],
    /// What a reference server of streams says at the edges of the window.
    edges: Option<EdgesReader>,
}

impl Probes {
    /// Finds the server and reads its counts, before the first connection of the run.
    ///
    /// # Errors
    ///
    /// What was asked for cannot be watched or read, or the run was interrupted.
    pub(crate) fn start(
        prepared: &Arc<Prepared>,
        own_server: bool,
        control: &Arc<Control>,
        observer: &mut dyn RunObserver,
    ) -> Result<Self, RunError> {
        let (prepared, own_control) = (Arc::clone(prepared), Arc::clone(control));
        let body = move || Self::find(&prepared, own_server, own_control);
        threads::run_unless("brunt-find", body, || {
            observer.progress(Phase::SetUp, &Progress::default());
            control.is_interrupted()
        })
        .map_err(RunError::Observer)?
        .unwrap_or(Err(RunError::Interrupted))
    }

    fn find(
        prepared: &Prepared,
        own_server: bool,
        control: Arc<Control>,
    ) -> Result<Self, RunError> {
        let (plan, peer) = (&prepared.plan, &prepared.peers[0]);
        let tls = PageTls::new(&plan.connection.tls, &plan.target.host);
        let machine = if plan.observation.observe {
            let found = ServerWatch::find(&plan.observation.watch, peer, own_server)?;
            let missing = found.missing.map(|reason| ("server".to_owned(), reason));
            let sources = Sources {
                peer: peer.clone(),
                connections_max: plan.connections_most().into(),
                link_bits_per_s: plan.observation.link_bits_per_s,
                server: found.watch,
                missing: missing.into_iter().collect(),
            };
            let control = Arc::clone(&control);
            Some(Observer::start(sources, move || control.end_ns()).map_err(RunError::Observer)?)
        } else {
            None
        };
        let read = |counter: Option<ServerCounter>| {
            let Some(counter) = counter else {
                return Ok(None);
            };
            let reader = CounterReader::new(&counter, &tls)?;
            // Bytes of streams before the run may still be counted: of the connection before it.
            let before = if plan.work() == Work::Streams {
                read_settled(&reader)?
            } else {
                reader.read()?
            };
            Ok::<_, ServerCountError>(Some((reader, before)))
        };
        let [received, sent] = counters(plan);
        let counts = [read(received)?, read(sent)?];
        let edges = match (&plan.observation.server_counter, plan.one_way()) {
            (Some(counter), Some(_)) => {
                let reader = WindowReader::new(counter, &tls)?;
                let end_ns = move || control.end_ns();
                Some(EdgesReader::start(reader, end_ns).map_err(RunError::Observer)?)
            }
            _ => None,
        };
        Ok(Self {
            machine,
            counts,
            edges,
        })
    }

    /// The load begins at `load_ns`.
    pub(crate) fn begin(&self, load_ns: u64, window: Window) {
        if let Some(machine) = &self.machine {
            machine.begin(load_ns, window);
        }
        if let Some(edges) = &self.edges {
            edges.begin(window);
        }
    }

    /// What was read. All workers are done. An interrupted run does not wait for it for long.
    pub(crate) fn finish(
        self,
        control: &Control,
        progress: &Progress,
        observer: &mut dyn RunObserver,
    ) -> Evidence {
        let evidence = threads::run_unless(
            "brunt-read",
            || self.read(),
            || {
                observer.progress(Phase::Drain, progress);
                let now_ns = clock::now_ns();
                if control.is_interrupted() {
                    control.interrupted_ns.set_min(now_ns);
                }
                let end_ns = control.drain_end_ns().saturating_add(INTERRUPTED_NS);
                control.leaves_at_once() || now_ns >= end_ns
            },
        );
        match evidence {
            Ok(Some(evidence)) => evidence,
            Ok(None) => unread("the run was interrupted while it was read"),
            Err(error) => unread(&error.to_string()),
        }
    }

    fn read(self) -> Evidence {
        let mut evidence = match self.machine {
            Some(machine) => machine.finish(),
            None => unread("nothing was to be read"),
        };
        evidence.server_window = self.edges.and_then(EdgesReader::finish);
        let fields = [
            ("server_count", &mut evidence.server_count),
            ("server_sent", &mut evidence.server_sent),
        ];
        for (counter, (name, field)) in self.counts.into_iter().zip(fields) {
            let Some((reader, before)) = counter else {
                continue;
            };
            match read_settled(&reader) {
                Ok(after) => *field = Some(reader.server_count(&before, &after)),
                Err(error) => {
                    let reason = format!("it could not be read after the run: {error}");
                    evidence.missing.insert(name.to_owned(), reason);
                }
            }
        }
        evidence
    }
}

/// No evidence, for this reason.
fn unread(reason: &str) -> Evidence {
    Evidence {
        missing: BTreeMap::from([("evidence".to_owned(), reason.to_owned())]),
        ..Evidence::default()
    }
}

/// The server's count when it rises no more, or after a second.
fn read_settled(reader: &CounterReader) -> Result<Reading, ServerCountError> {
    let first = reader.read()?;
    let end_ns = clock::now_ns() + COUNT_LIMIT_NS;
    Ok(settled(first, || {
        if clock::now_ns() + COUNT_PAUSE_NS > end_ns {
            return None;
        }
        threads::sleep(COUNT_PAUSE_NS);
        // The readings so far are a count, too.
        reader.read().ok()
    }))
}

/// The first reading that rose by no more than the reading itself adds, else the last one. Many
/// servers count a request after its reply was written, or add up their counts now and then.
/// `again` gives nothing when it is to end.
fn settled(first: Reading, mut again: impl FnMut() -> Option<Reading>) -> Reading {
    let own_reads = first.own_reads;
    let mut last = first;
    while let Some(mut next) = again() {
        let is_settled = next.count.abs_diff(last.count) <= own_reads;
        // Each reading may have counted those before it.
        next.own_reads = last.own_reads.saturating_add(own_reads);
        last = next;
        if is_settled {
            break;
        }
    }
    last
}

/// What is to be read of the server's counts: one count of requests, or of the bytes of streams
/// that it receives; and one of the bytes that it sends. Of streams these are values of the
/// reference server's page. A value that the user named is the only one. It is for the direction in
/// which brunt sends; where brunt does not send, for the other one.
fn counters(plan: &Plan) -> [Option<ServerCounter>; 2] {
    let Some(counter) = &plan.observation.server_counter else {
        return [None, None];
    };
    let Some(streams) = plan.one_way() else {
        return [Some(counter.clone()), None];
    };
    let value = |of: &str| {
        let mut counter = counter.clone();
        counter.path.get_or_insert_with(|| of.to_owned());
        counter
    };
    let is_sender_read = streams.receives && (counter.path.is_none() || !streams.sends);
    [
        streams.sends.then(|| value("tcp.bytes_received")),
        is_sender_read.then(|| value("tcp.bytes_sent")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_until_it_rises_no_more() {
        // (readings, what a reading adds, the one taken, what readings may have added)
        let cases: [(&[u64], u64, u64, u64); 7] = [
            (&[500], 0, 500, 0),
            (&[500, 500, 501], 0, 500, 0),
            (&[490, 495, 500, 500, 501], 0, 500, 0),
            // nginx counts its readings.
            (&[500, 501, 502], 1, 501, 2),
            (&[490, 500, 501, 502], 1, 501, 3),
            // One that never settles.
            (&[1, 10, 20], 1, 20, 3),
            // The server was started anew.
            (&[500, 3, 3, 9], 0, 3, 0),
        ];
        for (counts, own_reads, count, own_reads_all) in cases {
            let mut readings = counts.iter().map(|&count| Reading {
                count,
                path: "requests".to_owned(),
                own_reads,
            });
            let first = readings.next().expect("one");
            let found = settled(first, || readings.next());
            assert_eq!(
                (found.count, found.own_reads),
                (count, own_reads_all),
                "{counts:?}"
            );
        }
    }
}
