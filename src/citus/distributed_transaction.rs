//! The distributed transaction that the session takes part in, and its sessions on the nodes.

use super::{catalogs, nodes, session};
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::catalog::{self, names};
use crate::pg::exec::composite;
use pgrx::{PgSqlErrorCode, Spi, pg_sys};

/// `ClanguageId` of pg_language.dat.
const C_LANGUAGE: pg_sys::Oid = pg_sys::Oid::from_u32(13);
/// The last column of `get_current_transaction_id()`.
const TRANSACTION_STAMP: i16 = 5;

/// When it began, by the clock of the node that coordinates it; `None` outside one.
pub(crate) fn begun_at() -> Option<i64> {
    if !catalogs::is_present() {
        return None;
    }
    let schema = pg_sys::Oid::from_u32(pg_sys::PG_CATALOG_NAMESPACE);
    let function = names::function(schema, c"get_current_transaction_id", &[], C_LANGUAGE)?;
    // SAFETY: Citus's function, which only superusers create: it returns such a row.
    let stamp = unsafe { composite::returned(function, TRANSACTION_STAMP) }?;
    Some(stamp.value() as i64)
}

/// The sessions of a distributed transaction on a node. Of those of another role one sees only whether they are
/// in a transaction: by the lock that each has.
const SESSIONS: &str = "\
    SELECT pg_catalog.count(*) FROM pg_catalog.get_all_active_transactions() AS one \
     WHERE one.global_pid OPERATOR(pg_catalog.=) ";
const OF_TRANSACTION: &str = " \
       AND CASE WHEN one.transaction_number IS NOT NULL THEN one.transaction_number OPERATOR(pg_catalog.=) ";
const OF_ANOTHER_ROLE: &str = " \
                ELSE EXISTS (SELECT FROM pg_catalog.pg_locks AS own \
                              WHERE own.pid OPERATOR(pg_catalog.=) one.process_id \
                                AND own.locktype OPERATOR(pg_catalog.=) 'virtualxid') END";

/// How to count the sessions of this transaction on a node; `None` outside a distributed one.
fn sessions() -> Result<Option<String>> {
    let query = "SELECT transaction_number, pg_catalog.citus_backend_gpid()::pg_catalog.int8 \
                   FROM pg_catalog.get_current_transaction_id()";
    let (number, session) = Spi::connect_mut(|client| {
        let found = client.update(&encoding::query(query), Some(1), &[])?;
        found.first().get_two::<i64, i64>()
    })?;
    let pair = number.filter(|&number| number != 0).zip(session);
    Ok(pair.map(|(number, session)| {
        format!("{SESSIONS}{session}{OF_TRANSACTION}{number}{OF_ANOTHER_ROLE}")
    }))
}

/// Has all that follows in the transaction reach each node by one session, before the table's policy is
/// changed: a session does not see what another has changed before that is committed. Raises 25001 if a
/// node has several sessions of the transaction already.
pub(crate) fn use_one_session(relid: pg_sys::Oid) -> Result<()> {
    if !catalogs::is_present() {
        return Ok(());
    }
    if let Some(query) = sessions()? {
        for answer in nodes::ask(&query)? {
            // The change itself fails where a node cannot be asked.
            let count = answer
                .text
                .as_ref()
                .ok()
                .and_then(|text| text.as_deref()?.parse().ok());
            if count.is_some_and(|count: i64| count > 1) {
                return Err(several(relid, &answer.name()));
            }
        }
    }
    one_at_a_time()
}

/// The same on this node alone, where the label of the table arrives. On the node that coordinates, this session is one
/// of them, and a statement in a transaction of its own, such as ALTER TABLE, has another for several shards of the node.
pub(crate) fn check_only_session(relid: pg_sys::Oid) -> Result<()> {
    if !catalogs::is_present() {
        return Ok(());
    }
    let Some(query) = sessions()? else {
        return Ok(());
    };
    let most = if session::is_of_citus() { 1 } else { 2 };
    let query = format!("SELECT ({query}) OPERATOR(pg_catalog.>) {most}");
    match encoding::first_bool(&query)? {
        Some(true) => Err(several(relid, "this node")),
        _ => Ok(()),
    }
}

/// Has statements on shards follow one another, until the end of the transaction. A rollback to a savepoint undoes it together with what it is for.
pub(crate) fn one_at_a_time() -> Result<()> {
    if !catalogs::is_present() {
        return Ok(());
    }
    let query = "SELECT pg_catalog.set_config('citus.multi_shard_modify_mode', 'sequential', true)";
    encoding::run(query).map_err(Error::from)
}

fn several(relid: pg_sys::Oid, node: &str) -> Error {
    let message = format!(
        "cannot change the time to live of table {} in this transaction",
        catalog::qualified_name(relid)
    );
    Error::new(PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION, message)
        .detail(format!("It has several sessions of Citus on {node}, which do not see each other's changes."))
        .hint("Begin the transaction with SET LOCAL citus.multi_shard_modify_mode TO 'sequential', or change the time to live in a transaction of its own.")
}
