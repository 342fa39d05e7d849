//! Invalidation of relations, for all who listen: PostgreSQL has room for ten callbacks in a session, in
//! all libraries together, so that this one takes but one place.

use pgrx::pg_sys;
use std::cell::RefCell;

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

unsafe extern "C-unwind" fn tell(_arg: pg_sys::Datum, relid: pg_sys::Oid) {
    LISTENERS.with_borrow(|all| all.iter().for_each(|listener| listener(relid)));
}
