//! Which functions an expression calls.

use super::syntax::{ExpressionPart, Node};
use super::{names, rows};
use pgrx::pg_sys::{self, NodeTag};

/// `INTERNALlanguageId` and `ClanguageId` of pg_language.dat: only superusers create
/// functions in them.
const SUPERUSERS_LANGUAGES: [u32; 2] = [12, 13];

/// The first function in the expression that a user who is no superuser may have created; or a
/// type that may call one: a domain, by its constraints; a composite type, which may contain a
/// domain; a type with its owner's cast to JSON.
pub(crate) fn untrusted(tree: Node<'_>) -> Option<String> {
    let mut found = None;
    tree.any(&mut |part| {
        found = match part {
            ExpressionPart::Node(node) => untrusted_type(node).map(names::of_type),
            ExpressionPart::Function(function) => {
                (!is_trusted(function)).then(|| names::of_function(function))
            }
        };
        found.is_some()
    });
    found
}

/// The type of the node, or of an argument, if it may call a function that is not in the
/// expression.
fn untrusted_type(node: Node<'_>) -> Option<pg_sys::Oid> {
    let made = || Some(node.value_type()).filter(|&type_oid| may_call_functions(type_oid));
    match node.type_ {
        // A JSON constructor applies the argument type's cast to json.
        #[cfg(since16)]
        NodeTag::T_JsonConstructorExpr => node
            .cast::<pg_sys::JsonConstructorExpr>()?
            .list::<pg_sys::Node>(|json| &json.args)
            .map(Node::value_type)
            .find(|type_oid| type_oid.to_u32() >= pg_sys::FirstNormalObjectId),
        #[cfg(since17)]
        NodeTag::T_JsonExpr => made(),
        // C functions, too, can make a value of any type.
        NodeTag::T_FuncExpr
        | NodeTag::T_OpExpr
        | NodeTag::T_CoerceViaIO
        | NodeTag::T_CoerceToDomain => made(),
        // A column's value was checked when it was stored. Other nodes pass values on, or
        // make them by what the expression contains.
        _ => None,
    }
}

/// Whether making a value of the type may call a user's function.
fn may_call_functions(mut type_oid: pg_sys::Oid) -> bool {
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

/// Whether only a superuser can have made the type, and all functions that values of it call.
pub(crate) fn is_type_of_superusers(mut type_oid: pg_sys::Oid) -> bool {
    while type_oid.to_u32() >= pg_sys::FirstNormalObjectId {
        // SAFETY: looks the OID up in the syscache; an unknown one is no fault.
        unsafe {
            let element = pg_sys::get_element_type(type_oid);
            if element == pg_sys::InvalidOid {
                return pg_sys::get_typtype(type_oid) as u8 == pg_sys::TYPTYPE_BASE;
            }
            type_oid = element;
        }
    }
    true
}

/// Whether only a superuser can have made the function.
pub(crate) fn is_trusted(function: pg_sys::Oid) -> bool {
    let language = || rows::FUNCTION.get(function, |row| row.prolang.to_u32());
    function.to_u32() < pg_sys::FirstNormalObjectId
        || language().is_some_and(|language| SUPERUSERS_LANGUAGES.contains(&language))
}
