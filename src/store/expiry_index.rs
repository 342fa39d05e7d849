//! The index that deletion works from (C11).

use super::dates::DateType;
use super::extension;
use super::predicate::{Predicate, TrustedExpression};
use super::table_policy::{DateSource, Rule};
use super::ttl_index::DATETIME_OPS;
pub(crate) use super::ttl_index::{has_nulls_last, single_key};
use crate::pg::catalog::index_entry::{self, IndexRow};
use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{self, Attribute};
use crate::pg::catalog::{expressions, index};
use pgrx::pg_sys;

/// The relation's valid B-trees that lead to its rows in the order in which they expire: on `(_ts)`, or on
/// `(ttl.expiry_key(_ts, ttl))` if it has an override column (`docs/decisions/0042-one-index.md`). Takes no locks and
/// runs no user-defined code, so that anyone may ask about any table.
pub(crate) fn find(
    relid: pg_sys::Oid,
    ts: &Attribute,
    ttl: Option<&Attribute>,
) -> Vec<pg_sys::Oid> {
    serving(relid, &|entry| leads(entry, ts, ttl))
}

/// The relation's valid indexes that order rows by the rule's dates (of arrays the earliest) and
/// hold all rows for which its predicate is true. Otherwise as [`find`].
pub(crate) fn find_by_date(relid: pg_sys::Oid, rule: &Rule) -> Vec<pg_sys::Oid> {
    let predicate = rule.predicate.as_ref();
    match &rule.key {
        DateSource::Column(column, _) => serving(relid, &|entry| {
            is_by_date(entry, column, rule.date) && has_predicate(entry, predicate)
        }),
        DateSource::Expression(expression) => {
            find_by_expression(relid, expression, rule.date, predicate)
        }
    }
}

/// As [`find_by_date`], for the dates that an expression makes.
pub(crate) fn find_by_expression(
    relid: pg_sys::Oid,
    expression: &TrustedExpression,
    date: DateType,
    predicate: Option<&Predicate>,
) -> Vec<pg_sys::Oid> {
    serving(relid, &|entry| {
        is_by_expression(entry, expression, date) && has_predicate(entry, predicate)
    })
}

/// The relation's indexes that are not valid, also those half dropped, and would be among them if they were.
/// Otherwise as [`find`].
pub(crate) fn find_invalid(
    relid: pg_sys::Oid,
    ts: &Attribute,
    ttl: Option<&Attribute>,
) -> Vec<pg_sys::Oid> {
    index_entry::collect(relid, |entry| {
        (!entry.indisvalid && leads(entry, ts, ttl)).then_some(entry.indexrelid)
    })
}

/// The relation's valid B-trees that `serves` accepts.
fn serving(relid: pg_sys::Oid, serves: &dyn Fn(&IndexRow<'_>) -> bool) -> Vec<pg_sys::Oid> {
    let serves = |entry: &IndexRow<'_>| entry.indisvalid && serves(entry);
    let is_wanted = |&index: &pg_sys::Oid| {
        catalog::is_btree(index) && index_entry::with(index, serves) == Some(true)
    };
    index::list(relid).into_iter().filter(is_wanted).collect()
}

fn leads(entry: &IndexRow<'_>, ts: &Attribute, ttl: Option<&Attribute>) -> bool {
    if entry.is_partial() {
        return false;
    }
    let (Some(ttl), Some(functions)) = (ttl, extension::functions()) else {
        return ttl.is_none() && entry.first_column() == ts.attno;
    };
    let columns = [expressions::var(1, ts), expressions::var(1, ttl)];
    let key = expressions::call(functions.expiry_key, pg_sys::INT8OID, &columns);
    entry.first_column() == 0 && entry.first_expression().is_some_and(|it| same(it, key))
}

fn is_by_date(entry: &IndexRow<'_>, column: &Attribute, date: DateType) -> bool {
    let first = entry.first_column();
    if !date.is_array {
        return first == column.attno && entry.is_ordered_by(DATETIME_OPS, column.type_oid);
    }
    let Some(functions) = extension::functions() else {
        return false;
    };
    let earliest = functions.earliest[date.kind.number()];
    let column = [expressions::var(1, column)];
    let earliest = expressions::call(earliest, pg_sys::TIMESTAMPTZOID, &column);
    let expression = entry.first_expression();
    first == 0
        && entry.is_ordered_by(DATETIME_OPS, pg_sys::TIMESTAMPTZOID)
        && expression.is_some_and(|it| same(it, earliest))
}

fn is_by_expression(entry: &IndexRow<'_>, expression: &TrustedExpression, date: DateType) -> bool {
    entry.first_column() == 0
        && entry.is_ordered_by(DATETIME_OPS, date.kind.type_oid())
        && entry.first_expression().is_some_and(|it| expression.is(it))
}

fn same(stored: Node<'_>, made: *mut pg_sys::Expr) -> bool {
    // SAFETY: both are valid trees; the second was made above.
    unsafe { expressions::same(stored.as_ptr(), made) }
}

/// Whether the index is not partial, or has this predicate.
fn has_predicate(entry: &IndexRow<'_>, expected: Option<&Predicate>) -> bool {
    let is_expected = |tree| expected.is_some_and(|it| it.is(tree));
    entry.predicate().is_none_or(is_expected)
}
