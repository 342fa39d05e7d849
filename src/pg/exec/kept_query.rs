//! Queries that are planned once and kept, as PostgreSQL keeps its own for foreign keys.
//!
//! They run as the current user; what they name, they name with its schema, and if a name leads to another table, they do not run. Their AFTER triggers
//! are queued with those of the statement that is running: the caller has begun one
//! ([`CascadeStatement`]).

use super::analysis::{check_conditions, check_names};
use super::executor::ExecutorQuery;
use super::firing::FIRING;
use crate::pg::abi::lists;
use crate::pg::abi::variable::Variable;
use crate::pg::session::scoped::{Scope, Scoped};
use crate::pg::session::{self, xact};
use core::ffi::{c_char, c_int};
use core::ptr::null_mut;
use pgrx::pg_sys::{self, Datum, Oid};
use pgrx::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::cell::RefCell;
use std::ffi::{CStr, CString};

/// The most columns of a key.
const MOST: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// More are not kept beyond a transaction.
const MANY: usize = 1000;

#[derive(Clone, Copy)]
pub(crate) struct KeptQuery {
    plan: pg_sys::SPIPlanPtr,
    text: *const c_char,
    named: NamedTables,
}

/// The tables that the names in a query lead to, one or two.
pub(crate) type NamedTables = [Oid; 2];

/// Text, types of parameters and tables.
type QueryKey = (Vec<u8>, Vec<Oid>, NamedTables);

/// The query that is prepared or run, by the address of its text, and the tables that it may name. PostgreSQL analyzes it again whenever
/// something has changed, and a schema can be renamed at any time: whoever has locked and looked at the tables has done
/// so by their OIDs.
static NAMING: Scoped<(*const c_char, NamedTables)> = Scoped::new();

/// Whether such a query is prepared or run.
#[inline]
pub(crate) fn is_any() -> bool {
    !NAMING.is_empty()
}

/// Whether the query is the one that runs.
pub(crate) fn is_running(query: ExecutorQuery<'_>) -> bool {
    let own = NAMING.current().map(|(text, _)| text);
    own.is_some() && own == query.text().map(CStr::as_ptr)
}

/// Called when a query has been analyzed, and before it is rewritten: whether it is that one; raises 55000 if it has other tables or operators.
///
/// # Safety
/// The parser's state, and the query that it has made.
#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn check(
    state: *mut pg_sys::ParseState,
    query: *mut pg_sys::Query,
) -> bool {
    // SAFETY: as required of the caller. The extension's own queries have no relations in sub-selects.
    unsafe {
        let own = NAMING.current();
        let own = own.filter(|&(text, _)| (*state).p_sourcetext == text);
        if let Some((_, tables)) = own {
            check_names(query, &tables);
            check_conditions(query);
        }
        own.is_some()
    }
}

/// Those of this session, by text and types of parameters.
static ALL: Variable<RefCell<FxHashMap<QueryKey, KeptQuery>>> =
    Variable::new(RefCell::new(FxHashMap::with_hasher(FxBuildHasher)));

/// The values of a query's parameters.
pub(crate) struct Parameters {
    count: usize,
    types: [Oid; MOST],
    values: [Datum; MOST],
    /// As PostgreSQL has it: `n` for NULL.
    nulls: [c_char; MOST],
}

impl Parameters {
    /// The given number of parameters of a query that is about to run, after the first ones.
    pub(crate) fn of(query: ExecutorQuery<'_>, first: usize, count: usize) -> Option<Self> {
        let mut found = Self {
            count: count.min(MOST),
            types: [pg_sys::InvalidOid; MOST],
            values: [Datum::null(); MOST],
            nulls: [b' '.cast_signed(); MOST],
        };
        for at in 0..found.count {
            let (oid, value) = query.parameter(first + at)?;
            found.types[at] = oid;
            found.values[at] = value.unwrap_or(Datum::null());
            if value.is_none() {
                found.nulls[at] = b'n'.cast_signed();
            }
        }
        Some(found)
    }

    fn types(&self) -> &[Oid] {
        &self.types[..self.count]
    }
}

impl KeptQuery {
    /// The query with this text, which names these tables, prepared unless it is kept. PostgreSQL plans it again where
    /// something has changed. Guarded.
    pub(crate) fn of(text: Vec<u8>, parameters: &Parameters, named: NamedTables) -> Self {
        let key = (text, parameters.types().to_vec(), named);
        if let Some(known) = ALL.with_borrow(|all| all.get(&key).copied()) {
            return known;
        }
        let prepared = Self::prepare(&key.0, &key.1, named);
        ALL.with_borrow_mut(|all| all.insert(key, prepared));
        prepared
    }

