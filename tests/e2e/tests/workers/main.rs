//! C7, C9, M9: the processes that delete: where they are, what they wait for, what ends them.

mod crashes;
mod databases;
mod killing;
mod presence;
mod wakeups;
