//! `ttl.coll_mod`.

use super::{field, json, means_default};
use crate::api::policy::expire_index::{self, IndexOptions};
use crate::api::policy::mass_expiry::Consent;
use crate::api::policy::{enable, guard};
use crate::error::{Error, Result};
use crate::mongo::{CollMod, CommandError, IndexRef};
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::Json;
use crate::pg::catalog::index;
use crate::pg::catalog::names;
use crate::pg::catalog::{self, qualified_name, quote_identifier, quote_literal};
use crate::store::{expiry_index, index_of};
use pgrx::prelude::*;
use pgrx::{AnyElement, PgSqlErrorCode, pg_sys};

/// `ttl.coll_mod(rel, command, confirm) RETURNS jsonb`: changes the seconds of a TTL index, makes an
/// ordinary index a TTL index, or with the key pattern `{"_ts": 1}` or the name `_ts_1` changes the table's default.
/// Raises the same errors as `ttl.create_index`.
#[pg_extern(sql = false)]
fn coll_mod(rel: Option<pg_sys::Oid>, command: Option<AnyElement>, confirm: Option<bool>) -> Json {
    guard::check_writable(c"ttl.coll_mod()");
    let reply = guard::required(rel, "rel").and_then(|relid| {
        let command = json(command, "command")?;
        let wanted = CollMod::parse(&command).map_err(refused)?;
        let call = format!(
            "ttl.coll_mod({}, {}",
            quote_literal(&qualified_name(relid)),
            quote_literal(&command)
        );
        modify(relid, &wanted, &Consent::new(confirm, &call)?)
    });
    or_raise(reply)
}

fn refused(error: CommandError) -> Error {
    let form = format!(
        "A change: ttl.coll_mod('t', '{{\"index\": {{\"keyPattern\": {{\"column\": 1}}, \"expireAfterSeconds\": 100}}}}'). The command has {}.",
        CollMod::FIELDS
    );
    super::refused(error, &form)
}

fn modify(relid: pg_sys::Oid, wanted: &CollMod, consent: &Consent) -> Result<Json> {
    guard::check_change(relid)?;
    if let Some(table) = &wanted.table
        && *table != catalog::relation_name(relid)
        && !names::is_of(relid, table)
    {
        let reason = format!("names another table than {}", qualified_name(relid));
        return Err(field(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "collMod",
            &reason,
        )
        .hint("Leave it out: the table is the first argument."));
    }
    if means_clock(relid, &wanted.index)? {
        let seconds = wanted.expire_after_seconds.for_default().map_err(refused)?;
        let Some(policy) = guard::own_policy(relid)?.filter(|policy| policy.ts_column.is_some())
        else {
            return Err(field(
                PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
                "index.keyPattern",
                &format!(
                    "names the clock of table {}, which has none",
                    qualified_name(relid)
                ),
            )
            .hint(
                "ttl.create_index() with the key {\"_ts\": 1}, or ttl.enable(), sets a default.",
            ));
        };
        enable::enable_or_change(relid, seconds, policy.index, None, consent)?;
        return Ok(reply(policy.default_ttl, seconds));
    }
    let seconds = wanted.expire_after_seconds.for_index().map_err(refused)?;
    let index = match &wanted.index {
        IndexRef::Name(name) => index_of(relid, name).ok_or_else(|| {
            let reason = format!("names no index of table {}", qualified_name(relid));
            field(
                PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
                "index.name",
                &reason,
            )
            .hint("Names are as in pg_indexes, in the table's schema.")
        })?,
        IndexRef::KeyPattern { column, descending } => by_key(relid, column, *descending)?,
    };
    let old = expire_index::set_rule(index, Some(seconds), &IndexOptions::default(), consent)?;
    Ok(reply(old, seconds))
}

/// M6: the seconds before, if rows expired by it, and now.
fn reply(old: Option<i32>, new: i32) -> Json {
    let mut reply = serde_json::json!({ "ok": 1, "expireAfterSeconds_new": new });
    if let Some(old) = old {
        reply["expireAfterSeconds_old"] = old.into();
    }
    Json(reply)
}

/// Whether the table's default is meant: by the key pattern of its clock, or by the name that MongoDB
/// gives an index on that, `_ts_1`, which no index here has.
fn means_clock(relid: pg_sys::Oid, index: &IndexRef) -> Result<bool> {
    match index {
        IndexRef::KeyPattern { column, .. } => means_default(relid, column),
        IndexRef::Name(name) if index_of(relid, name).is_none() => {
            let clock = guard::own_policy(relid)?.and_then(|policy| policy.ts_column);
            Ok(clock.is_some() && clock.as_deref() == name.strip_suffix("_1"))
        }
        IndexRef::Name(_) => Ok(false),
    }
}

/// The only index with this key pattern.
fn by_key(relid: pg_sys::Oid, column: &str, descending: bool) -> Result<pg_sys::Oid> {
    const FIELD: &str = "index.keyPattern";
    let attno = catalog::attribute(relid, column).map(|column| column.attno);
    let has_key = |&index: &pg_sys::Oid| {
        // In MongoDB other index types have other key patterns, such as "hashed".
        catalog::is_btree(index)
            && expiry_index::single_key(index)
                .is_some_and(|key| Some(key) == attno.map(|attno| (attno, descending)))
    };
    let found: Vec<pg_sys::Oid> = index::list(relid).into_iter().filter(has_key).collect();
    match found.as_slice() {
        [index] => Ok(*index),
        [] => {
            let reason = format!("fits no index of table {}", qualified_name(relid));
            Err(
                field(PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT, FIELD, &reason)
                    .detail("The index must be a btree on this column alone, in this order.")
                    .hint("ttl.create_index() makes one."),
            )
        }
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|&index| quote_identifier(&catalog::relation_name(index)))
                .collect();
            Err(field(
                PgSqlErrorCode::ERRCODE_AMBIGUOUS_PARAMETER,
                FIELD,
                "fits several indexes",
            )
            .detail(format!("They are {}.", names.join(", ")))
            .hint("Give index.name instead."))
        }
    }
}
