//! Where policies are kept (security labels) and how a session finds them.

mod added;
pub(crate) mod cache;
pub(crate) mod ddl;
pub(crate) mod label_provider;
mod lookup;
pub(crate) mod refusal;
mod sql;

pub(crate) use cache::governing_label;
pub(crate) use lookup::{
    Clock, Inherited, Rule, TablePolicy, expected_indexes, index_of, label_of, labels, read_label,
};
pub(crate) use sql::{live_condition, rule_applies};
