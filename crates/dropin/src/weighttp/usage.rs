//! What weighttp prints about itself.

use super::form::Form;

const USAGE: &str = include_str!("usage.txt");
// A blank ends its first line.
const EXAMPLE: &str =
    "example: \n  weighttp -n 500000 -c 100 -t 2 -K 64 http://localhost/index.html\n\n";

pub(super) fn usage() -> String {
    [USAGE, EXAMPLE].concat()
}

/// The lines that name the version.
pub(super) fn version(form: Form) -> &'static str {
    match form {
        Form::Json => "\nweighttp 0.5 - lightweight and simple webserver benchmarking tool\n\n",
        Form::Text => "weighttp 0.4 - a lightweight and simple webserver benchmarking tool\n\n",
    }
}
