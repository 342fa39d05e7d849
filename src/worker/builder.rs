//! The index builder: a process of its own that builds the indexes of one table concurrently, as its
//! owner, and ends (C21, docs/decisions/0047-index-builder.md).
//!
//! What is left to do is read from the catalogs before each step, so that it does not matter where
//! the former attempt ended. The deletion workers start it.

use super::build_plan::{Statement, Step, Work};
use super::build_work::{has_clock, old_pair, record, work_at};
use super::state::TableKey;
use super::{builds, log, shared};
use crate::deletion::transaction;
use crate::error::{Error, Result};
use crate::pg::background::{self, Registration};
use crate::pg::catalog::{self, qualified_name};
use crate::pg::{activity, locks, session, top_level};
use crate::policy::Policy;
use crate::settings;
use crate::store::missing_index;
use core::ffi::c_int;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::sync::atomic::Ordering;

/// The most steps of a process: a guard against a loop.
const STEPS: usize = 100_000;

/// The tables among those with labels that the builder has work at. Within a transaction.
pub(super) fn unfinished(labels: &[(pg_sys::Oid, Policy)]) -> Vec<u32> {
    let has_work = |(relid, policy): &&(pg_sys::Oid, Policy)| {
        if policy.is_restored(relid.to_u32()) {
            return false;
        }
        if policy.build_pending {
            return policy.is_on()
                || has_clock(*relid).is_some_and(|(_, clock)| {
                    let tree = catalog::all_inheritors(*relid).into_iter();
                    tree.into_iter()
                        .any(|table| !missing_index::left_over(table, clock).is_empty())
                });
        }
        policy.is_on()
            && policy.added.indexes.len() > 1
            && has_clock(*relid)
                .is_some_and(|(_, clock)| !old_pair(*relid, policy, clock).is_empty())
    };
    let found = labels.iter().filter(has_work);
    found.map(|(relid, _)| relid.to_u32()).collect()
}

/// Starts the builder for the first of these tables that is due, unless it is busy. In a deletion
/// worker, outside a transaction.
pub(super) fn start(database: u32, tables: &[u32]) {
    if tables.is_empty() || !settings::build_indexes() {
        return;
    }
    if !builds::reserve(database, tables, background::now()) {
        return;
    }
    let started = Registration {
        name: "ttl_ext index builder",
        function: "ttl_ext_builder_main",
        argument: 0,
        restart: None,
    }
    .start()
    .is_some();
    builds::lacks_slot(!started);
    if started {
        log::over("builder");
    } else {
        log::once(
            "builder",
            "could not start the ttl_ext index builder: no slot for a background worker is free",
            "It is tried again, with growing pauses. You may need to raise \"max_worker_processes\".",
        );
    }
}

/// Ends the builder if it is at this table of this database: it holds a lock for as long as it
/// takes. It begins anew later.
pub(crate) fn give_way(relid: pg_sys::Oid) {
    let database = background::my_database().to_u32();
    if let Some(pid) = builds::pid_at(database, Some(relid.to_u32())) {
        background::terminate(pid);
    }
}

/// Asks the builder to leave the database; true if it was there.
pub(super) fn leave(database: u32) -> bool {
    let pid = builds::pid_at(database, None);
    pid.into_iter().for_each(background::terminate);
    pid.is_some()
}

/// How the builder stands with a table of this database.
pub(crate) fn standing(relid: pg_sys::Oid) -> Standing {
    builds::standing(TableKey {
        database: background::my_database().to_u32(),
        relid: relid.to_u32(),
    })
}

pub(crate) use super::build_plan::{Standing, state};

/// The entry point of the builder.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ttl_ext_builder_main(_argument: pg_sys::Datum) {
    background::handle_signals();
    let Some(key) = builds::take_place() else {
        return;
    };
    background::before_exit(leave_place);
    let held =
        |slot: &shared::Database| slot.held_until.load(Ordering::Relaxed) > background::now();
    if shared::database(key.database).is_some_and(held) {
        background::exit();
    }
    background::connect(Some(key.database.into()));
    prepare_session();
    match build(key) {
        Ok(()) => builds::is_done(key),
        Err(failure) => {
            let waits = failure.sqlstate() == "55P03";
            builds::has_failed(key, &failure.text(), waits);
            if !waits {
                let name = transaction::run(|| Ok(qualified_name(key.relid.into())));
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
    background::exit();
}

extern "C-unwind" fn leave_place(_code: c_int, _arg: pg_sys::Datum) {
    builds::leave_place();
}

/// Not the settings that the configuration or the database has for clients.
fn prepare_session() {
    for (name, value) in [
        ("search_path", "pg_catalog, pg_temp"),
        ("default_transaction_isolation", "read committed"),
        ("default_transaction_read_only", "off"),
        ("default_transaction_deferrable", "off"),
        ("role", "none"),
        ("exit_on_error", "off"),
        ("session_replication_role", "origin"),
        ("row_security", "on"),
        ("quote_all_identifiers", "off"),
        ("statement_timeout", "0"),
        ("idle_in_transaction_session_timeout", "0"),
        #[cfg(since17)]
        ("transaction_timeout", "0"),
        // Building waits for older transactions, which may take hours, and nobody waits for it
        // meanwhile; only the locks on tables are waited for briefly.
        ("lock_timeout", "0"),
        ("ttl.show_expired", "off"),
        ("ttl.preserve_ts", "off"),
    ] {
        session::force(name, value);
    }
}

fn build(key: TableKey) -> Result<()> {
    let relid = pg_sys::Oid::from(key.relid);
    let mut validates = true;
    for _ in 0..STEPS {
        let step = transaction::run(|| Ok(work_at(relid, validates)?.map(Work::next)))?;
        match step.unwrap_or(Step::Done) {
            Step::Done => return Ok(()),
            Step::Concurrently(statement) => {
                run(&statement, |table| {
                    lock(table, pg_sys::ShareUpdateExclusiveLock)
                })?;
            }
            Step::Join(statement) => brief(|| {
                run(&statement, |table| {
                    locks::relation(table, pg_sys::ShareLock);
                    // Attached, or created, since the last look.
                    let new = work_at(relid, false)?.is_some_and(|work| !work.missing.is_empty());
                    if new { Err(busy(table)) } else { Ok(()) }
                })
            })?,
            Step::Validate(statement) => {
                let lock = |table| lock(table, pg_sys::ShareUpdateExclusiveLock);
                validates = false;
                if let Err(failure) = run(&statement, lock) {
                    log::warning(
                        &format!("a constraint stays NOT VALID: {}", failure.text()),
                        &format!("Repair the rows, then run: {}", statement.text),
                    );
                }
            }
            Step::Record => brief(|| transaction::run(|| record(relid)))?,
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

fn run(statement: &Statement, before: impl FnOnce(pg_sys::Oid) -> Result<()>) -> Result<()> {
    let table = pg_sys::Oid::from(statement.table);
    let owner = transaction::run(|| Ok(catalog::class(table).map(|class| class.owner)))?;
    let Some(owner) = owner else { return Ok(()) };
    activity::working(&format!("ttl: {}", statement.text));
    let result = top_level::run_as(owner, || before(table), &statement.text);
    activity::idle();
    result
}

/// Takes the lock without waiting.
fn lock(table: pg_sys::Oid, mode: u32) -> Result<()> {
    if locks::try_relation(table, mode) {
        return Ok(());
    }
    Err(busy(table))
}

fn busy(table: pg_sys::Oid) -> Error {
    Error::new(
        PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
        format!(
            "could not obtain lock on relation {}",
            qualified_name(table)
        ),
    )
}
