//! Where policies are kept (security labels) and how a session finds them; TTL indexes and
//! the extension itself, as they stand in the catalogs.

pub(crate) mod cache;
pub(crate) mod dates;
mod errors;
pub(crate) mod expiry_index;
pub(crate) mod extension;
pub(crate) mod label_provider;
pub(crate) mod missing_index;
pub(crate) mod override_check;
pub(crate) mod paused_tables;
pub(crate) mod policy_lock;
mod policy_lookup;
pub(crate) mod predicate;
mod read_labels;
pub(crate) mod release;
pub(crate) mod seclabel;
mod sql;
pub(crate) mod stored_calls;
pub(crate) mod succession;
mod table_policy;
pub(crate) mod time_zone;
pub(crate) mod ttl_index;
pub(crate) mod written;

pub(crate) use cache::{all_labels, governing_label};
pub(crate) use policy_lookup::{index_of, without_its_index};
pub(crate) use read_labels::{label_of, labels, read_label};
pub(crate) use sql::{kept_condition, live_condition, rule_applies, rule_key};
pub(crate) use table_policy::{Clock, DateSource, Inherited, Rule, TablePolicy};

#[cfg(test)]
mod release_test;
