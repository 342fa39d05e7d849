//! M1 to M15: rows that expire by TTL indexes.

mod deleted;
mod expressions;
mod moved;
mod partitions;
mod turns;
