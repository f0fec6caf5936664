//! A generator of requests for tests: it makes what a closure gives, and logs how it is called.

use std::fmt::{self, Debug, Formatter};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use brunt_load::{
    Batch, BatchOutcome, BatchTag, ConnectionNumber, GeneratorError, GeneratorResponse, Interrupt,
    RequestGenerator, ResponseParts, ResponseTimes,
};

/// How a generator was called.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) made: u32,
    pub(crate) reported: Vec<Reported>,
    pub(crate) ended: Vec<u32>,
    /// Connections by the calls about them, in order; without responses.
    pub(crate) calls: Vec<(u32, Call)>,
    /// Instants of the responses.
    pub(crate) times: Vec<ResponseTimes>,
}

/// A call about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Opened,
    Next,
    Ended(BatchOutcome),
    Closed,
}

impl Log {
    /// The calls about one connection.
    pub(crate) fn calls_of(&self, connection: u32) -> Vec<Call> {
        let calls = self.calls.iter().filter(|call| call.0 == connection);
        calls.map(|call| call.1).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) tag: u32,
    pub(crate) status: u16,
    pub(crate) headers: Vec<String>,
    pub(crate) body_bytes: usize,
    pub(crate) is_truncated: bool,
    /// Bytes of head and of content, as they came.
    pub(crate) bytes: (u64, u64),
}

/// Makes the next text, given how many were made; absent for nothing.
pub(crate) type Make = dyn FnMut(u32) -> Result<Option<String>, GeneratorError> + Send;

pub(crate) struct Maker {
    pub(crate) make: Box<Make>,
    /// Names that requests have in turns.
    pub(crate) names: Vec<String>,
    pub(crate) latest: Option<String>,
    pub(crate) wanted: ResponseParts,
    /// What is wanted after so many responses.
    pub(crate) then_wanted: Option<(usize, ResponseParts)>,
    pub(crate) delay_ns: Option<u64>,
    pub(crate) stops_after: Option<u32>,
    /// Connections are closed, not parked, where there is no text.
    pub(crate) closes: bool,
    pub(crate) interrupt: Option<Arc<Flag>>,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) log: Arc<Mutex<Log>>,
}

impl Debug for Maker {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("Maker")
    }
}

#[derive(Debug, Default)]
pub(crate) struct Flag(pub(crate) AtomicBool);

impl Interrupt for Flag {
    fn interrupt(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Maker {
    pub(crate) fn new(
        make: impl FnMut(u32) -> Result<Option<String>, GeneratorError> + Send + 'static,
    ) -> Self {
        Self {
            make: Box::new(make),
            names: Vec::new(),
            latest: None,
            wanted: ResponseParts::Nothing,
            then_wanted: None,
            delay_ns: None,
            stops_after: None,
            closes: false,
            interrupt: None,
            address: None,
            log: Arc::default(),
        }
    }

    /// A generator that gives this text each time.
    pub(crate) fn of(text: &str) -> Self {
        let text = text.to_owned();
        Self::new(move |_| Ok(Some(text.clone())))
    }

    pub(crate) fn wanting(self, wanted: ResponseParts) -> Self {
        Self { wanted, ..self }
    }
}

impl RequestGenerator for Maker {
    fn delays(&self) -> bool {
        self.delay_ns.is_some()
    }

    fn delay_ns(&mut self, _connection: ConnectionNumber) -> Result<u64, GeneratorError> {
        Ok(self.delay_ns.unwrap_or(0))
    }

    fn next(
        &mut self,
        connection: ConnectionNumber,
        text: &mut Vec<u8>,
    ) -> Result<Batch, GeneratorError> {
        let made = self.log.lock().expect("whole").made;
        let Some(next) = (self.make)(made)? else {
            return Ok(if self.closes {
                Batch::Close
            } else {
                Batch::Nothing
            });
        };
        let mut log = self.log.lock().expect("whole");
        log.made += 1;
        log.calls.push((connection.0, Call::Next));
        drop(log);
        let tag = BatchTag(made);
        let names = self.names.len() as u32;
        let name = (names > 0).then(|| made % names);
        if self.latest.as_ref() == Some(&next) {
            return Ok(Batch::Same { tag, name });
        }
        text.extend_from_slice(next.as_bytes());
        self.latest = Some(next);
        Ok(Batch::New { tag, name })
    }

    fn wanted(&self) -> ResponseParts {
        self.wanted
    }

    fn response(&mut self, response: &GeneratorResponse<'_>) -> Result<(), GeneratorError> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut log = self.log.lock().expect("whole");
        log.reported.push(Reported {
            tag: response.tag.0,
            status: response.status,
            headers: response
                .headers
                .iter()
                .map(|(name, _)| text(name))
                .collect(),
            body_bytes: response.body.len(),
            is_truncated: response.is_truncated,
            bytes: (response.head_bytes, response.body_bytes),
        });
        log.times.push(response.times);
        if let Some((after, wanted)) = self.then_wanted
            && log.reported.len() == after
        {
            self.wanted = wanted;
        }
        Ok(())
    }

    fn ended(&mut self, connection: ConnectionNumber, tag: BatchTag, outcome: BatchOutcome) {
        let mut log = self.log.lock().expect("whole");
        log.ended.push(tag.0);
        log.calls.push((connection.0, Call::Ended(outcome)));
    }

    fn opened(&mut self, connection: ConnectionNumber) {
        let mut log = self.log.lock().expect("whole");
        log.calls.push((connection.0, Call::Opened));
    }

    fn closed(&mut self, connection: ConnectionNumber) {
        let mut log = self.log.lock().expect("whole");
        log.calls.push((connection.0, Call::Closed));
    }

    fn is_stopped(&self) -> bool {
        let made = self.log.lock().expect("whole").made;
        self.stops_after.is_some_and(|after| made >= after)
    }

    fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        self.interrupt
            .clone()
            .map(|flag| flag as Arc<dyn Interrupt>)
    }

    fn names(&self) -> &[String] {
        &self.names
    }
}
