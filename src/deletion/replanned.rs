//! A foreign key's plan that PostgreSQL has freed while it runs.
//!
//! PostgreSQL keeps the plan of a foreign key's query, and frees it where it needs the plan again and
//! finds it invalid: also if the query is running. That happens where the deletion of referring rows leads back to the
//! same foreign key before the query has run, and something has invalidated the plan meanwhile (ANALYZE, say).
//! Such a deletion joins the queue of the running statement where it may ([`leads_back`]); where its triggers must
//! fire at once, the statement ends here with 40001.

use crate::error::Error;
use crate::pg::abi::report;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::code::{self, Change};
use crate::pg::catalog::{self, invalidation, triggers};
use crate::pg::exec::executor::ExecutorQuery;
use crate::pg::session::scoped::{Scope, Scoped};
use crate::store::cache;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::Oid;
use pgrx::prelude::*;
use rustc_hash::FxHasher;
use std::cell::Cell;
use std::ffi::CStr;
use std::hash::Hasher;

/// Whether deletions from this table, by foreign keys, lead back to the `referenced` one, and run no code on
/// the way: only foreign keys' own triggers fire, and all tables have one owner. Then it does not matter
/// when they fire: even code that is added meanwhile is that of the referenced table's owner, from whose table
/// the statement deletes.
pub(super) fn leads_back(relid: Oid, referenced: Oid) -> bool {
    const MOST: usize = 16;
    let mut reached = vec![relid];
    let mut at = 0;
    while let Some(&table) = reached.get(at) {
        at += 1;
        let Some(next) = triggers::reached_by_deletion(table) else {
            return false;
        };
        for table in next.into_iter().flat_map(catalog::all_inheritors) {
            if !reached.contains(&table) {
                reached.push(table);
            }
        }
        if reached.len() > MOST {
            return false;
        }
    }
    let archives =
        |table| cache::policy(table).is_some_and(|policy| policy.label.archive_to.is_some());
    let runs_nothing = |&table: &Oid| {
        !code::of(table, Change::Deletion).is_any()
            && !archives(table)
            && catalog::owner(table) == catalog::owner(referenced)
    };
    reached.contains(&referenced) && reached.iter().all(runs_nothing)
}

/// The query of a foreign key before which triggers fire.
#[derive(Clone, Copy)]
struct RunningCheck {
    /// A hash of its text.
    query: u64,
    /// Invalidations of plans when its own was valid.
    invalidations: u64,
    /// It has been started again.
    again: bool,
}

static RUNNING: Scoped<RunningCheck> = Scoped::new();

/// The query of a foreign key that was planned last, and the invalidations before: one that comes while it is planned
/// makes the plan invalid, and PostgreSQL runs it all the same.
static PLANNED: Variable<Cell<(u64, u64)>> = Variable::new(Cell::new((0, 0)));

fn hash(text: Option<&CStr>) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text.map_or(&[], CStr::to_bytes));
    hasher.finish()
}

/// Notes that a query is planned in the security context of foreign keys.
pub(crate) fn before_planning(text: Option<&CStr>) {
    PLANNED.set((hash(text), invalidation::count()));
}

/// Notes that a query is started in the security context of foreign keys. Returns the invalidations at a time when its plan was
/// valid.
pub(super) fn note(query: ExecutorQuery<'_>) -> u64 {
    let started = hash(query.text());
    RUNNING.for_each(|running| running.again |= running.query == started);
    match PLANNED.take() {
        (planned, before) if planned == started => before,
        _ => invalidation::count(),
    }
}

/// Before triggers fire, ahead of this query; with what [`note`] returned before anything was done for it.
pub(super) fn begin(query: ExecutorQuery<'_>, invalidations: u64) -> Scope {
    RUNNING.enter(RunningCheck {
        query: hash(query.text()),
        invalidations,
        again: false,
    })
}

/// After they have fired: raises 40001 if the query's plan may be gone.
pub(super) fn end(scope: Scope) {
    let ended = RUNNING.leave(scope);
    let is_freed =
        |running: RunningCheck| running.again && running.invalidations != invalidation::count();
    if ended.is_some_and(is_freed) {
        refuse();
    }
}

#[pg_guard]
extern "C-unwind" fn refuse() {
    // The context of the error would be read from the plan.
    report::without_context();
    Error::new(
        PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
        "could not delete expired rows that refer to each other, due to a concurrent change of their tables",
    )
    .detail("A plan for their foreign keys was invalidated while it was used, by ALTER TABLE or ANALYZE, for example.")
    .hint("The transaction might succeed if retried.")
    .raise()
}
