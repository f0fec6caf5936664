//! SETTINGS (RFC 9114 section 7.2.4, RFC 9204 section 5).

/// A setting of a SETTINGS frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Bytes of the dynamic table that the peer's encoder may use. Initially 0.
    QpackMaxTableCapacity(u64),
    /// Bytes of a field section once decoded. Initially without limit. Advice only.
    MaxFieldSectionSize(u64),
    /// Streams that may wait for insertions into the dynamic table. Initially 0.
    QpackBlockedStreams(u64),
    /// A setting of HTTP/2 that HTTP/3 has not, which may not be sent (RFC 9114 section 7.2.4.1).
    Http2 {
        /// Its identifier.
        id: u8,
        /// Its value.
        value: u64,
    },
    /// A setting that neither RFC defines; to be passed over.
    Other {
        /// Its identifier.
        id: u64,
        /// Its value.
        value: u64,
    },
}

impl Setting {
    /// The setting with this identifier.
    pub const fn of(id: u64, value: u64) -> Self {
        match id {
            0x1 => Self::QpackMaxTableCapacity(value),
            0x6 => Self::MaxFieldSectionSize(value),
            0x7 => Self::QpackBlockedStreams(value),
            // RFC 9114 section 11.2.2.
            0x0 | 0x2 | 0x3 | 0x4 | 0x5 => Self::Http2 {
                id: id as u8,
                value,
            },
            _ => Self::Other { id, value },
        }
    }

    /// Its identifier and value.
    pub const fn parts(self) -> (u64, u64) {
        match self {
            Self::QpackMaxTableCapacity(value) => (0x1, value),
            Self::MaxFieldSectionSize(value) => (0x6, value),
            Self::QpackBlockedStreams(value) => (0x7, value),
            Self::Http2 { id, value } => (id as u64, value),
            Self::Other { id, value } => (id, value),
        }
    }
}

/// What the peer's SETTINGS say; absent where they do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of the dynamic table that our encoder might use.
    pub qpack_max_table_capacity: Option<u64>,
    /// Bytes of a field section that the peer takes.
    pub max_field_section_size: Option<u64>,
    /// Streams that might wait for insertions of our encoder.
    pub qpack_blocked_streams: Option<u64>,
}

/// A setting may not be there, or came twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forbidden;

impl Settings {
    /// Takes a setting.
    pub(super) fn add(&mut self, setting: Setting) -> Result<(), Forbidden> {
        let (known, value) = match setting {
            Setting::QpackMaxTableCapacity(bytes) => (&mut self.qpack_max_table_capacity, bytes),
            Setting::MaxFieldSectionSize(bytes) => (&mut self.max_field_section_size, bytes),
            Setting::QpackBlockedStreams(streams) => (&mut self.qpack_blocked_streams, streams),
            Setting::Http2 { .. } => return Err(Forbidden),
            Setting::Other { .. } => return Ok(()),
        };
        match known.replace(value) {
            None => Ok(()),
            Some(_) => Err(Forbidden),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_come_back_and_those_of_http2_are_forbidden() {
        for id in 0..0x40 {
            let setting = Setting::of(id, 77);
            assert_eq!(setting.parts(), (id, 77));
            let is_forbidden = matches!(id, 0 | 2..=5);
            let added = Settings::default().add(setting);
            assert_eq!(added.is_err(), is_forbidden, "{id}");
        }
    }

    #[test]
    fn what_is_known_may_come_once() {
        let mut settings = Settings::default();
        for id in [1, 6, 7, 0x21, 0x21] {
            assert_eq!(settings.add(Setting::of(id, id * 10)), Ok(()));
        }
        let expected = Settings {
            qpack_max_table_capacity: Some(10),
            max_field_section_size: Some(60),
            qpack_blocked_streams: Some(70),
        };
        assert_eq!(settings, expected);
        for id in [1, 6, 7] {
            assert_eq!(settings.add(Setting::of(id, 0)), Err(Forbidden), "{id}");
        }
    }
}
