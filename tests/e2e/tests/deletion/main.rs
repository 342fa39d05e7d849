//! C7: which expired rows are deleted, which are kept, and what deletion meets in tables.

mod backlog;
mod blocked;
mod locks;
mod partitions;
mod races;
mod rls;
mod tables;
