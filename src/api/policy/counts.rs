//! What the forms of `ttl.preview` count.

use super::guard;
use crate::error::{Error, Result};
use crate::pg::catalog::{relation_name, roles};
use crate::pg::exec::query::{self, Sql};
use crate::pg::session::gate::GateVisit;
use crate::visibility::planned_statement;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;

/// All rows on disk, those that would be expired, and when the first of them expires.
pub(in crate::api) type Counts = (Option<i64>, Option<i64>, Option<TimestampWithTimeZone>);

/// 42501 for users who may not SELECT from the whole table: conditions read columns that the query does not
/// name.
pub(in crate::api) fn check_selectable(relid: pg_sys::Oid) -> Result<()> {
    if roles::may(relid, roles::current_user(), pg_sys::ACL_SELECT) {
        return Ok(());
    }
    Err(Error::denied(format!(
        "permission denied for table {}",
        relation_name(relid)
    )))
}

/// The first row of a query on the table that selects these three.
pub(in crate::api) fn of_query(relid: pg_sys::Oid, query: &str) -> Counts {
    let tables = [relid];
    let query = Sql::naming(&tables, query);
    let look = |visit: &GateVisit| {
        planned_statement::with_expired_rows_of(relid, || query::first_row::<3>(visit, query, &[]))
    };
    let [total, expired, oldest] = guard::reading(relid, look).unwrap_or_default();
    let count = |value: Option<pg_sys::Datum>| value.map(|value| value.value() as i64);
    let oldest = oldest.and_then(|at| TimestampWithTimeZone::try_from(at.value() as i64).ok());
    (count(total), count(expired), oldest)
}
