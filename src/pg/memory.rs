//! What is kept in a memory context, and freed with it. It is found again in the context's list
//! of callbacks: nowhere else can an extension keep something there.

use super::externs;
use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::sync::atomic::AtomicU8;
use pgrx::pg_sys;

/// A memory context.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Memory<'a>(pg_sys::MemoryContext, PhantomData<&'a ()>);

impl Memory<'_> {
    /// # Safety
    /// The context is there meanwhile. Errors may pass: nothing is to be dropped.
    #[inline]
    pub(crate) unsafe fn new(context: pg_sys::MemoryContext) -> Self {
        Self(context, PhantomData)
    }

    /// Whether PostgreSQL has given it this name.
    pub(crate) fn has_name(self, name: &CStr) -> bool {
        // SAFETY: a context has a name.
        unsafe { CStr::from_ptr((*self.0).name) == name }
    }
}

/// Marks what is kept among others' callbacks, by its address. It can be changed, so that the
/// compiler lets no two have the same.
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
    pub(crate) fn keep(&'static self, memory: Memory<'_>, value: T) {
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
    pub(crate) fn find(&'static self, memory: Memory<'_>) -> Option<T> {
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
