//! A generator of requests for tests: it makes what a closure gives, and logs what it is told.

use std::fmt::{self, Debug, Formatter};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use brunt_load::{
    Batch, BatchTag, GeneratorError, GeneratorResponse, Interrupt, RequestGenerator, ResponseParts,
};

/// What a generator was asked and told.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) made: u32,
    pub(crate) told: Vec<Told>,
    pub(crate) ended: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) tag: u32,
    pub(crate) status: u16,
    pub(crate) headers: Vec<String>,
    pub(crate) body_bytes: usize,
    pub(crate) is_truncated: bool,
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
            interrupt: None,
            address: None,
            log: Arc::default(),
        }
    }

    /// One that gives this text each time.
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

    fn delay_ns(&mut self) -> Result<u64, GeneratorError> {
        Ok(self.delay_ns.unwrap_or(0))
    }

    fn next(&mut self, text: &mut Vec<u8>) -> Result<Batch, GeneratorError> {
        let made = self.log.lock().expect("whole").made;
        let Some(next) = (self.make)(made)? else {
            return Ok(Batch::Nothing);
        };
        self.log.lock().expect("whole").made += 1;
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
        log.told.push(Told {
            tag: response.tag.0,
            status: response.status,
            headers: response
                .headers
                .iter()
                .map(|(name, _)| text(name))
                .collect(),
            body_bytes: response.body.len(),
            is_truncated: response.is_truncated,
        });
        if let Some((after, wanted)) = self.then_wanted
            && log.told.len() == after
        {
            self.wanted = wanted;
        }
        Ok(())
    }

    fn ended(&mut self, tag: BatchTag) {
        self.log.lock().expect("whole").ended.push(tag.0);
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
