//! Invalidation of relations, for all who listen: PostgreSQL has room for ten callbacks in a session, in
//! all libraries together, so that this one takes but one place.

use super::rows;
use crate::pg::abi::variable::Variable;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};

/// Called with a relation's OID, or `InvalidOid` for all. Allocates nothing, raises no error and looks
/// nothing up.
type Listener = fn(pg_sys::Oid);

thread_local! {
    static LISTENERS: RefCell<Vec<Listener>> = const { RefCell::new(Vec::new()) };
}

/// From now on `listener` hears of each invalidation; called at load.
pub(crate) fn listen(listener: Listener) {
    let is_first = LISTENERS.with_borrow_mut(|all| {
        all.push(listener);
        all.len() == 1
    });
    if is_first {
        // SAFETY: the callback lives as long as the library.
        unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(tell), pg_sys::Datum::from(0)) };
    }
}

/// How often plans that PostgreSQL keeps may have been invalidated: what plancache.c listens to.
static OF_PLANS: Variable<Cell<u64>> = Variable::new(Cell::new(0));

/// Counts invalidations of plans; once, at load.
pub(crate) fn count_plans() {
    listen(|_| OF_PLANS.set(OF_PLANS.get().wrapping_add(1)));
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
    for cache in caches {
        // SAFETY: the callback lives as long as the library.
        unsafe {
            pg_sys::CacheRegisterSyscacheCallback(
                rows::cache_number(cache),
                Some(count),
                pg_sys::Datum::from(0),
            );
        }
    }
}

/// How many there have been.
pub(crate) fn of_plans() -> u64 {
    OF_PLANS.get()
}

unsafe extern "C-unwind" fn count(_arg: pg_sys::Datum, _cache: core::ffi::c_int, _hash: u32) {
    OF_PLANS.set(OF_PLANS.get().wrapping_add(1));
}

unsafe extern "C-unwind" fn tell(_arg: pg_sys::Datum, relid: pg_sys::Oid) {
    LISTENERS.with_borrow(|all| all.iter().for_each(|listener| listener(relid)));
}
