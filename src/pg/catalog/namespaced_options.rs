//! Options of one namespace in `WITH (…)`, `SET (…)` and `RESET (…)`. PostgreSQL refuses a
//! namespace that it does not know, so who handles one takes its options out first.

use super::names;
use super::syntax::Node;
use crate::pg::abi::encoding;
use crate::pg::abi::lists;
use core::ffi::CStr;
use pgrx::pg_sys::{
    self, AlterTableCmd, AlterTableStmt, AlterTableType, CreateStmt, CreateTableAsStmt, DefElem,
    IndexStmt, List, NodeTag, PlannedStmt, ViewStmt,
};

/// An option as it is written.
#[derive(Debug, Clone)]
pub(crate) struct NamespacedOption {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    /// In RESET.
    pub(crate) is_reset: bool,
}

/// A statement without the options of the namespace, and these, in order.
pub(crate) struct StrippedStatement {
    pub(crate) statement: *mut PlannedStmt,
    pub(crate) options: Vec<NamespacedOption>,
}

/// Whether the statement has options of the namespace.
pub(crate) fn has_any(planned: Node<'_, PlannedStmt>, namespace: &CStr) -> bool {
    // SAFETY: the statement and all that is below it are nodes that the parser made.
    unsafe {
        let statement = (*planned.as_ptr()).utilityStmt;
        !statement.is_null()
            && places(statement).iter().any(|place| {
                lists::iter::<DefElem>(*place.list).any(|option| is_in(option, namespace))
            })
    }
}

/// Whether the statement has an option of that name without a namespace.
pub(crate) fn has_option(planned: Node<'_, PlannedStmt>, name: &CStr) -> bool {
    // SAFETY: trees of the parser, in which options have names.
    unsafe {
        let statement = (*planned.as_ptr()).utilityStmt;
        !statement.is_null()
            && places(statement).iter().any(|place| {
                lists::iter::<DefElem>(*place.list).any(|option| {
                    (*option).defnamespace.is_null()
                        && !(*option).defname.is_null()
                        && CStr::from_ptr((*option).defname) == name
                })
            })
    }
}

/// Takes the namespace's options out of a copy of the statement; `None` if it has none. The
/// statement itself may be that of a cached plan, and stays as it is.
pub(crate) fn take(planned: Node<'_, PlannedStmt>, namespace: &CStr) -> Option<StrippedStatement> {
    if !has_any(planned, namespace) {
        return None;
    }
    // SAFETY: trees of the parser; this function has the only reference to the copy.
    unsafe {
        let copy = pg_sys::copyObjectImpl(planned.as_ptr().cast()).cast::<PlannedStmt>();
        let mut options = Vec::new();
        for place in places((*copy).utilityStmt) {
            for option in lists::iter::<DefElem>(*place.list) {
                if is_in(option, namespace)
                    && let Some(node) = Node::new(option)
                {
                    options.push(NamespacedOption {
                        name: encoding::given(CStr::from_ptr((*option).defname)),
                        value: names::option_value(node).map(|it| encoding::given(&it)),
                        is_reset: place.is_reset,
                    });
                }
            }
            *place.list = lists::retain(*place.list, |option: &mut DefElem| {
                !is_in(option, namespace)
            });
        }
        drop_empty_commands((*copy).utilityStmt);
        Some(StrippedStatement {
            statement: copy,
            options,
        })
    }
}

/// A list of options in a statement.
struct OptionList {
    list: *mut *mut List,
    is_reset: bool,
}

/// # Safety
/// A statement of the parser.
unsafe fn places(statement: *mut pg_sys::Node) -> Vec<OptionList> {
    let place = |list| OptionList {
        list,
        is_reset: false,
    };
    // SAFETY: as required of the caller; a node's tag tells its type.
    unsafe {
        match (*statement).type_ {
            NodeTag::T_CreateStmt => {
                vec![place(&raw mut (*statement.cast::<CreateStmt>()).options)]
            }
            NodeTag::T_CreateTableAsStmt => {
                let into = (*statement.cast::<CreateTableAsStmt>()).into;
                vec![place(&raw mut (*into).options)]
            }
            NodeTag::T_IndexStmt => vec![place(&raw mut (*statement.cast::<IndexStmt>()).options)],
            NodeTag::T_ViewStmt => vec![place(&raw mut (*statement.cast::<ViewStmt>()).options)],
            NodeTag::T_AlterTableStmt => {
                lists::iter::<AlterTableCmd>((*statement.cast::<AlterTableStmt>()).cmds)
                    .filter(|&command| is_of_options(command))
                    .map(|command| OptionList {
                        list: (&raw mut (*command).def).cast(),
                        is_reset: (*command).subtype == AlterTableType::AT_ResetRelOptions,
                    })
                    .collect()
            }
            _ => vec![],
        }
    }
}

/// Removes SET and RESET without an option from ALTER TABLE. One without any command checks that
/// the table exists, and its owner.
///
/// # Safety
/// A statement of the parser to which the caller has the only reference.
unsafe fn drop_empty_commands(statement: *mut pg_sys::Node) {
    // SAFETY: as required of the caller.
    unsafe {
        if (*statement).type_ == NodeTag::T_AlterTableStmt {
            let statement = statement.cast::<AlterTableStmt>();
            (*statement).cmds = lists::retain((*statement).cmds, |command: &mut AlterTableCmd| {
                !(command.def.is_null() && is_of_options(command))
            });
        }
    }
}

/// Whether it is SET (…) or RESET (…).
///
/// # Safety
/// A command of ALTER TABLE.
unsafe fn is_of_options(command: *const AlterTableCmd) -> bool {
    let kinds = [
        AlterTableType::AT_SetRelOptions,
        AlterTableType::AT_ResetRelOptions,
    ];
    // SAFETY: as required of the caller.
    kinds.contains(unsafe { &(*command).subtype })
}

/// # Safety
/// An option of the parser.
unsafe fn is_in(option: *const DefElem, namespace: &CStr) -> bool {
    // SAFETY: as required of the caller; a namespace is a C string.
    unsafe {
        let given = (*option).defnamespace;
        !given.is_null() && CStr::from_ptr(given) == namespace
    }
}
