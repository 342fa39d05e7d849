//! Code around calls of chosen functions, whatever makes the call: `fmgr_hook`.
//!
//! PostgreSQL also tells it of each call of a function with SECURITY DEFINER, its return, and an error that passes
//! it: [`gate`] notes whose code runs.
//!
//! PostgreSQL tells the hook of each call before it is made, but not the arguments. So the hook puts a
//! function of this file in the place of the called one, in what PostgreSQL has made for this call site;
//! that gets the arguments, and makes the call.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use crate::pg::abi::fmgr;
use crate::pg::abi::variable::Variable;
use crate::pg::session::gate;
use core::marker::PhantomData;
use pgrx::pg_sys::{self, Datum, FmgrHookEventType, FmgrInfo, FunctionCallInfo, Oid};
use std::cell::RefCell;

/// A call that is about to be made. Errors may pass where one is held: nothing needs dropping.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct HookedCall<'a>(FunctionCallInfo, PhantomData<&'a ()>);

impl HookedCall<'_> {
    pub(crate) fn function(self) -> Oid {
        // SAFETY: PostgreSQL fills `flinfo` before the hook is called.
        unsafe { (*(*self.0).flinfo).fn_oid }
    }

    /// The first argument, if the function is declared with one of a type that is an object's OID.
    pub(crate) fn object(self) -> Option<Oid> {
        // SAFETY: the call has as many arguments as it says.
        let first = unsafe { ((*self.0).nargs > 0).then(|| fmgr::arg(self.0, 0)) };
        first.flatten().map(|value| Oid::from(value.value() as u32))
    }
}

/// Code that runs around the calls.
///
/// # Safety
/// Unguarded (`docs/decisions/0004-unguarded-trampolines.md`): the methods do not panic, and nothing
/// needs dropping where an error may pass. `call` calls its last argument once, and returns what that does.
pub(crate) unsafe trait Around {
    /// Whether calls of the function are to be met. It is asked when a function is looked up, and at calls of
    /// those that run with settings or another identity. Always the same for a function; or an error, and it is not called.
    fn concerns(function: Oid) -> bool;
    fn call(call: HookedCall<'_>, run: impl FnOnce() -> Datum) -> Datum;
}

static mut PREVIOUS_NEEDS: pg_sys::needs_fmgr_hook_type = None;
static mut PREVIOUS: pg_sys::fmgr_hook_type = None;

type Function = unsafe extern "C-unwind" fn(FunctionCallInfo) -> Datum;

/// The functions in whose place [`instead`] has been put.
static REPLACED: Variable<RefCell<Vec<(Oid, Function)>>> = Variable::new(RefCell::new(Vec::new()));

/// Installs the hooks; once, at load.
pub(crate) fn init<A: Around>() {
    // SAFETY: single-threaded, in the postmaster, before any query.
    unsafe {
        PREVIOUS_NEEDS = pg_sys::needs_fmgr_hook;
        PREVIOUS = pg_sys::fmgr_hook;
        pg_sys::needs_fmgr_hook = Some(needs::<A>);
        pg_sys::fmgr_hook = Some(hook::<A>);
    }
}

unsafe extern "C-unwind" fn needs<A: Around>(function: Oid) -> bool {
    // SAFETY: PostgreSQL's argument is passed on; PREVIOUS_NEEDS is set once.
    let is_needed = unsafe { PREVIOUS_NEEDS.is_some_and(|previous| previous(function)) };
    is_needed || A::concerns(function)
}

unsafe extern "C-unwind" fn hook<A: Around>(
    event: FmgrHookEventType::Type,
    function: *mut FmgrInfo,
    state: *mut Datum,
) {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS is set once. At the start of a call
    // `function` is what PostgreSQL calls next: its own copy, which lives as long as the call site.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(event, function, state);
        }
        if event != FmgrHookEventType::FHET_START {
            return gate::leave_function();
        }
        gate::enter_function();
        if A::concerns((*function).fn_oid) {
            let own: Function = instead::<A>;
            let given = (*function).fn_addr;
            if let Some(given) = given.filter(|&given| !core::ptr::fn_addr_eq(given, own)) {
                remember((*function).fn_oid, given);
                (*function).fn_addr = Some(own);
            }
        }
    }
}

fn remember(function: Oid, address: Function) {
    REPLACED.with_borrow_mut(|all| {
        all.retain(|&(of, _)| of != function);
        all.push((function, address));
    });
}

fn replaced(function: Oid) -> Option<Function> {
    let is_it = |&&(of, _): &&(Oid, Function)| of == function;
    REPLACED.with_borrow(|all| all.iter().find(is_it).map(|&(_, address)| address))
}

unsafe extern "C-unwind" fn instead<A: Around>(call: FunctionCallInfo) -> Datum {
    let run = HookedCall(call, PhantomData);
    A::call(run, || match replaced(run.function()) {
        // SAFETY: `hook` found this function in the place of ours; it is called as PostgreSQL would.
        Some(function) => unsafe { function(call) },
        None => Datum::from(0),
    })
}
