//! Which table, owner and index come next, and for how long: decisions, pure.

pub(in crate::worker) mod build_plan;
#[cfg(test)]
pub(in crate::worker) mod build_plan_test;
pub(in crate::worker) mod clock;
pub(in crate::worker) mod emptiness;
#[cfg(test)]
pub(in crate::worker) mod emptiness_test;
pub(in crate::worker) mod fairness;
#[cfg(test)]
pub(in crate::worker) mod fairness_test;
pub(crate) mod quota;
#[cfg(test)]
pub(in crate::worker) mod quota_test;
pub(in crate::worker) mod schedule;
#[cfg(test)]
pub(in crate::worker) mod schedule_model_test;
#[cfg(test)]
pub(in crate::worker) mod schedule_test;
pub(in crate::worker) mod summary;
#[cfg(test)]
pub(in crate::worker) mod summary_test;
pub(in crate::worker) mod throttle;
#[cfg(test)]
pub(in crate::worker) mod throttle_test;
