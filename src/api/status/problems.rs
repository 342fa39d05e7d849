//! `ttl.problems`: what keeps a table's TTL from working.

use super::{
    cluster_figures, constraint_problems, deletion_problems, index_problems, library,
    parent_problems, trigger_problems,
};
use crate::api::policy::problem::{Problem, look_at_locks};
use crate::api::policy::{archive_to, cluster};
use crate::citus;
use crate::deletion::partition_bounds::{self, DateColumn};
use crate::error::Result;
use crate::pg::abi::values::Text;
use crate::pg::catalog::{self, roles, timescale};
use crate::pg::session::contained_errors;
use crate::policy::Policy;
use crate::store::stored_calls::is_generated_from;
use crate::store::{TablePolicy, cache, label_provider, read_label};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::rc::Rc;

/// A table's label, or why it cannot be read.
type Label = Option<Result<Rc<Policy>>>;

/// What is looked for together, and what is said if that look fails.
struct CheckGroup {
    find: fn(pg_sys::Oid, &Label) -> Vec<Problem>,
    cannot: &'static str,
    to_do: fn(pg_sys::Oid) -> String,
}

const OF_TABLE: CheckGroup = CheckGroup {
    find: of,
    cannot: "could not examine the table",
    to_do: look_at_locks,
};
/// Reads only catalogs and shared memory: this works even if the table cannot be opened.
const OF_DELETION: CheckGroup = CheckGroup {
    find: |rel, label| policy_of(label).map_or(vec![], |policy| deletion_problems::of(rel, policy)),
    ..OF_TABLE
};
const OF_NODES: CheckGroup = CheckGroup {
    find: |rel, label| policy_of(label).map_or(vec![], |_| cluster_figures::silent_nodes(rel)),
    cannot: "could not query the other nodes",
    to_do: |_| "SELECT * FROM ttl.placements;".to_owned(),
};
const OF_LIBRARY: CheckGroup = CheckGroup {
    find: |_, label| {
        let found = label.as_ref().and_then(|_| library::problem());
        found.into_iter().collect()
    },
    ..OF_TABLE
};

/// `ttl.problems(rel) RETURNS text[]`; empty if nothing is wrong or the relation has no TTL.
#[pg_extern(sql = false)]
fn problems(rel: pg_sys::Oid) -> Vec<Text> {
    let found = all(rel).into_iter();
    found.map(|problem| Text(problem.text)).collect()
}

/// Looks for all kinds in one subtransaction; if that fails, for each in one of its own: what fails hides nothing else.
pub(in crate::api) fn all(rel: pg_sys::Oid) -> Vec<Problem> {
    let groups = [OF_TABLE, OF_DELETION, OF_NODES, OF_LIBRARY];
    let find = |group: &CheckGroup| {
        let label = cache::own_label(rel).map(Ok);
        let label = label.or_else(|| Some(read_label(rel)?.map(Rc::new)));
        (group.find)(rel, &label)
    };
    let together = contained_errors::contain(|| groups.iter().flat_map(find).collect::<Vec<_>>());
    let mut found = together.unwrap_or_else(|_| {
        let alone = groups.iter().map(|group| {
            contained_errors::contain(|| find(group)).unwrap_or_else(|failure| {
                let text = format!("{}: {}", group.cannot, failure.text());
                vec![Problem::new(text).with_statement((group.to_do)(rel))]
            })
        });
        alone.flatten().collect()
    });
    found.dedup();
    found
}

/// What a statement that has changed a table can bring about in those with the policy, and what ends it: of owners, parents and archives.
/// `changed` is one of them. `None` if they cannot be looked for: a lock is held.
pub(in crate::api) fn by_statement(
    rel: pg_sys::Oid,
    changed: pg_sys::Oid,
) -> Option<Vec<(String, Option<String>)>> {
    let find = || {
        let own = cache::own_label(rel).filter(|policy| policy.is_on() && !policy.restored);
        let Some((policy, columns)) = own.zip(cache::policy(rel)) else {
            return vec![];
        };
        let mut problems: Vec<Problem> = overruled(rel, &columns).into_iter().collect();
        if columns.labelled_table == rel {
            problems.extend(parent_problems::of(rel, &policy, &columns));
            problems.extend(tables_of_others(rel, changed));
            problems.extend(archive_to::problems(rel, &policy));
        }
        problems
    };
    // This only decides on a warning: the statement must not fail by it.
    let found = contained_errors::contain(find).ok()?.into_iter();
    Some(found.map(|problem| (problem.text, problem.to_do)).collect())
}

fn policy_of(label: &Label) -> Option<&Policy> {
    label.as_ref()?.as_deref().ok()
}

