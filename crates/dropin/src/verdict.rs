//! Brunt's own word on a run that another tool's text reports: one line.

use brunt_judge::Judged;

/// What limited the run and why, or that its figures cannot be trusted, and whether more was
/// planned than could be done: in one line, without an end.
pub fn verdict_line(judged: &Judged<'_>) -> String {
    let judgement = &judged.judgement;
    let mut line = judgement.verdict.name().to_owned();
    if !judgement.because.is_empty() {
        line.push_str(": ");
        line.push_str(&judgement.because);
    }
    if let Some(overload) = judged.overload {
        line.push_str(&format!(
            "; overloaded: about {:.0} requests/s could be done of those that were planned",
            overload.capacity_per_s
        ));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &[u8] = include_bytes!("../../../fuzz/corpus/stored_run/open");
    const OVERLOADED: &[u8] = include_bytes!("../../../fuzz/corpus/stored_run/overloaded");

    #[test]
    fn the_line_of_an_overloaded_run_says_so() {
        for (mut stored, is_overloaded) in [(OPEN, false), (OVERLOADED, true)] {
            let run = brunt_report::read(&mut stored).expect("a stored run");
            let line = verdict_line(&Judged::of(&run));
            assert_eq!(line.contains("; overloaded: about "), is_overloaded);
            assert!(!line.contains('\n'), "{line}");
        }
    }
}
