//! C1, C6, C8, M10: standbys and subscribers.

mod logical;
mod promotion;
mod standby;
