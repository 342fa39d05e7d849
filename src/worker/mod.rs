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

/// Asks for shared memory and registers the launcher; once, at load.
pub(crate) fn init() {
    crate::pg::server::shmem::init::<shared::Contents>();
    process::launcher::register();
}

pub(crate) mod builder;
mod process;
pub(crate) mod queue;
pub(crate) mod shared;
mod sweep;
