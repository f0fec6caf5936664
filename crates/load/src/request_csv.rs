//! Lists of requests as CSV files (RFC 4180), whose first row names the columns.

use std::num::NonZeroU32;

use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};

use crate::list_error::ListError;
use crate::list_line::{is_comment, weight};

/// The columns that there may be.
const COLUMNS: [&str; 4] = ["url", "weight", "method", "body"];

/// One request.
#[derive(Debug)]
pub(crate) struct CsvRow {
    pub(crate) line: usize,
    pub(crate) url: String,
    pub(crate) weight: NonZeroU32,
    /// Empty where none is given, as the body.
    pub(crate) method: String,
    pub(crate) body: String,
}

/// The rows of a file, one after the other.
#[derive(Debug)]
pub(crate) struct CsvRows<'a> {
    text: &'a [u8],
    reader: Reader<&'a [u8]>,
    /// Places of the columns; absent until their names are read.
    places: Option<[Option<usize>; COLUMNS.len()]>,
    record: StringRecord,
}

impl<'a> CsvRows<'a> {
    /// The rows of `text`, if its first line names columns, `url` among them.
    pub(crate) fn of(text: &'a [u8]) -> Option<Self> {
        let lines = text.split(|&byte| byte == b'\n');
        let mut lines = lines.map(|line| std::str::from_utf8(line).unwrap_or_default().trim());
        let first = lines.find(|line| !is_comment(line))?;
        let is_column = |name: &str| COLUMNS.contains(&name);
        let names: Vec<&str> = first.split(',').map(str::trim).collect();
        if names.len() < 2 || !names.contains(&"url") || !names.iter().all(|name| is_column(name)) {
            return None;
        }
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .comment(Some(b'#'))
            .from_reader(text);
        Some(Self {
            text,
            reader,
            places: None,
            record: StringRecord::new(),
        })
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> Result<Option<CsvRow>, ListError> {
        loop {
            let is_more = self.reader.read_record(&mut self.record);
            if !is_more.map_err(|error| refusal(&error))? {
                return Ok(None);
            }
            let line = self.line();
            let Some(places) = self.places else {
                self.places = Some(self.columns(line)?);
                continue;
            };
            let cell = |column: usize| {
                let place = places[column]?;
                self.record
                    .get(place)
                    .filter(|cell| !cell.trim().is_empty())
            };
            let [url, typed_weight, method, body] = [cell(0), cell(1), cell(2), cell(3)];
            return Ok(Some(CsvRow {
                line,
                url: url.unwrap_or_default().to_owned(),
                weight: typed_weight.map_or(Ok(NonZeroU32::MIN), |typed| weight(line, typed))?,
                method: method.unwrap_or_default().trim().to_owned(),
                body: body.unwrap_or_default().to_owned(),
            }));
        }
    }

    /// The line on which the last record begins, behind empty lines and comments.
    fn line(&self) -> usize {
        let (mut line, at) = self
            .record
            .position()
            .map_or((0, 0), |at| (at.line() as usize, at.byte() as usize));
        let rest = self.text.get(at..).unwrap_or_default();
        let lines = rest.split(|&byte| byte == b'\n');
        let is_skipped = |text: &&[u8]| text.starts_with(b"#") || matches!(*text, b"" | b"\r");
        line += lines.take_while(is_skipped).count();
        line
    }

    /// The places of the columns, which the first row names.
    fn columns(&self, line: usize) -> Result<[Option<usize>; COLUMNS.len()], ListError> {
        let mut places = [None; COLUMNS.len()];
        for (place, name) in self.record.iter().enumerate() {
            let column = COLUMNS.iter().position(|column| *column == name.trim());
            let Some(column) = column else {
                continue;
            };
            if places[column].replace(place).is_some() {
                let reason = format!("the column {} is there twice", COLUMNS[column]);
                return Err(ListError::Csv { line, reason });
            }
        }
        Ok(places)
    }
}

fn refusal(error: &csv::Error) -> ListError {
    let line = error.position().map_or(0, |at| at.line() as usize);
    match error.kind() {
        ErrorKind::Utf8 { .. } => ListError::NotText { line },
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => ListError::Csv {
            line,
            reason: format!(
                "it has {len} cells, and the first line names {expected_len} columns; a cell \
                 with a comma stands in quotation marks"
            ),
        },
        _ => ListError::Csv {
            line,
            reason: error.to_string(),
        },
    }
}
