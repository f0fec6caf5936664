//! The verdict: what limited a run, with the evidence and what to try next.
//!
//! The signals are a table in `signals`, the rules an ordered table in `rules`. A number that one
//! of them turns on stands beside it, and one that several share in `thresholds`.

mod advice;
mod facts;
mod rules;
pub(crate) mod signals;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::elasticity::Elasticity;
use crate::facts::Facts;
pub use crate::verdict::facts::{OwnPart, shell_word};
pub(crate) use crate::verdict::facts::{own_part_of, undisturbed_words};
use crate::verdict::signals::GradedSignals;
use crate::{Clean, Effect, Finding, VerdictIf};
use facts::RunFacts;
pub use signals::SignalId;

/// What limited a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// An invariant is broken: there are no figures.
    Invalid,
    /// No request succeeded: there is no result.
    NoSuccess,
    /// The server failed while it was loaded: the figures are of before and after.
    ServerFailed,
    /// Other programs, the hypervisor or a quota took CPUs that the server or brunt needed: on a
    /// quiet machine it may do more.
    Disturbed,
    /// The evidence does not decide.
    Inconclusive,
    /// Brunt or its machine: the throughput is a lower bound of the server's.
    ClientLimited,
    /// The way between.
    NetworkLimited,
    /// The rate that was asked for, or a limiter of the server.
    RateLimited,
    /// The pauses that were asked for: a closed loop whose connections wait by plan.
    ThinkTime,
    /// The server: the figures describe it.
    ServerLimited,
    /// The number of connections: more of them would give more.
    ConcurrencyLimited,
    /// Client and server competed for the same CPUs: the figures describe the pair.
    SharedHost,
    /// The server, at its end for other clients as well: the figures describe a part of it.
    SharedServer,
}

impl Verdict {
    /// The verdict's name as printed, such as `SERVER-LIMITED`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "INVALID",
            Self::NoSuccess => "NO-SUCCESS",
            Self::ServerFailed => "SERVER-FAILED",
            Self::Disturbed => "DISTURBED",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::ClientLimited => "CLIENT-LIMITED",
            Self::NetworkLimited => "NETWORK-LIMITED",
            Self::RateLimited => "RATE-LIMITED",
            Self::ThinkTime => "THINK-TIME",
            Self::ServerLimited => "SERVER-LIMITED",
            Self::ConcurrencyLimited => "CONCURRENCY-LIMITED",
            Self::SharedHost => "SHARED-HOST",
            Self::SharedServer => "SHARED-SERVER",
        }
    }
}

/// How a signal stands, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Nothing in it points anywhere.
    Healthy,
    /// Worth a look; two of them on one side decide as one failure does.
    Warn,
    /// The signal alone names the side that limits.
    Fail,
    /// The signal could not be read, or says nothing about this run.
    Unknown,
}

/// The side that a signal accuses when it is not healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccusedSide {
    /// Brunt, or the machine that it runs on.
    Client,
    /// The way between.
    Network,
    /// The server.
    Server,
    /// The load that was asked for, or a limiter of the server.
    Rate,
    /// The number of connections.
    Concurrency,
    /// Nobody: it makes any figure doubtful.
    Doubt,
}

/// One row of evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Signal {
    /// The signal's name in data, such as `worker_idle`.
    pub id: SignalId,
    /// The grade of the signal.
    pub grade: Grade,
    /// Whom it accuses when it is not healthy.
    pub side: AccusedSide,
    /// What was found, in words with figures: `brunt idle 41 %`.
    pub detail: String,
}

/// The verdict on a run and what it rests on. Each report judges anew.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// What limited the run.
    #[serde(rename = "name")]
    pub verdict: Verdict,
    /// Why, in one line of words.
    pub because: String,
    /// Names of the signals that decided, the strongest first.
    pub decisive: Vec<SignalId>,
    /// What to change or to try next; may be empty.
    pub advice: Vec<String>,
    /// All signals.
    pub signals: Vec<Signal>,
    /// The first quantile of the response times that are quoted most of which is brunt's own, and
    /// not the server's. Stored in the words of `because`.
    #[serde(skip)]
    pub mostly_own: Option<OwnPart>,
    /// Whether the verdict rests on the parts of the window in which the hypervisor took nothing.
    #[serde(skip)]
    pub rests_on_clean: bool,
}

