//! The indexes that deletion works from (C11).

use super::dates::DateType;
use super::predicate::Predicate;
use super::{extension, ttl_index};
use crate::pg::catalog::{self, Attribute};
use crate::pg::index_entry::{self, Entry};
use crate::pg::{index, nodes};
use pgrx::pg_sys;

/// What deletion needs of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedIndex {
    /// `(_ts)`, all rows: for a table without an override column.
    AllByTimestamp,
    /// `(_ts) WHERE ttl IS NULL`: rows that inherit the default.
    InheritingByTimestamp,
    /// `(ttl.expires_at(_ts, ttl, NULL)) WHERE ttl > 0`: rows that override it.
    OverridingByExpiry,
}

/// The relation's valid btree and BRIN indexes that offer it. Locks nothing and runs nobody's
/// code, so that anyone may ask about any table.
pub(crate) fn find(
    relid: pg_sys::Oid,
    expected: ExpectedIndex,
    ts: &Attribute,
    ttl: Option<&Attribute>,
) -> Vec<pg_sys::Oid> {
    serving(relid, &|index, entry| {
        has_method(index, &[pg_sys::BTREE_AM_OID, pg_sys::BRIN_AM_OID])
            && offers(entry, expected, ts, ttl)
    })
}

/// The relation's valid indexes that order the dates in a column (of arrays the earliest) and
/// hold all rows for which the predicate is true. Otherwise as [`find`].
pub(crate) fn find_by_date(
    relid: pg_sys::Oid,
    column: &Attribute,
    date: DateType,
    predicate: Option<&Predicate>,
) -> Vec<pg_sys::Oid> {
    serving(relid, &|index, entry| {
        has_method(index, &[pg_sys::BTREE_AM_OID])
            && is_by_date(entry, column, date)
            && has_predicate(entry, predicate)
    })
}

/// The relation's valid indexes that `serves` accepts.
fn serving(
    relid: pg_sys::Oid,
    serves: &dyn Fn(pg_sys::Oid, &Entry<'_>) -> bool,
) -> Vec<pg_sys::Oid> {
    let is_wanted = |&index: &pg_sys::Oid| {
        index_entry::with(index, |entry| entry.indisvalid && serves(index, entry)) == Some(true)
    };
    index::list(relid).into_iter().filter(is_wanted).collect()
}

/// Whether the index is of one of these access methods.
fn has_method(index: pg_sys::Oid, methods: &[pg_sys::Oid]) -> bool {
    catalog::access_method(index).is_some_and(|method| methods.contains(&method))
}

/// The column of a single-column index, of its values or its earliest dates, and whether the
/// order is descending.
pub(crate) fn single_key(index: pg_sys::Oid) -> Option<(i16, bool)> {
    ttl_index::single_key(index)
}

/// Whether NULLs come last when the index is read in ascending order of its first column.
pub(crate) fn has_nulls_last(index: pg_sys::Oid) -> bool {
    ttl_index::has_nulls_last(index)
}

fn offers(
    entry: &Entry<'_>,
    expected: ExpectedIndex,
    ts: &Attribute,
    ttl: Option<&Attribute>,
) -> bool {
    let first = entry.first_column();
    let predicate = entry.predicate();
    // SAFETY: expressions of the catalog, and made here.
    let same = |it: *mut pg_sys::Node, other: *mut pg_sys::Expr| unsafe { nodes::same(it, other) };
    let covers = |condition| predicate.is_none_or(|it| same(it, condition));
    let ttl_var = || ttl.map(|column| nodes::var(1, column));
    match expected {
        ExpectedIndex::AllByTimestamp => first == ts.attno && predicate.is_none(),
        ExpectedIndex::InheritingByTimestamp => {
            first == ts.attno && ttl_var().is_some_and(|ttl| covers(nodes::is_null(ttl)))
        }
        ExpectedIndex::OverridingByExpiry => {
            let (Some(ttl), Some(functions)) = (ttl_var(), extension::functions()) else {
                return false;
            };
            let args = [nodes::var(1, ts), ttl, nodes::int4(None)];
            let expiry = nodes::call(functions.expires_at, pg_sys::TIMESTAMPTZOID, &args);
            let positive = nodes::greater_than(pg_sys::INT4OID, ttl, nodes::int4(Some(0)));
            first == 0
                && entry.first_expression().is_some_and(|it| same(it, expiry))
                && covers(positive)
        }
    }
}

fn is_by_date(entry: &Entry<'_>, column: &Attribute, date: DateType) -> bool {
    let first = entry.first_column();
    if !date.is_array {
        return first == column.attno && ttl_index::orders_dates(entry, column.type_oid);
    }
    let Some(functions) = extension::functions() else {
        return false;
    };
    let earliest = functions.earliest[date.kind.number()];
    let column = [nodes::var(1, column)];
    let earliest = nodes::call(earliest, pg_sys::TIMESTAMPTZOID, &column);
    let expression = entry.first_expression();
    first == 0
        && ttl_index::orders_dates(entry, pg_sys::TIMESTAMPTZOID)
        // SAFETY: an expression of the catalog, and one made here.
        && expression.is_some_and(|it| unsafe { nodes::same(it, earliest) })
}

/// Whether the index is not partial, or has this predicate.
fn has_predicate(entry: &Entry<'_>, expected: Option<&Predicate>) -> bool {
    // SAFETY: an expression of the catalog.
    let is_expected = |tree| expected.is_some_and(|it| unsafe { it.is_stored_as(tree) });
    entry.predicate().is_none_or(is_expected)
}
