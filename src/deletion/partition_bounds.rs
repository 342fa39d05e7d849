//! How old the rows of a partition must be (M11).

use crate::pg::catalog;
use crate::pg::catalog::partition::{self, RangeKey};
use crate::policy::{
    EpochUnit, effective_ttl, from_epoch, instant_of_day, is_live, is_live_by_index,
};
use crate::store::Rule;
use crate::store::dates::DateKind;
use pgrx::pg_sys;

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
    /// The type, and the operator class of its usual order: one of a user's may order values otherwise.
    fn ordered_type(self) -> (pg_sys::Oid, pg_sys::Oid) {
        match self {
            Self::Date(DateKind::Timestamptz) => {
                (pg_sys::TIMESTAMPTZOID, pg_sys::TIMESTAMPTZ_BTREE_OPS_OID)
            }
            Self::Date(DateKind::Timestamp) => {
                (pg_sys::TIMESTAMPOID, pg_sys::TIMESTAMP_BTREE_OPS_OID)
            }
            Self::Date(DateKind::Date) => (pg_sys::DATEOID, pg_sys::DATE_BTREE_OPS_OID),
            Self::Epoch {
                is_bigint: false, ..
            } => (pg_sys::INT4OID, pg_sys::INT4_BTREE_OPS_OID),
            Self::Epoch {
                is_bigint: true, ..
            } => (pg_sys::INT8OID, pg_sys::INT8_BTREE_OPS_OID),
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
/// Levels above one that DETACH CONCURRENTLY has begun to detach do not count. Reads the catalogs without locks. Under
/// the locks of [`super::partitions::lock_for_drop`] no newer row gets in until the end of the transaction, whatever is
/// attached or detached higher up, and what was before is known.
pub(crate) fn range(leaf: pg_sys::Oid, column: &DateColumn) -> Option<Range> {
    let mut narrowest: Option<Range> = None;
    let mut level = leaf;
    while let Some(parent) = catalog::partitioned_parent(level) {
        let key = range_key(parent, column);
        let range = key.and_then(|key| of_bound(level, column.kind, key.columns == 1));
        narrowest = match (narrowest, range) {
            (Some(a), Some(b)) => Some(Range {
                newest: a.newest.min(b.newest),
                reaches_minus_infinity: a.reaches_minus_infinity && b.reaches_minus_infinity,
            }),
            (a, b) => a.or(b),
        };
        level = parent;
    }
    narrowest
}

/// Whether the table, one of its partitions or one of its ancestors gives bounds as [`range`]
/// counts them.
pub(crate) fn has_range_level(relid: pg_sys::Oid, column: &DateColumn) -> bool {
    let below = catalog::all_inheritors(relid).into_iter();
    let mut levels = below.chain(catalog::ancestors(relid));
    levels.any(|table| range_key(table, column).is_some())
}

/// The table's partition key, if it is one by RANGE, first by the column of that name and kind in its
/// usual order.
fn range_key(table: pg_sys::Oid, column: &DateColumn) -> Option<RangeKey> {
    let found = catalog::attribute(table, &column.name)?;
    let (type_oid, class) = column.kind.ordered_type();
    let is_by_column = |key: &RangeKey| key.first == found.attno && key.first_class == class;
    partition::range_key(table)
        .filter(is_by_column)
        .filter(|_| found.type_oid == type_oid)
}

/// The range that a partition's RANGE bound gives for the first column of its key; exact for a key of one
/// column. `None` if it has no upper end.
fn of_bound(partition: pg_sys::Oid, kind: BoundKind, is_only_column: bool) -> Option<Range> {
    let [lower, upper] = partition::ends_of_range(partition, kind.ordered_type().0)?;
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
