//! What the trigger must know of a table, found out once for each statement.

use super::removal::Deletion;
use crate::pg::{index, lists, relation};
use crate::settings;
use crate::store::{TablePolicy, cache};
use pgrx::pg_sys;

/// A column on which a key depends.
#[derive(Clone, Copy)]
pub(super) struct KeyColumn {
    pub(super) attno: i16,
    pub(super) length: i16,
    pub(super) by_value: bool,
}

/// A unique or exclusion index.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) index: pg_sys::Oid,
    pub(super) info: *mut pg_sys::IndexInfo,
    /// How many of its columns make the key.
    pub(super) columns: i32,
    /// The functions and strategies of the operators by which two keys conflict.
    pub(super) procedures: *mut pg_sys::Oid,
    pub(super) strategies: *mut u16,
    /// A partial index's; null if there is none.
    pub(super) predicate: *mut pg_sys::ExprState,
    /// The columns on which it depends, its predicate included: where an UPDATE
    /// changes none of them, there is nothing to look up.
    pub(super) depends_on: *mut KeyColumn,
    pub(super) depends_on_count: usize,
    /// It depends on the row as a whole, or on a column that is generated.
    pub(super) always_changes: bool,
}

/// A generated column of a key. When BEFORE triggers fire it is not computed yet.
#[derive(Clone, Copy)]
pub(super) struct Generated {
    pub(super) attno: i16,
    pub(super) expression: *mut pg_sys::ExprState,
    /// What the new row holds in its place while the keys are looked up.
    pub(super) former: Option<pg_sys::Datum>,
}

/// A table's keys. It is allocated with the statement and freed with it; nothing in
/// it needs dropping.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    pub(super) policy: TablePolicy,
    pub(super) deletion: Deletion,
    pub(super) keys: *mut Key,
    pub(super) count: usize,
    pub(super) generated: *mut Generated,
    pub(super) generated_count: usize,
    /// For expressions; both null if there are none.
    pub(super) estate: *mut pg_sys::EState,
    pub(super) context: *mut pg_sys::ExprContext,
}

/// What is to be known of the relation, in the current memory context; `None` if no
/// row of it can be expired for this statement.
///
/// # Safety
/// `relation` is an open table that a statement is writing to.
pub(super) unsafe fn of(relation: pg_sys::Relation) -> Option<Keys> {
    // SAFETY: as required of the caller; the indexes are locked by the statement.
    unsafe {
        let relid = (*relation).rd_id;
        let policy = cache::policy(relid).filter(TablePolicy::hides)?;
        if settings::show_expired() {
            return None;
        }
        let mut expressions = Expressions::default();
        let mut keys = Vec::new();
        let mut generated = Vec::new();
        for oid in lists::oids(pg_sys::RelationGetIndexList(relation)) {
            let open = pg_sys::index_open(oid, pg_sys::AccessShareLock.cast_signed());
            if index::is_enforced(open) {
                keys.push(key(relid, open, &mut expressions, &mut generated));
            }
            pg_sys::index_close(open, pg_sys::NoLock.cast_signed());
        }
        if keys.is_empty() {
            return None;
        }
        let generated: Vec<Generated> = generated
            .into_iter()
            .map(|attno| Generated {
                attno,
                former: None,
                expression: expressions
                    .prepare(pg_sys::build_column_default(relation, i32::from(attno)).cast()),
            })
            .collect();
        Some(Keys {
            policy,
            deletion: Deletion::of(relation, relid),
            count: keys.len(),
            keys: relation::palloc_slice(&keys),
            generated_count: generated.len(),
            generated: relation::palloc_slice(&generated),
            estate: expressions.estate,
            context: expressions.context,
        })
    }
}

unsafe fn key(
    relid: pg_sys::Oid,
    index: pg_sys::Relation,
    expressions: &mut Expressions,
    generated: &mut Vec<i16>,
) -> Key {
    // SAFETY: an open index; all is allocated in the current memory context.
    unsafe {
        let info = pg_sys::BuildIndexInfo(index);
        let exclusion = !(*info).ii_ExclusionOps.is_null();
        if !exclusion {
            pg_sys::BuildSpeculativeIndexInfo(index, info);
        }
        if !(*info).ii_Expressions.is_null() {
            expressions.estate();
        }
        let predicate = if (*info).ii_Predicate.is_null() {
            core::ptr::null_mut()
        } else {
            pg_sys::ExecPrepareQual((*info).ii_Predicate, expressions.estate())
        };
        let mut always_changes = false;
        let mut depends_on = Vec::new();
        for attno in index::columns_of(info) {
            if attno <= 0 {
                always_changes = true;
                continue;
            }
            if pg_sys::get_attgenerated(relid, attno) != 0 {
                always_changes = true;
                if !generated.contains(&attno) {
                    generated.push(attno);
                }
                continue;
            }
            let (mut length, mut by_value) = (0, false);
            pg_sys::get_typlenbyval(
                pg_sys::get_atttype(relid, attno),
                &mut length,
                &mut by_value,
            );
            depends_on.push(KeyColumn {
                attno,
                length,
                by_value,
            });
        }
        Key {
            index: (*index).rd_id,
            info,
            columns: (*info).ii_NumIndexKeyAttrs,
            procedures: if exclusion {
                (*info).ii_ExclusionProcs
            } else {
                (*info).ii_UniqueProcs
            },
            strategies: if exclusion {
                (*info).ii_ExclusionStrats
            } else {
                (*info).ii_UniqueStrats
            },
            predicate,
            depends_on_count: depends_on.len(),
            depends_on: relation::palloc_slice(&depends_on),
            always_changes,
        }
    }
}

/// Where expressions are evaluated; made when the first is met.
#[derive(Default)]
struct Expressions {
    estate: *mut pg_sys::EState,
    context: *mut pg_sys::ExprContext,
}

impl Expressions {
    unsafe fn estate(&mut self) -> *mut pg_sys::EState {
        if self.estate.is_null() {
            // SAFETY: allocated below the current memory context, and freed with it.
            unsafe {
                self.estate = pg_sys::CreateExecutorState();
                self.context = pg_sys::MakePerTupleExprContext(self.estate);
            }
        }
        self.estate
    }

    unsafe fn prepare(&mut self, expression: *mut pg_sys::Expr) -> *mut pg_sys::ExprState {
        // SAFETY: an expression over the table's columns.
        unsafe { pg_sys::ExecPrepareExpr(expression, self.estate()) }
    }
}
