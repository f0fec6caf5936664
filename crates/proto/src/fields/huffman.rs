//! The Huffman code of strings (RFC 7541 section 5.2 and appendix B), which QPACK shares.
//!
//! The code is canonical: codes of the same length are consecutive in the order of their symbols,
//! and shorter ones come first. So the lengths say everything, and the tables are worked out from
//! them when this is compiled.

/// The symbol that must not occur; its first bits pad the last byte.
const END_OF_STRING: usize = 256;

const SYMBOLS: usize = 257;

/// Bits of the code of each byte, and of the end of string.
#[rustfmt::skip]
const BITS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11,
    10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8,
    15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5,
    6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
    23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21,
    23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25,
    26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26,
    28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// Bits of the longest code.
const BITS_MAX: usize = 30;

/// Bits of the codes that are found by one look into a table.
const SHORT_BITS: u32 = 8;

/// Bits of the input that are passed over by one look into a table: two codes of usual text.
const STEP_BITS: u32 = 12;

static TABLES: Tables = Tables::new();

struct Tables {
    /// Symbols in the order of their codes.
    by_code: [u16; SYMBOLS],
    /// The code of each symbol.
    codes: [u32; SYMBOLS],
    /// For each first byte of the input that begins with a short code: the symbol, and the bits of
    /// its code. 0 bits: the code is longer.
    short: [(u8, u8); 1 << SHORT_BITS],
    /// For each beginning of the input: how many short codes it holds whole, and their bits.
    /// None: the first code is longer.
    steps: [HuffmanStep; 1 << STEP_BITS],
    /// The first code that has more than this many bits, its bits moved up to the top of 32.
    ends: [u64; BITS_MAX + 1],
    /// Symbols whose codes have fewer bits than this.
    shorter: [u16; BITS_MAX + 1],
}

/// Short codes one after the other.
#[derive(Clone, Copy, Debug)]
struct HuffmanStep {
    symbols: u8,
    bits: u8,
}

impl Tables {
    const fn new() -> Self {
        let mut tables = Self {
            by_code: [0; SYMBOLS],
            codes: [0; SYMBOLS],
            short: [(0, 0); 1 << SHORT_BITS],
            steps: [HuffmanStep {
                symbols: 0,
                bits: 0,
            }; 1 << STEP_BITS],
            ends: [0; BITS_MAX + 1],
            shorter: [0; BITS_MAX + 1],
        };
        let mut known = 0;
        let mut code: u32 = 0;
        let mut bits = 1;
        while bits <= BITS_MAX {
            code <<= 1;
            tables.shorter[bits] = known as u16;
            let mut symbol = 0;
            while symbol < SYMBOLS {
                if BITS[symbol] as usize == bits {
                    tables.by_code[known] = symbol as u16;
                    tables.codes[symbol] = code;
                    known += 1;
                    code += 1;
                }
                symbol += 1;
            }
            tables.ends[bits] = (code as u64) << (32 - bits);
            bits += 1;
        }
        let mut symbol = 0;
        while symbol < END_OF_STRING {
            let bits = BITS[symbol] as u32;
            if bits <= SHORT_BITS {
                let free_bits = SHORT_BITS - bits;
                let first = (tables.codes[symbol] << free_bits) as usize;
                let mut at = first;
                while at < first + (1 << free_bits) {
                    tables.short[at] = (symbol as u8, bits as u8);
                    at += 1;
                }
            }
            symbol += 1;
        }
        let mut at = 0;
        while at < 1 << STEP_BITS {
            tables.steps[at] = Self::step(&tables.short, at as u32);
            at += 1;
        }
        tables
    }

    /// The short codes with which [`STEP_BITS`] bits begin.
    const fn step(short: &[(u8, u8); 1 << SHORT_BITS], input: u32) -> HuffmanStep {
        let mut step = HuffmanStep {
            symbols: 0,
            bits: 0,
        };
        loop {
            // What is behind the end is not known, so a code must lie before it.
            let left = (input << step.bits) & ((1 << STEP_BITS) - 1);
            let (_, bits) = short[(left >> (STEP_BITS - SHORT_BITS)) as usize];
            if bits == 0 || (step.bits + bits) as u32 > STEP_BITS {
                return step;
            }
            step.symbols += 1;
            step.bits += bits;
        }
    }
}

/// The string is not well formed: it holds the end of string, or its last bits are no padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The input of a decoder.
struct Input<'a> {
    rest: &'a [u8],
    /// The next bits, the first at the top; ones follow the last.
    window: u64,
    /// Bits of the window that are input.
    held_bits: u32,
}

impl<'a> Input<'a> {
    fn new(string: &'a [u8]) -> Self {
        Self {
            rest: string,
            window: u64::MAX,
            held_bits: 0,
        }
    }

