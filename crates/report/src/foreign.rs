//! Text that files, servers and other users wrote, made inert for each medium: a terminal, lines
//! that a CI system reads, HTML, XML, Markdown, a table, JSON. Whatever prints it calls one of
//! these, and nothing before it has to. Long texts are cut in the middle where people read them.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use crate::ReportError;

/// Text of a stranger, which has no form of its own: it is shown by one of these functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Foreign(String);

impl Foreign {
    /// Bytes as they came: what is not in UTF-8 is replaced.
    pub fn of(bytes: &[u8]) -> Self {
        Self(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The text for a line of a terminal: [`printable`].
    pub fn printable(&self) -> Cow<'_, str> {
        printable(&self.0)
    }

    /// The text for lines of a terminal: [`lines`].
    pub fn lines(&self) -> Cow<'_, str> {
        lines(&self.0)
    }
}

/// What begins a command of GitHub Actions wherever it stands in a line.
const COMMAND_INSIDE: &str = "##[";

/// `text` with every character spelt out (`\u{1b}`) that a terminal would obey, or that would make
/// a line read as another one: control characters of both sets, line and paragraph separators,
/// marks and overrides of the direction of writing, and what has no width.
pub fn printable(text: &str) -> Cow<'_, str> {
    spelt_out(text, is_printable)
}

/// A text of several lines with every character spelt out (`\u{1b}`) that a terminal would obey, or
/// that would make a line read as another one. Line ends and tabs are kept. A line that a CI system
/// would take for a command (`::error::`) is none any more.
pub fn lines(text: &str) -> Cow<'_, str> {
    let is_kept = |character| character == '\t' || is_printable(character);
    let inert = |line: &str| {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => line
                .strip_suffix('\r')
                .map_or((line, "\n"), |line| (line, "\r\n")),
            None => (line, ""),
        };
        let mut inert = spelt_out(line, is_kept).into_owned();
        if let Some(at) = command_in(&inert) {
            inert.replace_range(at..=at, COLON);
        }
        inert + end
    };
    let all: String = text.split_inclusive('\n').map(inert).collect();
    if all == text {
        return Cow::Borrowed(text);
    }
    Cow::Owned(all)
}

/// A colon, spelt out.
pub(crate) const COLON: &str = "\\u{3a}";

/// Where in a line a command of GitHub Actions begins, if it is one.
pub(crate) fn command_in(line: &str) -> Option<usize> {
    let start = line.trim_start();
    start.starts_with("::").then_some(line.len() - start.len())
}

fn spelt_out(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&is_kept) && !text.contains(COMMAND_INSIDE) {
        return Cow::Borrowed(text);
    }
    let mut inert = String::with_capacity(text.len() + 8);
    for (at, character) in text.char_indices() {
        if is_kept(character) && !text[at..].starts_with(COMMAND_INSIDE) {
            inert.push(character);
        } else {
            inert.extend(character.escape_unicode());
        }
    }
    Cow::Owned(inert)
}

/// `text` as the message of a workflow command of GitHub Actions, in which a line break would begin
/// another one.
pub fn annotation(text: &str) -> String {
    printable(text).replace('%', "%25")
}

/// `text` as the content of an element of HTML or of a quoted attribute.
pub(crate) fn html(text: &str) -> String {
    let mut escaped = printable(text).into_owned();
    for (character, entity) in [
        ('&', "&amp;"),
        ('<', "&lt;"),
        ('>', "&gt;"),
        ('"', "&quot;"),
        ('\'', "&#39;"),
    ] {
        escaped = escaped.replace(character, entity);
    }
    escaped
}

