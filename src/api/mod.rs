//! The SQL functions, one file a topic; `sql/functions.sql` declares them.

mod mongo;
pub(crate) mod policy;
mod rows;
mod status;
