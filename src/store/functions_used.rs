//! Which functions an expression calls. Those of the filter run with the rights of whoever reads
//! the table.

use crate::pg::encoding;
use crate::pg::rows::{Cache, Row};
use pgrx::pg_sys::{self, NodeTag};
use pgrx::prelude::*;
use std::ffi::c_void;

/// `INTERNALlanguageId` and `ClanguageId` of pg_language.dat: only superusers create
/// functions in them.
const SUPERUSERS_LANGUAGES: [u32; 2] = [12, 13];

/// The first function in the expression that a user who is no superuser may have created; or a
/// type that may call one: a domain, by its constraints; a composite type, which may contain a
/// domain; a type with its owner's cast to JSON.
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
        let Some(tag) = crate::pg::nodes::tag(node) else {
            return false;
        };
        if let Some(type_oid) = untrusted_type(node, tag) {
            let name = encoding::from_pointer(pg_sys::format_type_be(type_oid));
            *found.cast::<Option<String>>() = Some(name);
            return true;
        }
        pg_sys::check_functions_in_node(node, Some(check), found)
            || pg_sys::expression_tree_walker(node, Some(walk), found)
    }
}

/// The type of the node, or of an argument, if it may call a function that is not in the
/// expression.
///
/// # Safety
/// A node of an expression.
unsafe fn untrusted_type(node: *mut pg_sys::Node, tag: NodeTag) -> Option<pg_sys::Oid> {
    // SAFETY: as required of the caller; the node's tag tells its type.
    unsafe {
        match tag {
            // A JSON constructor applies the argument type's cast to json.
            #[cfg(not(feature = "pg15"))]
            NodeTag::T_JsonConstructorExpr => {
                let arguments = (*node.cast::<pg_sys::JsonConstructorExpr>()).args;
                crate::pg::lists::iter::<pg_sys::Node>(arguments)
                    .map(|argument| pg_sys::exprType(argument))
                    .find(|type_oid| type_oid.to_u32() >= pg_sys::FirstNormalObjectId)
            }
            #[cfg(not(any(feature = "pg15", feature = "pg16")))]
            NodeTag::T_JsonExpr => made_type(node),
            // C functions, too, can make a value of any type.
            NodeTag::T_FuncExpr
            | NodeTag::T_OpExpr
            | NodeTag::T_CoerceViaIO
            | NodeTag::T_CoerceToDomain => made_type(node),
            // A column's value was checked when it was stored. Other nodes pass values on, or
            // make them by what the expression contains.
            _ => None,
        }
    }
}

/// # Safety
/// An expression.
unsafe fn made_type(node: *mut pg_sys::Node) -> Option<pg_sys::Oid> {
    // SAFETY: as required of the caller.
    unsafe { Some(pg_sys::exprType(node)).filter(|&type_oid| may_call_functions(type_oid)) }
}

/// Whether making a value of the type may call a user's function.
///
/// # Safety
/// Within a transaction.
unsafe fn may_call_functions(mut type_oid: pg_sys::Oid) -> bool {
    // A loop, because ranges of ranges can be nested to any depth.
    while type_oid.to_u32() >= pg_sys::FirstNormalObjectId {
        pgrx::check_for_interrupts!();
        // SAFETY: syscache look-ups. Only superusers create base types, and the functions of a
        // range type.
        unsafe {
            let element = pg_sys::get_element_type(type_oid);
            type_oid = match pg_sys::get_typtype(type_oid) as u8 {
                _ if element != pg_sys::InvalidOid => element,
                pg_sys::TYPTYPE_BASE | pg_sys::TYPTYPE_ENUM => return false,
                pg_sys::TYPTYPE_RANGE => pg_sys::get_range_subtype(type_oid),
                pg_sys::TYPTYPE_MULTIRANGE => pg_sys::get_multirange_range(type_oid),
                _ => return true,
            };
        }
    }
    false
}

// SAFETY: the cache of pg_proc by OID.
const FUNCTION: Cache<pg_sys::FormData_pg_proc> =
    unsafe { Cache::new(pg_sys::SysCacheIdentifier::PROCOID) };

#[pg_guard]
unsafe extern "C-unwind" fn check(function: pg_sys::Oid, found: *mut c_void) -> bool {
    if function.to_u32() < pg_sys::FirstNormalObjectId {
        return false;
    }
    let is_trusted = |row: &Row<'_, pg_sys::FormData_pg_proc>| {
        SUPERUSERS_LANGUAGES.contains(&row.prolang.to_u32())
    };
    let trusted = FUNCTION.get(function, is_trusted).unwrap_or(false);
    // SAFETY: the context is that of `untrusted`.
    unsafe {
        if !trusted {
            let name = pg_sys::format_procedure(function);
            let name = encoding::from_pointer(name);
            *found.cast::<Option<String>>() = Some(name);
        }
        !trusted
    }
}
