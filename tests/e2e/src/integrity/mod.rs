//! C6, C10, M4: the property test of keys and foreign keys. Random sequences of statements run on
//! random schemas whose rows expire, in some tables by partial TTL indexes.
//!
//! Two kinds of sequences:
//!
//! - *compared*: the same statements run on tables without TTL, whose expired rows are really
//!   deleted before each statement. Every answer must be the same (SQLSTATE, message, constraint,
//!   returned rows, remaining rows), but for a few differences (`known.rs`). No statement of these
//!   makes a row expire while a live row refers to it: such a row stays on disk, and the other side
//!   has nothing to compare.
//! - *wild*: without these restrictions, with more kinds of statements and changes of policy. A
//!   statement may fail only for a reason that the user can see.
//!
//! After both, every constraint holds for the rows on disk (`check.sql`), and again after all
//! expired rows have been purged.

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
