//! Target: command lines and messages of tcpkali.

use std::num::NonZeroU32;

use brunt_dropin::tcpkali::{Options, Piece, explanation, pieces};

/// Takes each line of the input as one word of a command line, and the whole as a message with its
/// expressions. What is refused is refused with a message; what is accepted gives a plan, or a
/// message, and a command line of brunt's own.
pub fn tcpkali_options(data: &[u8]) {
    for unescapes in [true, false] {
        if let Ok(pieces) = pieces(data, unescapes) {
            let bytes = pieces.iter().map(|piece| match piece {
                Piece::Bytes(bytes) => bytes.len(),
                Piece::Connection => 0,
            });
            assert!(bytes.sum::<usize>() <= data.len());
        }
    }
    let text = String::from_utf8_lossy(data);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let options = match Options::parse("tcpkali", &words) {
        Ok(options) => options,
        Err(ending) => {
            let is_told = match ending.code {
                0 => !ending.stdout.is_empty(),
                code => code == 64 && !(ending.stderr.is_empty() && ending.stdout.is_empty()),
            };
            assert!(is_told, "{words:?}: {ending:?}");
            return;
        }
    };
    let own = explanation(&options);
    assert!(own.starts_with("brunt tcp -c "), "{options:?}");
    match options.plan(NonZeroU32::MIN, 1, &mut |_| Ok(data.to_vec())) {
        Ok(plan) => {
            assert_eq!(plan.connections, options.connections, "{options:?}");
            assert!(plan.workers <= plan.connections, "{options:?}");
            let sent = plan.requests.messages().len();
            assert_eq!(sent, options.messages.len(), "{options:?}");
        }
        Err(ending) => assert!(ending.code == 64 && !ending.stderr.is_empty(), "{ending:?}"),
    }
}
