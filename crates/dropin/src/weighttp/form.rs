//! The forms of weighttp's reports.

/// In whose form the report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON, of weighttp 0.5.
    Json,
    /// Text, of weighttp 0.4 and older.
    Text,
}
