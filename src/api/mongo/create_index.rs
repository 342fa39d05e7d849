//! `ttl.create_index`.

use super::{field, json, means_default};
use crate::api::policy::expire_index::{self, IndexOptions};
use crate::api::policy::mass_expiry::Consent;
use crate::api::policy::{document_column, enable, guard, indexes, time_source};
use crate::error::{Error, Result};
use crate::mongo::{CommandError, CreateIndex};
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::Json;
use crate::pg::catalog::index;
use crate::pg::catalog::{self, qualified_name, quote_identifier, quote_literal};
use crate::pg::session::rewording;
use crate::policy::{IndexMethod, Policy};
use crate::store::dates::DateType;
use crate::store::predicate;
use crate::store::ttl_index::{TtlIndex, TtlKey};
use pgrx::prelude::*;
use pgrx::{AnyElement, PgSqlErrorCode, pg_sys};

const PREDICATE: &str = "options.partialFilterExpression";
const PREDICATE_HINT: &str = "Write a condition as after WHERE: \"level = 'debug'\".";

/// `ttl.create_index(rel, keys, options, hidden, confirm) RETURNS jsonb`: creates a TTL index, or with the
/// key `{"_ts": 1}` sets the table's default. `hidden` is not MongoDB's: it applies to the table,
/// and NULL keeps it. Raises 22023, naming the field, for a malformed command, and the errors of
/// CREATE INDEX and `ttl.expire_index`.
#[pg_extern(sql = false)]
fn create_index(
    rel: Option<pg_sys::Oid>,
    keys: Option<AnyElement>,
    options: Option<AnyElement>,
    hidden: Option<bool>,
    confirm: Option<bool>,
) -> Json {
    guard::check_writable(c"ttl.create_index()");
    let reply = guard::required(rel, "rel").and_then(|relid| {
        let (keys, options) = (json(keys, "keys")?, json(options, "options")?);
        let wanted = CreateIndex::parse(&keys, &options).map_err(refused)?;
        let hides = hidden.map_or(String::new(), |hidden| format!(", hidden => {hidden}"));
        let table = quote_literal(&qualified_name(relid));
        let (keys, options) = (quote_literal(&keys), quote_literal(&options));
        let call = format!("ttl.create_index({table}, {keys}, {options}{hides}");
        create(relid, &wanted, hidden, &Consent::new(confirm, &call)?)
    });
    or_raise(reply)
}

fn refused(error: CommandError) -> Error {
    let form = format!(
        "A TTL index: ttl.create_index('t', '{{\"column\": 1}}', '{{\"expireAfterSeconds\": 3600}}'). Options are {}.",
        CreateIndex::OPTIONS
    );
    super::refused(error, &form)
}

