//! The signals of a run as the rules ask for them, and what a rule decides.

use super::SignalId;
use super::facts::RunFacts;
use super::{Grade, Side, Signal, signals};

/// Names of signals told in a short report.
pub(super) const DECISIVE_MAX: usize = 3;

/// What a rule says when it matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) because: String,
    pub(super) decisive: Vec<SignalId>,
    pub(super) advice: Vec<String>,
}

/// The signals of a run, as rules ask for them.
pub(super) struct GradedSignals<'a> {
    /// The run as its first agent saw it: for what is the same for all of them.
    pub(super) facts: &'a RunFacts<'a>,
    /// The run as each agent saw it.
    pub(super) cases: &'a [RunFacts<'a>],
    pub(super) signals: Vec<Signal>,
}

impl<'a> GradedSignals<'a> {
    /// The signals of the run that the agents saw so.
    pub(super) fn read(cases: &'a [RunFacts<'a>]) -> Self {
        Self {
            facts: &cases[0],
            cases,
            signals: signals::read_all(cases),
        }
    }

    /// Whether `is_so` holds for every agent.
    pub(super) fn all(&self, is_so: impl Fn(&RunFacts<'a>) -> bool) -> bool {
        self.cases.iter().all(is_so)
    }

    /// Whether `is_so` holds for any agent.
    pub(super) fn any(&self, is_so: impl Fn(&RunFacts<'a>) -> bool) -> bool {
        self.cases.iter().any(is_so)
    }

    pub(super) fn signal(&self, id: SignalId) -> Option<&Signal> {
        self.signals.iter().find(|signal| signal.id == id)
    }

    pub(super) fn grade(&self, id: SignalId) -> Grade {
        let signal = self.signal(id);
        signal.map_or(Grade::Unknown, |signal| signal.grade)
    }

    pub(super) fn fails(&self, id: SignalId) -> bool {
        self.grade(id) == Grade::Fail
    }

    pub(super) fn warns(&self, id: SignalId) -> bool {
        self.grade(id) == Grade::Warn
    }

    pub(super) fn detail(&self, id: SignalId) -> &str {
        self.signal(id).map_or("", |signal| signal.detail.as_str())
    }

    /// Names of those of `side` that stand at `grade`, in the order of the table.
    pub(super) fn of(&self, side: Side, grade: Grade) -> Vec<SignalId> {
        let signals = self.signals.iter();
        let found = signals.filter(|signal| signal.side == side && signal.grade == grade);
        found.map(|signal| signal.id).collect()
    }

    pub(super) fn decision(
        &self,
        because: impl Into<String>,
        decisive: impl IntoIterator<Item = SignalId>,
        advice: Vec<String>,
    ) -> Decision {
        // The first of these that are known, without repetition.
        let mut strongest = Vec::with_capacity(DECISIVE_MAX);
        for id in decisive {
            let is_known = self.grade(id) != Grade::Unknown;
            if is_known && strongest.len() < DECISIVE_MAX && !strongest.contains(&id) {
                strongest.push(id);
            }
        }
        Decision {
            because: because.into(),
            decisive: strongest,
            advice,
        }
    }

    /// Whether brunt is known to have CPU time left: by its workers' time or, where that was not
    /// read, by replies that do not wait for them.
    pub(super) fn client_has_time(&self) -> bool {
        match self.grade(SignalId::WorkerIdle) {
            Grade::Healthy | Grade::Warn => true,
            Grade::Fail => false,
            Grade::Unknown => self.grade(SignalId::OwnShare) == Grade::Healthy,
        }
    }

    /// Kinds of warnings by the client. None count while its workers have time: nothing that is
    /// only worth a look then lowers the throughput.
    pub(super) fn client_warnings(&self) -> Vec<SignalId> {
        if self.all(|facts| facts.workers_have_time() || facts.is_one_at_a_time()) {
            return Vec::new();
        }
        let mut warns = self.of(Side::Client, Grade::Warn);
        // Replies that are brunt's own and requests that are late are signs of the same.
        if warns.contains(&SignalId::OwnShare) {
            warns.retain(|id| *id != SignalId::ScheduleLag);
        }
        warns
    }

    /// Whether the network is known not to be what limits, and shows no sign of it.
    fn network_is_out(&self) -> bool {
        self.all(RunFacts::network_has_room) && self.of(Side::Network, Grade::Warn).is_empty()
    }

    /// Whether what limits can only be the server or the load: neither the network, nor the CPUs of
    /// a machine that a server of which nothing is known may share.
    pub(super) fn rest_is_out(&self) -> bool {
        self.network_is_out() && self.all(RunFacts::host_has_room)
    }
}
