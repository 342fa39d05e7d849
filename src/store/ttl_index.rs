//! What an index's catalog entries say about it as a TTL index (M1, M4, M7).
//!
//! They are read from the syscache: the index is neither locked nor opened.

use super::dates::{DateKind, DateType};
use super::extension;
pub(crate) use super::predicate::Unfit;
use super::predicate::{Predicate, TRUSTED_PREDICATE, TrustedExpression, trusted};
use crate::pg::catalog::index_entry::{self, IndexRow};
use crate::pg::catalog::names;
use crate::pg::catalog::{self, Attribute};
use pgrx::{PgSqlErrorCode, pg_sys};

/// An index by which rows can expire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TtlIndex {
    pub(crate) table: pg_sys::Oid,
    pub(crate) key: TtlKey,
    pub(crate) date: DateType,
    /// Of descending order.
    pub(crate) descending: bool,
    /// False if CREATE INDEX CONCURRENTLY has failed, or is still running.
    pub(crate) is_valid: bool,
    pub(crate) predicate: Option<Predicate>,
}

/// A key as a user would write it.
pub(crate) struct ShownKey {
    /// "column" or "expression".
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// What such an index orders rows by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TtlKey {
    /// The column of that number, or the earliest element of an array.
    Column(i16),
    /// An expression on the table's columns.
    Expression(TrustedExpression),
}

impl TtlKey {
    /// The numbers of the columns that it is made of.
    pub(crate) fn columns(&self) -> Vec<i16> {
        match self {
            Self::Column(attno) => vec![*attno],
            Self::Expression(expression) => expression.columns(),
        }
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Column(one), Self::Column(other)) => one == other,
            (Self::Expression(one), Self::Expression(other)) => one.is_like(other),
            _ => false,
        }
    }
}

const ANOTHER_INDEX: &str =
    "A TTL index is a btree on one column or expression with a date; create another one on it.";
const DATE_TYPES: &str = "A TTL index is on a column or expression of type timestamptz, timestamp or date, or on a column of an array of one.";
const EARLIEST: &str = "ttl.create_index() makes one on ttl.earliest() of the column.";
const DATE_EXPRESSION: &str = "The expression must be of type timestamptz, timestamp or date. For seconds since 1970 use ttl.from_epoch(), for ISO 8601 text ttl.from_iso8601().";
const TRUSTED_EXPRESSION: &str = "Every reader of the table runs the expression with rights of their own: use built-in functions, those in schema ttl, and columns.";

impl TtlIndex {
    /// The key, as a user would write it. Locks the table for an expression.
    pub(crate) fn shown_key(&self) -> ShownKey {
        match &self.key {
            TtlKey::Column(attno) => ShownKey {
                kind: "column",
                text: catalog::quote_identifier(&catalog::column_name(self.table, *attno)),
            },
            TtlKey::Expression(expression) => ShownKey {
                kind: "expression",
                text: expression.to_sql(self.table).unwrap_or_default(),
            },
        }
    }

    /// Whether the other index has the same key and predicate (M7). One of the other direction is
    /// another index, as in MongoDB.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.descending == other.descending
            && self.key.is_like(&other.key)
            && match (&self.predicate, &other.predicate) {
                (None, None) => true,
                (Some(a), Some(b)) => a.is_like(b),
                _ => false,
            }
    }
}

/// `DATETIME_BTREE_FAM_OID`, "datetime_ops" of pg_opfamily.dat.
pub(crate) const DATETIME_OPS: pg_sys::Oid = pg_sys::Oid::from_u32(434);

/// The index's entry; `None` if there is no such index.
pub(crate) fn read(index: pg_sys::Oid) -> Option<Result<TtlIndex, Unfit>> {
    index_entry::with(index, |entry| of_entry(index, entry))
}

/// The column of a single-column index, of its values or its earliest dates, and whether the
/// order is descending; also if no row can expire by it.
pub(crate) fn single_key(index: pg_sys::Oid) -> Option<(i16, bool)> {
    index_entry::with(index, |entry| {
        let attno = match entry.first_column() {
            _ if entry.indnkeyatts != 1 => None,
            0 => array_of_earliest(entry),
            attno => Some(attno),
        };
        attno.map(|attno| (attno, is_descending(entry)))
    })
    .flatten()
}

pub(crate) fn is_partial(index: pg_sys::Oid) -> bool {
    index_entry::with(index, |entry| entry.is_partial()).unwrap_or(false)
}

/// Whether NULLs come last when the index is read in ascending order.
pub(crate) fn has_nulls_last(index: pg_sys::Oid) -> bool {
    index_entry::with(index, |entry| {
        let option = entry.first_option();
        (option & pg_sys::INDOPTION_DESC != 0) == (option & pg_sys::INDOPTION_NULLS_FIRST != 0)
    })
    .unwrap_or(false)
}

