//! Target: framings and messages as they are typed.

use brunt_proto::messages::{Framing, Template, Values, escape, unescape};

/// Takes the input as a framing, as a message and as bytes. What is accepted reads back as the same
/// when it is shown, and a message has no more bytes than it says.
pub fn message_text(data: &[u8]) {
    assert_eq!(unescape(&escape(data)).as_deref(), Ok(data));
    let text = String::from_utf8_lossy(data);
    if let Ok(framing) = text.parse::<Framing>() {
        assert_eq!(framing.to_string().parse(), Ok(framing));
    }
    if let Ok(template) = Template::parse(&text) {
        let shown = template.to_string();
        let again = Template::parse(&shown).expect("what is shown can be typed");
        assert_eq!(again, template, "{shown}");
        let values = Values {
            connection: data.len() as u64,
            sequence: u64::MAX,
            now_ns: 0,
            seed: 1,
            connection_seed: 7,
        };
        let mut out = Vec::new();
        template.render(&values, &mut out);
        assert!(out.len() <= template.bytes_max(), "{shown}");
        if let Some(constant) = template.as_constant() {
            assert_eq!(constant, out, "{shown}");
        }
    }
}
