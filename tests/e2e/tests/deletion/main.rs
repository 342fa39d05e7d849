//! C7: which expired rows are deleted, which stay, and how deletion handles all kinds of tables.

mod archive;
mod backlog;
mod blocked;
mod chains;
mod graphs;
mod left_rows;
mod locks;
mod partitions;
mod races;
mod ranges;
mod rings;
mod rls;
mod tables;
mod unreadable;
