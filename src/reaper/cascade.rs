//! The tables to which the deletion of a row cascades.

use crate::pg::txn::Failure;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Tables that foreign keys make change when a row of another is deleted.
#[derive(Debug, Default)]
pub(super) struct Cascade {
    /// As an array of OIDs in text; `None`: there are none.
    targets: Option<String>,
}

impl Cascade {
    /// Looks them up. Refuses a cascade whose triggers would run with more rights
    /// than their table's owner has.
    pub(super) fn of(relid: pg_sys::Oid, owner: pg_sys::Oid) -> Result<Self, Failure> {
        let query = format!(
            "WITH RECURSIVE target (relid) AS ( \
               SELECT conrelid FROM pg_catalog.pg_constraint \
                WHERE contype OPERATOR(pg_catalog.=) 'f' AND confrelid OPERATOR(pg_catalog.=) {relid} \
                  AND confdeltype OPERATOR(pg_catalog.=) ANY ('{{c,n,d}}'::pg_catalog.\"char\"[]) \
               UNION \
               SELECT c.conrelid FROM target AS t JOIN pg_catalog.pg_constraint AS c \
                   ON c.contype OPERATOR(pg_catalog.=) 'f' AND c.confrelid OPERATOR(pg_catalog.=) t.relid \
                  AND c.confdeltype OPERATOR(pg_catalog.=) ANY ('{{c,n,d}}'::pg_catalog.\"char\"[])) \
             SELECT pg_catalog.array_agg(relid)::pg_catalog.text, \
                    (SELECT pg_catalog.min(c.oid::pg_catalog.regclass::pg_catalog.text) \
                       FROM target AS t JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) t.relid \
                       JOIN pg_catalog.pg_trigger AS g ON g.tgrelid OPERATOR(pg_catalog.=) c.oid \
                       JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) c.relowner \
                      WHERE c.relowner OPERATOR(pg_catalog.<>) {owner} AND NOT r.rolsuper AND NOT g.tgisinternal \
                        AND (g.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) {BEFORE}) OPERATOR(pg_catalog.=) 0 \
                        AND (g.tgtype::pg_catalog.int4 OPERATOR(pg_catalog.&) {DELETE_OR_UPDATE}) OPERATOR(pg_catalog.<>) 0) \
               FROM target",
            relid = relid.to_u32(),
            owner = owner.to_u32(),
        );
        let (targets, stranger) = Spi::connect(|client| {
            let row = client.select(&query, Some(1), &[])?.first();
            Ok((row.get::<String>(1)?, row.get::<String>(2)?))
        })
        .map_err(|error: pgrx::spi::Error| {
            Failure::new(
                PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                format!("cannot look up foreign keys: {error}"),
            )
        })?;
        match stranger {
            Some(table) if RUN_AS_PARENTS_OWNER => Err(Failure::new(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!(
                    "triggers of table {table}, to which deletion cascades, would run with the rights of another owner"
                ),
            )),
            _ => Ok(Self { targets }),
        }
    }

    /// How many of their rows this transaction has deleted or updated.
    pub(super) fn changed(&self) -> u64 {
        let Some(targets) = &self.targets else {
            return 0;
        };
        let query = format!(
            "SELECT pg_catalog.sum(pg_catalog.pg_stat_get_xact_tuples_deleted(t) \
             OPERATOR(pg_catalog.+) pg_catalog.pg_stat_get_xact_tuples_updated(t))::pg_catalog.int8 \
             FROM pg_catalog.unnest('{targets}'::pg_catalog.oid[]) AS t"
        );
        let sum = Spi::connect(|client| {
            client
                .select(&query, Some(1), &[])?
                .first()
                .get_one::<i64>()
        });
        // Without statistics, cascades just do not count.
        sum.ok()
            .flatten()
            .and_then(|sum| u64::try_from(sum).ok())
            .unwrap_or(0)
    }
}

/// Bits of `pg_trigger.tgtype` (catalog/pg_trigger.h).
const BEFORE: i32 = 1 << 1;
const DELETE_OR_UPDATE: i32 = 1 << 3 | 1 << 4;

/// Up to 17, AFTER triggers of a table to which a deletion cascades run as the
/// one who deletes; from 18 on as the table's own owner.
const RUN_AS_PARENTS_OWNER: bool = cfg!(not(feature = "pg18"));
