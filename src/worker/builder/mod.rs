//! An index builder: a process that belongs to the owner of one table, builds its indexes
//! concurrently, and ends (C21, docs/decisions/0047-index-builder.md).
//!
//! What is left to do is read from the catalogs before each step, so that it does not matter where
//! the former attempt ended. The launcher starts it, for what a scheduler has found.

pub(in crate::worker) mod build_work;

use self::build_work::{has_clock, next_step, record};
use crate::deletion::worker_transaction;
use crate::error::Result;
use crate::pg::catalog::{self, constraints, qualified_name, quote_identifier};
use crate::pg::server::activity;
use crate::pg::server::background;
use crate::pg::session::{self, locks, owner_session, top_level};
use crate::policy::{IndexMethod, Policy};
use crate::settings;
use crate::store::missing_index;
use crate::worker::queue::build_plan::{BuildStep, Statement};
use crate::worker::shared::processes::{self, Process};
use crate::worker::shared::state::TableKey;
use crate::worker::shared::{builds, log};
use pgrx::pg_sys;
use std::sync::atomic::Ordering;

/// The most steps of a process: a guard against a loop.
const STEPS: usize = 100_000;

/// The tables among those with labels that the builder has work at, with their owners. Within a
/// transaction.
pub(super) fn unfinished(labels: &[(pg_sys::Oid, Policy)]) -> Vec<(u32, u32)> {
    let outgrown = builds::outgrown(background::my_database().to_u32());
    let has_work = |(relid, policy): &&(pg_sys::Oid, Policy)| {
        let has_outgrown = policy.index == IndexMethod::Auto && outgrown.contains(&relid.to_u32());
        if policy.restored || !(policy.build_pending || has_outgrown) {
            return false;
        }
        policy.is_on()
            || has_clock(*relid).is_some_and(|(_, clock)| {
                let mut tree = catalog::all_inheritors(*relid).into_iter();
                tree.any(|table| !missing_index::left_over(table, clock).is_empty())
            })
    };
    let found = labels.iter().filter(has_work);
    let with_owner = |(relid, _): &(pg_sys::Oid, Policy)| {
        Some((relid.to_u32(), catalog::class(*relid)?.owner.to_u32()))
    };
    found.filter_map(with_owner).collect()
}

/// Ends the builder if it is at this table of this database: it holds a lock for as long as it
/// takes. It begins anew later.
pub(crate) fn give_way(relid: pg_sys::Oid) {
    if let Some(pid) = builds::pid_at(TableKey::here(relid)) {
        background::terminate(pid);
    }
}

/// How the builder stands with a table of this database.
pub(crate) fn standing(relid: pg_sys::Oid) -> BuildState {
    builds::standing(TableKey::here(relid))
}

/// Whether a builder is at a table of this database, or is to come.
pub(crate) fn is_wanted(relid: pg_sys::Oid) -> bool {
    builds::is_wanted(TableKey::here(relid))
}

pub(crate) use crate::worker::queue::build_plan::{BuildNeed, BuildState};

pub(in crate::worker) fn run(process: &Process) {
    let key = TableKey {
        database: process.database.load(Ordering::Acquire),
        relid: process.table.load(Ordering::Acquire),
    };
    process.connect();
    // For the transactions within a statement like CREATE INDEX CONCURRENTLY. What PostgreSQL runs of an owner
    // in such a statement has settings of its own.
    processes::prepare_session();
    // Building waits for older transactions, which may take hours, and no session waits for it
    // meanwhile; only the locks on tables are waited for briefly.
    session::force("lock_timeout", "0");
    // To plan parallel workers, PostgreSQL evaluates constants in expressions of the table's
    // other indexes, which may call functions of the owner.
    session::force("max_parallel_maintenance_workers", "0");
    match build(key) {
        Ok(()) => {
            builds::forget_sizes(key);
            builds::is_done(key);
        }
        Err(failure) => {
            let waits = failure.sqlstate() == "55P03";
            builds::has_failed(key, &failure.text(), waits);
            if !waits {
                let name = worker_transaction::run(|| Ok(qualified_name(key.relid.into())));
                log::warning(
                    &format!(
                        "could not build the indexes for deletion of table {}: {}",
                        name.unwrap_or_default(),
                        failure.text()
                    ),
                    "It is tried again, with growing pauses; see ttl.tables.",
                );
            }
        }
    }
    activity::report_statistics();
}

fn build(key: TableKey) -> Result<()> {
    let relid = pg_sys::Oid::from(key.relid);
    let mut validates = true;
    for _ in 0..STEPS {
        match worker_transaction::run(|| next_step(relid, validates))? {
            BuildStep::Done => return Ok(()),
            BuildStep::Concurrently(statement) => {
                execute(&statement, false, |table| {
                    locks::relation_or_busy(table, pg_sys::ShareUpdateExclusiveLock)
                })?;
            }
            BuildStep::Join(statement) => brief(|| {
                execute(&statement, true, |table| {
                    locks::relation(table, pg_sys::ShareLock);
                    // A partition may have been attached, or created, meanwhile.
                    match next_step(relid, false)? {
                        BuildStep::Join(next) if next == statement => Ok(()),
                        _ => Err(locks::busy(table)),
                    }
                })
            })?,
            BuildStep::Validate(constraint) => {
                validates = false;
                if let Err(failure) = validate(relid, &constraint) {
                    let table = worker_transaction::run(|| Ok(qualified_name(relid)))?;
                    log::warning(
                        &format!("a constraint stays NOT VALID: {}", failure.text()),
                        &format!(
                            "Repair the rows, then run: ALTER TABLE {table} VALIDATE CONSTRAINT {}",
                            quote_identifier(&constraint)
                        ),
                    );
                }
            }
            BuildStep::Record => brief(|| worker_transaction::run(|| record(relid)))?,
        }
    }
    Ok(())
}

/// Waits briefly for locks in `work`, behind which others may wait.
fn brief<T>(work: impl FnOnce() -> T) -> T {
    session::force("lock_timeout", &settings::lock_timeout_ms().to_string());
    let result = work();
    session::force("lock_timeout", "0");
    result
}

/// By the table's OID: the constraints of a table that has taken its name meanwhile would run with the owner's rights.
fn validate(relid: pg_sys::Oid, constraint: &str) -> Result<()> {
    activity::working("ttl: VALIDATE CONSTRAINT");
    let result = worker_transaction::run(|| {
        locks::relation_or_busy(relid, pg_sys::ShareUpdateExclusiveLock)?;
        owner_session::visit(relid)?;
        constraints::validate(relid, constraint);
        Ok(())
    });
    activity::idle();
    result
}

fn execute(
    statement: &Statement,
    is_one_transaction: bool,
    before: impl FnOnce(pg_sys::Oid) -> Result<()>,
) -> Result<()> {
    let table = pg_sys::Oid::from(statement.table);
    if !worker_transaction::run(|| Ok(catalog::class(table).is_some()))? {
        return Ok(());
    }
    activity::working(&format!("ttl: {}", statement.text));
    let before = || {
        before(table)?;
        // From here on nothing but a lock on the table keeps its owner.
        owner_session::visit(table).map(|_| ())
    };
    let result = top_level::run(is_one_transaction, before, &statement.text);
    activity::idle();
    result
}
