//! Texts with holes: numbers and UUIDs of a fixed width in a request that is encoded once,
//! overwritten each time it is sent.
//!
//! A hole has as many bytes as its largest number, so that neither the length of a request nor its
//! `Content-Length` ever changes.
//!
//! Placeholders are `{{seq}}`, `{{seq START}}`, `{{rand LOW HIGH}}` and `{{uuid}}`, with `\` before
//! the braces where they stand for themselves.

use thiserror::Error;

/// Digits of a number that counts, unless it begins with a longer one: a million a second have room
/// for eleven days.
const COUNT_DIGITS: u8 = 12;
/// The braces around a placeholder.
const OPENING: &[u8] = b"{{";
const CLOSING: &[u8] = b"}}";
/// Longest text between the braces of a placeholder.
const PLACEHOLDER_BYTES_MAX: usize = 64;
/// Characters of a UUID (RFC 9562 section 4).
const UUID_BYTES: u8 = 36;
/// Most holes of one text: all of them are overwritten for each request.
pub const HOLES_MAX: usize = 1_024;

/// What is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// It grows by one from request to request.
    Sequence {
        /// The first one.
        start: u64,
    },
    /// A random one; all from `low` to `high` are equally likely.
    Random {
        /// The least.
        low: u64,
        /// The largest.
        high: u64,
    },
    /// A random UUID (RFC 9562 section 5.4).
    Uuid,
}

/// A place that is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Where it begins in the text.
    pub at: u32,
    /// How many bytes it has, 1 to 20, or those of a UUID.
    pub width: u8,
    /// What stands before a number that has fewer digits.
    pad: u8,
    /// Bytes of the placeholder.
    written_bytes: u8,
    /// What is filled in. Of a number with more digits than the hole has, the last ones.
    pub number: Number,
}

impl Hole {
    /// The same hole, so many bytes further behind.
    #[must_use]
    pub fn moved(self, bytes: usize) -> Self {
        Self {
            at: self.at + bytes as u32,
            ..self
        }
    }
}

/// A text whose placeholders are holes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextWithHoles {
    /// The text, with zeros in its holes.
    pub bytes: Vec<u8>,
    /// The holes, in order.
    pub holes: Vec<Hole>,
    /// Where the bytes stand that had a `\` in front, in order.
    escaped: Vec<u32>,
}

/// Why a placeholder is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlaceholderError {
    /// What stands in doubled braces is not filled in.
    #[error(
        "`{0}` is not filled in: write {{{{seq}}}}, {{{{seq START}}}}, {{{{rand LOW HIGH}}}} with \
         whole numbers from 0, or {{{{uuid}}}}; where braces are meant, \\{{{{ or in a URL %7B%7B"
    )]
    NotFilledIn(String),
    /// It is one, where nothing is filled in.
    #[error(
        "{{{{seq}}}}, {{{{rand LOW HIGH}}}} and {{{{uuid}}}} are filled into the requests of a URL \
         or of a list; leave them out with a script, with sessions and with messages, or write \
         \\{{{{ for braces"
    )]
    Elsewhere,
    /// The least random number is above the largest.
    #[error("`{0}`: the first number is above the second; exchange them")]
    Empty(String),
    /// It is a part of a number of JSON, in which no spaces may stand.
    #[error(
        "`{0}` is a part of a number of JSON: let it be the whole number, or put the number into \
         a string"
    )]
    InNumber(String),
    /// There are more than [`HOLES_MAX`].
    #[error(
        "one text has more than {HOLES_MAX} placeholders; give fewer, or the requests of a file \
         one by one"
    )]
    TooMany,
}

