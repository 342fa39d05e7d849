//! A function in C keeps something for further calls from the same place of a query.

use super::memory::Memory;
use super::{externs, nodes};
use core::ffi::c_void;
use core::marker::PhantomData;
use pgrx::pg_sys;

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
            if info.is_null() || (*info).fn_mcxt.is_null() {
                return false;
            }
            if (*info).fn_extra.is_null() {
                let answer = decide(self, Memory::new((*info).fn_mcxt));
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
