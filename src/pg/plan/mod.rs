//! What the planner reads and makes.

pub(crate) mod planned_table;
pub(crate) mod planner_input;
pub(crate) mod support;
