//! Thin, mostly unsafe wrappers over PostgreSQL's C functions.
//!
//! Nothing here decides, or knows what the extension is for. All differences between server
//! versions are here.

/// Calls functions of PostgreSQL that can raise errors, as pgrx's bindings do: at this
/// boundary an error becomes a panic. Nothing inside is to be dropped when one passes.
macro_rules! at_boundary {
    ($($work:tt)+) => {{
        #[allow(ffi_unwind_calls, reason = "inside pgrx's boundary")]
        let result = pgrx::pg_sys::ffi::pg_guard_ffi_boundary(|| { $($work)+ });
        result
    }};
}

pub(crate) mod activity;
pub(crate) mod after_delete;
pub(crate) mod assignment;
pub(crate) mod background;
pub(crate) mod brin;
pub(crate) mod call;
pub(crate) mod cascade;
pub(crate) mod catalog;
pub(crate) mod checks;
pub(crate) mod code;
pub(crate) mod composite;
pub(crate) mod constraints;
pub(crate) mod context;
pub(crate) mod databases;
pub(crate) mod defaults;
pub(crate) mod encoding;
pub(crate) mod evaluator;
pub(crate) mod executor;
pub(crate) mod externs;
#[cfg(since19)]
pub(crate) mod fast_path;
pub(crate) mod firing;
pub(crate) mod fmgr;
pub(crate) mod foreign_key;
pub(crate) mod functions_used;
pub(crate) mod gate;
pub(crate) mod index;
pub(crate) mod index_entry;
pub(crate) mod inheritance;
pub(crate) mod invalidation;
pub(crate) mod kept_query;
pub(crate) mod labels;
pub(crate) mod lists;
pub(crate) mod local_time;
pub(crate) mod locks;
pub(crate) mod look;
pub(crate) mod names;
pub(crate) mod namespaced_options;
pub(crate) mod nodes;
pub(crate) mod notify;
pub(crate) mod object_access;
pub(crate) mod owner_session;
pub(crate) mod parallel;
pub(crate) mod partition;
pub(crate) mod planned;
pub(crate) mod planned_table;
pub(crate) mod planner_input;
pub(crate) mod query;
pub(crate) mod relation;
pub(crate) mod replication;
pub(crate) mod report;
pub(crate) mod returned_rows;
pub(crate) mod roles;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod scoped;
pub(crate) mod session;
pub(crate) mod shmem;
pub(crate) mod stored_tree;
pub(crate) mod support;
pub(crate) mod syntax;
pub(crate) mod table;
mod temporary;
pub(crate) mod tids;
pub(crate) mod timeout;
pub(crate) mod timescale;
pub(crate) mod top_level;
pub(crate) mod trigger_queue;
pub(crate) mod triggers;
pub(crate) mod txn;
pub(crate) mod unguarded;
pub(crate) mod unique;
pub(crate) mod values;
pub(crate) mod variable;
pub(crate) mod versions;
pub(crate) mod wal;
pub(crate) mod xact;
