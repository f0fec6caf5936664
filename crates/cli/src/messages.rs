//! Messages as they are typed, and by which names their figures are kept.

use anyhow::{Context, Result, anyhow, bail};
use brunt_load::{MessageSpec, RequestSet, message_name};
use brunt_proto::messages::Template;

use crate::args::{LoadArguments, MessageArguments};
use crate::request::BODY_BYTES_MAX;
use crate::source::Source;

/// Characters of a message that name it.
const NAME_LENGTH_MAX: usize = 60;

/// The messages that `option` gave; `example` is one.
pub(crate) fn message_set(
    list: &MessageArguments,
    option: &str,
    example: &str,
    load: &LoadArguments,
) -> Result<RequestSet> {
    let sources = &list.messages;
    if sources.is_empty() {
        bail!("there is no message; give one with {option}, as in {option} '{example}'");
    }
    let readers = sources.iter().chain(&list.first);
    if readers.filter(|it| **it == Source::StandardInput).count() > 1 {
        bail!("only one message can be read from standard input; give the others as @FILE");
    }
    let redacts = load.output.redact;
    let mut messages = Vec::with_capacity(sources.len());
    for (number, source) in (1..).zip(sources) {
        let template = template(source, option, redacts)?;
        messages.push(MessageSpec {
            name: match source {
                _ if redacts => message_name(number),
                Source::Typed(text) => short(text),
                Source::File(path) => format!("@{}", path.display()),
                Source::StandardInput => "@-".to_owned(),
                Source::Variable(name) => format!("@env:{name}"),
            },
            template,
        });
    }
    RequestSet::messages_in(load.request_order(), messages).with_context(|| {
        format!(
            "there are more than {} messages; leave some out",
            RequestSet::REQUESTS_MAX
        )
    })
}

/// What is sent for one of them. With `--redact` no error shows it.
pub(crate) fn template(source: &Source, option: &str, redacts: bool) -> Result<Template> {
    match source {
        Source::Typed(text) if redacts => Template::parse(text).map_err(|_| {
            anyhow!("{option}: the message is malformed; run it without --redact to read how")
        }),
        Source::Typed(text) => Template::parse(text).with_context(|| format!("{option} '{text}'")),
        other => Ok(Template::constant(
            other.read("the message", BODY_BYTES_MAX)?,
        )),
    }
}

/// The beginning of a long name.
fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_LENGTH_MAX) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}