/// `text` as the content of an element of XML 1.0 or of a quoted attribute (sections 2.2 and 2.3).
/// Characters that have no form in XML are replaced.
pub(crate) fn xml(text: &str) -> String {
    html(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
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
fn cell(text: &str) -> Cow<'_, str> {
    let is_formula = text
        .trim_start()
        .starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
        || text.starts_with(['\t', '\r', '\n']);
    if is_formula && text.parse::<f64>().is_err() {
        return Cow::Owned(format!("'{}", printable(text)));
    }
    printable(text)
}

/// The name of `value` in data, as it is stored.
pub(crate) fn data_name(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

/// A table in CSV, whose cells are fit for spreadsheets.
pub(crate) fn write_csv(
    header: &[String],
    rows: impl Iterator<Item = Vec<String>>,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(header).map_err(io::Error::from)?;
    for row in rows {
        let cells = row.iter().map(|text| cell(text).into_owned());
        writer.write_record(cells).map_err(io::Error::from)?;
    }
    Ok(writer.flush()?)
}

/// JSON of `value`, a line for each field, with a newline at the end, in which what is not
/// printable is escaped. Readers get back what was written.
///
/// # Errors
///
/// When `out` refuses the bytes, or when `value` has no JSON form.
pub(crate) fn write_json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), ReportError> {
    let mut out = BufWriter::new(out);
    let mut serializer = Serializer::with_formatter(&mut out, PrintableJson::default());
    value.serialize(&mut serializer).map_err(|error| {
        if error.is_io() {
            ReportError::Output(error.into())
        } else {
            ReportError::Encode(error)
        }
    })?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// JSON whose strings are printable. Each field of an object stands on a line of its own; a list of
/// numbers stands on one line.
#[derive(Default)]
struct PrintableJson {
    /// Objects that are open.
    depth: usize,
    /// Whether the innermost of them has no field yet.
    is_empty: bool,
}

impl PrintableJson {
    fn new_line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for PrintableJson {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(|character| !is_printable(character)) {
            let (before, from) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut characters = from.chars();
            let Some(character) = characters.next() else {
                break;
            };
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.is_empty = true;
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.is_empty = false;
        if !first {
            writer.write_all(b",")?;
        }
        self.new_line(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if !std::mem::take(&mut self.is_empty) {
            self.new_line(writer)?;
        }
        writer.write_all(b"}")
    }
}

/// Most characters of a URL, or of a word of a command line, that are printed: whole ones are in
/// the JSON form.
pub(crate) const WORD_CHARACTERS: usize = 300;

/// What stands for the rest.
const DOTS: &str = "...";

/// At most `characters` of `text`: its beginning and its end. More is left of the end, which tells
/// more of a long path.
pub(crate) fn shortened(text: &str, characters: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= characters {
        return Cow::Borrowed(text);
    }
    let kept = characters.saturating_sub(DOTS.len());
    let head: String = text.chars().take(kept / 3).collect();
    let tail: String = text.chars().skip(length - (kept - kept / 3)).collect();
    Cow::Owned(format!("{head}{DOTS}{tail}"))
}

/// A URL, or a word of a command line, as reports for people print it.
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    shortened(text, WORD_CHARACTERS)
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
    fn lines_stay_lines_and_are_no_commands() {
        for (text, safe) in [
            ("", ""),
            (
                "HTTP/1.1 200 OK\r\nA:\tb\r\n\r\n",
                "HTTP/1.1 200 OK\r\nA:\tb\r\n\r\n",
            ),
            ("a: ::b\n[::1]:80", "a: ::b\n[::1]:80"),
            (
                "a\rb\x1b\u{7}\nc\u{202e}",
                "a\\u{d}b\\u{1b}\\u{7}\nc\\u{202e}",
            ),
            ("a\n \t::error::b\n", "a\n \t\\u{3a}:error::b\n"),
            ("::set-env x\r\n", "\\u{3a}:set-env x\r\n"),
            ("a ##[error]b", "a \\u{23}#[error]b"),
        ] {
            assert_eq!(lines(text), safe);
            assert_eq!(lines(&lines(text)), safe, "twice");
        }
        assert_eq!(annotation("50 %\n::error::x"), "50 %25\\u{a}::error::x");
        let bytes = Foreign::of(b"a\xff<b>\x1b");
        assert_eq!(bytes.printable(), "a\u{fffd}<b>\\u{1b}");
    }

    #[test]
    fn markup_is_text() {
        assert_eq!(
            html("</script><!-- \"a\" 'b' & \u{2028}\u{202e}"),
            "&lt;/script&gt;&lt;!-- &quot;a&quot; &#39;b&#39; &amp; \\u{2028}\\u{202e}"
        );
        assert_eq!(xml("a\0<\u{ffff}"), "a\\u{0}&lt;\u{fffd}");
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
        let is_inert = |character: char| character == '\n' || is_printable(character);
        assert!(text.chars().all(is_inert), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        let plain = serde_json::json!({"a": ["µ\n", 1], "b": [{"c": 2}]});
        let mut bytes = Vec::new();
        write_json(&mut bytes, &plain).unwrap();
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "{\n  \"a\": [\"µ\\n\",1],\n  \"b\": [{\n    \"c\": 2\n  }]\n}\n"
        );
    }

    #[test]
    fn both_ends_are_kept() {
        assert_eq!(shortened("/short", 31), "/short");
        let exact = "x".repeat(31);
        assert_eq!(shortened(&exact, 31), exact);
        let long = format!("/begin/{}/end", "m".repeat(50));
        let short = shortened(&long, 31);
        assert_eq!(short.chars().count(), 31);
        assert!(short.starts_with("/begin/"), "{short}");
        assert!(short.ends_with("mmm/end"), "{short}");
        let url = format!("http://h/?{}", "q".repeat(9_000));
        assert_eq!(word(&url).len(), WORD_CHARACTERS);
    }
}
