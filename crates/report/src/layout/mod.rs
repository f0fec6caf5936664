//! The ways to lay a page out.

pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod text;