impl Judgement {
    /// The signal of this name.
    pub fn signal(&self, id: SignalId) -> Option<&Signal> {
        self.signals.iter().find(|signal| signal.id == id)
    }

    /// Whether a reader may take the figures for those of what was measured, whatever limited it.
    pub fn is_sound(&self) -> bool {
        let is_sound = matches!(
            self.verdict,
            Verdict::ServerLimited
                | Verdict::RateLimited
                | Verdict::ThinkTime
                | Verdict::ConcurrencyLimited
        );
        is_sound && self.mostly_own.is_none()
    }
}

/// The verdict of the same rules if rounds with other numbers of connections showed this slope.
fn verdict_if(cases: &mut [RunFacts<'_>], slope: f64) -> Verdict {
    let [value, low, high] = [slope; 3];
    for facts in cases.iter_mut() {
        facts.elasticity = Some(Elasticity {
            effect: Effect { value, low, high },
            is_of_fewer: false,
        });
    }
    rules::decide(&GradedSignals::read(cases)).0
}

/// What limited the run of these facts, whose invariants are at hand; and the verdicts that other
/// numbers of connections would give, absent with a schedule.
pub(crate) fn judge(
    facts: &Rc<Facts<'_>>,
    findings: &[Finding],
    left: Option<&Clean>,
) -> (Judgement, Option<VerdictIf>) {
    let mut cases = RunFacts::of_agents(facts, findings, left);
    let judgement = judge_cases(&cases);
    let with_others = facts.is_closed().then(|| VerdictIf {
        in_step: verdict_if(&mut cases, 1.0),
        flat: verdict_if(&mut cases, 0.0),
    });
    (judgement, with_others)
}

/// What limited the run that the agents saw so.
fn judge_cases(cases: &[RunFacts<'_>]) -> Judgement {
    let graded = GradedSignals::read(cases);
    let facts = graded.facts;
    let (verdict, mut decision) = rules::decide(&graded);
    let has_figures = !matches!(
        verdict,
        Verdict::Invalid | Verdict::NoSuccess | Verdict::ServerFailed
    );
    if has_figures {
        decision.because.push_str(&caveats(&graded, verdict));
    }
    if !matches!(verdict, Verdict::Invalid | Verdict::NoSuccess) {
        let of_errors = advice::of_client_errors(facts);
        decision.advice.splice(0..0, of_errors);
        decision.advice.splice(0..0, advice::of_script(facts));
    }
    Judgement {
        verdict,
        because: decision.because,
        decisive: decision.decisive,
        advice: decision.advice,
        mostly_own: facts.mostly_own().filter(|_| has_figures),
        rests_on_clean: has_figures && facts.clean.is_some(),
        signals: graded.signals,
    }
}

/// What a reader of the figures has to know beside what limited them.
fn caveats(graded: &GradedSignals<'_>, verdict: Verdict) -> String {
    use SignalId::{Drift, OtherPrograms, Steal};
    let facts = graded.facts;
    let own = facts.own_part().map(|own| own.words());
    let own = own.filter(|_| verdict != Verdict::ClientLimited);
    let failing = |id| graded.fails(id).then(|| graded.detail(id));
    let of_signal = match verdict {
        Verdict::ServerLimited | Verdict::ConcurrencyLimited => failing(Drift).map(str::to_owned),
        // What was met was met, whatever others took.
        Verdict::RateLimited | Verdict::ThinkTime if facts.clean.is_none() => {
            let stolen = graded.warns(Steal).then(|| graded.detail(Steal));
            let taken = stolen.or(failing(Steal)).or(failing(OtherPrograms));
            taken.map(|what| format!("the latencies are not the server's alone: {what}"))
        }
        _ => None,
    };
    let clauses = [own, of_signal].into_iter().flatten();
    let clauses: String = clauses.map(|clause| format!("; {clause}")).collect();
    let is_doubted = matches!(verdict, Verdict::Disturbed | Verdict::Inconclusive);
    match facts.clean_words().filter(|_| !is_doubted) {
        Some(shown) => format!("{clauses} (in {shown})"),
        None => clauses,
    }
}
