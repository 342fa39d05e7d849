//! The property test of keys and foreign keys: random sequences of statements
//! over random schemas whose rows expire, by rules C6 and C10; in some tables by partial
//! TTL indexes (M4).
//!
//! Two kinds of sequences:
//!
//! - *compared*: the same statements run on tables without TTL, whose expired
//!   rows are really deleted before every statement. Every answer must be the
//!   same: SQLSTATE, message, constraint, returned rows, and what is left, but for
//!   a few differences (`known.rs`). No statement of these makes a row expire while a live row refers to it: that
//!   row stays on disk, where the other side has nothing to compare it with.
//! - *wild*: no such care, more kinds of statements, and policies that change.
//!   Nothing may fail but for a reason, and that reason must be visible.
//!
//! After each of both, every constraint holds for the rows on disk
//! (`check.sql`), also after everything that is expired has been purged.

mod answer;
mod changes;
mod check;
mod generator;
mod known;
mod rows;
mod runner;
mod schema;
mod shrink;
mod sides;
mod upsert;
mod visible;

pub use runner::{Options, Summary, run};
