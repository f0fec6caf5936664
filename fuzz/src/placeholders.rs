//! Target: texts with placeholders, filled in.

use brunt_proto::holes::{Notation, Numbers, TextWithHoles, has_placeholder};

/// Takes the input as a text in both notations, and as a body. Holes lie within the text in order,
/// filling them in changes nothing else, and a text without braces stays as it is.
pub fn placeholders(data: &[u8]) {
    for notation in [Notation::Doubled, Notation::Raw] {
        for parse in [TextWithHoles::parse, TextWithHoles::parse_body] {
            let has_any = has_placeholder(data, notation);
            let Ok(text) = parse(data, notation) else {
                assert!(has_any);
                continue;
            };
            if !has_any {
                assert!(text.bytes == data && text.holes.is_empty());
            }
            check(&text);
            if notation == Notation::Raw {
                assert_eq!(text.written_at(text.bytes.len()), Some(data.len()));
            }
        }
    }
}

fn check(text: &TextWithHoles) {
    let mut filled = text.bytes.clone();
    let mut numbers = Numbers::new(7, 0, 1, 3);
    numbers.fill(&mut filled, &text.holes);
    assert_eq!(filled.len(), text.bytes.len());
    let mut at = 0;
    for hole in &text.holes {
        let (start, end) = (hole.at as usize, hole.at as usize + usize::from(hole.width));
        assert_eq!(filled[at..start], text.bytes[at..start]);
        let number = &filled[start..end];
        let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b' ';
        assert!(number.iter().all(is_number) && number.last().is_some_and(u8::is_ascii_digit));
        at = end;
    }
    assert_eq!(filled[at..], text.bytes[at..]);
}
