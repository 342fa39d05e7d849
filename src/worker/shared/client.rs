//! For whom a process works.

/// An owner in a database: whose tables one worker deletes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::worker) struct Client {
    pub(in crate::worker) database: u32,
    pub(in crate::worker) owner: u32,
}
