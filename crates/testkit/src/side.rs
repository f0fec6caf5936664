//! What brunt's side knows of connections that are byte streams.

use std::rc::Rc;

use crate::link::LinkId;

/// What brunt's side knows of its connections, and what came with the latest event.
#[derive(Debug, Default)]
pub(crate) struct Side {
    pub(crate) slots: Vec<Option<LinkId>>,
    pub(crate) received: Received,
    pub(crate) received_stamp_ns: Option<u64>,
    /// Several pieces of answers that were taken at once.
    pub(crate) buffer: Vec<u8>,
}

/// Where the bytes of the latest `Received` are.
#[derive(Clone, Debug, Default)]
pub(crate) enum Received {
    #[default]
    Nothing,
    Piece(Rc<[u8]>, u32, u32),
    Buffer,
}
