//! Which functions an expression calls.

use super::syntax::{ExpressionPart, Node};
use super::{names, roles, rows};
use pgrx::pg_sys::{self, NodeTag};
use std::ffi::CStr;

/// `INTERNALlanguageId` and `ClanguageId` of pg_language.dat: only superusers create
/// functions in them.
const SUPERUSERS_LANGUAGES: [u32; 2] = [12, 13];

/// The first function in the expression that a user who is no superuser may have created; or a
/// type that may call one: a domain, by its constraints; a composite type, which may contain a
/// domain; a type with its owner's cast to JSON; or an operator, in whose place its negator or commutator may call one.
pub(crate) fn untrusted(tree: Node<'_>) -> Option<String> {
    let mut found = untrusted_call(tree);
    tree.any(&mut |part| {
        if let ExpressionPart::Node(node) = part {
            found = found.take().or_else(|| untrusted_operator(node));
        }
        found.is_some()
    });
    found
}

fn untrusted_call(tree: Node<'_>) -> Option<String> {
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

/// The first part of the expression that is not known to run none but PostgreSQL's code, when it is evaluated, simplified
/// or estimated. What that calls is not all in the expression: an operator's negator and commutator, by which it is replaced
/// or estimated; `subtype_diff` of a range type, by which histograms are read. So the test lists what is harmless.
pub(crate) fn unknown(tree: Node<'_>) -> Option<String> {
    let mut found = untrusted_call(tree).map(|name| format!("function {name}"));
    tree.any(&mut |part| {
        if let ExpressionPart::Node(node) = part {
            found = found.take().or_else(|| unknown_node(node));
        }
        found.is_some()
    });
    found
}

fn unknown_node(node: Node<'_>) -> Option<String> {
    match node.type_ {
        // Parts of other nodes.
        NodeTag::T_List | NodeTag::T_IntList | NodeTag::T_OidList | NodeTag::T_CaseWhen => {
            return None;
        }
        NodeTag::T_OpExpr
        | NodeTag::T_DistinctExpr
        | NodeTag::T_NullIfExpr
        | NodeTag::T_ScalarArrayOpExpr
        | NodeTag::T_Var
        | NodeTag::T_Const
        | NodeTag::T_FuncExpr
        | NodeTag::T_BoolExpr
        | NodeTag::T_RelabelType
        | NodeTag::T_CoerceViaIO
        | NodeTag::T_ArrayCoerceExpr
        | NodeTag::T_CollateExpr
        | NodeTag::T_CaseExpr
        | NodeTag::T_CaseTestExpr
        | NodeTag::T_ArrayExpr
        | NodeTag::T_CoalesceExpr
        | NodeTag::T_MinMaxExpr
        | NodeTag::T_SQLValueFunction
        | NodeTag::T_NextValueExpr
        | NodeTag::T_NullTest
        | NodeTag::T_BooleanTest
        | NodeTag::T_SubscriptingRef => {}
        _ => return Some("an expression of an uncommon kind".to_owned()),
    }
    if let Some(operator) = untrusted_operator(node) {
        return Some(format!("operator {operator}"));
    }
    let value = node.value_type();
    (!is_harmless_type(value)).then(|| format!("type {}", names::of_type(value)))
}

/// The first operator, type or function to which a name in a text of the extension's has led, and that a user who is no superuser may have
/// made. Casts are found by types, and operators of operator classes are superusers'.
pub(crate) fn named_by_users(tree: Node<'_>) -> Option<String> {
    let mut found = None;
    tree.any(&mut |part| {
        if let ExpressionPart::Node(node) = part {
            found = untrusted_operator(node)
                .filter(|_| !is_in_operator_class(node))
                .map(|name| format!("operator {name}"))
                .or_else(|| named_function(node))
                .or_else(|| {
                    untrusted_type(node)
                        .map(|type_oid| format!("type {}", names::of_type(type_oid)))
                });
        }
        found.is_some()
    });
    found
}

fn named_function(node: Node<'_>) -> Option<String> {
    let call = node.cast::<pg_sys::FuncExpr>()?;
    let is_call = call.funcformat == pg_sys::CoercionForm::COERCE_EXPLICIT_CALL;
    (is_call && !is_trusted(call.funcid))
        .then(|| format!("function {}", names::of_function(call.funcid)))
}

fn is_in_operator_class(node: Node<'_>) -> bool {
    let operator = node.cast::<pg_sys::OpExpr>().map(|node| node.opno);
    // SAFETY: a syscache look-up; an unknown operator is in none.
    operator
        .is_some_and(|operator| unsafe { !pg_sys::get_mergejoin_opfamilies(operator).is_null() })
}

/// The node's operator, if it may call a function that a user who is no superuser may have created.
fn untrusted_operator(node: Node<'_>) -> Option<String> {
    let operator = match node.type_ {
        NodeTag::T_OpExpr => node.cast::<pg_sys::OpExpr>()?.opno,
        NodeTag::T_DistinctExpr | NodeTag::T_NullIfExpr => {
            // SAFETY: both are typedefs of OpExpr.
            unsafe { (*node.as_ptr().cast::<pg_sys::OpExpr>()).opno }
        }
        NodeTag::T_ScalarArrayOpExpr => node.cast::<pg_sys::ScalarArrayOpExpr>()?.opno,
        _ => return None,
    };
    (!is_operator_of_superusers(operator)).then(|| names::of_operator(operator))
}

/// Whether the operator, its negator and commutator, and theirs, call none but superusers' functions. They are superusers'
/// own: their links stay. That alone is not enough, as REASSIGN OWNED makes a superuser the owner of what another role
/// has made.
fn is_operator_of_superusers(operator: pg_sys::Oid) -> bool {
    let (mut seen, mut next) = (vec![], vec![operator]);
    while let Some(operator) = next.pop() {
        let is_known = operator.to_u32() < pg_sys::FirstNormalObjectId || seen.contains(&operator);
        if is_known {
            continue;
        }
        let links = rows::OPERATOR.get(operator, |row| {
            (row.oprowner, row.oprcode, [row.oprnegate, row.oprcom])
        });
        match links {
            Some((owner, function, links))
                if roles::is_superuser(owner) && is_trusted(function) =>
            {
                next.extend(links);
            }
            _ => return false,
        }
        seen.push(operator);
    }
    true
}

/// Whether values of the type call none but superusers' functions.
pub(crate) fn is_harmless_type(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up; an unknown type is no fault.
    let kind = unsafe { pg_sys::get_typtype(type_oid) };
    kind as u8 == pg_sys::TYPTYPE_ENUM || is_type_of_superusers(type_oid)
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

/// The extension's name, a C string.
const OWN: &CStr = {
    let name = concat!(env!("CARGO_PKG_NAME"), "\0");
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => unreachable!(),
    }
};

/// Whether a trigger's function is PostgreSQL's or the extension's own. Others in C may run what the trigger's arguments say.
pub(crate) fn is_harmless_trigger(function: pg_sys::Oid) -> bool {
    // SAFETY: reads pg_depend; a function that belongs to no extension is no fault.
    let of = || unsafe { pg_sys::getExtensionOfObject(pg_sys::ProcedureRelationId, function) };
    function.to_u32() < pg_sys::FirstNormalObjectId
        || names::extension(OWN).is_some_and(|extension| extension == of())
}
