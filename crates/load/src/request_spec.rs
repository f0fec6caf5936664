//! One request: what it holds, owned or borrowed.

use brunt_proto::holes::{PlaceholderError, TextWithHoles, has_placeholder};
use serde::{Deserialize, Serialize};

use crate::stored_bytes;

/// What one request holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RequestSpec {
    /// Method, such as `GET`.
    pub method: String,
    /// Path and query, as sent.
    pub path: String,
    /// Header fields, in the order in which they are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "stored_bytes")]
    pub body: Vec<u8>,
    /// The bytes of one whole request in HTTP/1, where they are given: they are sent exactly so,
    /// and the other parts say what they mean.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "stored_bytes::optional"
    )]
    pub text: Option<Vec<u8>>,
    /// Whether something is filled in each time it is sent: in path, values of header fields and
    /// body, or else in the text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_placeholders: bool,
}

impl RequestSpec {
    /// A request with the method GET, and no header fields of its own.
    pub fn get(path: &str) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            text: None,
            has_placeholders: false,
        }
    }

    /// Has what is written as `{{seq}}`, `{{rand LOW HIGH}}` or `{{uuid}}` in its path, its header
    /// fields and its body filled in each time that it is sent.
    ///
    /// # Errors
    ///
    /// What looks like such a place is none.
    pub fn fill_in(&mut self) -> Result<(), PlaceholderError> {
        let values = self.headers.iter().map(|(_, value)| value.as_bytes());
        let parts = [self.path.as_bytes(), &self.body].into_iter().chain(values);
        self.has_placeholders = false;
        for part in parts.filter(|part| has_placeholder(part)) {
            TextWithHoles::parse(part)?;
            self.has_placeholders = true;
        }
        Ok(())
    }

    /// Has nothing filled in when it is sent: `\{{` stands for braces.
    ///
    /// # Errors
    ///
    /// There is such a place, or what looks like one.
    pub fn fill_in_nothing(&mut self) -> Result<(), PlaceholderError> {
        let text = |part: &mut String| -> Result<(), PlaceholderError> {
            let bytes = TextWithHoles::without_holes(part.as_bytes())?;
            *part = String::from_utf8_lossy(&bytes).into_owned();
            Ok(())
        };
        text(&mut self.path)?;
        let mut values = self.headers.iter_mut().map(|(_, value)| value);
        values.try_for_each(text)?;
        self.body = TextWithHoles::without_holes(&self.body)?;
        Ok(())
    }

    /// The name under which its figures stand, as [`RequestRef::name`].
    pub fn name(&self) -> String {
        self.view().name()
    }

    /// This request, borrowed.
    pub fn view(&self) -> RequestRef<'_> {
        RequestRef {
            method: &self.method,
            path: &self.path,
            headers: &self.headers,
            body: &self.body,
            text: self.text.as_deref(),
            has_placeholders: self.has_placeholders,
        }
    }
}

/// What figures of a request stand under: the path, behind the method unless that is GET.
pub(crate) fn name_of(method: &str, path: &str) -> String {
    match method {
        "GET" => path.to_owned(),
        method => format!("{method} {path}"),
    }
}

/// A request of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRef<'a> {
    /// The method, as [`RequestSpec::method`].
    pub method: &'a str,
    /// The path, as [`RequestSpec::path`].
    pub path: &'a str,
    /// The header fields, as [`RequestSpec::headers`].
    pub headers: &'a [(String, String)],
    /// The body, as [`RequestSpec::body`].
    pub body: &'a [u8],
    /// The bytes of the request where they are given, as [`RequestSpec::text`].
    pub text: Option<&'a [u8]>,
    /// Whether something is filled in, as [`RequestSpec::has_placeholders`].
    pub has_placeholders: bool,
}