    /// Afterwards the window holds more than the longest code, or all that is left.
    #[inline(always)]
    fn fill(&mut self) {
        if self.held_bits > 32 {
            return;
        }
        if let Some((bytes, rest)) = self.rest.split_first_chunk() {
            let shift = 32 - self.held_bits;
            let bits = u64::from(u32::from_be_bytes(*bytes));
            self.window &= !(0xffff_ffff << shift) | (bits << shift);
            self.held_bits += 32;
            self.rest = rest;
            return;
        }
        while let Some((&byte, rest)) = self.rest.split_first() {
            let shift = 56 - self.held_bits;
            self.window &= !(0xff << shift) | (u64::from(byte) << shift);
            self.held_bits += 8;
            self.rest = rest;
        }
    }

    #[inline(always)]
    fn advance(&mut self, bits: u32) {
        self.window = (self.window << bits) | ((1 << bits) - 1);
        self.held_bits -= bits;
    }

    /// Takes the next symbol; `None` when not a whole one is left, or the end of string comes.
    #[inline(always)]
    fn symbol(&mut self, tables: &Tables) -> Option<u8> {
        let (symbol, bits) = tables.short[(self.window >> 56) as usize];
        let (symbol, bits) = if bits > 0 {
            (symbol, u32::from(bits))
        } else {
            long(tables, self.window)?
        };
        if bits > self.held_bits {
            return None;
        }
        self.advance(bits);
        Some(symbol)
    }

    /// Under a byte of ones is left, or nothing (RFC 7541 section 5.2).
    fn end(&self) -> Result<(), Malformed> {
        if self.held_bits < 8 && self.window == u64::MAX {
            Ok(())
        } else {
            Err(Malformed)
        }
    }
}

/// Appends the decoded string to `out`: at most 8/5 of its bytes.
pub(crate) fn decode(string: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let tables = &TABLES;
    out.reserve(string.len() * 8 / 5);
    let mut input = Input::new(string);
    loop {
        input.fill();
        let Some(symbol) = input.symbol(tables) else {
            break;
        };
        out.push(symbol);
    }
    input.end()
}

/// What is known of a string that was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Bytes of the decoded string.
    pub(crate) bytes: usize,
    /// Whether the string is text, as [`is_text`](super::coding::is_text) says.
    pub(crate) is_text: bool,
}

/// Takes and refuses the same strings as [`decode`], and keeps none of their bytes.
pub(crate) fn skip(string: &[u8]) -> Result<Skipped, Malformed> {
    let tables = &TABLES;
    let mut input = Input::new(string);
    let mut skipped = Skipped {
        bytes: 0,
        is_text: true,
    };
    loop {
        input.fill();
        let step = tables.steps[(input.window >> (64 - STEP_BITS)) as usize];
        let bits = u32::from(step.bits);
        if bits > 0 && bits <= input.held_bits {
            input.advance(bits);
            skipped.bytes += usize::from(step.symbols);
            continue;
        }
        let Some(symbol) = input.symbol(tables) else {
            break;
        };
        skipped.bytes += 1;
        skipped.is_text &= !matches!(symbol, 0 | b'\r' | b'\n');
    }
    input.end().map(|()| skipped)
}

/// The symbol of a code of more than [`SHORT_BITS`] bits at the top of `window`, and its bits;
/// `None` for the end of string.
fn long(tables: &Tables, window: u64) -> Option<(u8, u32)> {
    let top = window >> 32;
    let mut bits = SHORT_BITS as usize + 1;
    while bits < BITS_MAX && top >= tables.ends[bits] {
        bits += 1;
    }
    let first = tables.ends[bits - 1];
    let place = usize::from(tables.shorter[bits]) + ((top - first) >> (32 - bits)) as usize;
    let symbol = *tables.by_code.get(place)?;
    Some((u8::try_from(symbol).ok()?, bits as u32))
}

