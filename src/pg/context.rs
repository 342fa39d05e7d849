//! Memory contexts.

use core::ffi::c_void;
use core::marker::PhantomData;
use pgrx::pg_sys;
use std::rc::Rc;

/// A memory context that is there as long as `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Context<'a>(pg_sys::MemoryContext, PhantomData<&'a ()>);

impl<'a> Context<'a> {
    /// # Safety
    /// It is there as long as `'a`.
    #[inline]
    pub(super) unsafe fn of(context: pg_sys::MemoryContext) -> Self {
        Self(context, PhantomData)
    }

    /// The current one, which stays as long as `work` runs.
    pub(crate) fn with_current<T>(work: impl FnOnce(Context<'_>) -> T) -> T {
        // SAFETY: nobody frees the current context.
        work(unsafe { Context::of(pg_sys::CurrentMemoryContext) })
    }

    #[inline]
    pub(crate) fn as_ptr(self) -> pg_sys::MemoryContext {
        self.0
    }

    /// Runs `work` with this one as the current context. After an error PostgreSQL sets another.
    #[inline]
    pub(crate) fn within<T>(self, work: impl FnOnce() -> T) -> T {
        // SAFETY: it is there.
        unsafe {
            let former = pg_sys::MemoryContextSwitchTo(self.0);
            let result = work();
            pg_sys::MemoryContextSwitchTo(former);
            result
        }
    }

    /// Moves the values here. Nothing in them needs dropping.
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

    /// As [`Self::put`].
    pub(crate) fn put_one<T>(self, value: T) -> &'a T {
        &self.put(vec![value])[0]
    }

    /// Keeps the value until the context is reset.
    pub(crate) fn keep<T: 'static>(self, value: Rc<T>) -> &'a T {
        unsafe extern "C-unwind" fn release<T>(value: *mut c_void) {
            // SAFETY: made by `into_raw`, and released once.
            unsafe { Rc::decrement_strong_count(value.cast::<T>()) }
        }
        // SAFETY: the callback is allocated in the context that calls it, and the value is there
        // until then.
        unsafe {
            let size = size_of::<pg_sys::MemoryContextCallback>();
            let callback = pg_sys::MemoryContextAllocZero(self.0, size)
                .cast::<pg_sys::MemoryContextCallback>();
            let value = Rc::into_raw(value);
            (*callback).func = Some(release::<T>);
            (*callback).arg = value.cast_mut().cast();
            pg_sys::MemoryContextRegisterResetCallback(self.0, callback);
            &*value
        }
    }
}
