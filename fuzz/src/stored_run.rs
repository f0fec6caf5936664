//! Target: reading a stored run, judging it, printing it again, and merging it with others.

use brunt_measure::{Judged, Run};
use brunt_report::{Format, Style};

/// Takes the input as a stored run. One that is accepted can be judged and printed in every form,
/// its JSON form reads back as the same run, and so does what it makes merged with another one.
pub fn stored_run(data: &[u8]) {
    let Ok(run) = brunt_report::read(&mut &data[..]) else {
        return;
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

/// The run, printed in every form and read back.
fn printed(run: &Run) -> Run {
    let judged = Judged::of(run);
    let mut json = Vec::new();
    for &format in Format::ALL {
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
