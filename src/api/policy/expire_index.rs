//! `ttl.expire_index`: rules of TTL indexes (M1, M6-M8).

use super::mass_expiry::Consent;
use super::{cluster, consequences, guard, index_time_zone, indexes, time_source, write_label};
use crate::ddl::purge_before_change;
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::Text;
use crate::pg::catalog::index;
use crate::pg::catalog::{self, qualified_name, quote_identifier};
use crate::pg::session::locks;
use crate::policy::{IndexRule, Policy};
use crate::store::expiry_index;
use crate::store::ttl_index::{self, TtlIndex, Unfit};
use crate::store::{policy_lock, without_its_index};
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Settings of the table that are changed with a rule; `None` keeps the present value.
#[derive(Debug, Clone, Default)]
pub(in crate::api) struct IndexOptions {
    pub(in crate::api) drop_partitions: Option<bool>,
    pub(in crate::api) hidden: Option<bool>,
    pub(in crate::api) revive_expired: bool,
    /// M13: of this TTL index.
    pub(in crate::api) time_zone: Option<String>,
}

impl IndexOptions {
    /// The arguments that were given, but for the time zone, to be added to a call.
    pub(in crate::api) fn arguments(&self) -> String {
        let flags = [
            ("drop_partitions", self.drop_partitions),
            ("hidden", self.hidden),
            ("revive_expired", self.revive_expired.then_some(true)),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(name, value)| Some(format!(", {name} => {}", value?)));
        given.collect()
    }
}

/// `ttl.expire_index(index, expire_after_seconds, drop_partitions, hidden, revive_expired, confirm,
/// time_zone)`: makes
/// an index a TTL index, or changes its seconds; NULL makes it an ordinary index again. No index is
/// rebuilt (M6). Raises 42809 for an unsuitable index (M7), 22023 for seconds out of range (M1),
/// 42501 for users who do not own the table.
#[pg_extern(sql = false)]
fn expire_index(
    index: Option<pg_sys::Oid>,
    expire_after_seconds: Option<i32>,
    drop_partitions: Option<bool>,
    hidden: Option<bool>,
    revive_expired: Option<bool>,
    confirm: Option<bool>,
    time_zone: Option<Text>,
) {
    guard::check_writable(c"ttl.expire_index()");
    or_raise(guard::required(index, "index").and_then(|index| {
        let options = IndexOptions {
            drop_partitions,
            hidden,
            revive_expired: guard::required(revive_expired, "revive_expired")?,
            time_zone: time_zone.map(|zone| zone.0),
        };
        let seconds = expire_after_seconds.map(|value| {
            let refused = |error: Error| error.hint("NULL makes the index an ordinary one again.");
            time_source::checked_seconds(value, "expire_after_seconds").map_err(refused)
        });
        let seconds = seconds.transpose()?;
        let value = seconds.map_or("NULL".to_owned(), |seconds| seconds.to_string());
        let shown = catalog::quote_literal(&qualified_name(index));
        let zone = options.time_zone.as_deref().map_or(String::new(), |zone| {
            format!(", time_zone => {}", catalog::quote_literal(zone))
        });
        if seconds.is_none() && options.time_zone.is_some() {
            return Err(needless_zone());
        }
        let others = options.arguments();
        let call = format!("ttl.expire_index({shown}, {value}{zone}{others}");
        let consent = Consent::new(confirm, &call)?;
        set_rule(index, seconds, &options, &consent).map(|_former| ())
    }));
}

fn needless_zone() -> Error {
    Error::invalid("argument \"time_zone\" cannot be given without a number of seconds")
        .detail("NULL makes the index an ordinary one, which has no time zone.")
        .hint("Leave out \"time_zone\".")
}

