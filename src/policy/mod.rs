//! The rules of a time to live: pure Rust, no PostgreSQL, no catalogs.
//!
//! They are those of `docs/semantics.md` (C, D and M), named where they are used.

mod added;
mod archive;
mod change;
mod column_names;
mod document;
mod expiry;
mod instants;
mod label;
mod local_state;
mod options;
mod rest;
mod rule;
mod seconds;
mod table_options;
mod zone;

pub(crate) use added::Added;
pub(crate) use archive::{Archive, ExpiredThere, batch_payload};
pub(crate) use change::{lagging, micros};
pub(crate) use column_names::{is_creation_time, is_end, is_event};
pub(crate) use document::{int32_of_number_text, ttl_of_number_text};
pub(crate) use expiry::{
    FIRST_TIMESTAMP, INFINITY, MINUS_INFINITY, cutoff, effective_ttl, expires_at, expiry_key,
    inheriting_key, is_live, is_override, overriding_key, refreshed, stamp, truncate_to_second,
};
pub(crate) use instants::{
    EpochUnit, add_fractional_seconds, add_interval, add_seconds, from_epoch,
    from_fractional_epoch, from_iso8601,
};
pub(crate) use label::{IndexMethod, MAX_LABEL_BYTES, Policy, too_large};
pub(crate) use local_state::{ArchiveChoice, Home, LocalState, MAX_LOCAL_STATE_BYTES, Shortened};
pub(crate) use options::{OPTIONS, TableOption, Value, option};
pub(crate) use rest::{LocalTime, PauseEnd, Rest, Resting, Window};
pub(crate) use rule::{
    IndexRule, day_of_instant, earliest, index_expiry, instant_of_day, is_live_by_index,
    is_zone_name,
};
pub(crate) use seconds::{NotSeconds, seconds_of_interval, seconds_of_number};
pub(crate) use table_options::TableOptions;
pub(crate) use zone::{
    SameOffset, earliest_local, instant_of_local, latest_instant, latest_local, local_of_instant,
    same_offset,
};

#[cfg(test)]
mod change_test;
#[cfg(test)]
mod column_names_test;
#[cfg(test)]
mod expiry_test;
#[cfg(test)]
mod instants_test;
#[cfg(test)]
mod label_rules_test;
#[cfg(test)]
mod label_test;
#[cfg(test)]
mod options_test;
#[cfg(test)]
mod rest_test;
#[cfg(test)]
mod rule_test;
#[cfg(test)]
mod seconds_test;
#[cfg(test)]
mod table_options_test;
#[cfg(test)]
mod zone_test;
