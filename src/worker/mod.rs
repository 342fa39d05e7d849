//! Background deletion: which table is next, in which process, and when.
//!
//! | room | file | what |
//! |---|---|---|
//! | `process` | `launcher`, `starting` | one process for the server, connected to no database: takes writes into the schedule, starts the others |
//! | | `scheduler` | a superuser's process for a database: reads the policies into shared memory |
//! | | `tables` | which tables and partitions there are to sweep; what the scheduler found of each, until it is invalidated |
//! | | `mod` | a worker: belongs to one owner in one database; which table is next |
//! | | `clients` | which owner gets the next worker |
//! | `sweep` | `turn`, `pass_end` | a turn at one table; what is left when all is done, and when to look again |
//! | | `mod` | the two orders: an index's, and the heap's |
//! | | `ranges` | reading a table without an index, range by range |
//! | | `attempt` | a batch within a turn: its size, its failure, what it counts; blocks that cannot be read |
//! | | `drop_partition` | dropping partitions as a whole |
//! | | `referred_rows` | rows that live rows refer to |
//! | | `without_deletion` | turns that delete nothing |
//! | | `pace` | the pause between batches |
//! | `builder` | `mod`, `build_work` | an index builder, which belongs to an owner, too; what it finds to do |
//! | `shared` | `mod` | databases |
//! | | `state`, `progress`, `claims` | tables; how far each is; which worker is at which |
//! | | `processes`, `worker_report` | the processes, and what each is for; what each worker is at |
//! | | `builds` | which indexes are wanted; which tables have outgrown being read |
//! | | `blocked`, `requested` | rows that cannot be deleted; rows that sessions wait for |
//! | | `wakeups`, `prepared_transactions` | what sessions tell at commit and at COMMIT PREPARED |
//! | | `counters`, `stored_counters` | what is counted; counters that survive a restart |
//! | | `stored_clock` | the time, which survives a restart |
//! | | `deletion_state` | how deletion stands in a table, for views and functions |
//! | | `leave_database` | leaving databases that a statement needs without connections |
//! | | `places` | places in shared memory for tables that get a time to live |
//! | `queue` | `schedule`, `fairness`, `quota`, `throttle`, `build_plan`, `clock`, `emptiness`, `summary` | decisions, pure |

use crate::clock::held::{self, Held};
use crate::pg::server::background;
use shared::deletion_state;

/// Asks for shared memory and registers the launcher; once, at load.
pub(crate) fn init() {
    crate::pg::server::shmem::init::<shared::Contents>();
    held::init(why_held);
    crate::deletion::left_to_owner::init(shared::requested::request);
    process::launcher::register();
}

pub(crate) mod builder;
mod process;
pub(crate) mod queue;
pub(crate) mod shared;
mod sweep;

fn why_held() -> Option<Held> {
    if shared::is_deletion_held() {
        Some(Held::ByClock)
    } else if !background::in_recovery() && deletion_state::is_recovered() {
        Some(Held::ByRecovery)
    } else {
        None
    }
}
