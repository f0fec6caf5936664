//! Text that comes in pieces: whether it is UTF-8, as soon as that can be said.

/// Most bytes of a character.
const CHARACTER_BYTES_MAX: usize = 4;

/// What is known of a text so far: the beginning of its last character, where that is cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utf8 {
    begun: [u8; CHARACTER_BYTES_MAX],
    length: u8,
}

impl Utf8 {
    /// Takes the next piece; false when the text is not UTF-8, whatever may follow.
    pub(super) fn add(&mut self, mut piece: &[u8]) -> bool {
        while self.length > 0 {
            let Some((&byte, rest)) = piece.split_first() else {
                return true;
            };
            piece = rest;
            self.begun[self.length as usize] = byte;
            self.length += 1;
            match std::str::from_utf8(&self.begun[..self.length as usize]) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_some() => return false,
                // Still cut: never four bytes, which are a character or none.
                Err(_) => {}
            }
        }
        match std::str::from_utf8(piece) {
            Ok(_) => true,
            Err(error) if error.error_len().is_some() => false,
            Err(error) => {
                let cut = &piece[error.valid_up_to()..];
                self.begun[..cut.len()].copy_from_slice(cut);
                self.length = cut.len() as u8;
                true
            }
        }
    }

    /// Whether the text may end here.
    pub(super) fn is_complete(self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `bytes`, one by one and whole, are a text; and after how many bytes they are none.
    fn judged(bytes: &[u8]) -> (bool, usize) {
        let mut one_by_one = Utf8::default();
        let good = bytes
            .iter()
            .take_while(|byte| one_by_one.add(&[**byte]))
            .count();
        let is_text = good == bytes.len() && one_by_one.is_complete();
        for cut in 0..=bytes.len() {
            let mut state = Utf8::default();
            let is_good = state.add(&bytes[..cut]) && state.add(&bytes[cut..]);
            assert_eq!(
                is_good && state.is_complete(),
                is_text,
                "{bytes:x?} at {cut}"
            );
        }
        (is_text, good)
    }

    #[test]
    fn texts_and_others() {
        for text in [
            "",
            "a",
            "ä",
            "€",
            "𝄞",
            "κόσμε",
            "\u{10ffff}\0\u{7ff}\u{800}",
        ] {
            assert_eq!(judged(text.as_bytes()), (true, text.len()), "{text}");
        }
        for (bytes, good) in [
            // Alone, too long, a surrogate, beyond the last character: known at the first byte that
            // cannot be.
            (&b"a\x80"[..], 1),
            (b"\xc0\xaf", 0),
            (b"\xe0\x80\x80", 1),
            (b"\xed\xa0\x80", 1),
            (b"\xf4\x90\x80\x80", 1),
            (b"\xf5", 0),
            (b"\xe2\x82a", 2),
            // Cut at the end.
            (b"\xe2\x82", 2),
            (b"\xf0\x9d\x84", 3),
        ] {
            assert_eq!(judged(bytes), (false, good), "{bytes:x?}");
        }
    }
}
