//! Deletion of one table's expired rows, without shared memory.
//!
//! | file | what |
//! |---|---|
//! | `batch` | one transaction: locks, identity, deletion |
//! | `worker_transaction` | transactions of a background worker, and what they leave in its session |
//! | `batch_size` | how many rows a batch takes, and in which order (pure) |
//! | `job` | what a batch needs to know of its table |
//! | `expiry_keys` | what the table's rows expire by, each with its index |
//! | `deleter` | deletes row by row or by a statement: the worker, `ttl.purge`, what precedes DDL |
//! | `receiver` | deletes rows by the table access method while a query finds them |
//! | `reach` | whose code a deletion reaches by foreign keys |
//! | `left_to_owner` | rows that a session leaves to the owner's worker |
//! | `referred` | expired rows that live rows refer to |
//! | `referring`, `removals` | expired rows that refer to a row which goes; the queries for it, kept |
//! | `replanned` | a foreign key's plan that is freed while it runs |
//! | `piecemeal`, `purge_tables` | deletion in a session's own transaction |
//! | `archiving` | the table into which deleted rows go |
//! | `underway` | what `ttl.deleting()` says |
//! | `set_aside` | rows that are left alone for a while |
//! | `probe` | looks at a table without deleting |
//! | `partition_bounds` | which partitions can hold expired rows only |
//! | `partitions` | dropping such a partition |
//! | `message` | messages in the WAL for consumers of logical decoding |

pub(crate) mod archive_check;
pub(crate) mod archiving;
pub(crate) mod batch;
pub(crate) mod batch_size;
mod deleter;
pub(crate) mod expiry_keys;
pub(crate) mod job;
pub(crate) mod left_to_owner;
pub(crate) mod message;
pub(crate) mod partition_bounds;
pub(crate) mod partitions;
pub(crate) mod piecemeal;
pub(crate) mod probe;
pub(crate) mod purge_tables;
pub(crate) mod reach;
pub(crate) mod receiver;
pub(crate) mod referred;
pub(crate) mod referring;
pub(crate) mod removals;
pub(crate) mod replanned;
pub(crate) mod set_aside;
pub(crate) mod underway;
pub(crate) mod worker_transaction;

#[cfg(test)]
mod batch_size_test;
#[cfg(test)]
mod partition_bounds_test;
