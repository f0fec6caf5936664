//! What may come on the peer's encoder and decoder streams where neither side has a dynamic table
//! (RFC 9204 sections 4.3 and 4.4).

/// An instruction that may not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Forbidden;

/// Takes bytes of the peer's encoder stream: it may set the capacity of its table to 0, which it
/// is. Everything else needs a larger one.
pub(in super::super) fn check_encoder_instructions(bytes: &[u8]) -> Result<(), Forbidden> {
    const CAPACITY_0: u8 = 0x20;
    if bytes.iter().all(|&byte| byte == CAPACITY_0) {
        Ok(())
    } else {
        Err(Forbidden)
    }
}

/// Reads the peer's decoder stream: it may say that it cancels streams. What it acknowledges must
/// have been inserted or referred to, and nothing was.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct DecoderInstructions {
    /// Bytes that the number of a stream may still have; 0 between instructions.
    left_bytes: u8,
}

impl DecoderInstructions {
    /// Bytes of a number of 62 bits behind its first one.
    const CONTINUATION_BYTES_MAX: u8 = 9;

    /// Takes bytes of the stream.
    pub(in super::super) fn take(&mut self, bytes: &[u8]) -> Result<(), Forbidden> {
        for &byte in bytes {
            self.left_bytes = match (self.left_bytes, byte) {
                (0, 0x40..=0x7e) => 0,
                (0, 0x7f) => Self::CONTINUATION_BYTES_MAX,
                (0 | 1, 0x80..) | (0, _) => return Err(Forbidden),
                (left, 0x80..) => left - 1,
                (_, _) => 0,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoder_may_only_have_no_table() {
        assert_eq!(check_encoder_instructions(&[]), Ok(()));
        assert_eq!(check_encoder_instructions(&[0x20, 0x20]), Ok(()));
        // A capacity of 1, an insertion by a static and by a literal name, a duplicate.
        for bytes in [
            &[0x21][..],
            &[0x20, 0x3f, 0x00],
            &[0xc0, 0x00],
            &[0x40, 0x00],
            &[0x00],
        ] {
            assert_eq!(
                check_encoder_instructions(bytes),
                Err(Forbidden),
                "{bytes:x?}"
            );
        }
    }

    #[test]
    fn a_decoder_may_only_cancel_streams() {
        let longest = [&[0x7f][..], &[0xff; 8], &[0x00]].concat();
        let too_long = [&[0x7f][..], &[0x80; 9]].concat();
        for (bytes, expected) in [
            (&[][..], Ok(())),
            (&[0x40, 0x7e, 0x7f, 0x80, 0x01, 0x44], Ok(())),
            (&[&longest[..], &longest].concat(), Ok(())),
            (&too_long, Err(Forbidden)),
            // A section acknowledged, and insertions: of stream 0, of 4; none, one.
            (&[0x80], Err(Forbidden)),
            (&[0x40, 0x84], Err(Forbidden)),
            (&[0x00], Err(Forbidden)),
            (&[0x7f, 0x00, 0x01], Err(Forbidden)),
        ] {
            let mut whole = DecoderInstructions::default();
            assert_eq!(whole.take(bytes), expected, "{bytes:x?}");
            let mut bytewise = DecoderInstructions::default();
            let found = bytes.iter().try_for_each(|&byte| bytewise.take(&[byte]));
            assert_eq!(found, expected, "{bytes:x?}");
        }
    }
}
