//! `object_access_hook`: what a statement really drops or alters, whatever it names.
//!
//! It is installed only while a statement runs that can drop something or change an owner, in a database with the
//! extension: with any such hook, PostgreSQL 17 and newer compute `search_path` again at each
//! change, and call the hook for each function that is prepared
//! (docs/decisions/0024-what-a-statement-has-dropped.md).

use crate::pg::abi::variable::Variable;
use pgrx::pg_sys::{self, ObjectAccessType};
use pgrx::prelude::*;
use std::cell::Cell;

/// Functions to call before a relation or an extension is dropped, its catalog entries being still there, and when a
/// relation was altered, while look-ups in the catalogs still find it as it was.
#[derive(Clone, Copy)]
pub(crate) struct ObjectCallbacks {
    pub(crate) drops_relation: fn(pg_sys::Oid),
    pub(crate) drops_extension: fn(pg_sys::Oid),
    pub(crate) alters_relation: fn(pg_sys::Oid),
}

static mut PREVIOUS: pg_sys::object_access_hook_type = None;

/// Set while it is installed.
static CALLS: Variable<Cell<Option<ObjectCallbacks>>> = Variable::new(Cell::new(None));

/// Installs the hook, unless it is installed.
pub(crate) fn install(calls: ObjectCallbacks) {
    if CALLS.replace(Some(calls)).is_none() {
        // SAFETY: variables of this process, which has one thread.
        unsafe {
            PREVIOUS = pg_sys::object_access_hook;
            pg_sys::object_access_hook = Some(trampoline);
        }
    }
}

/// Removes it. Raises no error.
pub(crate) fn uninstall() {
    // SAFETY: variables of this process, which has one thread.
    unsafe {
        // Another library, loaded meanwhile, may have it as its previous hook: then it stays.
        if CALLS.get().is_some() && pg_sys::object_access_hook.is_some_and(is_trampoline) {
            pg_sys::object_access_hook = PREVIOUS;
            CALLS.set(None);
        }
    }
}

type Hook = unsafe extern "C-unwind" fn(
    ObjectAccessType::Type,
    pg_sys::Oid,
    pg_sys::Oid,
    core::ffi::c_int,
    *mut core::ffi::c_void,
);

fn is_trampoline(hook: Hook) -> bool {
    core::ptr::fn_addr_eq(hook, trampoline as Hook)
}

/// Unguarded, with nothing to drop (`docs/decisions/0004-unguarded-trampolines.md`).
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn trampoline(
    access: ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    sub_object: core::ffi::c_int,
    arg: *mut core::ffi::c_void,
) {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS is set before the hook is.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(access, class, object, sub_object, arg);
        }
    }
    let call: fn(ObjectCallbacks) -> fn(pg_sys::Oid) = match (access, class) {
        _ if sub_object != 0 => return,
        (ObjectAccessType::OAT_DROP, pg_sys::RelationRelationId) => |calls| calls.drops_relation,
        (ObjectAccessType::OAT_DROP, pg_sys::ExtensionRelationId) => |calls| calls.drops_extension,
        (ObjectAccessType::OAT_POST_ALTER, pg_sys::RelationRelationId) => {
            |calls| calls.alters_relation
        }
        _ => return,
    };
    note(call, object);
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn note(call: fn(ObjectCallbacks) -> fn(pg_sys::Oid), object: pg_sys::Oid) {
    if let Some(calls) = CALLS.get() {
        call(calls)(object);
    }
}