/// Makes the index a TTL index with these seconds, or with `None` an ordinary index; returns the
/// former seconds.
pub(in crate::api) fn set_rule(
    index: pg_sys::Oid,
    seconds: Option<i32>,
    options: &IndexOptions,
    consent: &Consent,
) -> Result<Option<i32>> {
    let relid = table_of(index)?;
    match seconds {
        Some(_) => guard::check_changeable(relid)?,
        None => guard::check_change(relid)?,
    }
    guard::lock(relid, guard::change_lock(relid));
    // Lock order: the policy, then the index. RENAME locks only the index.
    policy_lock::lock_policy_for_change(relid);
    locks::relation(index, pg_sys::ShareUpdateExclusiveLock);
    // While the lock was waited for, the index may have been dropped and its OID reused.
    if table_of(index)? != relid {
        return Err(not_an_index(index));
    }
    guard::check_change(relid)?;
    let present = guard::own_policy(relid)?;
    let name = catalog::relation_name(index);
    let former = present.as_ref().and_then(|policy| policy.rule(&name));
    let former = former.cloned();
    let mut policy = present.clone().unwrap_or_else(without_clock);
    let mut notice = None;
    if let Some(expire_after_seconds) = seconds {
        let fitting = check_new(relid, index, present.as_ref())?;
        let asked = options.time_zone.as_deref();
        let zone = index_time_zone::choose(asked, former.as_ref(), fitting.date)?;
        let key = fitting.shown_key();
        notice = zone.notice.map(|notice| (notice, key));
        policy.set_rule(IndexRule {
            index: name,
            expire_after_seconds,
            time_zone: zone.name,
        });
    } else if former.is_some() {
        policy.remove_rule(&name);
    } else {
        return Err(not_a_ttl_index(index));
    }
    policy.hidden = options.hidden.unwrap_or(policy.hidden);
    policy.drop_partitions = options.drop_partitions.unwrap_or(policy.drop_partitions);
    if policy.drop_partitions {
        guard::require_partitioned(relid)?;
    } else if seconds.is_some() {
        cluster::check_partitions(relid, false)?;
    }
    if !options.revive_expired {
        purge_before_change::prevent(relid, Some(&policy), pg_sys::RowExclusiveLock)?;
    }
    write_label::change(relid, &mut policy, consent)?;
    trigger_placement::sync(relid);
    if let (Some((notice, key)), Some(seconds)) = (notice, seconds) {
        let shown = catalog::quote_literal(&qualified_name(index));
        let call = format!("ttl.expire_index({shown}, {seconds}");
        notice.send(&key, &qualified_name(relid), &call);
    }
    if seconds.is_some() && former.is_none() {
        tell_if_stamped(relid, index, &policy);
        consequences::tell(relid, &[], None)?;
    }
    Ok(former.map(|rule| rule.expire_after_seconds))
}

/// C4: a time to live that is off, but was not ended, still overwrites its time column.
fn tell_if_stamped(relid: pg_sys::Oid, index: pg_sys::Oid, policy: &Policy) {
    let Some(name) = policy.ts_column.as_deref() else {
        return;
    };
    let is_read = catalog::attribute(relid, name).is_some_and(|column| {
        matches!(ttl_index::read(index), Some(Ok(found)) if found.key.columns().contains(&column.attno))
    });
    if policy.default_ttl.is_some() || !is_read {
        return;
    }
    let (table, column) = (qualified_name(relid), quote_identifier(name));
    Error::for_notice(format!(
        "column {column} of table {table} is overwritten by every INSERT and UPDATE"
    ))
    .detail("The table has a time to live by its last modification, which is off.")
    .hint(format!(
        "To let the column keep its time, run: SELECT ttl.disable({}, drop_columns => true, revive_expired => true); then repeat the call.",
        catalog::quote_literal(&table)
    ))
    .notice();
}

/// A new policy that has only TTL indexes.
fn without_clock() -> Policy {
    Policy {
        ts_column: None,
        ttl_column: None,
        ..Policy::default()
    }
}

fn table_of(index: pg_sys::Oid) -> Result<pg_sys::Oid> {
    index::table_of(index).ok_or_else(|| not_an_index(index))
}

fn not_an_index(index: pg_sys::Oid) -> Error {
    let (code, message) = match catalog::class(index) {
        Some(_) => (
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("{} is not an index", qualified_name(index)),
        ),
        None => (
            PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            format!("index with OID {} does not exist", index.to_u32()),
        ),
    };
    Error::new(code, message).hint("Pass an index. To set a default for a table, use ttl.enable().")
}

fn not_a_ttl_index(index: pg_sys::Oid) -> Error {
    let message = format!("index {} is not a TTL index", qualified_name(index));
    Error::not_ready(message)
        .hint("The TTL indexes of a table are shown by SELECT rules FROM ttl.tables.")
}

