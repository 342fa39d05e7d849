//! `ttl.problems`: what keeps a table's TTL from working.

use super::columns::is_generated_from;
use super::disclosure::shows_errors;
use super::ttl_index::how_to_validate;
use super::{
    archive, cluster, constraint_problems, deletion_problems, library, rules, trigger_problems,
};
use crate::citus;
use crate::deletion::bounds::{self, DateColumn};
use crate::pg::values::Text;
use crate::pg::{catalog, look, timescale};
use crate::policy::{IndexMethod, IndexRule, Policy};
use crate::settings;
use crate::store::dates::DateKind;
use crate::store::missing_index::{MissingIndex, missing};
use crate::store::time_zone::TimeZone;
use crate::store::ttl_index::TtlIndex;
use crate::store::{
    TablePolicy, cache, index_of, label_provider, read_label, ttl_index, without_its_index,
};
use crate::worker::builder::{self, Standing};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.problems(rel) RETURNS text[]`; empty if nothing is wrong or the relation has no TTL.
#[pg_extern(sql = false)]
fn problems(rel: pg_sys::Oid) -> Vec<Text> {
    let mut found = look::at(|| of(rel)).unwrap_or_else(|failure| {
        vec![format!("the table cannot be looked at: {}", failure.text())]
    });
    // Separate from the checks above: these read only catalogs and shared memory, so they work even
    // if the table cannot be opened.
    found.extend(look::at(|| deletion_problems::of(rel)).unwrap_or_default());
    let versions = look::at(|| read_label(rel).and_then(|_| library::problem()));
    found.extend(versions.ok().flatten());
    found.into_iter().map(Text).collect()
}

fn of(rel: pg_sys::Oid) -> Vec<String> {
    let policy = match read_label(rel) {
        None => {
            return constraint_problems::without_policy(rel)
                .into_iter()
                .collect();
        }
        Some(Ok(policy)) => policy,
        Some(Err(error)) => {
            return vec![format!(
                "the label cannot be read, so no row expires: {error}"
            )];
        }
    };
    // The table was dropped meanwhile, or while the library was not loaded.
    if catalog::class(rel).is_none() {
        return vec!["the table does not exist".to_owned()];
    }
    if label_provider::check_columns(rel, &policy).is_err() {
        let columns = policy.columns().collect::<Vec<_>>().join(", ");
        return vec![format!(
            "a column is missing or of another type, so no row expires: {columns}"
        )];
    }
    let Some(columns) = cache::policy(rel) else {
        return vec![];
    };
    let mut problems = overruled(rel, &columns);
    if policy.is_on() {
        problems.extend(of_citus(rel));
        problems.extend(in_columnstore(rel));
        if columns.labelled_table == rel {
            problems.extend(unused_rules(rel, &policy));
            problems.extend(foreign_tables(rel));
            problems.extend(half_detached(rel));
            problems.extend(guarded(rel, &policy));
            problems.extend(idle_drop_partitions(rel, &policy));
            problems.extend(hidden_conditions(rel, &policy));
            problems.extend(archive::problems(rel, &policy));
        }
        if columns.needs_clock() {
            problems.extend(missing_indexes(rel, &policy, &columns));
            if columns.labelled_table == rel {
                problems.extend(constraint_problems::of(rel, &policy, &columns));
            }
        }
        if columns.labelled_table == rel && columns.hidden {
            problems.extend(trigger_problems::of(rel, &policy));
        }
    }
    if let (Some(document), Some(ttl)) = (
        &policy.document_column,
        columns.clock.and_then(|clock| clock.ttl),
    ) && !(ttl.generated && is_generated_from(rel, ttl.attno, document))
    {
        problems.push(format!(
            "column {} is not generated from {document}: what documents say does not count",
            policy.ttl_column.as_deref().unwrap_or_default()
        ));
    }
    if columns.clock.is_some_and(|clock| !clock.ts.has_default) {
        problems.push(format!(
            "column {} has no default: COPY without it cannot stamp rows",
            policy.ts_column.as_deref().unwrap_or_default()
        ));
    }
    problems
}

/// The policy was restored: deletion waits for `ttl.resume`.
fn guarded(relid: pg_sys::Oid, policy: &Policy) -> Option<String> {
    policy.is_restored(relid.to_u32()).then(|| {
        let table = catalog::quote_literal(&catalog::qualified_name(relid));
        format!(
            "nothing is deleted: restored from a dump, or labelled by hand; \
             SELECT ttl.resume({table}) starts deletion"
        )
    })
}

/// M11: `drop_partitions` is set, but no partition can ever be dropped.
fn idle_drop_partitions(relid: pg_sys::Oid, policy: &Policy) -> Option<String> {
    let in_force = cache::policy(relid).filter(|_| policy.drop_partitions)?;
    let default = policy
        .ts_column
        .as_deref()
        .filter(|_| in_force.expiring_default().is_some())
        .map(|name| DateColumn {
            name,
            kind: DateKind::Timestamptz,
        });
    let rules = in_force.rules.iter().filter_map(|rule| {
        Some(DateColumn {
            name: rule.column_of_all_rows()?,
            kind: rule.date.kind,
        })
    });
    let columns: Vec<DateColumn<'_>> = default.into_iter().chain(rules).collect();
    if columns
        .iter()
        .any(|&column| bounds::has_range_level(relid, column))
    {
        return None;
    }
    let reason = if columns.is_empty() {
        "the table has no default, nor a TTL index that holds all rows".to_owned()
    } else {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        format!(
            "no level is partitioned by RANGE ({})",
            names.join(") or (")
        )
    };
    Some(format!("drop_partitions has no effect: {reason}"))
}

fn missing_indexes(relid: pg_sys::Oid, policy: &Policy, columns: &TablePolicy) -> Vec<String> {
    let Some(clock) = columns.clock else {
        return vec![];
    };
    let choice = match policy.index {
        IndexMethod::None => " (index => 'none')",
        _ => "",
    };
    let effect = if policy.build_pending {
        waits_for_builder(relid)
    } else {
        "deletion reads the whole table".to_owned()
    };
    let problem = |index: MissingIndex| {
        let definition = index.definition.replace("OPERATOR(pg_catalog.>)", ">");
        format!("no valid index on {definition}{choice}: {effect}")
    };
    let missing = missing(relid, policy, columns, clock).into_iter();
    missing.map(problem).collect()
}

/// C21: what deletion waits for.
fn waits_for_builder(relid: pg_sys::Oid) -> String {
    let why = match builder::standing(relid) {
        _ if !settings::build_indexes() => {
            "which is not built while ttl.build_indexes is off".to_owned()
        }
        Standing::Building => "which is being built".to_owned(),
        Standing::Waiting => "which is to be built".to_owned(),
        Standing::Failed(error) if shows_errors(relid) => format!("whose building fails: {error}"),
        Standing::Failed(_) => "whose building fails: its owner sees why".to_owned(),
    };
    format!("deletion waits for one, {why}")
}

/// M13: a time zone that the server does not know.
fn unknown_zone(rule: &IndexRule, found: &TtlIndex) -> Option<String> {
    let zone = rule.time_zone.as_deref()?;
    let is_unknown = found.date.is_local() && TimeZone::named(zone).is_none();
    is_unknown.then(|| format!("this server has no time zone \"{zone}\""))
}

/// M14: a table that inherits and lacks the index of an expression.
fn unindexed_child(relid: pg_sys::Oid, found: &TtlIndex) -> Option<String> {
    let child = catalog::qualified_name(without_its_index(relid, found)?);
    Some(format!(
        "table {child}, which inherits from the table, has no index on the same expression"
    ))
}

/// M8: TTL indexes by which no row expires.
fn unused_rules(relid: pg_sys::Oid, policy: &Policy) -> Vec<String> {
    let problem = |rule: &IndexRule| {
        let name = catalog::quote_identifier(&rule.index);
        let reason = match index_of(relid, &rule.index) {
            None => format!("there is no index {name}"),
            Some(index) => match ttl_index::read(index)? {
                Ok(found) if found.is_valid => {
                    unknown_zone(rule, &found).or_else(|| unindexed_child(relid, &found))?
                }
                Ok(_) => {
                    let how = how_to_validate(index);
                    format!("index {name} is not valid. {}", how.trim_end_matches('.'))
                }
                Err(unfit) => format!("index {name} {}", unfit.reason()),
            },
        };
        Some(format!("no row expires by a TTL index: {reason}"))
    };
    policy.rules.iter().filter_map(problem).collect()
}

/// TTL indexes whose conditions `ttl.rules` cannot show now.
fn hidden_conditions(relid: pg_sys::Oid, policy: &Policy) -> Vec<String> {
    let problem = |rule: &IndexRule| {
        let failure = rules::condition(index_of(relid, &rule.index)?)?.err()?;
        let name = catalog::quote_identifier(&rule.index);
        Some(format!(
            "the condition of TTL index {name} cannot be shown: {}",
            failure.text()
        ))
    };
    policy.rules.iter().filter_map(problem).collect()
}

/// Foreign tables among the partitions and children.
fn foreign_tables(relid: pg_sys::Oid) -> Vec<String> {
    let is_foreign = |table: &pg_sys::Oid| {
        catalog::class(*table).is_some_and(|class| class.relkind == pg_sys::RELKIND_FOREIGN_TABLE)
    };
    catalog::all_inheritors(relid)
        .into_iter()
        .filter(is_foreign)
        .map(|table| {
            let name = catalog::qualified_name(table);
            format!("expired rows of foreign table {name} are hidden, and never deleted")
        })
        .collect()
}

/// Partitions whose DETACH CONCURRENTLY has not come to its end.
fn half_detached(relid: pg_sys::Oid) -> Vec<String> {
    let parents = catalog::all_inheritors(relid).into_iter();
    let pairs = parents.flat_map(|parent| {
        let parts = catalog::being_detached(parent).into_iter();
        parts.map(move |part| {
            (
                catalog::qualified_name(parent),
                catalog::qualified_name(part),
            )
        })
    });
    pairs
        .map(|(parent, part)| {
            format!(
                "expired rows of {part} are hidden, and not deleted, until it is detached: if no session is at that, \
                 ALTER TABLE {parent} DETACH PARTITION {part} FINALIZE"
            )
        })
        .collect()
}

/// C35: a table of Citus that cannot have a time to live.
fn of_citus(relid: pg_sys::Oid) -> Option<String> {
    citus::part(relid)?;
    let failure = cluster::check(relid).err()?;
    Some(format!("not supported: {}", failure.text()))
}

/// A hypertable of TimescaleDB that has got a columnstore since.
fn in_columnstore(relid: pg_sys::Oid) -> Option<String> {
    let table = catalog::qualified_name(relid);
    timescale::has_columnstore(relid).then(|| {
        format!(
            "expired rows in the columnstore of {table} are hidden, but not deleted, and their keys are not free: \
             convert its chunks to rowstore, then turn the table's option timescaledb.enable_columnstore off"
        )
    })
}

/// An ancestor's label overrules the table's, or rows can be written through a parent without TTL.
fn overruled(relid: pg_sys::Oid, columns: &TablePolicy) -> Vec<String> {
    if columns.labelled_table != relid {
        let labelled_table = catalog::qualified_name(columns.labelled_table);
        return vec![format!("overruled by the time to live of {labelled_table}")];
    }
    let is_partition = catalog::class(relid).is_some_and(|class| class.is_partition);
    catalog::parents(relid, is_partition)
        .into_iter()
        .map(|parent| {
            let parent = catalog::qualified_name(parent);
            format!("no INSERT or UPDATE through {parent}, which has no time to live itself")
        })
        .collect()
}
