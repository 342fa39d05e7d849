//! What a time to live means: pure Rust, no PostgreSQL.
//!
//! Everything here decides; nothing here reads a catalog. The rules are those
//! of `docs/semantics.md` (C, D and M) and are named where they are used.

mod document;
mod expiry;
mod label;

pub(crate) use document::ttl_of_number_text;
pub(crate) use expiry::{cutoff, effective_ttl, expires_at, is_live, stamp};
pub(crate) use label::{IndexMethod, LABEL_VERSION, LabelError, Policy};

#[cfg(test)]
mod expiry_test;
#[cfg(test)]
mod label_test;