fn create(
    relid: pg_sys::Oid,
    wanted: &CreateIndex,
    hidden: Option<bool>,
    consent: &Consent,
) -> Result<Json> {
    guard::check_change(relid)?;
    if means_default(relid, &wanted.column)? {
        return create_default(relid, wanted, hidden, consent);
    }
    let seconds = wanted.expire_after_seconds.for_index().map_err(refused)?;
    // The strongest lock that the trigger and the index take: upgrading a weaker one could
    // deadlock.
    guard::lock(relid, pg_sys::ShareRowExclusiveLock);
    let column = catalog::attribute(relid, &wanted.column).ok_or_else(|| {
        let reason = format!("does not name a column of table {}", qualified_name(relid));
        field(
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            &key(wanted),
            &reason,
        )
        .hint("Check the name. For a property of a document, create a generated column first.")
    })?;
    let date = DateType::of(column.type_oid).ok_or_else(|| {
        field(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            &key(wanted),
            "names a column that is not of a date type",
        )
        .detail("Rows expire by a timestamptz, a timestamp, a date, or an array of one of them.")
        .hint(time_source::way(
            relid,
            &wanted.column,
            column.type_oid,
            &seconds.to_string(),
        ))
    })?;
    let predicate = wanted
        .predicate
        .as_deref()
        .map(|text| {
            rewording::naming(PREDICATE, PREDICATE_HINT, || {
                predicate::analyze(relid, text, PREDICATE_HINT)
            })
            .map_err(|why| field(why.code, PREDICATE, &why.reason).hint(why.remedy))
        })
        .transpose()?;
    let policy = guard::own_policy(relid)?;
    let like = TtlIndex {
        table: relid,
        key: TtlKey::Column(column.attno),
        date,
        descending: wanted.descending,
        is_valid: true,
        predicate,
    };
    if wanted.unique {
        return Err(unique(relid, wanted, date, seconds));
    }
    let before = index::list(relid).len();
    let options = IndexOptions {
        hidden,
        ..IndexOptions::default()
    };
    if let Some((index, reply)) = existing(relid, wanted, seconds, &like, policy.as_ref())? {
        let differs = |policy: &Policy| hidden.is_some_and(|hidden| hidden != policy.hidden);
        if policy.as_ref().is_some_and(differs) {
            expire_index::set_rule(index, Some(seconds), &options, consent)?;
        }
        return Ok(reply);
    }
    let created = indexes::create(relid, &definition(relid, wanted, date))?;
    expire_index::set_rule(created, Some(seconds), &options, consent)?;
    let name = catalog::relation_name(created);
    Ok(reply(before, index::list(relid).len(), Some(&name)))
}

/// D4: the numbers of the table's indexes before and after, and the name of the index. Equal numbers do not mean that
/// nothing was done ([`reply_of_existing`] says that): the default of a table whose clock has an index adds none.
fn reply(before: usize, after: usize, name: Option<&str>) -> Json {
    let mut reply = serde_json::json!({
        "ok": 1, "createdCollectionAutomatically": false,
        "numIndexesBefore": before, "numIndexesAfter": after,
    });
    if let Some(name) = name {
        reply["name"] = name.into();
    }
    Json(reply)
}

/// Nothing was done: what is asked for is there already.
fn reply_of_existing(relid: pg_sys::Oid, name: Option<&str>) -> Json {
    let indexes = index::list(relid).len();
    let Json(mut reply) = reply(indexes, indexes, name);
    reply["note"] = "all indexes already exist".into();
    Json(reply)
}

fn key(wanted: &CreateIndex) -> String {
    format!("keys.{}", wanted.column)
}

/// The error for a unique index: uniqueness is not MongoDB's here (NULLs, arrays), so that it is
/// asked for in SQL.
fn unique(relid: pg_sys::Oid, wanted: &CreateIndex, date: DateType, seconds: i32) -> Error {
    let name = wanted
        .name
        .clone()
        .unwrap_or_else(|| format!("{}_{}_key", catalog::relation_name(relid), wanted.column));
    let statement = definition(
        relid,
        &CreateIndex {
            name: Some(name.clone()),
            ..wanted.clone()
        },
        date,
    );
    let index = quote_literal(&index::qualified_name(relid, &name));
    field(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        "options.unique",
        "is not supported",
    )
    .hint(format!(
        "{statement}; SELECT ttl.expire_index({index}, {seconds});"
    ))
}

/// The CREATE INDEX statement. For an array the key is its earliest date.
fn definition(relid: pg_sys::Oid, wanted: &CreateIndex, date: DateType) -> String {
    let unique = if wanted.unique { "UNIQUE " } else { "" };
    let name = wanted
        .name
        .as_deref()
        .map_or(String::new(), |name| quote_identifier(name) + " ");
    let column = quote_identifier(&wanted.column);
    let column = if date.is_array {
        format!("ttl.earliest({column})")
    } else {
        column
    };
    let order = if wanted.descending { " DESC" } else { "" };
    // On its own line: the predicate may end with a comment.
    let predicate = wanted
        .predicate
        .as_deref()
        .map_or(String::new(), |text| format!(" WHERE (\n{text}\n)"));
    format!(
        "CREATE {unique}INDEX {name}ON {} USING btree ({column}{order}){predicate}",
        qualified_name(relid)
    )
}

