//! Background processes, shared memory, timeouts, activity.

pub(crate) mod activity;
pub(crate) mod background;
pub(crate) mod notify;
pub(crate) mod parallel;
pub(crate) mod shmem;
pub(crate) mod timeout;