impl TextWithHoles {
    /// A text without placeholders.
    pub fn fixed(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    /// The text, with a hole for each placeholder.
    ///
    /// # Errors
    ///
    /// What begins as a placeholder is none.
    pub fn parse(text: &[u8]) -> Result<Self, PlaceholderError> {
        Self::scan(text, false)
    }

    /// As [`Self::parse`], for the body of a request. JSON has no numbers with zeros in front: where
    /// the body is an object or a list of JSON, spaces stand before the numbers outside of its
    /// strings.
    ///
    /// # Errors
    ///
    /// As of [`TextWithHoles::parse`].
    pub fn parse_body(text: &[u8]) -> Result<Self, PlaceholderError> {
        let first = text.iter().position(|byte| !byte.is_ascii_whitespace());
        let first = first.map_or(&[][..], |at| &text[at..]);
        let is_json = matches!(first, [b'{' | b'[', ..]) && placeholder(first).is_none();
        Self::scan(text, is_json)
    }

    /// The text where nothing is filled in: braces behind `\` stand for themselves.
    ///
    /// # Errors
    ///
    /// There is a placeholder, or what looks like one.
    pub fn without_holes(text: &[u8]) -> Result<Vec<u8>, PlaceholderError> {
        let parsed = Self::parse(text)?;
        if parsed.holes.is_empty() {
            Ok(parsed.bytes)
        } else {
            Err(PlaceholderError::Elsewhere)
        }
    }

    fn scan(text: &[u8], is_json: bool) -> Result<Self, PlaceholderError> {
        let mut found = Self::fixed(Vec::with_capacity(text.len()));
        // Whether what follows `taken` lies in a string of JSON.
        let mut is_string = false;
        let (mut taken, mut at) = (0, 0);
        while let Some(next) = memchr::memchr(b'{', &text[at..]) {
            at += next;
            let Some(Placeholder { number, bytes }) = placeholder(&text[at..]) else {
                at += 1;
                continue;
            };
            if is_json {
                is_string = ends_in_string(&text[taken..at], is_string);
            }
            if text[taken..at].ends_with(b"\\") {
                found.bytes.extend_from_slice(&text[taken..at - 1]);
                found.escaped.push(found.bytes.len() as u32);
                found.bytes.extend_from_slice(&text[at..at + bytes]);
            } else {
                found.bytes.extend_from_slice(&text[taken..at]);
                let is_number = is_json && !is_string;
                let follows_another = taken == at && !found.holes.is_empty();
                let is_part = follows_another
                    || is_of_number(text[..at].last())
                    || is_of_number(text.get(at + bytes));
                if is_number && is_part {
                    let written = &text[at..at + bytes];
                    return Err(PlaceholderError::InNumber(
                        String::from_utf8_lossy(written).into_owned(),
                    ));
                }
                let pad = if is_number { b' ' } else { b'0' };
                found.add(number?, bytes, pad)?;
            }
            at += bytes;
            taken = at;
        }
        found.bytes.extend_from_slice(&text[taken..]);
        Ok(found)
    }

    /// Whether numbers of a sequence are filled in.
    pub fn counts(&self) -> bool {
        let is_counted = |hole: &Hole| matches!(hole.number, Number::Sequence { .. });
        self.holes.iter().any(is_counted)
    }

    /// Whether random numbers or UUIDs are filled in.
    pub fn draws(&self) -> bool {
        let is_random = |hole: &Hole| !matches!(hole.number, Number::Sequence { .. });
        self.holes.iter().any(is_random)
    }

    /// Where in the text that was parsed a place of its bytes was; absent for one in a hole.
    pub fn written_at(&self, at: usize) -> Option<usize> {
        let escaped = |&place: &u32| (place as usize) < at;
        let mut written = at + self.escaped.partition_point(escaped);
        for hole in &self.holes {
            let (start, width) = (hole.at as usize, usize::from(hole.width));
            if at <= start {
                break;
            }
            if at < start + width {
                return None;
            }
            written = written + usize::from(hole.written_bytes) - width;
        }
        Some(written)
    }

    fn add(
        &mut self,
        number: Number,
        written_bytes: usize,
        pad: u8,
    ) -> Result<(), PlaceholderError> {
        if self.holes.len() == HOLES_MAX {
            return Err(PlaceholderError::TooMany);
        }
        let width = match number {
            Number::Random { high, .. } => digits(high),
            Number::Uuid => UUID_BYTES,
            Number::Sequence { start } => digits(start).max(COUNT_DIGITS),
        };
        self.holes.push(Hole {
            at: self.bytes.len() as u32,
            width,
            pad,
            // Its length is bounded.
            written_bytes: written_bytes as u8,
            number,
        });
        let filled = self.bytes.len() + usize::from(width);
        self.bytes.resize(filled, b'0');
        Ok(())
    }
}

/// Whether `text` has a placeholder, or what begins as one.
pub fn has_placeholder(text: &[u8]) -> bool {
    let mut begins = memchr::memchr_iter(b'{', text);
    begins.any(|at| placeholder(&text[at..]).is_some())
}

/// Bytes of the placeholder, or of what looks like one, that `text` begins with; absent where it
/// begins with none.
pub fn placeholder_bytes(text: &[u8]) -> Option<usize> {
    placeholder(text).map(|found| found.bytes)
}

/// Whether this byte beside a placeholder is of the same number of JSON.
fn is_of_number(byte: Option<&u8>) -> bool {
    byte.is_some_and(|&byte| {
        byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
    })
}

/// Whether a string of JSON is open behind `text`, which begins in one or not.
fn ends_in_string(text: &[u8], begins_in_string: bool) -> bool {
    let mut is_string = begins_in_string;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_string = !is_string,
            b'\\' if is_string => {
                bytes.next();
            }
            _ => {}
        }
    }
    is_string
}

