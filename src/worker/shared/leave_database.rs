//! DROP DATABASE, CREATE DATABASE from a template and several forms of ALTER DATABASE fail while
//! others are connected. So the workers leave the database before such a statement checks.

use super::processes;
use crate::pg::abi::variable::Variable;
use crate::pg::server::background;
use crate::worker::shared;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long no worker returns, in microseconds: the statement begins within that time, and then
/// rejects new connections itself.
const HOLD: i64 = 10_000_000;
/// What the statement has changed is seen after its commit, which follows within this time: then the
/// launcher reads pg_database anew.
const COMMIT: i64 = 100_000;
/// How long to wait for the workers to leave.
const PATIENCE: Duration = Duration::from_secs(5);

/// The database that this session keeps workers out of.
static HELD: Variable<Cell<Option<u32>>> = Variable::new(Cell::new(None));

/// Makes the workers of the database leave, and waits until they have.
pub(crate) fn vacate(database: u32) {
    let Some(slot) = shared::database(database) else {
        return;
    };
    HELD.set(Some(database));
    slot.held_until
        .store(background::monotonic() + HOLD, Ordering::SeqCst);
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let mut any = false;
        for process in processes::in_database(database) {
            any = true;
            // One that is being started checks `held_until` first.
            background::terminate(process.pid.load(Ordering::Acquire));
        }
        if !any {
            return;
        }
        background::sleep(Duration::from_millis(5));
    }
}

/// Admits workers again to the database that this session keeps them out of, if any.
pub(crate) fn readmit_all() {
    if let Some(database) = HELD.take() {
        readmit(database);
    }
}

/// Admits workers again.
pub(crate) fn readmit(database: u32) {
    HELD.set(None);
    if let Some(slot) = shared::database(database) {
        let until = background::monotonic() + COMMIT;
        slot.held_until.store(until, Ordering::SeqCst);
        shared::wake_launcher();
    }
}
