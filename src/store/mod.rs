//! Where policies are kept (security labels) and how a session finds them.

pub(crate) mod cache;
pub(crate) mod ddl;
pub(crate) mod label_provider;
mod lookup;
mod sql;

pub(crate) use lookup::{
    Clock, Inherited, Rule, TablePolicy, expected_indexes, governing_label, index_of, label_of,
    labelled, labels,
};
pub(crate) use sql::{live_condition, rule_applies};
