//! Variables of the process.
//!
//! A process of PostgreSQL has one thread that runs this code, so a static does. A library that is loaded at run time
//! reaches a `thread_local!` by a call of `__tls_get_addr`, through two tables: 11 instructions each time, and two
//! lines of cache.

use pgrx::pg_sys::Oid;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::cell::RefCell;
use std::ops::Deref;

/// A variable of the process, which children inherit by fork.
pub(crate) struct Variable<T>(T);

// SAFETY: PostgreSQL calls the library from the only thread of a process; the tests that run in
// several threads are of code without variables.
unsafe impl<T> Sync for Variable<T> {}

impl<T> Variable<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Variable<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Variable<RefCell<T>> {
    #[inline]
    pub(crate) fn with_borrow<R>(&self, work: impl FnOnce(&T) -> R) -> R {
        work(&self.0.borrow())
    }

    #[inline]
    pub(crate) fn with_borrow_mut<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

/// What is known of relations, or other objects, by OID.
pub(crate) type ByOid<T> = Variable<RefCell<FxHashMap<Oid, T>>>;

impl<T> ByOid<T> {
    pub(crate) const fn empty() -> Self {
        Self::new(RefCell::new(FxHashMap::with_hasher(FxBuildHasher)))
    }
}
