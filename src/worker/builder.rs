//! The index builder: a process of its own that builds the indexes of one table concurrently, as its
//! owner, and ends (C21, docs/decisions/0047-index-builder.md).
//!
//! What is left to do is read from the catalogs before each step, so that it does not matter where
//! the former attempt ended. The deletion workers start it.

use super::build_plan::{Statement, Step, Work};
use super::state::TableKey;
use super::{builds, log, shared};
use crate::deletion::transaction;
use crate::error::{Error, Result};
use crate::pg::background::{self, Registration};
use crate::pg::catalog::{self, qualified_name, quote_identifier, quote_literal};
use crate::pg::values::Text;
use crate::pg::{activity, encoding, locks, session, top_level};
use crate::policy::{IndexMethod, Policy};
use crate::settings;
use crate::store::expiry_index::{self, ExpectedIndex};
use crate::store::missing_index::{self, MissingIndex};
use crate::store::{Clock, cache, index_of, label_of, seclabel};
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
        #[cfg(any(feature = "pg17", feature = "pg18"))]
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

fn has_clock(relid: pg_sys::Oid) -> Option<(std::rc::Rc<crate::store::TablePolicy>, Clock)> {
    let policy = cache::policy(relid)?;
    let clock = policy.clock?;
    Some((policy, clock))
}

/// What is there to do; `None` if the table is gone, or the builder is not to touch it.
fn work_at(relid: pg_sys::Oid, validates: bool) -> Result<Option<Work>> {
    // Others' changes of label and columns.
    catalog::forget_caches();
    let Some(class) = catalog::class(relid) else {
        return Ok(None);
    };
    let Some(policy) = label_of(relid).filter(|policy| !policy.is_restored(relid.to_u32())) else {
        return Ok(None);
    };
    let Some((columns, clock)) = has_clock(relid).filter(|(it, _)| it.labelled_table == relid)
    else {
        return Ok(None);
    };
    let mut work = Work {
        is_on: policy.is_on(),
        ..Work::default()
    };
    let is_partitioned = class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE;
    let method = policy.index.access_method();
    let create = |table: pg_sys::Oid, how: &str, index: &MissingIndex| Statement {
        table: table.to_u32(),
        text: format!(
            "CREATE INDEX {how}{} ON {} USING {} {}",
            quote_identifier(&index.name(table)),
            qualified_name(table),
            method.unwrap_or("btree"),
            index.definition
        ),
    };
    let leaves = catalog::all_inheritors(relid).into_iter().filter(|&table| {
        catalog::class(table).is_some_and(|class| {
            class.relkind == pg_sys::RELKIND_RELATION && (table == relid || class.is_partition)
        })
    });
    for leaf in leaves {
        let Some((columns, clock)) = has_clock(leaf) else {
            continue;
        };
        let left_over = missing_index::left_over(leaf, clock).into_iter();
        work.left_over
            .extend(left_over.map(|index| drop_index(leaf, index)));
        if policy.build_pending && method.is_some() {
            let missing = missing_index::missing(leaf, &policy, &columns, clock);
            let missing = missing.iter();
            work.missing
                .extend(missing.map(|index| create(leaf, "CONCURRENTLY ", index)));
        }
    }
    if is_partitioned && policy.build_pending && method.is_some() {
        let missing = missing_index::missing(relid, &policy, &columns, clock);
        work.joined = missing
            .iter()
            .map(|index| create(relid, "", index))
            .collect();
    }
    let old = old_pair(relid, &policy, clock);
    let has_new = clock
        .ttl
        .is_some_and(|ttl| !expiry_index::find_by_expiry_key(relid, &clock.ts, &ttl).is_empty());
    if has_new {
        work.replaced = old.iter().map(|&index| drop_index(relid, index)).collect();
    } else if !old.is_empty() && work.missing.is_empty() {
        let new = missing_index::by_expiry_key(&policy);
        work.missing.push(create(relid, "CONCURRENTLY ", &new));
    }
    if validates && policy.build_pending {
        work.checks = checks_of(relid, &policy)?;
    }
    work.is_label_stale = as_built(relid, &policy, clock) != policy;
    Ok(Some(work))
}

