//! How old the rows of a partition must be (M11).

use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::values::Text;
use crate::pg::catalog::{self, partition};
use crate::pg::session::xact;
use crate::policy::{effective_ttl, instant_of_day, is_live, is_live_by_index};
use crate::store::dates::DateKind;
use pgrx::prelude::*;
use pgrx::spi::{SpiClient, SpiError};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CString;

/// By how much a partition's end must lie in the past. A row is stamped up to two seconds before
/// it is routed to its partition (C1), and clocks are set back.
const MARGIN: i64 = 10_000_000;

/// The column by whose value rows expire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DateColumn<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: DateKind,
}

/// The values of the column that a partition's rows can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    /// No row has a later one; a local time if the column has no time zone.
    pub(crate) newest: i64,
    /// Rows may have `-infinity`, which is no date (M12).
    pub(crate) reaches_minus_infinity: bool,
}

/// The range of the column's values in a partition: the least upper bound of all levels above
/// it; an exclusive one (of a key of one column) less a microsecond, or a day. `None` if no
/// level gives one.
///
/// A level counts if it is partitioned by RANGE, the first column of its key is the column of
/// that name and type in its usual order, and its bound for this branch is a value (not
/// MAXVALUE, not the default partition). PostgreSQL then rejects rows that are newer, and rows
/// whose value is NULL.
///
/// Reads the catalogs as of the call. Under the locks of [`super::partitions::lock_for_drop`] no
/// newer row gets in until the end of the transaction, whatever is attached or detached higher
/// up.
pub(crate) fn range(leaf: pg_sys::Oid, column: DateColumn<'_>) -> Result<Option<Range>> {
    let query = format!(
        "SELECT p.partnatts, c.relpartbound::pg_catalog.text \
           FROM pg_catalog.pg_partition_ancestors({}::pg_catalog.oid::pg_catalog.regclass) AS a (relid) \
           JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) a.relid \
           JOIN pg_catalog.pg_inherits AS i ON i.inhrelid OPERATOR(pg_catalog.=) c.oid \
           JOIN pg_catalog.pg_partitioned_table AS p ON p.partrelid OPERATOR(pg_catalog.=) i.inhparent \
          WHERE c.relispartition AND {}",
        leaf.to_u32(),
        is_range_by(column)
    );
    with_latest_snapshot(|client| {
        let mut narrowest: Option<Range> = None;
        for level in client.select(&encoding::query(&query), None, &[])? {
            let (columns, bound) = (level.get::<i16>(1)?, level.get::<Text>(2)?);
            let range = bound.and_then(|bound| of_bound(&bound.0, column.kind, columns == Some(1)));
            narrowest = match (narrowest, range) {
                (Some(a), Some(b)) => Some(Range {
                    newest: a.newest.min(b.newest),
                    reaches_minus_infinity: a.reaches_minus_infinity && b.reaches_minus_infinity,
                }),
                (a, b) => a.or(b),
            };
        }
        Ok(narrowest)
    })
}

