//! What is set, what is wrong, and what workers have done.

pub(in crate::api) mod check;
mod cluster_figures;
pub(in crate::api) mod constraint_problems;
pub(in crate::api) mod deletion_problems;
pub(in crate::api) mod disclosure;
mod index_problems;
mod lasting_settings;
pub(in crate::api) mod library;
pub(in crate::api) mod node_reports;
mod parent_problems;
pub(in crate::api) mod problems;
pub(in crate::api) mod rules;
pub(in crate::api) mod shown_policy;
pub(in crate::api) mod stats;
pub(in crate::api) mod table_state;
pub(in crate::api) mod trigger_problems;
pub(in crate::api) mod worker_progress;
