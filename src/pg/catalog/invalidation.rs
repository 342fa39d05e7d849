//! Invalidation of relations, and of what plans are made of, for all who listen: PostgreSQL has room for ten callbacks in a session, in
//! all libraries together, so that this one takes but one place.

use super::rows;
use crate::pg::abi::variable::{ByOid, Variable};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

/// Called with a relation's OID, or `InvalidOid` for all. Allocates nothing, raises no error and looks
/// nothing up.
type Listener = fn(pg_sys::Oid);

static LISTENERS: Variable<RefCell<Vec<Listener>>> = Variable::new(RefCell::new(Vec::new()));

/// From now on `listener` hears of each invalidation of relations; called at load.
pub(crate) fn listen(listener: Listener) {
    LISTENERS.with_borrow_mut(|all| all.push(listener));
}

/// How often something has been invalidated: relations, and what else plancache.c listens to.
static COUNT: Variable<Cell<u64>> = Variable::new(Cell::new(0));

/// The count: what was read before it has changed may be outdated.
pub(crate) fn count() -> u64 {
    COUNT.get()
}

/// What is known of the object, or what `look_up` finds. That is kept if `lasts`, but not if it was read before an
/// invalidation.
#[inline]
pub(crate) fn cached<T: Clone>(
    known: &ByOid<T>,
    object: pg_sys::Oid,
    lasts: impl FnOnce() -> bool,
    look_up: impl FnOnce() -> T,
) -> T {
    if let Some(found) = known.with_borrow(|all| all.get(&object).cloned()) {
        return found;
    }
    let before = count();
    let found = look_up();
    if count() == before && lasts() {
        known.with_borrow_mut(|all| all.insert(object, found.clone()));
    }
    found
}

/// Forgets what is known of the relation, or of all. Allocates nothing, raises no error and looks nothing up.
pub(crate) fn forget<T>(known: &ByOid<T>, relid: pg_sys::Oid) {
    known.with_borrow_mut(|all| {
        if relid == pg_sys::InvalidOid {
            all.clear();
        } else {
            all.remove(&relid);
        }
    });
}

/// Registers for invalidations; once, at load.
pub(crate) fn init() {
    use pg_sys::SysCacheIdentifier::{
        AMOPOPID, FOREIGNDATAWRAPPEROID, FOREIGNSERVEROID, NAMESPACEOID, OPEROID, PROCOID, TYPEOID,
    };
    let caches = [
        AMOPOPID,
        FOREIGNDATAWRAPPEROID,
        FOREIGNSERVEROID,
        NAMESPACEOID,
        OPEROID,
        PROCOID,
        TYPEOID,
    ];
    // SAFETY: the callbacks live as long as the library.
    unsafe {
        pg_sys::CacheRegisterRelcacheCallback(Some(tell), pg_sys::Datum::from(0));
        for cache in caches {
            pg_sys::CacheRegisterSyscacheCallback(
                rows::cache_number(cache),
                Some(note),
                pg_sys::Datum::from(0),
            );
        }
    }
}

unsafe extern "C-unwind" fn note(_arg: pg_sys::Datum, _cache: core::ffi::c_int, _hash: u32) {
    COUNT.set(COUNT.get().wrapping_add(1));
}

unsafe extern "C-unwind" fn tell(_arg: pg_sys::Datum, relid: pg_sys::Oid) {
    COUNT.set(COUNT.get().wrapping_add(1));
    LISTENERS.with_borrow(|all| all.iter().for_each(|listener| listener(relid)));
}
