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
//! | `shared`, `owners` | shared memory: databases and workers; the time that owners have used |
//! | `state`, `progress`, `claims` | shared memory: tables; how far each is; which worker is at which |
//! | `standing` | how deletion stands in a table, for whoever looks |
//! | `writes` | what sessions tell the workers |
//! | `leave` | databases that somebody wants for themselves |
//! | `schedule`, `fairness`, `throttle`, `batch_size` | decisions, pure |

mod adopt;
mod attempt;
mod batch;
mod batch_size;
mod blocked;
pub(crate) mod bounds;
mod cascade;
mod claims;
mod fairness;
mod job;
mod kept;
mod lanes;
mod launcher;
pub(crate) mod leave;
mod log;
mod owners;
mod pace;
pub(crate) mod partitions;
mod piecemeal;
pub(crate) mod prepared;
mod probe;
mod progress;
mod schedule;
pub(crate) mod shared;
pub(crate) mod standing;
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
mod fairness_test;
#[cfg(test)]
mod schedule_model_test;
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
