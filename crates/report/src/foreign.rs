//! Text that files, servers and other users wrote, made fit to be printed: on a terminal, in a
//! table, in JSON. Whatever prints it calls one of these, and nothing before it has to.

use std::borrow::Cow;
use std::io;

use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};

/// `text` with every character spelt out (`\u{1b}`) that a terminal would obey, or that would make
/// a line read as another one: control characters of both sets, line and paragraph separators,
/// marks and overrides of the direction of writing, and what has no width.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut printable = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_printable(character) {
            printable.push(character);
        } else {
            printable.extend(character.escape_unicode());
        }
    }
    Cow::Owned(printable)
}

/// Whether `character` shows as itself, and changes nothing about its neighbours.
fn is_printable(character: char) -> bool {
    !matches!(
        character,
        // C0, DELETE and C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Marks of the direction of writing, embeddings, overrides and isolates.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{206f}'
        // Separators of lines and paragraphs.
        | '\u{2028}' | '\u{2029}'
        // What has no width: soft hyphen, joiners, separators, byte order mark, annotations, tags.
        | '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// `text` as a cell of a table: printable, and nothing that a spreadsheet would compute. A cell
/// that would be a formula begins with an apostrophe; numbers are left as they are.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    let is_formula = text
        .trim_start()
        .starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
        || text.starts_with(['\t', '\r', '\n']);
    if is_formula && text.parse::<f64>().is_err() {
        return Cow::Owned(format!("'{}", printable(text)));
    }
    printable(text)
}

/// Indented JSON of `value`, in which what is not printable is escaped. Readers get back what was
/// written.
///
/// # Errors
///
/// When `out` refuses the bytes, or when `value` has no JSON form.
pub(crate) fn write_json(
    out: &mut dyn io::Write,
    value: &impl serde::Serialize,
) -> serde_json::Result<()> {
    let formatter = PrintableJson(PrettyFormatter::new());
    value.serialize(&mut serde_json::Serializer::with_formatter(out, formatter))
}

/// Indented JSON whose strings are printable.
struct PrintableJson<'a>(PrettyFormatter<'a>);

impl Formatter for PrintableJson<'_> {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(|character| !is_printable(character)) {
            let (before, from) = rest.split_at(at);
            self.0.write_string_fragment(writer, before)?;
            let mut characters = from.chars();
            let Some(character) = characters.next() else {
                break;
            };
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = characters.as_str();
        }
        self.0.write_string_fragment(writer, rest)
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        char_escape: CharEscape,
    ) -> io::Result<()> {
        self.0.write_char_escape(writer, char_escape)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What must not reach a terminal, one of each kind.
    const HOSTILE: &str = "a\x1b[31m\u{9b}31m\r\n\t\0\u{7f}\u{85}\u{202e}\u{2066}\u{200f}\u{61c}\
                           \u{200b}\u{feff}\u{2028}\u{2029}\u{ad}\u{2060}\u{e0041}z";

    #[test]
    fn what_a_terminal_would_obey_is_spelt_out() {
        for (text, safe) in [
            ("", ""),
            ("plain · µ ≥ ± … 漢字 🙂", "plain · µ ≥ ± … 漢字 🙂"),
            ("a\x1b[31mb", "a\\u{1b}[31mb"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\r\nb\u{202e}c", "a\\u{d}\\u{a}b\\u{202e}c"),
            ("\u{2028}\u{200b}", "\\u{2028}\\u{200b}"),
        ] {
            assert_eq!(printable(text), safe);
        }
        assert_eq!(printable(HOSTILE).matches("\\u{").count(), 19);
        assert!(printable(HOSTILE).chars().all(is_printable));
    }

    #[test]
    fn a_cell_is_no_formula() {
        for (text, safe) in [
            ("nginx", "nginx"),
            ("-12.5", "-12.5"),
            ("1e+3", "1e+3"),
            ("+1", "+1"),
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"http://h\")", "'=HYPERLINK(\"http://h\")"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("@SUM(1)", "'@SUM(1)"),
            ("  =1", "'  =1"),
            ("＝1", "'＝1"),
            ("\t=1", "'\\u{9}=1"),
            ("\rx", "'\\u{d}x"),
            ("x\x1b[2J", "x\\u{1b}[2J"),
        ] {
            assert_eq!(cell(text), safe);
        }
    }

    #[test]
    fn json_is_printable_and_read_back_as_it_was() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE, "\"\\/", 1.5, null, true, {}, []] });
        let mut bytes = Vec::new();
        write_json(&mut bytes, &value).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let told = |character: char| character == '\n' || is_printable(character);
        assert!(text.chars().all(told), "{text:?}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
        // Nothing else differs from what is usual.
        let plain = serde_json::json!({"a": ["µ\n", 1], "b": {}});
        let mut bytes = Vec::new();
        write_json(&mut bytes, &plain).unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            serde_json::to_string_pretty(&plain).unwrap()
        );
    }
}