/// Bytes of the string in this code.
pub(crate) fn encoded_bytes(string: &[u8]) -> usize {
    let bits: usize = string
        .iter()
        .map(|&byte| usize::from(BITS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends the string in this code.
pub(crate) fn encode(string: &[u8], out: &mut Vec<u8>) {
    let mut held: u64 = 0;
    let mut held_bits: u32 = 0;
    for &byte in string {
        let symbol = usize::from(byte);
        let bits = u32::from(BITS[symbol]);
        held = (held << bits) | u64::from(TABLES.codes[symbol]);
        held_bits += bits;
        while held_bits >= 8 {
            held_bits -= 8;
            out.push((held >> held_bits) as u8);
        }
    }
    if held_bits > 0 {
        let padding = 8 - held_bits;
        out.push(((held << padding) | ((1 << padding) - 1)) as u8);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(string: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut out = Vec::new();
        decode(string, &mut out).map(|()| out)
    }

    fn encoded(string: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(string, &mut out);
        assert_eq!(out.len(), encoded_bytes(string));
        out
    }

    /// Codes as RFC 7541 appendix B prints them, of each length.
    #[test]
    fn codes_are_those_of_the_rfc() {
        for (symbol, bits, code) in [
            (usize::from(b'0'), 5, 0x0),
            (usize::from(b't'), 5, 0x9),
            (usize::from(b' '), 6, 0x14),
            (usize::from(b'z'), 7, 0x7b),
            (usize::from(b'Z'), 8, 0xfd),
            (usize::from(b'?'), 10, 0x3fc),
            (usize::from(b'|'), 11, 0x7fc),
            (usize::from(b'>'), 12, 0xffb),
            (0, 13, 0x1ff8),
            (usize::from(b'}'), 14, 0x3ffd),
            (usize::from(b'<'), 15, 0x7ffc),
            (usize::from(b'\\'), 19, 0x7fff0),
            (128, 20, 0xfffe6),
            (230, 21, 0x1fffe8),
            (159, 24, 0xffffef),
            (233, 22, 0x3fffeb),
            (171, 24, 0xfffff0),
            (236, 24, 0xfffff4),
            (255, 26, 0x3ffffee),
            (254, 27, 0x7fffff0),
            (1, 23, 0x7fffd8),
            (2, 28, 0xfffffe2),
            (22, 30, 0x3ffffffe),
            (END_OF_STRING, 30, 0x3fffffff),
        ] {
            let found = (BITS[symbol], TABLES.codes[symbol]);
            assert_eq!(found, (bits, code), "symbol {symbol}");
        }
    }

    #[test]
    fn every_byte_comes_back() {
        for first in 0..=255 {
            assert_eq!(decoded(&encoded(&[first])), Ok(vec![first]));
            for second in 0..=255 {
                let string = [first, second, first];
                assert_eq!(decoded(&encoded(&string)), Ok(string.to_vec()));
            }
        }
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        for (string, what) in [
            (&[0xff_u8][..], "a byte of padding only"),
            (&[0b0000_0111, 0xff], "over seven bits of padding"),
            (&[0b0000_0000], "padding of zeros"),
            (&[0b0000_0110], "padding with a zero at its end"),
            (&[0xff, 0xff, 0xff, 0xff], "the end of string"),
            (&[0xff, 0xff, 0xff, 0xfc, 0x07], "a symbol behind it"),
            (&[0x07, 0xff, 0xff, 0xff, 0xff], "a symbol before it"),
        ] {
            assert_eq!(decoded(string), Err(Malformed), "{what}");
        }
        assert_eq!(decoded(&[]), Ok(vec![]));
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        // Five of the eight bits, then seven bits of ones in the next byte's place: 3 + 4.
        assert_eq!(decoded(&[0b0101_0011, 0b1111_1111]), Err(Malformed));
    }

    /// Skips a string, and compares with what decoding makes of it.
    fn skips_as_it_decodes(string: &[u8]) {
        let expected = decoded(string).map(|text| Skipped {
            bytes: text.len(),
            is_text: !text.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')),
        });
        assert_eq!(skip(string), expected, "{string:x?}");
    }

    /// Only symbols with long codes are looked at when a string is skipped.
    #[test]
    fn what_is_no_text_has_a_long_code() {
        for symbol in [0, b'\r', b'\n'] {
            assert!(u32::from(BITS[usize::from(symbol)]) > STEP_BITS);
        }
    }

    #[test]
    fn all_short_strings_are_skipped_as_they_are_decoded() {
        for first in 0..=255 {
            skips_as_it_decodes(&[first]);
            for second in 0..=255 {
                skips_as_it_decodes(&[first, second]);
                skips_as_it_decodes(&[0xff, first, second]);
                skips_as_it_decodes(&encoded(&[first, second]));
                skips_as_it_decodes(&encoded(&[b'a', first, b'b', second]));
            }
        }
    }

    proptest! {
        #[test]
        fn strings_are_skipped_as_they_are_decoded(
            string in prop::collection::vec(any::<u8>(), 0..100),
            ones in 0_usize..6,
        ) {
            skips_as_it_decodes(&string);
            let mut padded = string.clone();
            padded.resize(string.len() + ones, 0xff);
            skips_as_it_decodes(&padded);
            let mut code = encoded(&string);
            skips_as_it_decodes(&code);
            code.resize(code.len() + ones, 0xff);
            skips_as_it_decodes(&code);
        }

        #[test]
        fn strings_come_back(string in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decoded(&encoded(&string)), Ok(string));
        }

        /// What decodes is what its decoded form encodes to: each string has one code.
        #[test]
        fn codes_are_unique(string in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(text) = decoded(&string) {
                prop_assert!(text.len() <= string.len() * 8 / 5);
                prop_assert_eq!(encoded(&text), string);
            }
        }
    }
}