/// Runs queries that see everything committed now and take no transaction ID (as `Spi::get_one`
/// does). Without an ID, SPI's queries use the active snapshot; with one, the transaction's,
/// which is new in READ COMMITTED only.
pub(crate) fn with_latest_snapshot<T>(
    work: impl FnOnce(&SpiClient<'_>) -> std::result::Result<T, SpiError>,
) -> Result<T> {
    if xact::has_one_snapshot() {
        return Err(Error::new(
            PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
            "partitions are looked at in READ COMMITTED transactions only",
        ));
    }
    Ok(xact::with_latest_snapshot(|| Spi::connect(work))?)
}

/// Whether the table, one of its partitions or one of its ancestors gives bounds as [`range`]
/// counts them.
pub(crate) fn has_range_level(relid: pg_sys::Oid, column: DateColumn<'_>) -> bool {
    let below = catalog::all_inheritors(relid).into_iter();
    let mut levels = below.chain(catalog::ancestors(relid));
    levels.any(|table| is_keyed_by(table, column.name, column.kind))
}

/// Whether the table is partitioned by RANGE, first by the column of that name and kind in its
/// usual order: a user's operator class may order times otherwise.
fn is_keyed_by(table: pg_sys::Oid, name: &str, kind: DateKind) -> bool {
    let Some(column) = catalog::attribute(table, name) else {
        return false;
    };
    let usual = usual_order(kind);
    column.type_oid == kind.type_oid()
        && partition::first_of_range(table) == Some((column.attno, usual))
}

/// The operator class of a kind's usual order.
fn usual_order(kind: DateKind) -> pg_sys::Oid {
    match kind {
        DateKind::Timestamptz => pg_sys::TIMESTAMPTZ_BTREE_OPS_OID,
        DateKind::Timestamp => pg_sys::TIMESTAMP_BTREE_OPS_OID,
        DateKind::Date => pg_sys::DATE_BTREE_OPS_OID,
    }
}

/// The condition on `pg_partitioned_table AS p`. A user's operator class may order times
/// otherwise.
fn is_range_by(column: DateColumn<'_>) -> String {
    format!(
        "p.partstrat OPERATOR(pg_catalog.=) 'r' AND p.partclass[0] OPERATOR(pg_catalog.=) {} \
         AND EXISTS (SELECT FROM pg_catalog.pg_attribute AS k \
              WHERE k.attrelid OPERATOR(pg_catalog.=) p.partrelid \
                AND k.attnum OPERATOR(pg_catalog.=) p.partattrs[0] \
                AND k.attname OPERATOR(pg_catalog.=) {}::pg_catalog.name \
                AND k.atttypid OPERATOR(pg_catalog.=) {})",
        usual_order(column.kind).to_u32(),
        catalog::quote_literal(column.name),
        column.kind.type_oid().to_u32()
    )
}

/// The range that a RANGE bound gives for the first column of its key; exact for a key of one
/// column. `None` if it has no upper end.
fn of_bound(bound: &str, kind: DateKind, is_only_column: bool) -> Option<Range> {
    let bound = CString::new(bound).ok()?;
    let [lower, upper] = partition::ends_of_range(&bound, kind.type_oid())?;
    Some(Range {
        newest: newest(upper?, kind, is_only_column),
        reaches_minus_infinity: lower.is_none_or(|lower| instant(lower, kind) == i64::MIN),
    })
}

fn instant(value: pg_sys::Datum, kind: DateKind) -> i64 {
    match kind {
        DateKind::Date => instant_of_day(value.value() as i32),
        DateKind::Timestamptz | DateKind::Timestamp => value.value() as i64,
    }
}

/// The newest value below an upper end, or at it.
fn newest(upper: pg_sys::Datum, kind: DateKind, is_exclusive: bool) -> i64 {
    let at = instant(upper, kind);
    if !is_exclusive {
        return at;
    }
    match kind {
        DateKind::Date => instant_of_day((upper.value() as i32).saturating_sub(1)),
        DateKind::Timestamptz | DateKind::Timestamp => at.saturating_sub(1),
    }
}

/// Whether at `now` every row of the partition without an override is expired by the default,
/// and no row stamped now can be routed to it; `newest` is that of [`range`].
pub(crate) fn is_past(newest: i64, default_ttl: Option<i32>, now: i64) -> bool {
    !is_live(Some(newest), effective_ttl(None, default_ttl), now)
        && newest < now.saturating_sub(MARGIN)
}

/// Whether at `now` every row of the partition is expired by a TTL index of so many seconds,
/// whose dates are finite and not later than `newest`. As in [`is_past`], the clock may be set
/// back.
pub(crate) fn is_past_by_index(newest: i64, seconds: i32, now: i64) -> bool {
    !is_live_by_index(Some(newest), seconds, now.saturating_sub(MARGIN))
}
