//! M1 to M12: rows that expire by TTL indexes.

mod deleted;
mod moved;
mod partitions;
mod turns;
