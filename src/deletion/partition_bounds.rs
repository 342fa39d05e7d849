//! How old the rows of a partition must be (M11).

use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::values::Text;
use crate::pg::catalog::{self, partition};
use crate::pg::session::xact;
use crate::policy::{
    EpochUnit, effective_ttl, from_epoch, instant_of_day, is_live, is_live_by_index,
};
use crate::store::Rule;
use crate::store::dates::DateKind;
use pgrx::prelude::*;
use pgrx::spi::{SpiClient, SpiError};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CString;

/// By how much a partition's end must lie in the past. A row is stamped up to two seconds before
/// it is routed to its partition (C1), and clocks are set back.
const MARGIN: i64 = 10_000_000;

/// The column by whose value rows expire.
#[derive(Debug, Clone)]
pub(crate) struct DateColumn {
    pub(crate) name: String,
    pub(crate) kind: BoundKind,
}

/// What its values are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BoundKind {
    Date(DateKind),
    /// Whole numbers that count from 1970, of type bigint or integer.
    Epoch {
        is_bigint: bool,
        unit: EpochUnit,
    },
}

impl DateColumn {
    /// The time of a row's last modification.
    pub(crate) fn of_clock(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: BoundKind::Date(DateKind::Timestamptz),
        }
    }

    /// The column of the relation by whose value every row expires by the rule.
    pub(crate) fn of_rule(rule: &Rule, relid: pg_sys::Oid) -> Option<Self> {
        if let Some(name) = rule.column_of_all_rows() {
            return Some(Self {
                name: name.to_owned(),
                kind: BoundKind::Date(rule.date.kind),
            });
        }
        let (attno, unit) = rule.epoch_of_all_rows()?;
        let name = catalog::column_name(relid, attno);
        let is_bigint = match catalog::attribute(relid, &name)?.type_oid {
            pg_sys::INT4OID => false,
            pg_sys::INT8OID => true,
            _ => return None,
        };
        let kind = BoundKind::Epoch { is_bigint, unit };
        Some(Self { name, kind })
    }
}

impl BoundKind {
    fn type_oid(self) -> pg_sys::Oid {
        match self {
            Self::Date(kind) => kind.type_oid(),
            Self::Epoch {
                is_bigint: false, ..
            } => pg_sys::INT4OID,
            Self::Epoch {
                is_bigint: true, ..
            } => pg_sys::INT8OID,
        }
    }

    /// The operator class of the usual order: one of a user's may order values otherwise.
    fn usual_order(self) -> pg_sys::Oid {
        match self {
            Self::Date(DateKind::Timestamptz) => pg_sys::TIMESTAMPTZ_BTREE_OPS_OID,
            Self::Date(DateKind::Timestamp) => pg_sys::TIMESTAMP_BTREE_OPS_OID,
            Self::Date(DateKind::Date) => pg_sys::DATE_BTREE_OPS_OID,
            Self::Epoch {
                is_bigint: false, ..
            } => pg_sys::INT4_BTREE_OPS_OID,
            Self::Epoch {
                is_bigint: true, ..
            } => pg_sys::INT8_BTREE_OPS_OID,
        }
    }

    /// The time that a value means, less a number of the smallest steps between values. What is no time
    /// is one of the extremes.
    fn instant(self, value: pg_sys::Datum, less: i64) -> i64 {
        let number = match self {
            Self::Date(DateKind::Date)
            | Self::Epoch {
                is_bigint: false, ..
            } => i64::from(value.value() as i32),
            _ => value.value() as i64,
        };
        let number = number.saturating_sub(less);
        match self {
            Self::Date(DateKind::Date) => instant_of_day(i32::try_from(number).unwrap_or(i32::MIN)),
            Self::Date(_) => number,
            Self::Epoch { unit, .. } => {
                let extreme = if number < 0 { i64::MIN } else { i64::MAX };
                from_epoch(number, unit.per_second()).unwrap_or(extreme)
            }
        }
    }
}

/// The values of the column that a partition's rows can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    /// No row has a later one; a local time if the column has no time zone.
    pub(crate) newest: i64,
    /// Rows may have a value that is no date, `-infinity` for example (M12).
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
pub(crate) fn range(leaf: pg_sys::Oid, column: &DateColumn) -> Result<Option<Range>> {
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
pub(crate) fn has_range_level(relid: pg_sys::Oid, column: &DateColumn) -> bool {
    let below = catalog::all_inheritors(relid).into_iter();
    let mut levels = below.chain(catalog::ancestors(relid));
    levels.any(|table| is_keyed_by(table, column))
}

/// Whether the table is partitioned by RANGE, first by the column of that name and kind in its
/// usual order.
fn is_keyed_by(table: pg_sys::Oid, column: &DateColumn) -> bool {
    let Some(found) = catalog::attribute(table, &column.name) else {
        return false;
    };
    found.type_oid == column.kind.type_oid()
        && partition::first_of_range(table) == Some((found.attno, column.kind.usual_order()))
}

/// The condition on `pg_partitioned_table AS p`.
fn is_range_by(column: &DateColumn) -> String {
    format!(
        "p.partstrat OPERATOR(pg_catalog.=) 'r' AND p.partclass[0] OPERATOR(pg_catalog.=) {} \
         AND EXISTS (SELECT FROM pg_catalog.pg_attribute AS k \
              WHERE k.attrelid OPERATOR(pg_catalog.=) p.partrelid \
                AND k.attnum OPERATOR(pg_catalog.=) p.partattrs[0] \
                AND k.attname OPERATOR(pg_catalog.=) {}::pg_catalog.name \
                AND k.atttypid OPERATOR(pg_catalog.=) {})",
        column.kind.usual_order().to_u32(),
        catalog::quote_literal(&column.name),
        column.kind.type_oid().to_u32()
    )
}

/// The range that a RANGE bound gives for the first column of its key; exact for a key of one
/// column. `None` if it has no upper end.
fn of_bound(bound: &str, kind: BoundKind, is_only_column: bool) -> Option<Range> {
    let bound = CString::new(bound).ok()?;
    let [lower, upper] = partition::ends_of_range(&bound, kind.type_oid())?;
    let no_date = |lower| kind.instant(lower, 0) == i64::MIN;
    let has_smallest = matches!(
        kind,
        BoundKind::Epoch {
            is_bigint: false,
            ..
        }
    );
    Some(Range {
        // A key of one column is below the upper end.
        newest: kind.instant(upper?, i64::from(is_only_column)),
        // The smallest integer is a date.
        reaches_minus_infinity: lower.map_or(!has_smallest, no_date),
    })
}

/// Whether at `now` every row of the partition without an override is expired by the default,
/// and no row stamped now can be routed to it; `newest` is that of [`range`].
pub(crate) fn is_past(newest: i64, default_ttl: Option<i32>, now: i64) -> bool {
    !is_live(Some(newest), effective_ttl(None, default_ttl), now)
        && newest < now.saturating_sub(MARGIN)
}

/// Whether at `now` every row of the partition is expired by a TTL index of this number of seconds,
/// whose dates are finite and not later than `newest`. As in [`is_past`], the clock may be set
/// back.
pub(crate) fn is_past_by_index(newest: i64, seconds: i32, now: i64) -> bool {
    !is_live_by_index(Some(newest), seconds, now.saturating_sub(MARGIN))
}
