//! The executor: tables, scans, triggers, constraints, queries.

pub(in crate::pg) mod analysis;
pub(crate) mod assignment;
pub(crate) mod call;
pub(crate) mod checks;
pub(crate) mod composite;
pub(crate) mod evaluator;
pub(crate) mod executor;
#[cfg(since19)]
pub(crate) mod fast_path;
pub(crate) mod firing;
pub(crate) mod function_hook;
pub(crate) mod guarded_planning;
pub(crate) mod kept_query;
pub(crate) mod query;
pub(crate) mod relation;
pub(crate) mod returned_rows;
pub(crate) mod scan;
pub(crate) mod table;
pub(crate) mod unique;
pub(crate) mod versions;
pub(crate) mod wal;
