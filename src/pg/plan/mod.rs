//! What the planner reads and makes.

pub(crate) mod foreign_key_query;
pub(crate) mod planned_table;
pub(crate) mod planner_input;
pub(crate) mod support;
