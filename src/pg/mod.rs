//! The unsafe quarter: thin wrappers over PostgreSQL's C functions.
//!
//! Nothing here decides. Differences between server versions live here only.

pub(crate) mod catalog;
pub(crate) mod extension;
pub(crate) mod externs;
pub(crate) mod fmgr;
pub(crate) mod index;
pub(crate) mod lists;
pub(crate) mod nodes;
pub(crate) mod planner_input;
pub(crate) mod roles;
pub(crate) mod seclabel;
pub(crate) mod utility_hook;
pub(crate) mod xact;