fn drop_index(table: pg_sys::Oid, index: pg_sys::Oid) -> Statement {
    Statement {
        table: table.to_u32(),
        text: format!("DROP INDEX CONCURRENTLY {}", qualified_name(index)),
    }
}

/// Indexes that `ttl.enable` built when there was one for each kind of row, by name and definition
/// (docs/decisions/0042-one-index.md). Those of a partitioned table stay: they cannot be dropped
/// concurrently.
fn old_pair(relid: pg_sys::Oid, policy: &Policy, clock: Clock) -> Vec<pg_sys::Oid> {
    let is_plain =
        catalog::class(relid).is_some_and(|class| class.relkind == pg_sys::RELKIND_RELATION);
    let (Some(ttl), IndexMethod::Btree, true) = (clock.ttl, policy.index, is_plain) else {
        return vec![];
    };
    let kinds = [
        ExpectedIndex::InheritingByTimestamp,
        ExpectedIndex::OverridingByExpiry,
    ];
    let serving: Vec<pg_sys::Oid> = kinds
        .into_iter()
        .flat_map(|kind| expiry_index::find(relid, kind, &clock.ts, Some(&ttl)))
        .collect();
    let new = expiry_index::find_by_expiry_key(relid, &clock.ts, &ttl);
    let named = policy.added.indexes.iter();
    let mut found: Vec<pg_sys::Oid> = named
        .filter_map(|name| index_of(relid, name))
        .filter(|index| serving.contains(index) && !new.contains(index))
        .collect();
    found.dedup();
    found
}

/// The policy as it is once everything that is built is noted.
fn as_built(relid: pg_sys::Oid, policy: &Policy, clock: Clock) -> Policy {
    let mut built = policy.clone();
    built.build_pending = false;
    let kinds: &[ExpectedIndex] = match clock.ttl {
        None => &[ExpectedIndex::AllByTimestamp],
        Some(_) => &[
            ExpectedIndex::InheritingByTimestamp,
            ExpectedIndex::OverridingByExpiry,
        ],
    };
    let names = &mut built.added.indexes;
    names.retain(|name| index_of(relid, name).is_some());
    for &kind in kinds {
        for index in expiry_index::find(relid, kind, &clock.ts, clock.ttl.as_ref()) {
            let name = catalog::relation_name(index);
            if missing_index::is_built_name(relid, &name) && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    built
}

/// Writes to the label what is there now.
fn record(relid: pg_sys::Oid) -> Result<()> {
    locks::relation(relid, pg_sys::ShareUpdateExclusiveLock);
    let Some(work) = work_at(relid, false)? else {
        return Ok(());
    };
    let (Some(policy), Some((_, clock))) = (label_of(relid), has_clock(relid)) else {
        return Ok(());
    };
    // Otherwise the policy has changed meanwhile: the next step follows it.
    if work.next() == Step::Record {
        seclabel::set(relid, Some(&as_built(relid, &policy, clock).to_label()));
    }
    Ok(())
}

/// Validates the override's constraint, which was added without reading the table. Found by its
/// text, as it may have been renamed.
fn checks_of(relid: pg_sys::Oid, policy: &Policy) -> Result<Vec<Statement>> {
    let Some(column) = &policy.ttl_column else {
        return Ok(vec![]);
    };
    let text = format!("ttl.is_override({})", quote_identifier(column));
    let query = format!(
        "SELECT conname::pg_catalog.text FROM pg_catalog.pg_constraint \
         WHERE conrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND contype OPERATOR(pg_catalog.=) 'c' \
           AND NOT convalidated \
           AND pg_catalog.pg_get_expr(conbin, conrelid) OPERATOR(pg_catalog.=) {} ORDER BY oid",
        relid.to_u32(),
        quote_literal(&text)
    );
    let names = Spi::connect(|client| {
        client
            .select(&encoding::query(&query), None, &[])?
            .map(|row| row.get::<Text>(1))
            .collect::<core::result::Result<Vec<_>, _>>()
    })?;
    let validate = |name: Text| Statement {
        table: relid.to_u32(),
        text: format!(
            "ALTER TABLE {} VALIDATE CONSTRAINT {}",
            qualified_name(relid),
            quote_identifier(&name.0)
        ),
    };
    Ok(names.into_iter().flatten().map(validate).collect())
}
