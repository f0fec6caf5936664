//! Target: reading a stored run or experiment, judging it, printing it again, and merging a run
//! with others.

use brunt_judge::Judged;
use brunt_record::Run;
use brunt_report::{Experiment, Format, Stored, Style};

/// Takes the input as what is stored. A run that is accepted can be judged and printed in every
/// form, its JSON form reads back as the same run, and so does what it makes merged with another.
pub(crate) fn stored_run(data: &[u8]) {
    let run = match brunt_report::read_stored(&mut &data[..]) {
        Ok(Stored::Run(run)) => *run,
        Ok(Stored::Experiment(experiment)) => return print_experiment(*experiment),
        Err(_) => return,
    };
    assert_eq!(printed(&run), run);
    let alone = Run::merge(vec![run.clone()]).expect("one run merges with none");
    assert_eq!(alone, run);
    assert!(Run::merge(vec![run.clone(), run.clone()]).is_err());
    let mut other = run.clone();
    for (agent, number) in other.agents.iter_mut().zip(0..) {
        agent.id = format!("{} again {number}", agent.id);
    }
    let there = Run::merge(vec![run.clone(), other.clone()]);
    let back = Run::merge(vec![other, run]);
    assert_eq!(there, back);
    if let Ok(merged) = there {
        assert_eq!(printed(&merged), merged);
    }
}

/// An experiment can be printed in every form of a run but the summary, and its JSON form reads
/// back as the same one.
fn print_experiment(experiment: Experiment) {
    for &format in Format::OF_RUNS.iter().filter(|it| **it != Format::Summary) {
        let mut out = Vec::new();
        brunt_report::write_experiment(&experiment, format, &Style::default(), &mut out)
            .expect("an experiment that could be read can be printed");
        if format == Format::Json {
            let back = brunt_report::read_stored(&mut &out[..]).expect("it can be read");
            assert_eq!(back, Stored::Experiment(Box::new(experiment.clone())));
        }
    }
}

/// The run, printed in every form and read back.
fn printed(run: &Run) -> Run {
    let judged = Judged::of(run);
    let mut json = Vec::new();
    for &format in Format::OF_RUNS {
        let mut out = Vec::new();
        for verbose in [true, false] {
            out.clear();
            let style = Style {
                verbose,
                ..Style::default()
            };
            brunt_report::write(&judged, format, &style, &mut out)
                .expect("a run that could be read can be printed");
        }
        if format == Format::Json {
            json = out;
        }
    }
    brunt_report::read(&mut &json[..]).expect("what was written can be read")
}