/// A placeholder, or what looks like one.
struct Placeholder {
    /// What it stands for.
    number: Result<Number, PlaceholderError>,
    bytes: usize,
}

/// Whether what stands in doubled braces looks like the name of something to be filled in: a line
/// of text with letters and without braces, so that data in which braces meet is none.
fn is_named(inside: &[u8]) -> bool {
    let is_name = |text: &str| {
        text.contains(char::is_alphabetic)
            && !text.contains(['{', '}'])
            && !text.contains(char::is_control)
    };
    std::str::from_utf8(inside).is_ok_and(is_name)
}

/// The placeholder that `text`, which has a brace in front, begins with.
fn placeholder(text: &[u8]) -> Option<Placeholder> {
    let rest = text.strip_prefix(OPENING)?;
    let rest = &rest[..rest.len().min(PLACEHOLDER_BYTES_MAX)];
    let end = memchr::memmem::find(rest, CLOSING);
    let inside = &rest[..end.unwrap_or(rest.len())];
    let mut words = inside
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty());
    let name = words.next().unwrap_or_default();
    let is_known = [&b"seq"[..], b"rand", b"uuid"].contains(&name);
    if !(is_known || end.is_some() && is_named(inside)) {
        return None;
    }
    let bytes = OPENING.len() + inside.len() + CLOSING.len();
    let bytes = bytes.min(text.len());
    let shown = || String::from_utf8_lossy(&text[..bytes]).into_owned();
    let numbers: Option<Vec<u64>> = words.map(number).collect();
    let numbers = numbers.filter(|_| end.is_some());
    let number = match (name, numbers.as_deref()) {
        (b"seq", Some([])) => Ok(Number::Sequence { start: 1 }),
        (b"seq", Some(&[start])) => Ok(Number::Sequence { start }),
        (b"rand", Some(&[low, high])) if low > high => Err(PlaceholderError::Empty(shown())),
        (b"rand", Some(&[low, high])) => Ok(Number::Random { low, high }),
        (b"uuid", Some([])) => Ok(Number::Uuid),
        _ => Err(PlaceholderError::NotFilledIn(shown())),
    };
    Some(Placeholder { number, bytes })
}

fn number(word: &[u8]) -> Option<u64> {
    let is_number = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(word).ok().filter(|_| is_number)?;
    text.parse().ok()
}

/// Decimal digits of a number.
fn digits(number: u64) -> u8 {
    number.checked_ilog10().unwrap_or(0) as u8 + 1
}

/// The numbers that one worker fills in, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// What the next request with a sequence has of it, from 0.
    sequence: u64,
    /// How far the one behind it is.
    step: u64,
    /// Where random numbers follow from.
    random: u64,
}

