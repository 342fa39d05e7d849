//! Background deletion: expired rows leave the disk.
//!
//! | file | what |
//! |---|---|
//! | `launcher` | one process for the server: starts a worker where something is due |
//! | `worker` | one process (or more) for a database: which table is next |
//! | `tables` | which tables and partitions there are to sweep |
//! | `turn` | a turn at one table, and what comes of it |
//! | `sweep` | the two ways: in the order of an index, and by ranges of blocks |
//! | `attempt` | a batch within a turn: its size, its failure, what it counts |
//! | `batch` | one transaction: locks, identity, deletion |
//! | `piecemeal` | in a session's own transaction: what can be deleted goes |
//! | `job` | what a batch needs to know of its table |
//! | `lanes` | the rules by which its rows expire, each with its index |
//! | `cascade` | tables to which a deletion cascades |
//! | `blocked` | rows that cannot be deleted |
//! | `probe` | looks at a table without deleting |
//! | `whole` | partitions that go as a whole |
//! | `bounds` | which partitions can hold expired rows only |
//! | `partitions` | dropping one |
//! | `pace` | the pause between batches |
//! | `shared`, `state` | shared memory: databases and workers; tables |
//! | `writes` | what sessions tell the workers |
//! | `leave` | databases that somebody wants for themselves |
//! | `schedule`, `throttle`, `batch_size` | decisions, pure |

mod attempt;
mod batch;
mod batch_size;
mod blocked;
pub(crate) mod bounds;
mod cascade;
mod job;
mod lanes;
mod launcher;
pub(crate) mod leave;
mod log;
mod pace;
pub(crate) mod partitions;
mod piecemeal;
mod probe;
mod schedule;
pub(crate) mod shared;
pub(crate) mod state;
mod sweep;
mod tables;
mod throttle;
mod turn;
mod whole;
mod worker;
pub(crate) mod writes;

pub(crate) use batch::delete_all;
pub(crate) use piecemeal::{delete_what_can_go, has_expired};
pub(crate) use shared::WORKERS;

#[cfg(test)]
mod batch_size_test;
#[cfg(test)]
mod bounds_test;
#[cfg(test)]
mod schedule_test;
#[cfg(test)]
mod tables_test;
#[cfg(test)]
mod throttle_test;

/// Asks for shared memory and registers the launcher; once, at load.
pub(crate) fn init() {
    shared::init();
    launcher::register();
}
