//! Target: reading a stored run, judging it, and printing it again.

use brunt_report::{Format, Style};

/// Takes the input as a stored run. One that is accepted can be judged and printed in every form,
/// and its JSON form reads back as the same run.
pub fn stored_run(data: &[u8]) {
    let Ok(mut run) = brunt_report::read(&mut &data[..]) else {
        return;
    };
    run.findings = brunt_measure::check(&run);
    let mut json = Vec::new();
    for &format in Format::ALL {
        let mut out = Vec::new();
        for verbose in [true, false] {
            out.clear();
            let style = Style {
                verbose,
                ..Style::default()
            };
            brunt_report::write(&run, format, &style, &mut out)
                .expect("a run that could be read can be printed");
        }
        if format == Format::Json {
            json = out;
        }
    }
    let again = brunt_report::read(&mut &json[..]).expect("what was written can be read");
    assert_eq!(run, again);
}
