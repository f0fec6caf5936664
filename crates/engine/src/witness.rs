//! What is read beside a run: machine, network and server while the window lasts, and the server's
//! own count before and after.

use std::collections::BTreeMap;
use std::sync::Arc;

use brunt_measure::{Evidence, Window};

use crate::control::Control;
use crate::evidence::server::ServerWatch;
use crate::evidence::{Observer, Sources};
use crate::prepare::Prepared;
use crate::run::RunError;
use crate::server_count::{CounterReader, Reading};

/// Everything that testifies about one run.
pub(crate) struct Witnesses {
    /// Absent where nothing is to be read.
    observer: Option<Observer>,
    counter: Option<(CounterReader, Reading)>,
}

impl Witnesses {
    /// Finds the server and reads its count, before the first connection of the run.
    ///
    /// # Errors
    ///
    /// What was asked for cannot be watched or read.
    pub(crate) fn call(
        prepared: &Prepared,
        own_server: bool,
        control: &Arc<Control>,
    ) -> Result<Self, RunError> {
        let plan = &prepared.plan;
        let observer = if plan.observe {
            let found = ServerWatch::find(&plan.watch, &prepared.peer, own_server)?;
            let missing = found.missing.map(|reason| ("server".to_owned(), reason));
            let sources = Sources {
                peer: prepared.peer.clone(),
                link_bits_per_s: plan.link_bits_per_s,
                server: found.watch,
                missing: missing.into_iter().collect(),
            };
            Some(Observer::start(sources, Arc::clone(control)).map_err(RunError::Observer)?)
        } else {
            None
        };
        let counter = match &plan.server_counter {
            Some(counter) => {
                let reader = CounterReader::new(counter)?;
                let before = reader.read()?;
                Some((reader, before))
            }
            None => None,
        };
        Ok(Self { observer, counter })
    }

    /// The load begins at `load_ns`.
    pub(crate) fn begin(&self, load_ns: u64, window: Window) {
        if let Some(observer) = &self.observer {
            observer.begin(load_ns, window);
        }
    }

    /// What they saw. All workers are done.
    pub(crate) fn testify(self) -> Evidence {
        let mut evidence = match self.observer {
            Some(observer) => observer.finish(),
            None => Evidence {
                missing: BTreeMap::from([(
                    "evidence".to_owned(),
                    "nothing was to be read".to_owned(),
                )]),
                ..Evidence::default()
            },
        };
        if let Some((reader, before)) = self.counter {
            match reader.read() {
                Ok(after) => evidence.server_count = Some(reader.server_count(&before, &after)),
                Err(error) => {
                    let reason = format!("it could not be read after the run: {error}");
                    evidence.missing.insert("server_count".to_owned(), reason);
                }
            }
        }
        evidence
    }
}
