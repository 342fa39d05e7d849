//! `ttl.problems`: indexes for deletion that are missing, and TTL indexes by which no row expires.

use super::disclosure::shows_errors;
use super::rules;
use super::table_state::need;
use crate::api::policy::expire_index::{how_to_validate, reindex};
use crate::api::policy::problem::Problem;
use crate::pg::catalog::{self, roles, timescale};
use crate::policy::{IndexRule, Policy};
use crate::settings;
use crate::store::missing_index::missing;
use crate::store::time_zone::TimeZone;
use crate::store::ttl_index::TtlIndex;
use crate::store::{TablePolicy, index_of, predicate, ttl_index, without_its_index};
use crate::worker::builder::{self, BuildNeed, BuildState};
use pgrx::pg_sys;

/// Indexes for deletion that the table is to have (C11).
pub(super) fn missing_indexes(
    relid: pg_sys::Oid,
    policy: &Policy,
    columns: &TablePolicy,
) -> Option<Problem> {
    let clock = columns.clock?;
    let need = need(relid, policy);
    // The table is read instead: as its owner wants, or since that takes little.
    if matches!(need, BuildNeed::None | BuildNeed::Never | BuildNeed::Later) {
        return None;
    }
    let effect = if policy.build_pending {
        waits_for_builder(relid)
    } else {
        "deletion reads the table".to_owned()
    };
    let problem = |definition: String| {
        let text = format!("no valid index on {definition}: {effect}");
        match need == BuildNeed::Pending && settings::build_indexes() {
            // A background process is at it, or tries again.
            true => Problem::new(text).with_statement(while_built(relid)),
            false => Problem::new(text).with_statement(create_index(relid, &definition)),
        }
    };
    missing(relid, policy, clock).map(problem)
}

/// What to do while a background process is to build an index.
fn while_built(relid: pg_sys::Oid) -> String {
    match catalog::class(relid) {
        Some(class) if !roles::may_create_in_schema(class.namespace, class.owner) => {
            let schema = catalog::schema_name(class.namespace);
            let owner = catalog::quote_identifier(&roles::name(class.owner));
            format!("GRANT CREATE ON SCHEMA {schema} TO {owner};")
        }
        _ => "SELECT * FROM pg_stat_progress_create_index;".to_owned(),
    }
}

/// The statement that builds an index, without locking writers out where PostgreSQL can do that.
fn create_index(relid: pg_sys::Oid, definition: &str) -> String {
    let is_partitioned = catalog::class(relid)
        .is_some_and(|class| class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE);
    let how = match is_partitioned || timescale::is_hypertable(relid) {
        true => "",
        false => " CONCURRENTLY",
    };
    let table = catalog::qualified_name(relid);
    format!("CREATE INDEX{how} ON {table} {definition};")
}

/// C21: what deletion waits for.
fn waits_for_builder(relid: pg_sys::Oid) -> String {
    let why = match builder::standing(relid) {
        _ if !settings::build_indexes() => {
            "which is not built while ttl.build_indexes is off".to_owned()
        }
        BuildState::Building => "which is being built".to_owned(),
        BuildState::Waiting => "which is to be built".to_owned(),
        BuildState::Failed(error) if shows_errors(relid) => {
            format!("whose building fails: {error}")
        }
        BuildState::Failed(_) => "whose building fails: its owner sees why".to_owned(),
    };
    format!("deletion waits for one, {why}")
}

/// M13: a time zone that the server does not know.
fn unknown_zone(rule: &IndexRule, found: &TtlIndex) -> Option<String> {
    let zone = rule.time_zone.as_deref()?;
    let is_unknown = found.date.is_local() && TimeZone::named(zone).is_none();
    is_unknown.then(|| format!("this server has no time zone \"{zone}\""))
}

/// M14: a table that inherits and lacks the index of an expression, and the statement that builds it.
fn unindexed_child(
    relid: pg_sys::Oid,
    index: pg_sys::Oid,
    found: &TtlIndex,
) -> Option<(String, Option<String>)> {
    let child = without_its_index(relid, found)?;
    let create = predicate::written_key(index).ok();
    let create = create.map(|key| create_index(child, &format!("(({key}))")));
    let child = catalog::qualified_name(child);
    let reason = format!(
        "table {child}, which inherits from the table, has no index on the same expression"
    );
    Some((reason, create))
}

/// M8: TTL indexes by which no row expires.
pub(super) fn unused_rules(relid: pg_sys::Oid, policy: &Policy) -> Vec<Problem> {
    let problem = |rule: &IndexRule| {
        let name = catalog::quote_identifier(&rule.index);
        let (reason, to_do) = match index_of(relid, &rule.index) {
            None => (format!("there is no index {name}"), None),
            Some(index) => match ttl_index::read(index)? {
                Ok(found) if found.is_valid => match unknown_zone(rule, &found) {
                    Some(reason) => (reason, None),
                    None => unindexed_child(relid, index, &found)?,
                },
                Ok(_) => {
                    let how = how_to_validate(index);
                    let reason =
                        format!("index {name} is not valid. {}", how.trim_end_matches('.'));
                    (reason, reindex(index).map(|statement| statement + ";"))
                }
                Err(unfit) => (format!("index {name} {}", unfit.reason), None),
            },
        };
        let text = format!("no row expires by a TTL index: {reason}");
        Some(Problem::new(text).with_statements(to_do))
    };
    policy.rules.iter().filter_map(problem).collect()
}

/// TTL indexes whose conditions `ttl_internal.rules` cannot show now.
pub(super) fn hidden_conditions(relid: pg_sys::Oid, policy: &Policy) -> Vec<Problem> {
    let problem = |rule: &IndexRule| {
        let failure = rules::condition(index_of(relid, &rule.index)?)?.err()?;
        let name = catalog::quote_identifier(&rule.index);
        Some(Problem::new(format!(
            "the condition of TTL index {name} cannot be shown: {}",
            failure.text()
        )))
    };
    policy.rules.iter().filter_map(problem).collect()
}
