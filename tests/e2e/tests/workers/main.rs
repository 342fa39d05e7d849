//! C7, C9, M9: launcher and workers: when they run, what they wait for, and what ends them.

mod builder;
mod churn;
mod clock;
mod crashes;
mod databases;
mod forgotten;
mod killing;
mod outgrown;
mod presence;
mod resting;
mod wakeups;
