//! The texts that sessions send, with the names of their requests.

use std::collections::HashMap;

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Requests as they are sent, by their numbers, and the names that figures stand under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionTexts {
    texts: Vec<Text>,
    names: Vec<String>,
    places: HashMap<String, u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    bytes: Vec<u8>,
    /// Where further header fields can stand.
    fields_end: usize,
    name: u32,
}

impl SessionTexts {
    /// Adds the text of one request of HTTP/1.1, and gives its number.
    pub fn add(&mut self, bytes: Vec<u8>, name: &str) -> u32 {
        let name = match self.places.get(name) {
            Some(&place) => place,
            None => {
                let place = self.names.len() as u32;
                self.names.push(name.to_owned());
                self.places.insert(name.to_owned(), place);
                place
            }
        };
        let mut windows = bytes.windows(HEAD_END.len());
        let head_end = windows.position(|window| window == HEAD_END);
        let fields_end = head_end.map_or(bytes.len(), |at| at + 2);
        self.texts.push(Text {
            bytes,
            fields_end,
            name,
        });
        self.texts.len() as u32 - 1
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.texts.len()
    }

    /// The bytes of the request of this number.
    pub fn bytes(&self, number: u32) -> &[u8] {
        &self.texts[number as usize].bytes
    }

    /// The names that there are.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The place of the name of a request among [`SessionTexts::names`].
    pub(super) fn name_of(&self, number: u32) -> u32 {
        self.texts[number as usize].name
    }

    /// Appends the text of a request, with `field` (a header line with its end, or nothing) behind
    /// its other header fields.
    pub(super) fn append(&self, number: u32, field: &[u8], text: &mut Vec<u8>) {
        let Text {
            bytes, fields_end, ..
        } = &self.texts[number as usize];
        let (before, behind) = bytes.split_at(*fields_end);
        for part in [before, field, behind] {
            text.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_goes_behind_the_others() {
        let mut texts = SessionTexts::default();
        let post = b"POST /a HTTP/1.1\r\nHost: h\r\n\r\nx\r\n\r\ny";
        assert_eq!(texts.add(post.to_vec(), "a"), 0);
        assert_eq!(texts.add(b"GET".to_vec(), "b"), 1);
        assert_eq!(texts.add(b"PUT".to_vec(), "a"), 2);
        assert_eq!((texts.count(), texts.names().len()), (3, 2));
        assert_eq!((texts.name_of(1), texts.name_of(2)), (1, 0));
        let mut text = Vec::new();
        texts.append(0, b"Cookie: c\r\n", &mut text);
        let expected = b"POST /a HTTP/1.1\r\nHost: h\r\nCookie: c\r\n\r\nx\r\n\r\ny";
        assert_eq!(text, expected);
    }
}
