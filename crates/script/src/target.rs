//! What a script knows of the target: the parts of its URL, as they were typed.

/// The parts of a URL as wrk gives them to scripts: nothing in them is normalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptTarget {
    /// `http` or `https`.
    pub scheme: String,
    /// Name or address, without brackets.
    pub host: String,
    /// The port as typed; absent without one.
    pub port: Option<String>,
    /// Path, query and fragment as typed; `/` without a path.
    pub path: String,
    /// The whole URL, as typed.
    pub url: String,
}

impl ScriptTarget {
    /// Takes a URL apart; `None` where it has no scheme or no host.
    pub fn from_url(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let authority = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed.split_once(']')?;
                (host, after.strip_prefix(':'))
            }
            None => match authority.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        if scheme.is_empty() || host.is_empty() {
            return None;
        }
        Some(Self {
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            port: port.filter(|port| !port.is_empty()).map(str::to_owned),
            path: if rest.starts_with('/') { rest } else { "/" }.to_owned(),
            url: url.to_owned(),
        })
    }

    /// What addresses are looked up with, beside the host: the port, or the scheme.
    pub fn service(&self) -> &str {
        self.port.as_deref().unwrap_or(&self.scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> (String, String, Option<String>, String) {
        let target = ScriptTarget::from_url(url).expect(url);
        (target.scheme, target.host, target.port, target.path)
    }

    fn expected(
        scheme: &str,
        host: &str,
        port: Option<&str>,
        path: &str,
    ) -> (String, String, Option<String>, String) {
        (
            scheme.into(),
            host.into(),
            port.map(Into::into),
            path.into(),
        )
    }

    #[test]
    fn paths_are_as_typed() {
        let path = "/p/a?q=1#frag";
        let url = format!("http://h:8080{path}");
        assert_eq!(parts(&url), expected("http", "h", Some("8080"), path));
        assert_eq!(parts("http://h"), expected("http", "h", None, "/"));
        assert_eq!(parts("http://h?x=1"), expected("http", "h", None, "/"));
    }

    #[test]
    fn hosts_may_be_addresses() {
        assert_eq!(
            parts("https://[::1]:8443/x"),
            expected("https", "::1", Some("8443"), "/x")
        );
        assert_eq!(parts("http://u:p@h/"), expected("http", "h", None, "/"));
    }

    #[test]
    fn what_has_no_host_is_no_target() {
        assert_eq!(ScriptTarget::from_url("localhost:80"), None);
        assert_eq!(ScriptTarget::from_url("http:///x"), None);
    }
}
