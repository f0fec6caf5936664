//! What limited the run: the verdict, what decided it, and what to try next.

use brunt_judge::{Grade, Judgement, Signal, SignalId, Verdict};

use crate::page::{Page, Tone};

/// Signals that the evidence names, and lines that they take, unless all of it is asked for.
const EVIDENCE_MOST: usize = 2;

fn tone(judgement: &Judgement) -> Tone {
    match judgement.verdict {
        Verdict::Invalid | Verdict::NoSuccess => Tone::Refusal,
        _ if !judgement.is_sound() => Tone::Warning,
        Verdict::ServerLimited => Tone::Strong,
        _ => Tone::Plain,
    }
}

/// The verdict's name and its cause.
fn sentence(judgement: &Judgement) -> String {
    let name = judgement.verdict.name();
    match judgement.because.as_str() {
        "" => name.to_owned(),
        because => format!("{name}: {because}"),
    }
}

/// What decided, without what the verdict, and other rows on `told`, say already.
fn evidence(judgement: &Judgement, told: &[SignalId]) -> Vec<String> {
    let decisive = judgement.decisive.iter();
    decisive
        .filter(|id| !told.contains(id))
        .filter_map(|id| judgement.signal(*id))
        .map(|signal| signal.detail.clone())
        .filter(|detail| !judgement.because.contains(detail))
        .collect()
}

/// Prints the verdict with the strongest of the signals that decided, but those that other rows
/// have told.
pub(super) fn cause(judgement: &Judgement, told: &[SignalId], page: &mut Page) {
    page.line(&sentence(judgement), tone(judgement));
    let mut evidence = evidence(judgement, told);
    evidence.truncate(EVIDENCE_MOST);
    while evidence.len() > 1 && page.lines_of(&evidence) > EVIDENCE_MOST {
        evidence.pop();
    }
    if !evidence.is_empty() {
        page.items(2, &evidence, Tone::Plain);
    }
}

/// Prints the verdict with all that decided and all advice.
pub(super) fn rows(judgement: &Judgement, page: &mut Page) {
    page.row("verdict", &[sentence(judgement)], tone(judgement));
    let evidence = evidence(judgement, &[]);
    if !evidence.is_empty() {
        page.row("", &evidence, Tone::Plain);
    }
    for (index, advice) in judgement.advice.iter().enumerate() {
        let label = if index == 0 { "next" } else { "" };
        page.row(label, std::slice::from_ref(advice), Tone::Plain);
    }
}

/// A row for each signal, the worst first.
pub(super) fn signals(judgement: &Judgement, page: &mut Page) {
    for grade in [Grade::Fail, Grade::Warn, Grade::Healthy, Grade::Unknown] {
        let signals = judgement.signals.iter();
        for found in signals.filter(|signal| signal.grade == grade) {
            signal(found, page);
        }
    }
}

/// The line of one signal.
fn signal(signal: &Signal, page: &mut Page) {
    let (word, tone) = match signal.grade {
        Grade::Fail => ("FAIL", Tone::Bad),
        Grade::Warn => ("warn", Tone::Warning),
        Grade::Healthy => ("healthy", Tone::Plain),
        Grade::Unknown => ("unknown", Tone::Plain),
    };
    let line = format!("{}: {}", signal.id, signal.detail);
    page.row(&format!("  {word}"), &[line], tone);
}

#[cfg(test)]
mod tests {
    use brunt_judge::Side;

    use super::*;
    use crate::Style;

    fn judged() -> Judgement {
        let signal = |id, grade, detail: &str| Signal {
            id,
            grade,
            side: Side::Client,
            detail: detail.to_owned(),
        };
        Judgement {
            verdict: Verdict::ServerLimited,
            because: "the figures describe the server".to_owned(),
            decisive: vec![
                SignalId::ServerCpu,
                SignalId::WorkerIdle,
                SignalId::LinkUse,
                SignalId::Steal,
            ],
            advice: vec!["watch it".to_owned(), "repeat it".to_owned()],
            signals: vec![
                signal(SignalId::WorkerIdle, Grade::Healthy, "workers idle 41 %"),
                signal(SignalId::Steal, Grade::Unknown, &"long ".repeat(40)),
                signal(
                    SignalId::ServerCpu,
                    Grade::Fail,
                    "server at 99 % of its CPU",
                ),
            ],
            mostly_own: None,
            rests_on_clean: false,
        }
    }

    fn lines(judgement: &Judgement, verbose: bool) -> Vec<String> {
        let mut page = Page::new(&Style::default());
        if verbose {
            rows(judgement, &mut page);
            signals(judgement, &mut page);
        } else {
            cause(judgement, &[], &mut page);
        }
        let text = crate::layout::text::text(&page, false);
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn by_default_there_are_the_strongest_signals() {
        assert_eq!(
            lines(&judged(), false),
            [
                "SERVER-LIMITED: the figures describe the server",
                "  server at 99 % of its CPU · workers idle 41 %",
            ]
        );
    }

    #[test]
    fn what_the_verdict_says_is_not_said_again() {
        let mut judgement = judged();
        judgement.because = "server at 99 % of its CPU: that is all of it".to_owned();
        judgement.decisive.truncate(2);
        assert_eq!(
            lines(&judgement, false),
            [
                "SERVER-LIMITED: server at 99 % of its CPU: that is all of it",
                "  workers idle 41 %",
            ]
        );
    }

    #[test]
    fn in_full_there_is_every_signal_by_grade_and_all_advice() {
        let lines = lines(&judged(), true);
        let at = |text: &str| {
            let found = lines.iter().position(|line| line.starts_with(text));
            found.unwrap_or_else(|| panic!("no {text:?} in {lines:#?}"))
        };
        assert_eq!(at("            repeat it"), at("next        watch it") + 1);
        let order = [
            at("  FAIL      server_cpu: server at 99 % of its CPU"),
            at("  healthy   worker_idle: workers idle 41 %"),
            at("  unknown   steal: long"),
        ];
        assert!(order.is_sorted(), "{lines:#?}");
    }

    #[test]
    fn without_signals_there_is_the_name_alone() {
        let judgement = Judgement {
            verdict: Verdict::Inconclusive,
            because: String::new(),
            decisive: Vec::new(),
            advice: Vec::new(),
            signals: Vec::new(),
            mostly_own: None,
            rests_on_clean: false,
        };
        assert_eq!(lines(&judgement, false), ["INCONCLUSIVE"]);
        assert_eq!(lines(&judgement, true), ["verdict     INCONCLUSIVE"]);
    }
}