impl RequestRef<'_> {
    /// A copy of it.
    pub fn to_spec(self) -> RequestSpec {
        RequestSpec {
            method: self.method.to_owned(),
            path: self.path.to_owned(),
            headers: self.headers.to_vec(),
            body: self.body.to_vec(),
            text: self.text.map(<[u8]>::to_vec),
            has_placeholders: self.has_placeholders,
        }
    }

    /// What its figures stand under, as [`name_of`] makes it.
    pub fn name(self) -> String {
        name_of(self.method, self.path)
    }

    /// Whether something that is `wanted` is filled in.
    pub(crate) fn has_text(self, wanted: fn(&TextWithHoles) -> bool) -> bool {
        if !self.has_placeholders {
            return false;
        }
        let values = self.headers.iter().map(|(_, value)| value.as_bytes());
        let parts = [
            self.path.as_bytes(),
            self.body,
            self.text.unwrap_or_default(),
        ];
        let mut parts = parts.into_iter().chain(values);
        parts.any(|part| TextWithHoles::parse(part).is_ok_and(|text| wanted(&text)))
    }

    /// Bytes of its body, as it is sent.
    pub(crate) fn body_bytes(self) -> u64 {
        if self.has_placeholders
            && let Ok(filled) = TextWithHoles::parse_body(self.body)
        {
            return filled.bytes.len() as u64;
        }
        self.body.len() as u64
    }

    /// Bytes that it takes on the wire, beside what is the same for all requests of a run.
    pub(crate) fn sent_bytes(self) -> u64 {
        if let Some(text) = self.text {
            return text.len() as u64;
        }
        let fields = self.headers.iter();
        let fields = fields.map(|(name, value)| name.len() + value.len() + b": \r\n".len());
        let head = self.method.len() + self.path.len() + fields.sum::<usize>();
        (head + self.body.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_in_every_part() {
        let mut plain = RequestSpec::get("/a{b}{{}}?{seq}");
        plain.body = b"{\"a\": {}}".to_vec();
        plain.fill_in().expect("there is none");
        assert!(!plain.has_placeholders && !plain.view().has_text(TextWithHoles::draws));
        type Put = fn(&mut RequestSpec, String);
        let puts: [Put; 3] = [
            |spec, text| spec.path = format!("/{text}"),
            |spec, text| spec.headers = vec![("A".to_owned(), text)],
            |spec, text| spec.body = text.into_bytes(),
        ];
        for put in puts {
            let with = |text: &str| {
                let mut spec = RequestSpec::get("/");
                put(&mut spec, text.to_owned());
                spec.fill_in().map(|()| spec)
            };
            let spec = with("{{seq}}").expect("one");
            assert!(spec.has_placeholders);
            assert!(
                spec.view().has_text(TextWithHoles::counts)
                    && !spec.view().has_text(TextWithHoles::draws)
            );
            for random in ["{{rand 1 2}}", "{{uuid}}"] {
                let spec = with(random).expect("one");
                assert!(
                    spec.view().has_text(TextWithHoles::draws)
                        && !spec.view().has_text(TextWithHoles::counts)
                );
            }
            assert!(with("{{rand 2 1}}").is_err() && with("{{now}}").is_err());
            let quoted = |text: &str| {
                let mut spec = RequestSpec::get("/");
                put(&mut spec, text.to_owned());
                spec.fill_in_nothing().map(|()| spec)
            };
            let mut braces = RequestSpec::get("/");
            put(&mut braces, "{{seq}}".to_owned());
            assert_eq!(quoted("\\{{seq}}"), Ok(braces));
            assert!(quoted("{{seq}}").is_err() && quoted("{{now}}").is_err());
            let stored = serde_json::to_string(&spec).expect("it can be stored");
            assert_eq!(
                serde_json::from_str::<RequestSpec>(&stored).ok(),
                Some(spec)
            );
        }
        let mut body = RequestSpec::get("/");
        body.body = b"{{rand 1 100}}".to_vec();
        body.fill_in().expect("one");
        assert_eq!(body.view().body_bytes(), 3);
    }
}
