//! The SQL functions, one file a topic; `sql/functions.sql` declares them.

mod columns;
mod deletion_problems;
mod disable;
mod document;
mod document_column;
mod enable;
mod giving_back;
mod guard;
mod indexes;
mod invalidate;
mod label;
mod looking;
mod mass_expiry;
mod mongo;
mod preview;
mod problems;
mod purge;
mod remaining;
mod resume;
mod rules;
mod seconds;
mod standing;
mod stats;
mod trigger_problems;
mod ttl_index;
