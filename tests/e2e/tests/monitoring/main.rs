//! Complaints 6 and 9: users can see what deletion does and what prevents it.

mod check;
mod problems;
mod programs;
mod progress;
mod prometheus;
mod statements;
mod stats;
mod stopped;
