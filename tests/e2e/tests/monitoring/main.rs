//! Complaints 6 and 9: what deletion does, and what keeps it from its work, is to be seen.

mod problems;
mod stats;
