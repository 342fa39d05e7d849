//! How old the rows of a partition must be (M11).

use crate::error::{Result, TtlError};
use crate::pg::{catalog, lists};
use crate::policy::{effective_ttl, is_live};
use pgrx::prelude::*;
use pgrx::spi::{SpiClient, SpiError};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CString;

/// By how much a partition's end must lie before the present. A row is stamped up
/// to two seconds before it looks for its partition (C1), and clocks are set back.
const MARGIN: i64 = 10_000_000;

/// The newest `ts` that a row of the partition can have, in microseconds: the least
/// upper bound that any level above it gives, an exclusive one (of a key of one
/// column) less a microsecond. `None` if no level gives one.
///
/// A level counts if it is partitioned by RANGE, the first column of its key is the
/// plain column of that name, of type timestamptz in its usual order, and its bound
/// for this branch is a value (not MAXVALUE, not the default partition). PostgreSQL
/// then keeps rows out that are newer, and rows whose `ts` is NULL.
///
/// Sees the catalogs as they are at the time of the call. Under the locks of
/// [`super::partitions::lock_for_drop`] no newer row gets in until the end of the
/// transaction, whatever is attached or detached higher up meanwhile.
pub(crate) fn upper_bound(leaf: pg_sys::Oid, ts_column: &str) -> Result<Option<i64>> {
    let query = format!(
        "SELECT p.partnatts, c.relpartbound::pg_catalog.text \
           FROM pg_catalog.pg_partition_ancestors({}::pg_catalog.oid::pg_catalog.regclass) AS a (relid) \
           JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) a.relid \
           JOIN pg_catalog.pg_inherits AS i ON i.inhrelid OPERATOR(pg_catalog.=) c.oid \
           JOIN pg_catalog.pg_partitioned_table AS p ON p.partrelid OPERATOR(pg_catalog.=) i.inhparent \
          WHERE c.relispartition AND {}",
        leaf.to_u32(),
        is_range_by(ts_column)
    );
    with_latest_snapshot(|client| {
        let mut least = None;
        for level in client.select(&query, None, &[])? {
            let (columns, bound) = (level.get::<i16>(1)?, level.get::<String>(2)?);
            let newest = bound.as_deref().and_then(upper_value).map(|value| {
                if columns == Some(1) {
                    value.saturating_sub(1)
                } else {
                    value
                }
            });
            least = match (least, newest) {
                (Some(a), Some(b)) => Some(i64::min(a, b)),
                (a, b) => a.or(b),
            };
        }
        Ok(least)
    })
}

/// Runs queries that see all that is committed now, and take no transaction ID (as
/// `Spi::get_one` does). As long as there is none, SPI's queries see by the active
/// snapshot; then by one of the transaction's, which is new in READ COMMITTED only.
pub(super) fn with_latest_snapshot<T>(
    work: impl FnOnce(&SpiClient<'_>) -> std::result::Result<T, SpiError>,
) -> Result<T> {
    // SAFETY: reads a backend-local variable.
    if unsafe { pg_sys::XactIsoLevel } > pg_sys::XACT_READ_COMMITTED.cast_signed() {
        return Err(TtlError::new(
            PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
            "partitions are looked at in READ COMMITTED transactions only",
        ));
    }
    // SAFETY: pushed and popped in pairs; an error ends the transaction, and with it the stack.
    unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot()) };
    let result = Spi::connect(work);
    // SAFETY: see above.
    unsafe { pg_sys::PopActiveSnapshot() };
    Ok(result?)
}

/// Whether the table, a partition of it at any level, or a table that it is a
/// partition of, gives upper bounds as [`upper_bound`] counts them.
pub(crate) fn has_range_level(relid: pg_sys::Oid, ts_column: &str) -> Result<bool> {
    let levels = catalog::all_inheritors(relid)
        .into_iter()
        .chain(catalog::ancestors(relid))
        .map(|oid| oid.to_u32().to_string())
        .collect::<Vec<_>>()
        .join(",");
    let query = format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_partitioned_table AS p \
          WHERE p.partrelid OPERATOR(pg_catalog.=) ANY ('{{{levels}}}'::pg_catalog.oid[]) AND {})",
        is_range_by(ts_column)
    );
    // Not Spi::get_one, which takes a transaction ID: a standby has none to give.
    let found = Spi::connect(|client| client.select(&query, Some(1), &[])?.first().get_one())?;
    Ok(found.unwrap_or(false))
}

/// The condition on `pg_partitioned_table AS p`. An operator class of one's own may
/// order times otherwise.
fn is_range_by(ts_column: &str) -> String {
    format!(
        "p.partstrat OPERATOR(pg_catalog.=) 'r' AND p.partclass[0] OPERATOR(pg_catalog.=) {} \
         AND EXISTS (SELECT FROM pg_catalog.pg_attribute AS k \
              WHERE k.attrelid OPERATOR(pg_catalog.=) p.partrelid \
                AND k.attnum OPERATOR(pg_catalog.=) p.partattrs[0] \
                AND k.attname OPERATOR(pg_catalog.=) {}::pg_catalog.name \
                AND k.atttypid OPERATOR(pg_catalog.=) {})",
        pg_sys::TIMESTAMPTZ_BTREE_OPS_OID.to_u32(),
        catalog::quote_literal(ts_column),
        pg_sys::TIMESTAMPTZOID.to_u32()
    )
}

/// The first value of a RANGE bound's upper end, if it is a timestamptz.
fn upper_value(bound: &str) -> Option<i64> {
    let bound = CString::new(bound).ok()?;
    // SAFETY: the text is pg_class.relpartbound, a PartitionBoundSpec; its upper datums
    // are PartitionRangeDatums, whose value is a Const if their kind is VALUE. All are
    // palloc'd in the current memory context. A timestamptz is passed by value.
    unsafe {
        let spec = pg_sys::stringToNode(bound.as_ptr()).cast::<pg_sys::PartitionBoundSpec>();
        let value_kind = pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_VALUE;
        let first = lists::iter::<pg_sys::PartitionRangeDatum>((*spec).upperdatums).next()?;
        if (*spec).is_default || (*first).kind != value_kind {
            return None;
        }
        let value = (*first).value.cast::<pg_sys::Const>().as_ref()?;
        (value.consttype == pg_sys::TIMESTAMPTZOID && !value.constisnull)
            .then(|| i64::from_datum(value.constvalue, false))?
    }
}

/// Whether at `now` every row of the partition that has no override is expired under
/// the default, and no row that is stamped now can land there; `newest` is that of
/// [`upper_bound`].
pub(crate) fn is_past(newest: i64, default_ttl: Option<i32>, now: i64) -> bool {
    !is_live(Some(newest), effective_ttl(None, default_ttl), now)
        && newest < now.saturating_sub(MARGIN)
}
