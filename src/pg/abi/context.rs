//! Memory contexts, and values kept in them.

use super::externs;
use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::sync::atomic::AtomicU8;
use pgrx::pg_sys;
use std::rc::Rc;

/// A memory context that exists for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Context<'a>(pg_sys::MemoryContext, PhantomData<&'a ()>);

impl<'a> Context<'a> {
    /// # Safety
    /// The context exists for `'a`.
    #[inline]
    pub(crate) unsafe fn of(context: pg_sys::MemoryContext) -> Self {
        Self(context, PhantomData)
    }

    /// Whether PostgreSQL has given it this name.
    pub(crate) fn has_name(self, name: &CStr) -> bool {
        // SAFETY: PostgreSQL gives every memory context a name, a constant C string.
        unsafe { CStr::from_ptr((*self.0).name) == name }
    }

    /// Passes the current context to `work`, which must not reset it.
    pub(crate) fn with_current<T>(work: impl FnOnce(Context<'_>) -> T) -> T {
        // SAFETY: PostgreSQL does not free the current context.
        work(unsafe { Context::of(pg_sys::CurrentMemoryContext) })
    }

    #[inline]
    pub(crate) fn as_ptr(self) -> pg_sys::MemoryContext {
        self.0
    }

    /// Runs `work` in this context. After an error PostgreSQL sets the current context itself.
    #[inline]
    pub(crate) fn within<T>(self, work: impl FnOnce() -> T) -> T {
        // SAFETY: `of` requires that the context exists for `'a`.
        unsafe {
            let former = pg_sys::MemoryContextSwitchTo(self.0);
            let result = work();
            pg_sys::MemoryContextSwitchTo(former);
            result
        }
    }

    /// Moves the values into the context, which frees them without dropping them.
    pub(crate) fn put<T>(self, mut values: Vec<T>) -> &'a [T] {
        const { assert!(!core::mem::needs_drop::<T>() && align_of::<T>() <= 8) };
        if values.is_empty() {
            return &[];
        }
        // SAFETY: allocates as much as is moved; palloc aligns for any type.
        unsafe {
            let size = size_of_val(values.as_slice());
            let moved = pg_sys::MemoryContextAlloc(self.0, size).cast::<T>();
            moved.copy_from_nonoverlapping(values.as_ptr(), values.len());
            let moved = core::slice::from_raw_parts(moved, values.len());
            values.set_len(0);
            moved
        }
    }

    /// As [`Self::put`]. Unguarded: raises PostgreSQL's error when out of memory.
    #[allow(
        ffi_unwind_calls,
        reason = "an error that unwinds from C is PostgreSQL's own longjmp"
    )]
    pub(crate) fn put_one<T>(self, value: T) -> &'a T {
        const { assert!(!core::mem::needs_drop::<T>() && align_of::<T>() <= 8) };
        // SAFETY: allocates as much as is moved; palloc aligns for any type. There is nothing to drop.
        unsafe {
            let moved = externs::MemoryContextAlloc(self.0, size_of::<T>()).cast::<T>();
            moved.write(value);
            &*moved
        }
    }

    /// Keeps the value until the context is reset. Unguarded, as [`Self::put_one`]: it is never freed then.
    #[allow(
        ffi_unwind_calls,
        reason = "an error that unwinds from C is PostgreSQL's own longjmp"
    )]
    pub(crate) fn keep<T: 'static>(self, value: Rc<T>) -> &'a T {
        unsafe extern "C-unwind" fn release<T>(value: *mut c_void) {
            // SAFETY: made by `into_raw`, and released once.
            unsafe { Rc::decrement_strong_count(value.cast::<T>()) }
        }
        let value = Rc::into_raw(value);
        // SAFETY: the callback is allocated in the context that calls it, and the value is there
        // until then. There is nothing to drop.
        unsafe {
            let size = size_of::<pg_sys::MemoryContextCallback>();
            let callback = externs::MemoryContextAlloc(self.0, size);
            let callback = callback.cast::<pg_sys::MemoryContextCallback>();
            callback.write(pg_sys::MemoryContextCallback {
                func: Some(release::<T>),
                arg: value.cast_mut().cast(),
                next: core::ptr::null_mut(),
            });
            externs::MemoryContextRegisterResetCallback(self.0, callback);
            &*value
        }
    }
}

/// Identifies, by its address, a value kept in a context's list of reset callbacks: the only place
/// in a context for an extension's data. Mutable, so that the compiler cannot merge two of them.
pub(crate) struct Mark<T>(AtomicU8, PhantomData<fn() -> T>);

#[repr(C)]
struct MarkedValue<T> {
    callback: pg_sys::MemoryContextCallback,
    value: T,
}

/// The reset callback: only its address matters.
unsafe extern "C-unwind" fn forget(_mark: *mut c_void) {}

impl<T: Copy> Mark<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(0), PhantomData)
    }

    fn address(&'static self) -> *const c_void {
        self.0.as_ptr().cast_const().cast()
    }

    /// Keeps a value in the context. Raises an error only when out of memory.
    #[allow(
        ffi_unwind_calls,
        reason = "an error that unwinds from C is PostgreSQL's own longjmp"
    )]
    pub(crate) fn keep(&'static self, memory: Context<'_>, value: T) {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        // SAFETY: what is allocated in the context lives until the context calls back.
        unsafe {
            let kept = externs::MemoryContextAlloc(memory.0, size_of::<MarkedValue<T>>());
            let kept = kept.cast::<MarkedValue<T>>();
            let callback = pg_sys::MemoryContextCallback {
                func: Some(forget),
                arg: self.address().cast_mut(),
                next: core::ptr::null_mut(),
            };
            kept.write(MarkedValue { callback, value });
            externs::MemoryContextRegisterResetCallback(memory.0, &raw mut (*kept).callback);
        }
    }

    /// The value that was last kept there.
    pub(crate) fn find(&'static self, memory: Context<'_>) -> Option<T> {
        // SAFETY: the reset callbacks of a context are a linked list; those with this mark begin a
        // `MarkedValue`.
        unsafe {
            let mut callback = (*memory.0).reset_cbs;
            while let Some(this) = callback.as_ref() {
                if this.arg.cast_const() == self.address() {
                    return Some((*callback.cast::<MarkedValue<T>>()).value);
                }
                callback = this.next;
            }
        }
        None
    }
}
