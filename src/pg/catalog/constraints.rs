//! CHECK and NOT NULL constraints of a table, as stored: the table is not locked, and nothing is
//! parsed or simplified.

use super::rows::{Catalog, CatalogRow, KeyDatum};
use super::syntax::Node as Tree;
use crate::pg::abi::encoding;
use core::ffi::CStr;
use pgrx::pg_sys::{self, Oid};
use pgrx::prelude::*;
use std::ffi::CString;

// SAFETY: pg_constraint and its index by table, type and name.
const CONSTRAINTS: Catalog<pg_sys::FormData_pg_constraint> = unsafe {
    Catalog::new(
        pg_sys::ConstraintRelationId,
        Some(Oid::from_u32(pg_sys::ConstraintRelidTypidNameIndexId)),
    )
};

/// A CHECK or NOT NULL constraint.
pub(crate) struct Constraint {
    pub(crate) name: String,
    /// The columns that it mentions.
    pub(crate) columns: Vec<i16>,
    /// The stored expression of a CHECK.
    expression: Option<CString>,
}

impl Constraint {
    /// Whether it is a CHECK that calls this function with one column, by its text.
    pub(crate) fn calls(&self, function: Oid) -> bool {
        let (Some(stored), [column]) = (&self.expression, self.columns.as_slice()) else {
            return false;
        };
        is_call(stored, function, *column)
    }

    /// Passes the expression of a CHECK to `read`; `None` for NOT NULL.
    pub(crate) fn tree<T>(&self, read: impl FnOnce(Tree<'_>) -> T) -> Option<T> {
        let stored = self.expression.as_ref()?;
        // SAFETY: a stored expression, read into the current memory context.
        let tree = unsafe { Tree::new(pg_sys::stringToNode(stored.as_ptr()).cast()) };
        tree.map(read)
    }

    /// NOT NULL, which has a row here from version 18 on.
    pub(crate) fn is_not_null(&self) -> bool {
        self.expression.is_none()
    }
}

/// ALTER TABLE … VALIDATE CONSTRAINT, of a table that the caller has locked, by its OID.
pub(crate) fn validate(relid: Oid, constraint: &str) {
    let name = encoding::query(constraint);
    // SAFETY: a command of one node, whose memory lasts as long as the transaction's; PostgreSQL checks the owner.
    unsafe {
        let command = pg_sys::palloc0(size_of::<pg_sys::AlterTableCmd>());
        let command = command.cast::<pg_sys::AlterTableCmd>();
        (*command).type_ = pg_sys::NodeTag::T_AlterTableCmd;
        (*command).subtype = pg_sys::AlterTableType::AT_ValidateConstraint;
        (*command).name = pg_sys::pstrdup(name.as_ptr());
        let commands = pg_sys::lappend(core::ptr::null_mut(), command.cast());
        pg_sys::AlterTableInternal(relid, commands, true);
    }
}

/// The table's CHECK and NOT NULL constraints, in the order of their names.
pub(crate) fn of(relid: Oid) -> Vec<Constraint> {
    each_of(relid, b"cn", |row| {
        // SAFETY: the name is a C string, the columns are an array of smallint, the expression
        // is a text.
        unsafe {
            Constraint {
                name: encoding::from_pointer(row.conname.data.as_ptr()),
                columns: row
                    .value(pg_sys::Anum_pg_constraint_conkey)
                    .and_then(|columns| Vec::<i16>::from_datum(columns, false))
                    .unwrap_or_default(),
                expression: row.value(pg_sys::Anum_pg_constraint_conbin).map(|text| {
                    CStr::from_ptr(pg_sys::text_to_cstring(text.cast_mut_ptr())).to_owned()
                }),
            }
        }
    })
}

/// What `read` makes of the table's constraints of these kinds.
fn each_of<T>(
    relid: Oid,
    kinds: &[u8],
    read: impl Fn(&CatalogRow<'_, pg_sys::FormData_pg_constraint>) -> T,
) -> Vec<T> {
    let key = (
        pg_sys::Anum_pg_constraint_conrelid as i16,
        KeyDatum::Oid(relid),
    );
    CONSTRAINTS.collect(&[key], |row| {
        let is_one = kinds.contains(&row.contype.cast_unsigned());
        is_one.then(|| read(row))
    })
}

/// The tables to which this one refers by foreign keys. Locks nothing.
pub(crate) fn referenced_by(relid: Oid) -> Vec<Oid> {
    each_of(relid, b"f", |row| row.confrelid)
}

/// Whether each table refers to the other by foreign keys, directly or over other tables. False if more than `MOST` tables
/// would have to be searched. Locks nothing.
pub(crate) fn refer_to_each_other(one: Oid, other: Oid) -> bool {
    reaches(one, other) && reaches(other, one)
}

fn reaches(from: Oid, to: Oid) -> bool {
    const MOST: usize = 100;
    let mut found = vec![from];
    let mut next = 0;
    while let Some(&relid) = found.get(next)
        && found.len() <= MOST
    {
        for referenced in referenced_by(relid) {
            if !found.contains(&referenced) {
                found.push(referenced);
            }
        }
        if found.contains(&to) {
            return true;
        }
        next += 1;
    }
    false
}

/// Whether a stored expression is `function(column)`, or `function(column) IS NOT FALSE`, by its
/// text: parsing it is most of what the constraint costs.
pub(in crate::pg) fn is_call(stored: &CStr, function: Oid, attno: i16) -> bool {
    const TESTED: &[u8] = b"{BOOLEANTEST :arg ";
    // `IS_NOT_FALSE` of primnodes.h.
    const NOT_FALSE: &[u8] = b"} :booltesttype 3 :location ";
    // The result is a boolean, the form that of a call.
    const BETWEEN: &[u8] =
        b" :funcresulttype 16 :funcretset false :funcvariadic false :funcformat 0 \
        :funccollid 0 :inputcollid 0 :args ({VAR :varno 1 :varattno ";
    let find = || {
        let stored = stored.to_bytes();
        let call = match stored.strip_prefix(TESTED) {
            // From the end: to search for it is a thirtieth of an INSERT.
            Some(call) => {
                let tested = call.strip_suffix(b"}")?.trim_ascii_end();
                let at = tested.iter().rposition(|&byte| byte == b' ')?;
                tested[..=at].ends_with(NOT_FALSE).then_some(call)?
            }
            None => stored,
        };
        let called = call.strip_prefix(b"{FUNCEXPR :funcid ")?;
        let (called, rest) = number(called);
        let (column, _) = number(rest.strip_prefix(BETWEEN)?);
        Some(called == function.to_u32() && Ok(attno) == column.try_into())
    };
    find() == Some(true)
}

/// The number that the text begins with, and the rest of it.
fn number(text: &[u8]) -> (u32, &[u8]) {
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let (digits, rest) = text.split_at(text.iter().take_while(is_digit).count());
    let value = digits.iter().fold(0_u32, |value, digit| {
        value.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'))
    });
    (value, rest)
}
