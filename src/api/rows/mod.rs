//! Functions about rows: which are expired, how long they live, deleting and reviving them.

pub(in crate::api) mod deleting;
pub(in crate::api) mod document_ttl;
pub(in crate::api) mod expired;
pub(in crate::api) mod is_live;
pub(in crate::api) mod preview;
pub(in crate::api) mod purge;
pub(in crate::api) mod remaining;
pub(in crate::api) mod revive;