fn of_entry(index: pg_sys::Oid, entry: &IndexRow<'_>) -> Result<TtlIndex, Unfit> {
    if entry.indnkeyatts != 1 {
        return Err(Unfit::new("has several columns", ANOTHER_INDEX));
    }
    if entry.indisprimary {
        return Err(Unfit::new("is a primary key", ANOTHER_INDEX));
    }
    // It cannot be read in the order of dates.
    if !catalog::is_btree(index) {
        let reason = "is not a btree, and so not in the order of dates";
        return Err(Unfit::new(reason, ANOTHER_INDEX));
    }
    let first = entry.first_column();
    if first == 0 && array_of_earliest(entry).is_none() {
        return of_expression(entry);
    }
    // SAFETY: the function looks the OID up in the syscache; an unknown one is no fault.
    let type_of = |attno| unsafe { pg_sys::get_atttype(entry.indrelid, attno) };
    let (attno, indexed) = if first == 0 {
        let array = array_of_earliest(entry).unwrap_or(0);
        (array, DateKind::Timestamptz.type_oid())
    } else {
        (first, type_of(first))
    };
    let type_oid = type_of(attno);
    let date = match DateType::of(type_oid) {
        // M2: neither a date type nor an array of one.
        None => {
            let reason = format!("is on a column of type {}", names::of_type(type_oid));
            return Err(Unfit {
                code: PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                ..Unfit::new(reason, DATE_TYPES)
            });
        }
        // M3: an array's order does not begin with the earliest date.
        Some(date) if date.is_array && first != 0 => {
            let reason = format!(
                "is on the array column \"{}\" itself, and so not in the order of its earliest dates",
                catalog::column_name(entry.indrelid, attno)
            );
            return Err(Unfit::new(reason, EARLIEST));
        }
        Some(date) => date,
    };
    check_order(entry, indexed)?;
    of_key(entry, TtlKey::Column(attno), date)
}

fn of_key(entry: &IndexRow<'_>, key: TtlKey, date: DateType) -> Result<TtlIndex, Unfit> {
    Ok(TtlIndex {
        table: entry.indrelid,
        key,
        date,
        descending: is_descending(entry),
        is_valid: entry.indisvalid && entry.indisready && entry.indislive,
        predicate: entry
            .predicate()
            .map(|tree| trusted(tree, "has a predicate that ", TRUSTED_PREDICATE))
            .transpose()?,
    })
}

/// M14: an index on an expression, which the filter evaluates with the privileges of the user who reads the
/// table.
fn of_expression(entry: &IndexRow<'_>) -> Result<TtlIndex, Unfit> {
    let Some(tree) = entry.first_expression() else {
        return Err(Unfit::new("has several columns", ANOTHER_INDEX));
    };
    let type_oid = tree.value_type();
    let not_a_date = || {
        let reason = format!("is on an expression of type {}", names::of_type(type_oid));
        Unfit::new(reason, DATE_EXPRESSION)
    };
    let date = DateType::of(type_oid)
        .filter(|date| !date.is_array)
        .ok_or_else(not_a_date)?;
    check_order(entry, type_oid)?;
    let expression = trusted(tree, "", TRUSTED_EXPRESSION)?;
    of_key(entry, TtlKey::Expression(expression), date)
}

/// A user's operator class may order dates otherwise.
fn check_order(entry: &IndexRow<'_>, indexed: pg_sys::Oid) -> Result<(), Unfit> {
    if entry.is_ordered_by(DATETIME_OPS, indexed) {
        return Ok(());
    }
    let reason = "has an operator class or type of its own, and may not be in the order of dates";
    Err(Unfit::new(reason, ANOTHER_INDEX))
}

fn is_descending(entry: &IndexRow<'_>) -> bool {
    entry.first_option() & pg_sys::INDOPTION_DESC != 0
}

/// The column in `ttl.earliest(column)`, if that is the index's expression.
fn array_of_earliest(entry: &IndexRow<'_>) -> Option<i16> {
    let call = entry.first_expression()?.cast::<pg_sys::FuncExpr>()?;
    if !extension::functions()?.earliest.contains(&call.funcid) {
        return None;
    }
    let mut args = call.list::<pg_sys::Node>(|call| &call.args);
    let column = args.next()?.cast::<pg_sys::Var>()?;
    (column.varattno > 0).then_some(column.varattno)
}

/// The index's column and its date type, in the index's table or one that inherits from it.
pub(crate) fn date_column(relid: pg_sys::Oid, name: &str) -> Option<(Attribute, DateType)> {
    let column = catalog::attribute(relid, name)?;
    Some((column, DateType::of(column.type_oid)?))
}
