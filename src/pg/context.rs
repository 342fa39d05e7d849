//! Memory contexts, and what is kept in them and freed with them.

use super::externs;
use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::sync::atomic::AtomicU8;
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
    pub(crate) unsafe fn of(context: pg_sys::MemoryContext) -> Self {
        Self(context, PhantomData)
    }

    /// Whether PostgreSQL has given it this name.
    pub(crate) fn has_name(self, name: &CStr) -> bool {
        // SAFETY: a context has a name.
        unsafe { CStr::from_ptr((*self.0).name) == name }
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

/// Marks, by its address, what is kept in the list of a context's callbacks: nowhere else can an
/// extension keep something there. It can be changed, so that the compiler lets no two have the
/// same.
pub(crate) struct Mark<T>(AtomicU8, PhantomData<fn() -> T>);

#[repr(C)]
struct Kept<T> {
    callback: pg_sys::MemoryContextCallback,
    value: T,
}

/// Called when the context goes: there is nothing to do.
unsafe extern "C-unwind" fn forget(_mark: *mut c_void) {}

impl<T: Copy> Mark<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(0), PhantomData)
    }

    fn address(&'static self) -> *const c_void {
        self.0.as_ptr().cast_const().cast()
    }

    /// Keeps a value there. Raises an error for want of memory only.
    #[allow(
        ffi_unwind_calls,
        reason = "an error that unwinds from C is PostgreSQL's own longjmp"
    )]
    pub(crate) fn keep(&'static self, memory: Context<'_>, value: T) {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        // SAFETY: what is allocated in the context lives until the context calls back.
        unsafe {
            let kept = externs::MemoryContextAlloc(memory.0, size_of::<Kept<T>>());
            let kept = kept.cast::<Kept<T>>();
            let callback = pg_sys::MemoryContextCallback {
                func: Some(forget),
                arg: self.address().cast_mut(),
                next: core::ptr::null_mut(),
            };
            kept.write(Kept { callback, value });
            externs::MemoryContextRegisterResetCallback(memory.0, &raw mut (*kept).callback);
        }
    }

    /// The value that was last kept there.
    pub(crate) fn find(&'static self, memory: Context<'_>) -> Option<T> {
        // SAFETY: the callbacks of a context are a list; those with this mark are the head of
        // a `Kept`.
        unsafe {
            let mut callback = (*memory.0).reset_cbs;
            while let Some(this) = callback.as_ref() {
                if this.arg.cast_const() == self.address() {
                    return Some((*callback.cast::<Kept<T>>()).value);
                }
                callback = this.next;
            }
        }
        None
    }
}