fn of(rel: pg_sys::Oid, label: &Label) -> Vec<Problem> {
    let policy = match label {
        None => {
            return constraint_problems::without_policy(rel)
                .into_iter()
                .collect();
        }
        Some(Ok(policy)) => policy,
        Some(Err(error)) => {
            let text = format!(
                "the label cannot be read, so no row expires: {}{SET_ANEW}",
                error.text()
            );
            return vec![Problem::new(text).with_statement(remove_label(rel))];
        }
    };
    // The table was dropped meanwhile, or while the library was not loaded.
    if catalog::class(rel).is_none() {
        return vec![Problem::new("the table does not exist")];
    }
    if label_provider::check_columns(rel, policy).is_err() {
        let columns = policy.columns().collect::<Vec<_>>().join(", ");
        let text = format!(
            "a column is missing or of another type, so no row expires: {columns}{SET_ANEW}"
        );
        return vec![Problem::new(text).with_statement(remove_label(rel))];
    }
    let Some(columns) = cache::policy(rel) else {
        return vec![];
    };
    let mut problems: Vec<Problem> = overruled(rel, &columns).into_iter().collect();
    if policy.is_on() {
        problems.extend(of_citus(rel));
        problems.extend(in_columnstore(rel));
        if columns.labelled_table == rel {
            problems.extend(parent_problems::of(rel, policy, &columns));
            problems.extend(index_problems::unused_rules(rel, policy));
            problems.extend(children_of_others(rel));
            problems.extend(foreign_tables(rel));
            problems.extend(tables_of_others(rel, rel));
            problems.extend(half_detached(rel));
            problems.extend(guarded(rel, policy));
            problems.extend(idle_drop_partitions(rel, policy));
            problems.extend(index_problems::hidden_conditions(rel, policy));
            problems.extend(archive_to::problems(rel, policy));
        }
        if columns.needs_clock() {
            problems.extend(index_problems::missing_indexes(rel, policy, &columns));
            if columns.labelled_table == rel {
                problems.extend(constraint_problems::of(rel, policy, &columns));
            }
        }
        if columns.labelled_table == rel && policy.hidden {
            problems.extend(trigger_problems::of(rel, policy));
        }
    }
    if let (Some(document), Some(ttl)) = (
        &policy.document_column,
        columns.clock.and_then(|clock| clock.ttl),
    ) && !(ttl.generated && is_generated_from(rel, ttl.attno, document))
    {
        problems.push(Problem::new(format!(
            "column {} is not generated from {document}: what documents say does not count",
            policy.ttl_column.as_deref().unwrap_or_default()
        )));
    }
    if columns.clock.is_some_and(|clock| !clock.ts.has_default) {
        let column = policy.ts_column.as_deref().unwrap_or_default();
        let text =
            format!("column {column} has no default, so COPY without the column cannot set it");
        let table = catalog::qualified_name(rel);
        let column = catalog::quote_identifier(column);
        problems.push(Problem::new(text).with_statement(format!(
            "ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT ttl.current_ts();"
        )));
    }
    problems
}

/// What follows the removal of a label.
const SET_ANEW: &str = "; without the label, ttl.enable() or ttl.expire_after() sets it anew";

fn remove_label(relid: pg_sys::Oid) -> String {
    let table = catalog::qualified_name(relid);
    format!("SECURITY LABEL FOR ttl ON TABLE {table} IS NULL;")
}

/// A table that inherits from this one and from another with a policy follows that of its first parent.
fn children_of_others(relid: pg_sys::Oid) -> Option<Problem> {
    let other = |&child: &pg_sys::Oid| cache::labelled_table(child).filter(|&it| it != relid);
    let mut children = catalog::all_inheritors(relid).into_iter();
    let (child, other) = children.find_map(|child| Some((child, other(&child)?)))?;
    let (child, other) = (
        catalog::qualified_name(child),
        catalog::qualified_name(other),
    );
    Some(
        Problem::new(format!(
            "rows of {child} do not follow this time to live, but that of {other}, its first parent"
        ))
        .with_statement(format!("ALTER TABLE {child} NO INHERIT {other};")),
    )
}

/// The policy was restored: deletion waits for `ttl.resume`.
fn guarded(relid: pg_sys::Oid, policy: &Policy) -> Option<Problem> {
    policy.restored.then(|| {
        let table = catalog::quote_literal(&catalog::qualified_name(relid));
        let why = match policy.handed_over {
            true => "its table, or one that its deletion reaches, has belonged to another owner",
            false => "restored from a dump, labelled by hand, or older than the extension",
        };
        let text = format!("nothing is deleted: {why}; SELECT ttl.resume({table}) starts deletion");
        let first = match policy.handed_over {
            true => {
                "/* Look at triggers and indexes of these tables first, whose code runs then: */ "
            }
            false => "",
        };
        Problem::new(text).with_statement(format!("{first}SELECT ttl.resume({table});"))
    })
}

