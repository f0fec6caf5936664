//! Target: command lines and messages of tcpkali.

use std::num::NonZeroU32;

use brunt_dropin::tcpkali::{Options, Piece, explanation, pieces};

/// Takes each line of the input as one word of a command line, and the whole as a message with its
/// expressions. What is refused is refused with a message; what is accepted gives a plan, or a
/// message, and a command line of brunt's own.
pub fn tcpkali_options(data: &[u8]) {
    for unescapes in [true, false] {
        let none = &mut |_: &std::path::Path| Ok(Vec::new());
        if let Ok(pieces) = pieces(data, unescapes, none, &mut || 0) {
            let bytes = pieces.iter().map(|piece| match piece {
                Piece::Bytes(bytes) => bytes.len(),
                _ => 0,
            });
            let drawn = data.windows(7).filter(|word| *word == b"global.").count();
            assert!(bytes.sum::<usize>() <= data.len() + drawn * 65_536);
        }
    }
    let text = String::from_utf8_lossy(data);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let is_told = |code| [1, 64, 65].contains(&code);
    let options = match Options::parse("tcpkali", &words) {
        Ok(options) => options,
        Err(ending) => {
            let is_told = match ending.code {
                0 => !ending.stdout.is_empty(),
                code => is_told(code) && !(ending.stderr.is_empty() && ending.stdout.is_empty()),
            };
            assert!(is_told, "{words:?}: {ending:?}");
            return;
        }
    };
    let read = &mut |_: &std::path::Path| Ok(data.to_vec());
    match explanation(&options, NonZeroU32::MIN, read) {
        Ok(own) => assert!(own.line.starts_with("brunt "), "{options:?}"),
        Err(ending) => assert!(
            is_told(ending.code) && !ending.stderr.is_empty(),
            "{ending:?}"
        ),
    }
    if options.servers.is_empty() {
        assert!(options.listen.is_some(), "{options:?}");
        return;
    }
    match options.plan(NonZeroU32::MIN, 1, read) {
        Ok(plan) => {
            assert_eq!(plan.connections, options.connections, "{options:?}");
            assert!(plan.workers <= plan.connections, "{options:?}");
            let is_sent = !plan.requests.messages().is_empty();
            assert!(is_sent || plan.model.is_held(), "{options:?}");
        }
        Err(ending) => assert!(
            is_told(ending.code) && !ending.stderr.is_empty(),
            "{ending:?}"
        ),
    }
}
