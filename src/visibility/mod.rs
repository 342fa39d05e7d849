//! Expired rows are gone for every statement (C6).

#[cfg(since19)]
pub(crate) mod conflict_select;
pub(crate) mod constraint_ddl;
pub(crate) mod copy_to;
pub(crate) mod filter;
pub(crate) mod index_filter;
mod instants;
mod is_live;
mod kept;
mod own_query;
pub(crate) mod referential;
pub(crate) mod relation_info;
mod restriction;
pub(crate) mod row_locks;
pub(crate) mod statement;
mod support;
pub(crate) mod time_zone;

pub(crate) use restriction::live_by_rules;
