//! The bytes of sized bodies: the letters a to z, over and over.

/// Bytes of a long body that go into one send.
pub(crate) const PIECE_BYTES_MAX: u64 = 256 * 1024;
/// The period of the pattern.
const ALPHABET: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
/// Bytes of the pattern that are copied at once: whole periods.
const RUN_BYTES: usize = 64 * ALPHABET.len();
static RUN: [u8; RUN_BYTES] = {
    let mut run = [0; RUN_BYTES];
    let mut at = 0;
    while at < RUN_BYTES {
        run[at] = ALPHABET[at % ALPHABET.len()];
        at += 1;
    }
    run
};

/// The byte at `position` of every sized body: the letters a to z, over and over.
pub fn pattern_byte(position: u64) -> u8 {
    ALPHABET[(position % ALPHABET.len() as u64) as usize]
}

/// The pattern, long enough to take a piece of the greatest length from any start in its period.
pub(crate) fn pattern_payload() -> Vec<u8> {
    (0..PIECE_BYTES_MAX + ALPHABET.len() as u64)
        .map(pattern_byte)
        .collect()
}

/// Where in the pattern payload a body's bytes from `position` begin, below the period.
pub(crate) fn pattern_start(position: u64) -> u32 {
    (position % ALPHABET.len() as u64) as u32
}

/// Appends the bytes from `position` up to `end` of a body.
pub(crate) fn write_pattern(out: &mut Vec<u8>, position: u64, end: u64) {
    let mut left = end.saturating_sub(position) as usize;
    let mut start = pattern_start(position) as usize;
    while left > 0 {
        let length = left.min(RUN_BYTES - start);
        out.extend_from_slice(&RUN[start..start + length]);
        left -= length;
        start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_the_same_from_every_position() {
        let payload = pattern_payload();
        for position in [0, 1, 25, 26, 27, 1_000_003] {
            for length in [0, 1, 100, RUN_BYTES as u64 + 5, 3 * RUN_BYTES as u64] {
                let mut copied = Vec::new();
                write_pattern(&mut copied, position, position + length);
                let start = pattern_start(position) as usize;
                assert_eq!(copied, payload[start..start + length as usize]);
            }
            let start = pattern_start(position) as usize;
            assert_eq!(payload[start], pattern_byte(position));
            assert!(payload.len() >= start + PIECE_BYTES_MAX as usize);
        }
    }
}
