//! Datagrams on their way.

use std::rc::Rc;

use brunt_io::transport::Ecn;

/// One datagram.
#[derive(Clone, Debug)]
pub struct Datagram {
    pub(super) bytes: Rc<[u8]>,
    pub(super) ecn: Option<Ecn>,
}
