//! TTL indexes that come into force, or go out of it, by a statement about another table or index: an index becomes valid, or a
//! table that inherits gets, or lacks, one on the same expression (M8, M14). Neither happens in silence: rows that expire by it
//! are deleted after `ttl.change_delay`, as after a change of the policy (C24).

use super::statement_kind::StatementKind;
use super::utility_statement::UtilityStatement;
use crate::citus;
use crate::error::Error;
use crate::pg::catalog::{self, index};
use crate::pg::session::xact;
use crate::policy::IndexRule;
use crate::store::{
    cache, index_of, labels, predicate, seclabel, succession, ttl_index, without_its_index,
};
use pgrx::pg_sys;

/// The rules of a policy that are in force before a statement, by their indexes: a statement may rename one, or put another in
/// its place.
pub(super) struct RulesBefore {
    family: pg_sys::Oid,
    /// The statement is about a table that inherits: what is known of those above depends on its indexes.
    is_of_child: bool,
    in_force: Vec<(Option<pg_sys::Oid>, String)>,
}

/// Those of the tables that the statement is about.
pub(super) fn before(statement: &UtilityStatement<'_>) -> Vec<RulesBefore> {
    let concerns = matches!(
        statement.kind,
        StatementKind::CreateIndex { .. }
            | StatementKind::Reindex
            | StatementKind::DropIndex
            | StatementKind::AlterTable
            | StatementKind::AlterOther
    );
    if !concerns || citus::is_of_citus() {
        return vec![];
    }
    let of_indexes = statement.indexes.iter().copied();
    let tables = of_indexes
        .filter_map(index::table_of)
        .chain(statement.table);
    let mut families: Vec<_> = tables.filter_map(cache::labelled_table).collect();
    if statement.kind == StatementKind::Reindex && statement.relation.is_none() {
        // Of a schema, or the database.
        families.extend(labels().into_iter().map(|(relid, _)| relid));
    }
    families.sort_unstable_by_key(|family| family.to_u32());
    families.dedup();
    let child = statement.table.and_then(catalog::class);
    let inherits = child.is_some_and(|class| !class.is_partition);
    let families = families.into_iter();
    families
        .filter_map(|family| of_family(family, inherits && statement.table != Some(family)))
        .collect()
}

/// Those of the family of a table that is about to be dropped, and inherits from it.
pub(super) fn before_drop(relid: pg_sys::Oid) -> Option<RulesBefore> {
    let family = cache::labelled_table(relid).filter(|&family| family != relid)?;
    let inherits = catalog::class(relid).is_some_and(|class| !class.is_partition);
    inherits.then(|| of_family(family, true)).flatten()
}

fn of_family(family: pg_sys::Oid, is_of_child: bool) -> Option<RulesBefore> {
    let label = cache::own_label(family);
    label.filter(|label| label.is_on() && !label.rules.is_empty())?;
    Some(RulesBefore {
        family,
        is_of_child,
        in_force: in_force(family),
    })
}

fn in_force(family: pg_sys::Oid) -> Vec<(Option<pg_sys::Oid>, String)> {
    let policy = cache::policy(family).filter(|policy| policy.labelled_table == family);
    policy.map_or(vec![], |policy| {
        let rules = policy.rules.iter();
        let named = rules.map(|rule| (index_of(family, &rule.index), rule.index.clone()));
        named.collect()
    })
}

/// After the statement.
pub(super) fn after(noted: &[RulesBefore]) {
    if noted.is_empty() {
        return;
    }
    xact::next_command();
    // CREATE INDEX CONCURRENTLY and others leave no snapshot.
    xact::with_snapshot(|| {
        let of_children = noted.iter().filter(|before| before.is_of_child);
        of_children.for_each(|before| seclabel::invalidate(before.family));
        xact::next_command();
        noted.iter().for_each(compare);
    });
}

fn compare(before: &RulesBefore) {
    let Some(label) = cache::own_label(before.family) else {
        return;
    };
    let present = in_force(before.family);
    for rule in &label.rules {
        let index = index_of(before.family, &rule.index);
        let is_it = |(oid, name): &(Option<pg_sys::Oid>, String)| {
            *name == rule.index || oid.is_some() && *oid == index
        };
        match (before.in_force.iter().any(is_it), present.iter().any(is_it)) {
            (true, false) => warn_of_end(before.family, rule),
            // What is restored waits for `ttl.resume` anyway.
            (false, true) if !label.restored => begins(before.family, rule),
            _ => {}
        }
    }
}

/// Of a table that has come to a family: warns of TTL indexes that are out of force by it.
pub(super) fn warn_of_child(relid: pg_sys::Oid) {
    let family = cache::labelled_table(relid).filter(|&family| family != relid);
    let Some((family, label)) = family.and_then(|it| Some((it, cache::own_label(it)?))) else {
        return;
    };
    let rules = label.rules.iter().filter(|_| label.is_on());
    rules.for_each(|rule| warn_of_end(family, rule));
}

/// Warns of a rule that is out of force for want of a child's index; whatever else has ended it has been said or refused.
fn warn_of_end(family: pg_sys::Oid, rule: &IndexRule) {
    let index = index_of(family, &rule.index);
    let found = index.and_then(|index| Some((index, ttl_index::read(index)?.ok()?)));
    let Some((index, found)) = found else { return };
    let Some(child) = without_its_index(family, &found) else {
        return;
    };
    let (family, child) = (
        catalog::qualified_name(family),
        catalog::qualified_name(child),
    );
    let shown = catalog::quote_identifier(&rule.index);
    let warning = Error::for_warning(format!(
        "no row of table {family} expires by TTL index {shown} from now on"
    ))
    .detail(format!(
        "Table {child}, which inherits from it, has no index on the same expression, so that the expression may raise an error for its rows."
    ));
    match predicate::written_key(index) {
        Ok(key) => warning
            .hint(format!(
                "Rows expire again after: CREATE INDEX ON {child} (({key}));"
            ))
            .warn(),
        Err(_) => warning.warn(),
    }
}

/// The rows that are expired by a rule that comes into force are hidden now, and deleted later.
fn begins(family: pg_sys::Oid, rule: &IndexRule) {
    succession::delay(family);
    Error::for_warning(format!(
        "rows of table {} expire by TTL index {} from now on",
        catalog::qualified_name(family),
        catalog::quote_identifier(&rule.index)
    ))
    .detail(format!(
        "Until now it was not in force. Rows that are expired by it {}.",
        succession::fate(false)
    ))
    .warn();
}
