//! Functions that set, change and end a time to live.

pub(in crate::api) mod adoption;
pub(in crate::api) mod archive;
pub(crate) mod asked;
pub(in crate::api) mod building;
pub(in crate::api) mod cluster;
pub(in crate::api) mod columns;
pub(in crate::api) mod counts;
pub(in crate::api) mod disable;
pub(in crate::api) mod document_column;
pub(in crate::api) mod enable;
pub(in crate::api) mod expire_after;
pub(in crate::api) mod giving_back;
pub(in crate::api) mod guard;
pub(in crate::api) mod indexes;
pub(in crate::api) mod invalidate;
pub(in crate::api) mod label;
pub(in crate::api) mod live_view;
pub(in crate::api) mod mass_expiry;
pub(in crate::api) mod pause;
pub(in crate::api) mod problem;
pub(in crate::api) mod reset_stats;
pub(in crate::api) mod resume;
pub(in crate::api) mod seconds;
pub(in crate::api) mod set_default;
pub(in crate::api) mod set_option;
pub(in crate::api) mod time_zone;
pub(in crate::api) mod ttl_index;
