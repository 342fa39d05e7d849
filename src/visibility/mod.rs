//! Expired rows are gone for every statement (C6).

#[cfg(since19)]
pub(crate) mod conflict_select;
pub(crate) mod copy_to;
pub(crate) mod filter;
pub(crate) mod index_filter;
mod instant_functions;
mod live_support;
pub(crate) mod local_time_functions;
mod own_query;
pub(crate) mod planned_statement;
pub(crate) mod referential;
pub(crate) mod restrict_relation;
mod restriction;
pub(crate) mod row_locks;

pub(crate) use restriction::live_by_rules;