/// M7: looks for an index with the same key and predicate. If it has the same seconds, and the
/// same name where one is given, nothing is to be done.
fn existing(
    relid: pg_sys::Oid,
    wanted: &CreateIndex,
    seconds: i32,
    like: &TtlIndex,
    policy: Option<&Policy>,
) -> Result<Option<(pg_sys::Oid, Json)>> {
    let alike = indexes::alike(relid, policy, |found| like.is_like(found));
    let Some((index, name)) = alike.first() else {
        return Ok(None);
    };
    let conflict = |message: String, hint: &str| {
        Error::new(PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT, message)
            .detail("It has the same key and predicate.")
            .hint(hint)
    };
    let shown = quote_identifier(name);
    let Some(rule) = policy.and_then(|policy| policy.rule(name)) else {
        return Err(conflict(
            format!("index {shown} exists already, and is no TTL index"),
            "ttl.coll_mod() or ttl.expire_index() makes it one, and no index is built.",
        ));
    };
    if rule.expire_after_seconds != seconds {
        return Err(conflict(
            format!(
                "\"options.expireAfterSeconds\" is {seconds}, but TTL index {shown} exists already with {}",
                rule.expire_after_seconds
            ),
            "ttl.coll_mod() changes the seconds of an index.",
        ));
    }
    if wanted.name.as_ref().is_some_and(|wanted| wanted != name) {
        return Err(conflict(
            format!("\"options.name\" differs from the name of existing TTL index {shown}"),
            "ALTER INDEX ... RENAME TO changes the name of an index.",
        ));
    }
    Ok(Some((*index, reply_of_existing(relid, Some(name)))))
}

/// D4: `{"_ts": 1}`.
fn create_default(
    relid: pg_sys::Oid,
    wanted: &CreateIndex,
    hidden: Option<bool>,
    consent: &Consent,
) -> Result<Json> {
    let direction = if wanted.descending { -1 } else { 1 };
    let usual_name = format!("{}_{direction}", wanted.column);
    let has_own_name = wanted.name.as_ref().is_some_and(|name| *name != usual_name);
    for (given, name) in [
        (has_own_name, "name"),
        (wanted.predicate.is_some(), "partialFilterExpression"),
        (wanted.unique, "unique"),
    ] {
        if given {
            return Err(field(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                &format!("options.{name}"),
                &format!("cannot be given for the key \"{}\"", wanted.column),
            )
            .detail("It sets the table's default, which holds for all rows, and has no index of its own.")
            .hint("Leave it out."));
        }
    }
    let seconds = wanted.expire_after_seconds.for_default().map_err(refused)?;
    let before = index::list(relid).len();
    let policy = guard::own_policy(relid)?;
    // It is asked for by name.
    let index_asked_for = IndexMethod::Btree;
    match policy.as_ref().and_then(|policy| policy.default_ttl) {
        Some(same) if same == seconds => {
            let differs = |policy: Policy| hidden.is_some_and(|hidden| hidden != policy.hidden);
            if policy.is_some_and(differs) {
                enable::enable_or_change(relid, seconds, index_asked_for, hidden, consent)?;
            }
            return Ok(reply_of_existing(relid, None));
        }
        // -1 means TTL is on without a default, so no default would be changed.
        Some(other) if other != -1 => {
            let message = format!(
                "\"options.expireAfterSeconds\" is {seconds}, but the default of table {} is {other}",
                qualified_name(relid)
            );
            return Err(
                Error::new(PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT, message)
                    .hint("ttl.coll_mod() or ttl.set_default() changes the default."),
            );
        }
        _ => {}
    }
    enable::enable_or_change(relid, seconds, index_asked_for, hidden, consent)?;
    if let Some(policy) = guard::own_policy(relid)? {
        document_column::tell_if_ignored(relid, &policy);
    }
    Ok(reply(before, index::list(relid).len(), None))
}
