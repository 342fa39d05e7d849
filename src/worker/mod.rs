//! Background deletion: which table is next, in which process, and when.
//!
//! | file | what |
//! |---|---|
//! | `launcher`, `starting` | one process for the server, connected to no database: takes writes into the schedule, starts the others |
//! | `scheduler` | a superuser's process for a database: reads the policies into shared memory |
//! | `process` | a worker: belongs to one owner in one database; which table is next |
//! | `builder`, `build_work`, `builds` | an index builder, which belongs to an owner, too; what it finds to do; what is wanted, in shared memory |
//! | `clients` | which owner gets the next worker |
//! | `processes` | shared memory: the processes, and what each is for |
//! | `marks`, `wakeups`, `prepared` | what sessions tell at commit and at COMMIT PREPARED |
//! | `tables`, `found` | which tables and partitions there are to sweep; what the scheduler found of each, until it is invalidated |
//! | `turn`, `pass_end` | a turn at one table; what is left when all is done, and when to look again |
//! | `sweep` | the two orders: an index's, and the heap's |
//! | `sweep_ranges`, `vain` | the blocks that a BRIN index leads to; those without an expired row (pure) |
//! | `attempt` | a batch within a turn: its size, its failure, what it counts |
//! | `blocked`, `unreadable` | rows that cannot be deleted; blocks that cannot be read |
//! | `whole`, `emptiness` | dropping partitions as a whole; when empty ones (pure) |
//! | `pace` | the pause between batches |
//! | `shared`, `owners` | shared memory: databases; the time that owners have used |
//! | `state`, `progress`, `claims` | shared memory: tables; how far each is; which worker is at which |
//! | `resting` | whether deletion of a table is paused, or outside its window |
//! | `report` | shared memory: what each worker is at |
//! | `kept` | counters that survive a restart |
//! | `standing` | how deletion stands in a table, for views and functions |
//! | `evict` | leaving databases that a statement needs without connections |
//! | `places` | places in shared memory for tables that get a time to live |
//! | `schedule`, `fairness`, `quota`, `throttle`, `build_plan`, `clock` | decisions, pure |

mod attempt;
mod blocked;
mod build_plan;
mod build_work;
pub(crate) mod builder;
mod builds;
mod claims;
mod clients;
mod clock;
mod emptiness;
pub(crate) mod evict;
mod fairness;
mod found;
mod kept;
mod launcher;
mod log;
mod marks;
mod owners;
mod pace;
mod pass_end;
pub(crate) mod places;
pub(crate) mod prepared;
mod process;
mod processes;
mod progress;
pub(crate) mod quota;
pub(crate) mod report;
pub(crate) mod resting;
mod schedule;
mod scheduler;
mod shards;
pub(crate) mod shared;
pub(crate) mod standing;
mod starting;
pub(crate) mod state;
mod sweep;
mod sweep_ranges;
mod tables;
mod throttle;
mod turn;
mod unreadable;
mod vain;
pub(crate) mod wakeups;
mod whole;

#[cfg(test)]
mod build_plan_test;
#[cfg(test)]
mod emptiness_test;
#[cfg(test)]
mod fairness_test;
#[cfg(test)]
mod marks_test;
#[cfg(test)]
mod quota_test;
#[cfg(test)]
mod schedule_model_test;
#[cfg(test)]
mod schedule_test;
#[cfg(test)]
mod throttle_test;
#[cfg(test)]
mod vain_test;

/// Asks for shared memory and registers the launcher; once, at load.
pub(crate) fn init() {
    crate::pg::server::shmem::init::<shared::Contents>();
    launcher::register();
}
