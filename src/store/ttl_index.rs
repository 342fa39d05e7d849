//! What an index's catalog entries say about it as a TTL index (M1, M4, M7).
//!
//! They are read from the syscache: the index is neither locked nor opened.

use super::dates::{DateKind, DateType};
use super::extension;
use super::predicate::{Predicate, TrustedExpression};
use crate::pg::catalog::functions_used;
use crate::pg::catalog::index_entry::{self, IndexRow};
use crate::pg::catalog::names;
use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{self, Attribute};
use pgrx::pg_sys;

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

    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Column(one), Self::Column(other)) => one == other,
            (Self::Expression(one), Self::Expression(other)) => one.is_like(other),
            _ => false,
        }
    }
}

/// Why an index cannot be a TTL index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnfitIndex {
    /// M7.
    SeveralColumns,
    /// M7.
    PrimaryKey,
    /// It cannot be read in the order of dates.
    AccessMethod,
    /// A user's operator class may order dates otherwise.
    OperatorClass,
    /// M2: neither a date type nor an array of one.
    NotADate(String),
    /// M3: an array's order does not begin with the earliest date.
    PlainArray(String),
    /// The predicate would call this function with the privileges of the user who reads the table.
    Function(String),
    /// The predicate depends on the whole row.
    WholeRow,
    /// M14: as [`Self::Function`] and [`Self::WholeRow`], of the expression.
    ExpressionFunction(String),
    ExpressionWholeRow,
    /// M14: the expression has another type.
    ExpressionNotADate(String),
}

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

impl UnfitIndex {
    /// Why the index cannot be a TTL index, as a clause to "It".
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::SeveralColumns => "has several columns".into(),
            Self::PrimaryKey => "is a primary key".into(),
            Self::AccessMethod => "is not a btree, and so not in the order of dates".into(),
            Self::OperatorClass => {
                "has an operator class or type of its own, and may not be in the order of dates"
                    .into()
            }
            Self::NotADate(type_name) => format!("is on a column of type {type_name}"),
            Self::PlainArray(column) => {
                format!(
                    "is on the array column \"{column}\" itself, and so not in the order of its earliest dates"
                )
            }
            Self::Function(name) => {
                format!(
                    "has a predicate that uses {name}, which may have been created by a non-superuser"
                )
            }
            Self::WholeRow => "has a predicate on the row as a whole".into(),
            Self::ExpressionFunction(name) => {
                format!("uses {name}, which may have been created by a non-superuser")
            }
            Self::ExpressionWholeRow => "is on the row as a whole".into(),
            Self::ExpressionNotADate(type_name) => {
                format!("is on an expression of type {type_name}")
            }
        }
    }

    /// What to do instead.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::SeveralColumns | Self::PrimaryKey | Self::AccessMethod | Self::OperatorClass => {
                "A TTL index is a btree on one column or expression with a date; create another one on it."
            }
            Self::NotADate(_) => {
                "A TTL index is on a column or expression of type timestamptz, timestamp or date, or on a column of an array of one."
            }
            Self::PlainArray(_) => "ttl.create_index() makes one on ttl.earliest() of the column.",
            Self::ExpressionNotADate(_) => {
                "The expression must be of type timestamptz, timestamp or date. For seconds since 1970 use ttl.from_epoch(), for ISO 8601 text ttl.from_iso8601()."
            }
            Self::ExpressionFunction(_) | Self::ExpressionWholeRow => {
                "Every reader of the table runs the expression with rights of their own: use built-in functions, those in schema ttl, and columns."
            }
            Self::Function(_) | Self::WholeRow => {
                "Every reader of the table runs the predicate with rights of their own: use built-in functions, and columns."
            }
        }
    }
}

/// `DATETIME_BTREE_FAM_OID`, "datetime_ops" of pg_opfamily.dat.
pub(crate) const DATETIME_OPS: pg_sys::Oid = pg_sys::Oid::from_u32(434);

/// The index's entry; `None` if there is no such index.
pub(crate) fn read(index: pg_sys::Oid) -> Option<Result<TtlIndex, UnfitIndex>> {
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

/// Whether the index has a predicate.
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

fn of_entry(index: pg_sys::Oid, entry: &IndexRow<'_>) -> Result<TtlIndex, UnfitIndex> {
    if entry.indnkeyatts != 1 {
        return Err(UnfitIndex::SeveralColumns);
    }
    if entry.indisprimary {
        return Err(UnfitIndex::PrimaryKey);
    }
    if !catalog::is_btree(index) {
        return Err(UnfitIndex::AccessMethod);
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
        None => return Err(UnfitIndex::NotADate(names::of_type(type_oid))),
        Some(date) if date.is_array && first != 0 => {
            let column = catalog::column_name(entry.indrelid, attno);
            return Err(UnfitIndex::PlainArray(column));
        }
        Some(date) => date,
    };
    if !entry.is_ordered_by(DATETIME_OPS, indexed) {
        return Err(UnfitIndex::OperatorClass);
    }
    of_key(entry, TtlKey::Column(attno), date)
}

fn of_key(entry: &IndexRow<'_>, key: TtlKey, date: DateType) -> Result<TtlIndex, UnfitIndex> {
    Ok(TtlIndex {
        table: entry.indrelid,
        key,
        date,
        descending: is_descending(entry),
        is_valid: entry.indisvalid && entry.indisready && entry.indislive,
        predicate: entry.predicate().map(trusted).transpose()?,
    })
}

/// M14: an index on an expression, which the filter evaluates with the privileges of the user who reads the
/// table.
fn of_expression(entry: &IndexRow<'_>) -> Result<TtlIndex, UnfitIndex> {
    let Some(tree) = entry.first_expression() else {
        return Err(UnfitIndex::SeveralColumns);
    };
    let type_oid = tree.value_type();
    let not_a_date = || UnfitIndex::ExpressionNotADate(names::of_type(type_oid));
    let date = DateType::of(type_oid)
        .filter(|date| !date.is_array)
        .ok_or_else(not_a_date)?;
    if !entry.is_ordered_by(DATETIME_OPS, type_oid) {
        return Err(UnfitIndex::OperatorClass);
    }
    let expression = trusted(tree).map_err(|unfit| match unfit {
        UnfitIndex::Function(name) => UnfitIndex::ExpressionFunction(name),
        _ => UnfitIndex::ExpressionWholeRow,
    })?;
    of_key(entry, TtlKey::Expression(expression), date)
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

/// The predicate, an expression on the columns of one table. It may call only functions that
/// superusers have created: the filter runs it with the privileges of the user who reads the table.
pub(crate) fn trusted(tree: Node<'_>) -> Result<Predicate, UnfitIndex> {
    if let Some(name) = functions_used::untrusted(tree) {
        return Err(UnfitIndex::Function(name));
    }
    if tree.columns().contains(&0) {
        return Err(UnfitIndex::WholeRow);
    }
    Ok(Predicate::of(tree))
}

/// The index's column and its date type, in the index's table or one that inherits from it.
pub(crate) fn date_column(relid: pg_sys::Oid, name: &str) -> Option<(Attribute, DateType)> {
    let column = catalog::attribute(relid, name)?;
    Some((column, DateType::of(column.type_oid)?))
}
