//! Which functions an expression calls: those of the filter run with the rights of
//! whoever reads the table.

use pgrx::pg_sys::{self, NodeTag};
use pgrx::prelude::*;
use std::ffi::{CStr, c_void};

/// `INTERNALlanguageId` and `ClanguageId` of pg_language.dat: only superusers create
/// functions in them.
const SUPERUSERS_LANGUAGES: [u32; 2] = [12, 13];

/// The first function of the expression that a user may have made who is no
/// superuser; a domain, too, whose constraints may call any.
///
/// # Safety
/// `tree` is an expression of the catalog.
pub(crate) unsafe fn untrusted(tree: *mut pg_sys::Node) -> Option<String> {
    let mut found: Option<String> = None;
    // SAFETY: as required of the caller; the context outlives the walk.
    unsafe { walk(tree, (&raw mut found).cast()) };
    found
}

#[pg_guard]
unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, found: *mut c_void) -> bool {
    // SAFETY: called with nodes of the tree and the context of `untrusted`.
    unsafe {
        match super::nodes::tag(node) {
            None => return false,
            Some(NodeTag::T_CoerceToDomain) => {
                let domain = (*node.cast::<pg_sys::CoerceToDomain>()).resulttype;
                let name = CStr::from_ptr(pg_sys::format_type_be(domain));
                *found.cast::<Option<String>>() = Some(name.to_string_lossy().into_owned());
                return true;
            }
            Some(_) => {}
        }
        pg_sys::check_functions_in_node(node, Some(check), found)
            || pg_sys::expression_tree_walker(node, Some(walk), found)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn check(function: pg_sys::Oid, found: *mut c_void) -> bool {
    if function.to_u32() < pg_sys::FirstNormalObjectId {
        return false;
    }
    // SAFETY: a syscache look-up; the tuple is read before its release. The context is
    // that of `untrusted`.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(function));
        let trusted = !tuple.is_null() && {
            let form = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>();
            let trusted = SUPERUSERS_LANGUAGES.contains(&(*form).prolang.to_u32());
            pg_sys::ReleaseSysCache(tuple);
            trusted
        };
        if !trusted {
            let name = pg_sys::format_procedure(function);
            let name = CStr::from_ptr(name).to_string_lossy().into_owned();
            *found.cast::<Option<String>>() = Some(name);
        }
        !trusted
    }
}
