//! The protocols that the server speaks.

/// What a request comes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.0 and HTTP/1.1.
    Http1,
    Http2,
    Http3,
    /// Messages of WebSocket, each in the place of a request.
    WebSocket,
}

impl Protocol {
    /// Its code for an end without an error: of HTTP/2 (RFC 9113 section 7) but in HTTP/3 (RFC 9114
    /// section 8.1). WebSocket makes its own of the former.
    pub(crate) fn no_error(self) -> u32 {
        self.code(0, 0x100)
    }

    /// Its code for a fault of the server.
    pub(crate) fn internal_error(self) -> u32 {
        self.code(2, 0x102)
    }

    /// Its code for a request that was not processed.
    pub(crate) fn refused(self) -> u32 {
        self.code(7, 0x10b)
    }

    fn code(self, of_others: u32, of_http3: u32) -> u32 {
        if self == Self::Http3 {
            of_http3
        } else {
            of_others
        }
    }
}
