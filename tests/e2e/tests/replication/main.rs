//! C1, C6, C8, C36, M10: standbys and subscribers.

mod initial_copy;
mod logical;
mod origins;
mod promotion;
mod standby;