impl Numbers {
    /// Those of one of `workers` workers: together they have every number of a sequence from
    /// `first` on once, each every so many; random ones follow from the seed, and are others for
    /// each worker.
    pub fn new(seed: u64, first: u64, worker: u32, workers: u32) -> Self {
        let mut random = seed;
        let apart = next_random(&mut random);
        Self {
            sequence: first.wrapping_add(worker.into()),
            step: u64::from(workers.max(1)),
            random: apart.wrapping_add(u64::from(worker).wrapping_mul(0xd134_2543_de82_ef95)),
        }
    }

    /// Fills the holes of a request.
    #[inline]
    pub fn fill(&mut self, bytes: &mut [u8], holes: &[Hole]) {
        let mut counts = false;
        for hole in holes {
            let at = hole.at as usize;
            let Some(place) = bytes.get_mut(at..at + usize::from(hole.width)) else {
                continue;
            };
            let number = match hole.number {
                Number::Sequence { start } => {
                    counts = true;
                    start.wrapping_add(self.sequence)
                }
                Number::Random { low, high } => {
                    let drawn = next_random(&mut self.random);
                    match (high - low).checked_add(1) {
                        Some(count) => low + ((u128::from(drawn) * u128::from(count)) >> 64) as u64,
                        None => drawn,
                    }
                }
                Number::Uuid => {
                    let drawn = [(); 2].map(|()| next_random(&mut self.random));
                    write_uuid(place, drawn);
                    continue;
                }
            };
            write_number(place, number, hole.pad);
        }
        if counts {
            self.sequence = self.sequence.wrapping_add(self.step);
        }
    }
}

/// Writes the last digits of a number, behind as many pads as there is room for.
#[inline]
fn write_number(place: &mut [u8], mut number: u64, pad: u8) {
    let mut pads = place.len();
    for byte in place.iter_mut().rev() {
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
        pads -= 1;
        if number == 0 {
            break;
        }
    }
    place[..pads].fill(pad);
}

/// Writes a random UUID: that of these bits, but for the four of its version and the two of its
/// variant (RFC 9562 section 5.4).
fn write_uuid(place: &mut [u8], [high, low]: [u64; 2]) {
    let high = high & !0xf000 | 0x4000;
    let low = low >> 2 | 1 << 63;
    let mut digits = u128::from(high) << 64 | u128::from(low);
    for (at, byte) in place.iter_mut().enumerate().rev() {
        if matches!(at, 8 | 13 | 18 | 23) {
            *byte = b'-';
        } else {
            *byte = b"0123456789abcdef"[(digits & 0xf) as usize];
            digits >>= 4;
        }
    }
}

