//! Times in which the same is true of all workers.

use brunt_record::WorkerRecord;

/// First instants, and first instants after them.
type Interval = (i64, i64);

/// What lies in an interval of each of these, in order; nothing where there are none.
pub(crate) fn common<I>(all: impl Iterator<Item = I>) -> Vec<Interval>
where
    I: Iterator<Item = Interval>,
{
    all.map(|intervals| {
        let mut sorted: Vec<_> = intervals.filter(|(from, until)| from < until).collect();
        sorted.sort_unstable();
        sorted
    })
    .reduce(|ours, theirs| intersection(&ours, &theirs))
    .unwrap_or_default()
}

/// Time from one instant to another in which none of the workers ran, though each was to,
/// nanoseconds.
pub(crate) fn paused_ns<'a>(
    workers: impl Iterator<Item = &'a WorkerRecord>,
    from_ns: i64,
    until_ns: i64,
) -> f64 {
    let pauses = common(workers.map(|worker| {
        let pauses = worker.pauses.iter();
        pauses.map(|it| (it.from_ns.max(from_ns), it.until_ns.min(until_ns)))
    }));
    let lengths = pauses.iter().map(|(from_ns, until_ns)| until_ns - from_ns);
    lengths.sum::<i64>() as f64
}

/// What lies in an interval of both, each of which is in order.
fn intersection(ours: &[Interval], theirs: &[Interval]) -> Vec<Interval> {
    let mut common = Vec::new();
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    while let (Some(&&(our_from, our_until)), Some(&&(their_from, their_until))) =
        (ours.peek(), theirs.peek())
    {
        let (from_ns, until_ns) = (our_from.max(their_from), our_until.min(their_until));
        if from_ns < until_ns {
            common.push((from_ns, until_ns));
        }
        if our_until <= their_until {
            ours.next();
        } else {
            theirs.next();
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_common_to_all_is_found() {
        type Case<'a> = (&'a [&'a [Interval]], &'a [Interval]);
        let cases: &[Case<'_>] = &[
            (&[], &[]),
            (&[&[(5, 9), (1, 3), (4, 4)]], &[(1, 3), (5, 9)]),
            (&[&[(1, 9)], &[]], &[]),
            (&[&[(1, 3)], &[(3, 9)]], &[]),
            (&[&[(1, 9)], &[(2, 3), (5, 6)]], &[(2, 3), (5, 6)]),
            (
                &[&[(1, 4), (6, 9)], &[(3, 7)], &[(0, i64::MAX)]],
                &[(3, 4), (6, 7)],
            ),
        ];
        for (all, expected) in cases {
            let found = common(all.iter().map(|intervals| intervals.iter().copied()));
            assert_eq!(&found, expected, "{all:?}");
        }
    }
}
