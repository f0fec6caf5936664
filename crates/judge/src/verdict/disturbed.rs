//! What others took of the CPUs that brunt or the server needed: other programs, the hypervisor, a
//! quota.

use super::SignalId as Id;
use super::advice;
use super::facts::RunFacts;
use super::graded::{Decision, GradedSignals};
use super::{Grade, Side};

/// The hypervisor took too much of the window to judge by, or a quota stopped brunt.
pub(super) fn by_machine(graded: &GradedSignals<'_>) -> Option<Decision> {
    let doubts = graded.of(Side::Doubt, Grade::Fail);
    let stolen = "the hypervisor took CPUs away, and left too little of the window to judge by";
    let throttled = "brunt's CPU quota stopped it now and then: the figures are not steady";
    let found = [(Id::Steal, stolen), (Id::Throttling, throttled)];
    let (id, because) = found.into_iter().find(|(id, _)| doubts.contains(id))?;
    let advice = advice::of_doubts(&[id], &graded.facts.run.plan);
    Some(graded.decision(because, [id], advice))
}

/// The verdict where other programs used the CPUs.
pub(super) fn by_programs(graded: &GradedSignals<'_>) -> Option<Decision> {
    // Connections that pause by plan ask for little, which they got.
    let is_paused =
        graded.facts.paused_by_plan().is_some() && graded.all(RunFacts::workers_have_time);
    // A server that has used up its quota does no more on a quiet machine.
    let is_held_back = graded.fails(Id::ServerThrottling);
    if is_paused || is_held_back || !graded.fails(Id::OtherPrograms) {
        return None;
    }
    let because = format!(
        "{}; on a quiet machine the server may do more",
        graded.detail(Id::OtherPrograms)
    );
    let decisive = [Id::OtherPrograms, Id::ServerCpu, Id::WorkerIdle];
    let advice = "end the other programs, and repeat".to_owned();
    Some(graded.decision(because, decisive, vec![advice]))
}