    /// At the end of a transaction, when none is running: frees all, if there are many. True if it
    /// did, so that the caller forgets its copies. Raises no error.
    pub(crate) fn free_if_many() -> bool {
        let are_many = ALL.with_borrow(|all| all.len() > MANY);
        if are_many {
            for (_, kept) in ALL.take() {
                // SAFETY: kept in `prepare`, and freed here only. None is running, or will be.
                unsafe { pg_sys::SPI_freeplan(kept.plan) };
            }
        }
        are_many
    }

    fn prepare(text: &[u8], types: &[Oid], named: NamedTables) -> Self {
        let text = CString::new(text).unwrap_or_default();
        let generic = pg_sys::CURSOR_OPT_GENERIC_PLAN.cast_signed();
        let count = c_int::try_from(types.len()).unwrap_or(0);
        // SAFETY: within a transaction; text and types are copied. The plan is kept before its
        // memory goes with the connection.
        unsafe {
            pg_sys::SPI_connect();
            let plan = session::without_query_id(|| {
                let types = types.as_ptr().cast_mut();
                NAMING.during((text.as_ptr(), named), || {
                    pg_sys::SPI_prepare_cursor(text.as_ptr(), count, types, generic)
                })
            });
            if plan.is_null() || pg_sys::SPI_keepplan(plan) != 0 {
                pgrx::error!("could not prepare a query for a foreign key");
            }
            let sources = pg_sys::SPI_plan_get_plan_sources(plan);
            let source = lists::nth::<pg_sys::CachedPlanSource>(sources, 0);
            let text = source.map_or(core::ptr::null(), |source| (*source).query_string);
            pg_sys::SPI_finish();
            Self { plan, text, named }
        }
    }

    /// Where its text is, by which it is known when it is planned.
    pub(crate) fn text(self) -> *const c_char {
        self.text
    }

    /// Runs it, seeing all that is committed; returns how many rows it processed. A statement is running whose
    /// AFTER triggers are yet to fire, unless the query only reads. The parameters are those that it was prepared
    /// for.
    pub(crate) fn run(self, parameters: &Parameters) -> u64 {
        // SAFETY: within a transaction; the arrays are those of the plan's parameters, and are only read.
        unsafe {
            pg_sys::SPI_connect();
            // As PostgreSQL's own: what is to be found need not be as old as the transaction.
            let snapshot = if xact::has_one_snapshot() {
                pg_sys::GetLatestSnapshot()
            } else {
                null_mut()
            };
            let code = NAMING.during((self.text, self.named), || {
                pg_sys::SPI_execute_snapshot(
                    self.plan,
                    parameters.values.as_ptr().cast_mut(),
                    parameters.nulls.as_ptr(),
                    snapshot,
                    null_mut(),
                    false,
                    false,
                    0,
                )
            });
            let rows = if code < 0 { 0 } else { pg_sys::SPI_processed };
            pg_sys::SPI_finish();
            rows
        }
    }
}

/// The statement to which all that a foreign key sets off belongs.
static BEGUN: Scoped<()> = Scoped::new();

/// A statement whose AFTER triggers fire at its end, and with them what they queue. Within one
/// there is no other: however long a chain of rows is, none is on the stack.
#[derive(Clone, Copy)]
pub(crate) struct CascadeStatement(Option<Scope>);

impl CascadeStatement {
    /// Begins one, unless one is running, or what is set off `joins` the queue of the statement that is
    /// firing its triggers.
    pub(crate) fn begin(joins: bool) -> Self {
        if !BEGUN.is_empty() || joins && !FIRING.is_empty() {
            return Self(None);
        }
        // SAFETY: within a transaction; `end` follows, or an error that ends the subtransaction.
        unsafe { pg_sys::AfterTriggerBeginQuery() };
        Self(Some(BEGUN.enter(())))
    }

    /// Whether it is to be ended: otherwise what is queued fires with a statement that is running.
    pub(crate) fn is_own(self) -> bool {
        self.0.is_some()
    }

    /// Fires the triggers of a statement that is its own.
    pub(crate) fn end(self) {
        // SAFETY: `begin` began the statement; the snapshot that is pushed is popped.
        unsafe {
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            pg_sys::UpdateActiveSnapshotCommandId();
            pg_sys::AfterTriggerEndQuery(null_mut());
            pg_sys::PopActiveSnapshot();
        }
        if let Some(scope) = self.0 {
            BEGUN.leave(scope);
        }
    }
}
