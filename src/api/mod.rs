//! The SQL functions, one file a topic; `sql/functions.sql` declares them.

mod mongo;
pub(crate) mod policy;
mod rows;
mod status;

/// Called once, at load.
pub(crate) fn init() {
    crate::ddl::new_problems::init(status::problems::by_statement);
}
