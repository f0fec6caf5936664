//! Datagrams on their way.

use std::num::NonZeroU16;
use std::rc::Rc;

use brunt_io::transport::Ecn;

/// One datagram.
#[derive(Clone, Debug)]
pub struct Datagram {
    pub(super) bytes: Rc<[u8]>,
    pub(super) ecn: Option<Ecn>,
}

/// What came with the latest `Received` event.
#[derive(Debug, Default)]
pub(super) struct ReceivedDatagram {
    pub(super) bytes: Vec<u8>,
    pub(super) segment_bytes: Option<NonZeroU16>,
    pub(super) ecn: Option<Ecn>,
    pub(super) dropped: u32,
    pub(super) stamp_ns: Option<u64>,
}
