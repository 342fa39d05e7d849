//! The hook around calls of functions: those of Citus that copy shards, or convert tables, whatever makes the
//! call; those that are not to be called while a query is planned; and those that may leave something in a process of an owner's.

use crate::citus::{self, Doing};
use crate::ddl::conversion;
use crate::pg::abi::report::or_raise;
use crate::pg::exec::function_hook::{self, Around, HookedCall};
use crate::pg::exec::guarded_planning;
use crate::pg::session::owner_session;
use crate::pg::session::scoped::Scope;
use pgrx::pg_sys::{Datum, Oid};
use pgrx::prelude::*;

/// Installs the hooks; once, at load.
pub(super) fn init() {
    function_hook::init::<FunctionHooks>();
}

struct FunctionHooks;

// SAFETY: nothing needs dropping. After an error the callbacks in `transaction_end.rs` clean up.
unsafe impl Around for FunctionHooks {
    /// A server without Citus pays three comparisons.
    #[inline]
    fn concerns(function: Oid) -> bool {
        if guarded_planning::is_on() {
            guarded_planning::check(function);
        }
        if owner_session::notes_functions() {
            owner_session::note_function(function);
        }
        !citus::is_known_to_be_absent() && is_of_citus(function)
    }

    fn call(call: HookedCall<'_>, run: impl FnOnce() -> Datum) -> Datum {
        let begun = begin(call);
        let returned = run();
        if let Some((doing, scope)) = begun {
            end(doing, scope);
        }
        returned
    }
}

#[pg_guard]
extern "C-unwind" fn is_of_citus(function: Oid) -> bool {
    citus::doing(function).is_some()
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn begin(call: HookedCall<'_>) -> Option<(Doing, Scope)> {
    let (doing, scope) = citus::enter(call.function())?;
    if doing == Doing::Converting {
        or_raise(conversion::before(call.function(), call.object()));
    }
    Some((doing, scope))
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn end(doing: Doing, scope: Scope) {
    citus::leave(scope);
    if doing == Doing::Converting {
        conversion::after();
    }
}
