//! Variable-length integers (RFC 9000 section 16).

/// The highest number.
pub const MAX: u64 = (1 << 62) - 1;

/// Bytes of the shortest form of `number`, which is [`MAX`] at most.
#[inline]
pub const fn bytes_of(number: u64) -> usize {
    match number {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends `number` in its shortest form. Of one above [`MAX`] the low 62 bits are written.
#[inline]
pub fn put(out: &mut Vec<u8>, number: u64) {
    match bytes_of(number) {
        1 => out.push(number as u8),
        2 => out.extend_from_slice(&(0x4000 | number as u16).to_be_bytes()),
        4 => out.extend_from_slice(&(0x8000_0000 | number as u32).to_be_bytes()),
        _ => out.extend_from_slice(&(0xc000_0000_0000_0000 | number).to_be_bytes()),
    }
}

/// Takes a number off `rest`, in any form; `None`, and `rest` as it was, where it is not whole.
#[inline]
pub fn take(rest: &mut &[u8]) -> Option<u64> {
    let (&first, mut tail) = rest.split_first()?;
    let mut number = u64::from(first & 0x3f);
    if first >= 0x40 {
        let (more, after) = tail.split_at_checked(bytes_after(first))?;
        for &byte in more {
            number = number << 8 | u64::from(byte);
        }
        tail = after;
    }
    *rest = tail;
    Some(number)
}

/// Bytes behind the first one.
#[inline]
const fn bytes_after(first: u8) -> usize {
    (1 << (first >> 6)) - 1
}

/// A number that may come in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    number: u64,
    /// Bytes to come; 0: nothing of a number came.
    missing_bytes: u8,
}

impl Pieces {
    /// Nothing of a number.
    pub(super) const EMPTY: Self = Self {
        number: 0,
        missing_bytes: 0,
    };

    /// Whether nothing of a number came.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.missing_bytes == 0
    }

    /// Takes a number off `rest`; `None` where all of `rest` was taken and more is to come.
    #[inline]
    pub(super) fn take(&mut self, rest: &mut &[u8]) -> Option<u64> {
        if self.is_empty()
            && let number @ Some(_) = take(rest)
        {
            return number;
        }
        self.take_piece(rest)
    }

    #[cold]
    fn take_piece(&mut self, rest: &mut &[u8]) -> Option<u64> {
        while let Some((&byte, tail)) = rest.split_first() {
            *rest = tail;
            if self.missing_bytes == 0 {
                self.number = u64::from(byte & 0x3f);
                self.missing_bytes = bytes_after(byte) as u8;
            } else {
                self.number = self.number << 8 | u64::from(byte);
                self.missing_bytes -= 1;
            }
            if self.missing_bytes == 0 {
                return Some(self.number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(bytes: &[u8]) -> (Option<u64>, usize) {
        let mut rest = bytes;
        let number = take(&mut rest);
        (number, rest.len())
    }

    /// RFC 9000 appendix A.1.
    #[test]
    fn numbers_of_the_rfc() {
        for (bytes, number) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(taken(bytes), (Some(number), 0));
            let mut out = Vec::new();
            put(&mut out, number);
            assert_eq!(out, bytes);
        }
        assert_eq!(taken(&[0x40, 0x25]), (Some(37), 0));
    }

    #[test]
    fn edges_come_back_in_their_shortest_form() {
        for (number, bytes) in [
            (0, 1),
            (63, 1),
            (64, 2),
            (16_383, 2),
            (16_384, 4),
            ((1 << 30) - 1, 4),
            (1 << 30, 8),
            (MAX, 8),
        ] {
            let mut out = Vec::new();
            put(&mut out, number);
            assert_eq!((out.len(), bytes_of(number)), (bytes, bytes));
            out.push(7);
            assert_eq!(taken(&out), (Some(number), 1));
            for cut in 0..bytes {
                assert_eq!(taken(&out[..cut]), (None, cut));
            }
        }
    }

    proptest! {
        #[test]
        fn numbers_come_back_in_pieces(
            numbers in prop::collection::vec((0..=MAX, 0_u32..62), 1..10),
            step in 1_usize..9,
        ) {
            let numbers: Vec<u64> = numbers.iter().map(|(number, shift)| number >> shift).collect();
            let mut wire = Vec::new();
            for &number in &numbers {
                put(&mut wire, number);
            }
            let (mut pieces, mut found) = (Pieces::EMPTY, Vec::new());
            for mut piece in wire.chunks(step) {
                while let Some(number) = pieces.take(&mut piece) {
                    found.push(number);
                }
                prop_assert!(piece.is_empty());
            }
            prop_assert!(pieces.is_empty());
            prop_assert_eq!(found, numbers);
        }
    }
}
