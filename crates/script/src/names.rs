//! The names under which figures of requests are kept.

use std::collections::HashMap;

/// Longer names are no names: they are texts.
const NAME_BYTES_MAX: usize = 256;

/// Names in the order in which they came up.
#[derive(Debug)]
pub(crate) struct Names {
    /// Most names that are kept; requests with others have none.
    most: usize,
    list: Vec<String>,
    places: HashMap<Vec<u8>, u32>,
}

impl Names {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            list: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// The place of a name, which may be new; absent where there is no room for it.
    pub(crate) fn place(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        if name.is_empty() || name.len() > NAME_BYTES_MAX || self.list.len() >= self.most {
            return None;
        }
        let place = u32::try_from(self.list.len()).ok()?;
        self.places.insert(name.to_owned(), place);
        self.list.push(String::from_utf8_lossy(name).into_owned());
        Some(place)
    }

    /// All names.
    pub(crate) fn list(&self) -> &[String] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_place() {
        let mut names = Names::new(1_000);
        assert_eq!(names.place(b"login"), Some(0));
        assert_eq!(names.place(b"cart"), Some(1));
        assert_eq!(names.place(b"login"), Some(0));
        assert_eq!(names.list(), ["login", "cart"]);
    }

    #[test]
    fn names_are_bounded() {
        let mut names = Names::new(1_000);
        for i in 0..1_005 {
            let _ = names.place(format!("n{i}").as_bytes());
        }
        assert_eq!(names.list().len(), 1_000);
        assert_eq!(names.place(b"one more"), None);
        assert_eq!(names.place(b"n7"), Some(7));
        assert_eq!(Names::new(1_000).place(&[b'x'; NAME_BYTES_MAX + 1]), None);
    }
}