/// By how much the state of [`next_random`] grows with each number.
pub const RANDOM_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The next number of a sequence: SplitMix64 (Steele, Lea and Flood).
#[inline]
pub fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(RANDOM_STEP);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &TextWithHoles, numbers: &mut Numbers) -> String {
        let mut bytes = text.bytes.clone();
        numbers.fill(&mut bytes, &text.holes);
        assert_eq!(bytes.len(), text.bytes.len());
        String::from_utf8(bytes).expect("text")
    }

    fn first(text: &str) -> String {
        let parsed = TextWithHoles::parse(text.as_bytes()).expect(text);
        filled(&parsed, &mut Numbers::new(1, 0, 0, 1))
    }

    #[test]
    fn placeholders_become_numbers_of_a_fixed_width() {
        for (text, expected) in [
            ("", ""),
            ("/a/{{seq}}?b", "/a/000000000001?b"),
            ("{{seq 42}}{{ seq 7 }}", "000000000042000000000007"),
            ("{{rand 7 7}}", "7"),
            ("{{rand 100 100}}.{{rand 5 5}}", "100.5"),
            ("{{seq 1000000000000000}}", "1000000000000000"),
            // What is no placeholder stands for itself.
            ("{{ name {seq} {{}} {{", "{{ name {seq} {{}} {{"),
            ("{{1, 2}} {{a},{b}}", "{{1, 2}} {{a},{b}}"),
            ("{{a\nb}} {{ }}", "{{a\nb}} {{ }}"),
            ("\\{{seq}} \\{{x}} \\", "{{seq}} {{x}} \\"),
            ("\\{{seq x}} \\\\{{#if a}}", "{{seq x}} \\{{#if a}}"),
            ("\\{{1}} \\{{", "\\{{1}} \\{{"),
            ("{seq}{rand 1 2}", "{seq}{rand 1 2}"),
            ("{{{rand 3 3}}}", "{3}"),
        ] {
            assert_eq!(first(text), expected, "{text}");
        }
    }

    #[test]
    fn what_begins_as_a_placeholder_has_to_be_one() {
        for (text, words) in [
            ("{{seq x}}", "`{{seq x}}` is not filled in: write {{seq}}"),
            ("{{seq -1}}", "where braces are meant, \\{{"),
            ("a{{now}}", "`{{now}}` is not filled in"),
            ("{{ $guid }}", "`{{ $guid }}` is not filled in"),
            ("{{{.Имя}}}", "`{{.Имя}}` is not filled in"),
            ("{{seq2}}{{seq}}", "`{{seq2}}` is not filled in"),
            ("{{uuid 4}}", "or {{uuid}}"),
            ("{{uuid", "`{{uuid`"),
            ("{{rand 5}}", "`{{rand 5}}`"),
            ("{{rand 5 1}}", "exchange them"),
            ("{{rand 1 2", "`{{rand 1 2`"),
            ("{{rand 1 99999999999999999999}}", "whole numbers"),
        ] {
            let error = TextWithHoles::parse(text.as_bytes()).expect_err(text);
            assert!(error.to_string().contains(words), "{text}: {error}");
            assert!(has_placeholder(text.as_bytes()), "{text}");
        }
        assert!(has_placeholder(b"a{{seq}}") && !has_placeholder(b"a{seq}"));
        let many = "{{seq}}".repeat(HOLES_MAX + 1);
        let error = TextWithHoles::parse(many.as_bytes()).expect_err("too many");
        assert_eq!(error, PlaceholderError::TooMany);
    }

    #[test]
    fn numbers_of_json_have_no_zeros_in_front() {
        for (body, expected) in [
            ("{\"a\": {{seq}}}", "{\"a\":            1}"),
            (" [{{rand 7 7}}, \"{{seq}}\"]", " [7, \"000000000001\"]"),
            (
                "{\"x\\\"y\": {{seq}}, \"\\\\\": {{seq 2}}}",
                "{\"x\\\"y\":            1, \"\\\\\":            2}",
            ),
            ("{{seq}}", "000000000001"),
            ("a={{seq}}", "a=000000000001"),
            ("{\"a\": \"\\{{seq}}\"}", "{\"a\": \"{{seq}}\"}"),
            (
                "{\"a\": \"\\{{seq}}\", \"n\": {{rand 7 7}}, \"m\":{{seq}}}",
                "{\"a\": \"{{seq}}\", \"n\": 7, \"m\":           1}",
            ),
        ] {
            let parsed = TextWithHoles::parse_body(body.as_bytes()).expect(body);
            assert_eq!(filled(&parsed, &mut Numbers::new(1, 0, 0, 1)), expected);
        }
        let bodies = "[-{{seq}}]|[1{{seq}}]|[{{seq}}.5]|[{{seq}}{{rand 1 2}}]";
        for body in bodies.split('|') {
            let refused = TextWithHoles::parse_body(body.as_bytes());
            let in_number = matches!(refused, Err(PlaceholderError::InNumber(_)));
            assert!(in_number, "{body}: {refused:?}");
        }
    }

    #[test]
    fn places_of_the_written_text_are_known() {
        let text = b"a\\{{x}}b{{rand 1 20}}c{{rand 3 3}}";
        let parsed = TextWithHoles::parse(text).expect("two");
        assert_eq!(parsed.bytes, b"a{{x}}b00c0");
        let places = (0..=parsed.bytes.len()).map(|at| parsed.written_at(at));
        let expected = [0, 1, 3, 4, 5, 6, 7, 8].map(Some);
        let last = [None, Some(21), Some(22), Some(34)];
        assert!(places.eq(expected.into_iter().chain(last)));
    }

    #[test]
    fn sequences_of_all_workers_have_every_number_once() {
        let text = TextWithHoles::parse(b"{{seq 10}}").expect("one");
        for workers in 1..5 {
            let mut seen: Vec<u64> = (0..workers)
                .flat_map(|worker| {
                    let (text, mut numbers) = (&text, Numbers::new(1, 5, worker, workers));
                    (0..100).map(move |_| filled(text, &mut numbers).parse().expect("a number"))
                })
                .collect();
            seen.sort_unstable();
            let expected: Vec<u64> = (15..15 + 100 * u64::from(workers)).collect();
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn all_numbers_of_a_request_are_the_same_and_a_fixed_one_takes_none() {
        let two = TextWithHoles::parse(b"{{seq 1000000000000}}-{{seq 1}}").expect("two");
        let mut numbers = Numbers::new(1, 0, 0, 1);
        assert_eq!(filled(&two, &mut numbers), "1000000000000-000000000001");
        numbers.fill(&mut [], &[]);
        let random = TextWithHoles::parse(b"{{rand 1 5}}").expect("one");
        filled(&random, &mut numbers);
        assert_eq!(filled(&two, &mut numbers), "1000000000001-000000000002");
        // The last digits of a number that grew out of its hole.
        let mut late = Numbers::new(1, 999_999_999_999, 0, 1);
        assert_eq!(filled(&two, &mut late), "1999999999999-000000000000");
    }

    #[test]
    fn uuids_are_random_ones_and_none_is_sent_twice() {
        let text = TextWithHoles::parse(b"{{uuid}}").expect("one");
        assert!(text.draws());
        let drawn = |seed, worker| {
            let mut numbers = Numbers::new(seed, 0, worker, 8);
            let drawn: Vec<String> = (0..1_000).map(|_| filled(&text, &mut numbers)).collect();
            drawn
        };
        assert_eq!(drawn(7, 3), drawn(7, 3));
        let workers = (1..9).flat_map(|seed| (0..8).map(move |worker| (seed, worker)));
        let all: Vec<String> = workers.flat_map(|(seed, at)| drawn(seed, at)).collect();
        let mut digits = std::collections::BTreeMap::<(usize, char), u32>::new();
        for uuid in &all {
            assert_eq!(uuid.len(), 36);
            for place in uuid.char_indices() {
                *digits.entry(place).or_default() += 1;
            }
        }
        let seen = |at: usize| -> String {
            let places = digits.keys().filter(|(place, _)| *place == at);
            places.map(|&(_, digit)| digit).collect()
        };
        for at in 0..36 {
            let expected = match at {
                8 | 13 | 18 | 23 => "-",
                14 => "4",
                19 => "89ab",
                _ => "0123456789abcdef",
            };
            assert_eq!(seen(at), expected, "{at}");
        }
        let count = all.len();
        let once: std::collections::BTreeSet<String> = all.into_iter().collect();
        assert_eq!(once.len(), count);
    }

    #[test]
    fn nothing_is_filled_in_where_it_must_not() {
        let text = |text: &str| TextWithHoles::without_holes(text.as_bytes());
        assert_eq!(text("a \\{{seq}}{}"), Ok(b"a {{seq}}{}".to_vec()));
        assert_eq!(text("a {{seq}}"), Err(PlaceholderError::Elsewhere));
        assert!(text("{{now}}").is_err());
    }

    #[test]
    fn random_numbers_are_uniform_and_follow_from_the_seed() {
        let text = TextWithHoles::parse(b"{{rand 8 12}}").expect("one");
        let drawn = |seed, worker| {
            let mut numbers = Numbers::new(seed, 0, worker, 4);
            let drawn: Vec<String> = (0..50_000).map(|_| filled(&text, &mut numbers)).collect();
            drawn
        };
        let one = drawn(7, 0);
        assert_eq!(one, drawn(7, 0));
        assert!(one != drawn(7, 1) && one != drawn(8, 0));
        for number in ["08", "09", "10", "11", "12"] {
            let count = one.iter().filter(|drawn| *drawn == number).count();
            // Five standard deviations.
            assert!((9_553..10_447).contains(&count), "{number}: {count}");
        }
        let all = TextWithHoles::parse(b"{{rand 0 18446744073709551615}}").expect("one");
        assert_eq!(filled(&all, &mut Numbers::new(1, 0, 0, 1)).len(), 20);
    }
}
