//! The SQL functions, one file a topic; `sql/functions.sql` declares them.

mod disable;
mod document;
mod enable;
mod guard;
mod indexes;
mod invalidate;
mod preview;
mod problems;
mod purge;
mod resume;
mod revival;
mod stats;
