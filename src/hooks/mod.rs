//! The only entrance from PostgreSQL, background processes and the functions in SQL apart:
//! each hook is taken here, calls the rooms below in their order, and decides nothing.

pub(crate) mod executor;
pub(crate) mod planner;
pub(crate) mod relation_info;
pub(crate) mod transaction;
pub(crate) mod utility;

/// Installs all of them; once, at load.
pub(crate) fn init() {
    transaction::init();
    relation_info::init();
    planner::init();
    utility::init();
    executor::init();
}