/// M11: `drop_partitions` is set, but no partition can ever be dropped.
fn idle_drop_partitions(relid: pg_sys::Oid, policy: &Policy) -> Option<Problem> {
    let in_force = cache::policy(relid).filter(|_| policy.drop_partitions)?;
    let default = policy
        .ts_column
        .as_deref()
        .filter(|_| in_force.expiring_default().is_some())
        .map(DateColumn::of_clock);
    let rules = in_force.rules.iter();
    let rules = rules.filter_map(|rule| DateColumn::of_rule(rule, relid));
    let columns: Vec<DateColumn> = default.into_iter().chain(rules).collect();
    if columns
        .iter()
        .any(|column| partition_bounds::has_range_level(relid, column))
    {
        return None;
    }
    let reason = if columns.is_empty() {
        "the table has no default, nor a TTL index that holds all rows".to_owned()
    } else {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        format!(
            "no level is partitioned by RANGE ({})",
            names.join(") or (")
        )
    };
    let table = catalog::quote_literal(&catalog::qualified_name(relid));
    Some(
        Problem::new(format!("drop_partitions has no effect: {reason}")).with_statement(format!(
            "SELECT ttl.set_option({table}, 'drop_partitions', 'false');"
        )),
    )
}

/// Foreign tables among the partitions and children.
fn foreign_tables(relid: pg_sys::Oid) -> Vec<Problem> {
    let is_foreign = |table: &pg_sys::Oid| {
        catalog::class(*table).is_some_and(|class| class.relkind == pg_sys::RELKIND_FOREIGN_TABLE)
    };
    catalog::all_inheritors(relid)
        .into_iter()
        .filter(is_foreign)
        .map(|table| {
            let name = catalog::qualified_name(table);
            Problem::new(format!(
                "expired rows of foreign table {name} are never deleted: delete them on the server that has them"
            ))
        })
        .collect()
}

/// Partitions and children of owners whom the owners of the tables above could not become; from `first` on downwards.
fn tables_of_others(relid: pg_sys::Oid, first: pg_sys::Oid) -> Vec<Problem> {
    let tables = catalog::all_inheritors(first).into_iter();
    let owner = |relid| catalog::owner(relid).unwrap_or(pg_sys::InvalidOid);
    let problem = |table| {
        let above = catalog::cascade::others_above(relid, table)
            .into_iter()
            .next()?;
        let (name, of_table) = (catalog::qualified_name(table), roles::name(owner(table)));
        let (place, of_above) = (catalog::qualified_name(above), roles::name(owner(above)));
        let reason = match above == relid {
            true => format!("the table belongs to {of_table}, and not to {of_above}"),
            false => format!(
                "it is a partition of {place}, whose triggers and indexes run code as {of_table}, and which belongs to {of_above}"
            ),
        };
        // Which of the two gets the other's rows is not to be proposed.
        Some(Problem::new(format!(
            "expired rows of {name} are not deleted, because {reason}: give both the same owner"
        )))
    };
    tables.filter_map(problem).collect()
}

/// Partitions whose DETACH CONCURRENTLY has not come to its end.
fn half_detached(relid: pg_sys::Oid) -> Vec<Problem> {
    let parents = catalog::all_inheritors(relid).into_iter();
    let pairs = parents.flat_map(|parent| {
        let parts = catalog::being_detached(parent).into_iter();
        parts.map(move |part| {
            (
                parent,
                catalog::qualified_name(parent),
                catalog::qualified_name(part),
            )
        })
    });
    pairs
        .map(|(relid, parent, part)| {
            let statement = format!("ALTER TABLE {parent} DETACH PARTITION {part} FINALIZE");
            let text = format!(
                "expired rows of {part} are not deleted until it is detached: if no session is at that, \
                 {statement}"
            );
            Problem::new(text).with_statement_of_owner(relid, statement + ";")
        })
        .collect()
}

/// C35: a table of Citus that cannot have a time to live.
fn of_citus(relid: pg_sys::Oid) -> Option<Problem> {
    citus::part(relid)?;
    let failure = cluster::check(relid).err()?;
    Some(Problem::new(format!("not supported: {}", failure.text())))
}

/// A hypertable of TimescaleDB that has got a columnstore since.
fn in_columnstore(relid: pg_sys::Oid) -> Option<Problem> {
    let table = catalog::qualified_name(relid);
    timescale::has_columnstore(relid).then(|| {
        let text = format!(
            "expired rows in the columnstore of {table} are not deleted, and their keys are not free: \
             convert its chunks to rowstore, then turn the table's option timescaledb.enable_columnstore off"
        );
        Problem::new(text)
    })
}

/// An ancestor's label overrules the table's.
fn overruled(relid: pg_sys::Oid, columns: &TablePolicy) -> Option<Problem> {
    (columns.labelled_table != relid).then(|| {
        let labelled_table = catalog::qualified_name(columns.labelled_table);
        let text = format!(
            "not in effect: {labelled_table} has its own time to live, which holds for this table"
        );
        Problem::new(text).with_statement(remove_label(relid))
    })
}
