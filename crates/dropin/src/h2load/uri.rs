//! What is a URI to h2load.

/// Whether it has a scheme and a host.
pub(super) fn is_absolute(uri: &str) -> bool {
    uri.split_once("://").is_some_and(|(scheme, rest)| {
        let is_letter = |letter: char| letter.is_ascii_alphabetic();
        !scheme.is_empty()
            && scheme.chars().all(is_letter)
            && !rest.is_empty()
            && !rest.starts_with(['/', '?', '#', ':'])
    })
}

/// Whether it is a base for others.
pub(super) fn is_base(uri: &str) -> bool {
    is_absolute(uri) && path_of(uri).is_some()
}

/// Path and query of a URI, or of a path; absent where it is neither.
pub(super) fn path_of(uri: &str) -> Option<String> {
    let is_text = uri.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if !is_text || !(uri.starts_with('/') || is_absolute(uri)) {
        return None;
    }
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or(rest);
    let path = rest.find(['/', '?']).map_or("", |at| &rest[at..]);
    Some(match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    })
}
