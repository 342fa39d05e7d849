//! Keys of new rows, looked up before the trigger would fire: it does so only for a row whose key may be
//! taken.
//!
//! Most new rows meet nobody, and the call of a trigger, for which PostgreSQL forms the row, costs more than to
//! find that out. Whatever is in the row's way is the trigger's business, which looks again: it alone removes,
//! waits and stamps.

use super::plan::{self, Key};
use crate::clock::now::now;
use crate::pg::executor::Query;
use crate::pg::externs;
use crate::pg::firing::Target;
use crate::pg::scan::{Index, Values};
use crate::pg::table::Slot;
use crate::settings;
use crate::store::extension::Functions;
use pgrx::pg_sys;

/// A key, and its index.
#[derive(Clone, Copy)]
struct Sought<'a> {
    key: &'a Key,
    index: Index<'a>,
}

/// Has an INSERT into one table, without ON CONFLICT, look its rows' keys up as they arrive, where they
/// can be known then.
///
/// # Safety
/// The query was just started and will be executed: one INSERT, without ON CONFLICT.
pub(crate) unsafe fn look_ahead(query: Query<'_>, functions: &Functions) {
    // SAFETY: as required of the caller.
    let mut targets = unsafe { Target::all(query.state()) };
    let (Some(target), None, Some(memory)) = (targets.next(), targets.next(), query.memory())
    else {
        return;
    };
    // Another trigger may give the row another key.
    let (insert, function) = (pg_sys::TRIGGER_TYPE_INSERT, functions.free_expired_keys);
    if settings::show_expired() || !target.triggers().fire_only(insert, function) {
        return;
    }
    let Some(plan) = plan::of(target.table()) else {
        return target.triggers().hide(insert);
    };
    if plan.needs_evaluation()
        || !plan.keys.iter().all(|key| key.unique.is_btree())
        || !target.open_indexes_guarded(false)
    {
        return;
    }
    let plan = memory.keep(plan);
    let keys = plan.keys.iter().map(|key| {
        let index = target.opened_index(key.unique.index)?;
        Some(Sought { key, index })
    });
    let Some(keys) = keys.collect::<Option<Vec<_>>>() else {
        return;
    };
    let keys = memory.put(keys);
    // A statement that has waited judges by a later time, with which the trigger stamps.
    let fires = move |row: Slot<'_>| {
        externs::last_wait() > now() || keys.iter().any(|sought| sought.may_be_taken(row))
    };
    // SAFETY: as required of the caller; nothing panics.
    unsafe { target.fire_before_rows(query, memory, fires) };
}

impl Sought<'_> {
    /// Whether the trigger has to look: an entry of the key was found, or what is NULL counts as equal.
    fn may_be_taken(&self, row: Slot<'_>) -> bool {
        if !self.index.is_ready() {
            return false;
        }
        let (parts, mut sought) = (&self.key.unique.parts, Values::EMPTY);
        for (at, part) in parts.iter().enumerate() {
            let value = row.value(part.attno);
            if value.is_none() {
                return self.key.unique.nulls_not_distinct;
            }
            sought.set(at, value);
        }
        // SAFETY: a B-tree without expressions, with a value for each part.
        !unsafe { self.index.lacks(parts, &sought) }
    }
}
