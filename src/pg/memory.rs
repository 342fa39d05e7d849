//! What is kept in a memory context, and freed with it; or for further calls of a function from
//! the same place of a query.

use super::{externs, nodes};
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
    pub(crate) fn keep(&'static self, memory: Memory<'_>, value: T) {
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

/// A call of the function that runs.
#[repr(transparent)]
pub(crate) struct Call<'a>(pg_sys::FunctionCallInfo, PhantomData<&'a ()>);

/// What `fn_extra` points to: the answer of [`Call::once`].
static NO: u8 = 1;
static YES: u8 = 2;

fn address(answer: &'static u8) -> *mut c_void {
    core::ptr::from_ref(answer).cast_mut().cast()
}

impl Call<'_> {
    /// # Safety
    /// The argument of a function in C, which keeps one thing in `fn_extra`, by one method of
    /// this type. Errors may pass: nothing is to be dropped.
    #[inline]
    pub(crate) unsafe fn new(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        Self(fcinfo, PhantomData)
    }

    /// What `decide` says about the first of these calls and the memory of what they keep; false
    /// without any.
    #[inline]
    pub(crate) fn once(&self, decide: impl FnOnce(&Self, Memory<'_>) -> bool) -> bool {
        // SAFETY: the call goes on; nothing else is kept in fn_extra.
        unsafe {
            let info = (*self.0).flinfo;
            if info.is_null() {
                return false;
            }
            if (*info).fn_extra.is_null() {
                let memory = (*info).fn_mcxt;
                let answer = !memory.is_null() && decide(self, Memory::new(memory));
                (*info).fn_extra = address(if answer { &YES } else { &NO });
            }
            (*info).fn_extra == address(&YES)
        }
    }

    /// What the former ones of these calls have kept, `first` at first; `None` if nobody would
    /// know it again. Raises an error for want of memory only.
    #[inline]
    #[allow(
        ffi_unwind_calls,
        reason = "an error that unwinds from C is PostgreSQL's own longjmp"
    )]
    pub(crate) fn kept<T: Copy>(&mut self, first: impl FnOnce() -> T) -> Option<&mut T> {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        // SAFETY: fn_extra is null or points to a `T`, as nothing else is kept there.
        unsafe {
            let info = (*self.0).flinfo.as_mut()?;
            if info.fn_extra.is_null() {
                let kept = externs::MemoryContextAlloc(info.fn_mcxt, size_of::<T>());
                kept.cast::<T>().write(first());
                info.fn_extra = kept;
            }
            info.fn_extra.cast::<T>().as_mut()
        }
    }

    /// Whether it is in the filter's expression ([`nodes::is_called_by_filter`]).
    pub(crate) fn is_by_filter(&self) -> bool {
        // SAFETY: the call goes on.
        unsafe { nodes::is_called_by_filter(self.0) }
    }
}
