//! The indexes that deletion works from (C11).

use super::dates::DateType;
use super::extension;
use super::lookup::{Key, Rule};
use super::predicate::{Expression, Predicate};
use super::ttl_index::DATETIME_OPS;
pub(crate) use super::ttl_index::{has_nulls_last, single_key};
use crate::pg::catalog::index_entry::{self, Entry};
use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{self, Attribute};
use crate::pg::catalog::{index, nodes};
use crate::pg::exec::brin;
use pgrx::pg_sys;

/// What deletion needs of an index. One on `(ttl.expiry_key(_ts, ttl))` offers the last two
/// (`docs/decisions/0042-one-index.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedIndex {
    /// `(_ts)`, all rows: for a table without an override column.
    AllByTimestamp,
    /// `(_ts) WHERE ttl IS NULL`: rows that inherit the default.
    InheritingByTimestamp,
    /// `(ttl.expires_at(_ts, ttl, NULL)) WHERE ttl > 0`: rows that override it.
    OverridingByExpiry,
}

/// The relation's valid btree and BRIN indexes that offer it. Takes no locks and runs no user-defined
/// code, so that anyone may ask about any table.
pub(crate) fn find(
    relid: pg_sys::Oid,
    expected: ExpectedIndex,
    ts: &Attribute,
    ttl: Option<&Attribute>,
) -> Vec<pg_sys::Oid> {
    serving(relid, &|index, entry| {
        (has_method(index, &[pg_sys::BTREE_AM_OID]) || is_brin(index, entry))
            && offers(entry, expected, ts, ttl)
            || expected != ExpectedIndex::AllByTimestamp && is_by_expiry_key(index, entry, ts, ttl)
    })
}

/// The relation's valid btree indexes that offer both what rows that inherit need and what rows
/// that override need. Otherwise as [`find`].
pub(crate) fn find_by_expiry_key(
    relid: pg_sys::Oid,
    ts: &Attribute,
    ttl: &Attribute,
) -> Vec<pg_sys::Oid> {
    serving(relid, &|index, entry| {
        is_by_expiry_key(index, entry, ts, Some(ttl))
    })
}

/// The relation's valid indexes that order rows by the rule's dates (of arrays the earliest) and
/// hold all rows for which its predicate is true. Otherwise as [`find`].
pub(crate) fn find_by_date(relid: pg_sys::Oid, rule: &Rule) -> Vec<pg_sys::Oid> {
    let predicate = rule.predicate.as_ref();
    match &rule.key {
        Key::Column(column, _) => serving(relid, &|index, entry| {
            has_method(index, &[pg_sys::BTREE_AM_OID])
                && is_by_date(entry, column, rule.date)
                && has_predicate(entry, predicate)
        }),
        Key::Expression(expression) => find_by_expression(relid, expression, rule.date, predicate),
    }
}

/// As [`find_by_date`], for the dates that an expression makes.
pub(crate) fn find_by_expression(
    relid: pg_sys::Oid,
    expression: &Expression,
    date: DateType,
    predicate: Option<&Predicate>,
) -> Vec<pg_sys::Oid> {
    serving(relid, &|index, entry| {
        has_method(index, &[pg_sys::BTREE_AM_OID])
            && is_by_expression(entry, expression, date)
            && has_predicate(entry, predicate)
    })
}

/// The relation's indexes that are not valid, also those half dropped, and would offer any of this
/// if they were. Otherwise as [`find`].
pub(crate) fn find_invalid(
    relid: pg_sys::Oid,
    ts: &Attribute,
    ttl: Option<&Attribute>,
) -> Vec<pg_sys::Oid> {
    let kinds = [
        ExpectedIndex::AllByTimestamp,
        ExpectedIndex::InheritingByTimestamp,
        ExpectedIndex::OverridingByExpiry,
    ];
    let mut found = Vec::new();
    index_entry::each_of(relid, &mut |entry| {
        if !entry.indisvalid
            && (is_by_expiry_key(entry.indexrelid, entry, ts, ttl)
                || kinds.into_iter().any(|kind| offers(entry, kind, ts, ttl)))
        {
            found.push(entry.indexrelid);
        }
        false
    });
    found
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

/// Whether it is a BRIN index whose summaries tell times: those of bloom do not.
fn is_brin(index: pg_sys::Oid, entry: &Entry<'_>) -> bool {
    has_method(index, &[pg_sys::BRIN_AM_OID])
        && entry.first_class().is_some_and(brin::compares_timestamps)
}

/// Whether the index is of one of these access methods.
fn has_method(index: pg_sys::Oid, methods: &[pg_sys::Oid]) -> bool {
    catalog::access_method(index).is_some_and(|method| methods.contains(&method))
}

/// Whether the index is on `(ttl.expiry_key(_ts, ttl))`, and holds all rows. In a BRIN index the
/// summaries of both kinds of row would cover everything between.
fn is_by_expiry_key(
    index: pg_sys::Oid,
    entry: &Entry<'_>,
    ts: &Attribute,
    ttl: Option<&Attribute>,
) -> bool {
    let (Some(ttl), 0) = (ttl, entry.first_column()) else {
        return false;
    };
    let Some(functions) = extension::functions() else {
        return false;
    };
    let columns = [nodes::var(1, ts), nodes::var(1, ttl)];
    let key = nodes::call(functions.expiry_key, pg_sys::INT8OID, &columns);
    has_method(index, &[pg_sys::BTREE_AM_OID])
        && !entry.is_partial()
        && entry.first_expression().is_some_and(|it| same(it, key))
}

fn offers(
    entry: &Entry<'_>,
    expected: ExpectedIndex,
    ts: &Attribute,
    ttl: Option<&Attribute>,
) -> bool {
    let first = entry.first_column();
    let predicate = entry.predicate();
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
        return first == column.attno && entry.is_ordered_by(DATETIME_OPS, column.type_oid);
    }
    let Some(functions) = extension::functions() else {
        return false;
    };
    let earliest = functions.earliest[date.kind.number()];
    let column = [nodes::var(1, column)];
    let earliest = nodes::call(earliest, pg_sys::TIMESTAMPTZOID, &column);
    let expression = entry.first_expression();
    first == 0
        && entry.is_ordered_by(DATETIME_OPS, pg_sys::TIMESTAMPTZOID)
        && expression.is_some_and(|it| same(it, earliest))
}

fn is_by_expression(entry: &Entry<'_>, expression: &Expression, date: DateType) -> bool {
    entry.first_column() == 0
        && entry.is_ordered_by(DATETIME_OPS, date.kind.type_oid())
        && entry.first_expression().is_some_and(|it| expression.is(it))
}

fn same(stored: Node<'_>, made: *mut pg_sys::Expr) -> bool {
    // SAFETY: the latter was made here.
    unsafe { nodes::same(stored.as_ptr(), made) }
}

/// Whether the index is not partial, or has this predicate.
fn has_predicate(entry: &Entry<'_>, expected: Option<&Predicate>) -> bool {
    let is_expected = |tree| expected.is_some_and(|it| it.is(tree));
    entry.predicate().is_none_or(is_expected)
}