/// M7: checks that rows of the table can expire by the index, and that no TTL index is like it.
fn check_new(relid: pg_sys::Oid, index: pg_sys::Oid, present: Option<&Policy>) -> Result<TtlIndex> {
    if present.is_none() && catalog::is_partition(relid) {
        let table = qualified_name(relid);
        let message = format!("cannot set a time to live on partition {table}");
        return Err(Error::wrong_kind(message)
            .detail("A partitioned table's time to live holds for all its partitions.")
            .hint("Name the index of the partitioned table."));
    }
    let fitting = read(index)?;
    if let Some(child) = without_its_index(relid, &fitting) {
        return Err(unindexed_child(index, child));
    }
    if let Some(other) = like(relid, index, &fitting, present) {
        let message = format!(
            "index {} has the key and predicate of TTL index {}",
            qualified_name(index),
            quote_identifier(&other)
        );
        return Err(
            Error::new(PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT, message)
                .detail("Only one TTL index per key and predicate is allowed.")
                .hint("Change the seconds of the TTL index that there is, or make it an ordinary one first."),
        );
    }
    if !fitting.is_valid {
        Error::for_warning(format!("index {} is not valid", qualified_name(index)))
            .detail("No row expires by it until it is.")
            .hint(how_to_validate(index))
            .warn();
    }
    Ok(fitting)
}

/// M14: the index's expression is evaluated for rows of the tables that inherit, too.
fn unindexed_child(index: pg_sys::Oid, child: pg_sys::Oid) -> Error {
    let (index, child) = (qualified_name(index), qualified_name(child));
    let message = format!("cannot use {index} as a TTL index");
    Error::not_ready(message)
        .detail(format!(
            "Table {child} inherits from its table and has no index on the same expression, so that the expression may raise an error for its rows."
        ))
        .hint(format!("Create an index like {index} on {child}."))
}

/// What makes the index valid.
pub(in crate::api) fn how_to_validate(index: pg_sys::Oid) -> String {
    match reindex(index) {
        Some(statement) => format!("{statement} builds it again."),
        None => format!(
            "It becomes valid when each partition has an index that is attached to it, by ALTER INDEX {} ATTACH PARTITION.",
            qualified_name(index)
        ),
    }
}

/// The statement that builds the index again; `None` for that of a partitioned table.
pub(in crate::api) fn reindex(index: pg_sys::Oid) -> Option<String> {
    let is_partitioned = catalog::class(index)
        .is_some_and(|class| class.relkind == pg_sys::RELKIND_PARTITIONED_INDEX);
    (!is_partitioned).then(|| format!("REINDEX INDEX {}", qualified_name(index)))
}

/// The TTL index with the same key and predicate as this one.
fn like(
    relid: pg_sys::Oid,
    index: pg_sys::Oid,
    fitting: &TtlIndex,
    present: Option<&Policy>,
) -> Option<String> {
    let is_rule = |name: &str| present.is_some_and(|policy| policy.rule(name).is_some());
    let found = indexes::alike(relid, present, |found| fitting.is_like(found)).into_iter();
    let mut others = found.filter(|(other, name)| *other != index && is_rule(name));
    others.next().map(|(_, name)| name)
}

/// The index's entry, if rows can expire by it.
pub(in crate::api) fn read(index: pg_sys::Oid) -> Result<TtlIndex> {
    match ttl_index::read(index) {
        None => Err(not_an_index(index)),
        Some(Ok(fitting)) => Ok(fitting),
        Some(Err(unfit)) => Err(unfitting(index, &unfit)),
    }
}

fn unfitting(index: pg_sys::Oid, unfit: &Unfit) -> Error {
    let message = format!("cannot use {} as a TTL index", qualified_name(index));
    let is_column_type = unfit.is_column_type();
    let way = is_column_type.then_some(index).and_then(|index| {
        let (attno, _) = expiry_index::single_key(index)?;
        let relid = index::table_of(index)?;
        let name = catalog::column_name(relid, attno);
        let column = catalog::attribute(relid, &name)?;
        Some(time_source::way(relid, &name, column.type_oid, "'30 days'"))
    });
    Error::new(unfit.code, message)
        .detail(format!("It {}.", unfit.reason))
        .hint(way.unwrap_or_else(|| unfit.remedy.to_owned()))
}
