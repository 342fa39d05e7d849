//! What the index builder finds in the catalogs: what is left to do at a table (C21).

use crate::error::Result;
use crate::pg::abi::values;
use crate::pg::catalog::{self, qualified_name, quote_identifier, quote_literal};
use crate::pg::session::locks;
use crate::policy::{IndexMethod, Policy};
use crate::store::expiry_index;
use crate::store::missing_index;
use crate::store::{Clock, TablePolicy, cache, index_of, label_of, override_check, seclabel};
use crate::worker::queue::build_plan::{BuildStep, Statement};
use pgrx::pg_sys;
use std::rc::Rc;

/// The policy in force with its clock's columns, if it has any.
pub(in crate::worker) fn has_clock(relid: pg_sys::Oid) -> Option<(Rc<TablePolicy>, Clock)> {
    let policy = cache::policy(relid)?;
    let clock = policy.clock?;
    Some((policy, clock))
}

/// The next step at a table: none if it is gone, or the builder is not to touch it. Whatever has ended the builder in
/// the middle, it begins with what that left behind.
pub(in crate::worker) fn next_step(relid: pg_sys::Oid, validates: bool) -> Result<BuildStep> {
    // Others' changes of label and columns.
    catalog::forget_caches();
    let policy = label_of(relid).filter(|policy| !policy.restored);
    let in_force = has_clock(relid).filter(|(it, _)| it.labelled_table == relid);
    let (Some(policy), Some((_, clock))) = (policy, in_force) else {
        return Ok(BuildStep::Done);
    };
    let leaves = || {
        missing_index::leaves(relid).filter_map(|leaf| has_clock(leaf).map(|(_, it)| (leaf, it)))
    };
    for (leaf, clock) in leaves() {
        if let Some(&index) = missing_index::left_over(leaf, clock).first() {
            return Ok(BuildStep::Concurrently(drop_index(leaf, index)));
        }
    }
    if !policy.is_on() {
        return Ok(BuildStep::Done);
    }
    // With `auto` whatever has outgrown being read gets one, without anyone's call.
    let builds = policy.index != IndexMethod::None && policy.build_pending
        || policy.index == IndexMethod::Auto && missing_index::are_wanted(relid, &policy);
    if builds {
        for (leaf, clock) in leaves() {
            if let Some(definition) = missing_index::missing(leaf, &policy, clock) {
                let create = create_index(leaf, "CONCURRENTLY ", &definition);
                return Ok(BuildStep::Concurrently(create));
            }
        }
        if missing_index::may_join(relid)
            && let Some(definition) = missing_index::missing(relid, &policy, clock)
        {
            return Ok(BuildStep::Join(create_index(relid, "", &definition)));
        }
    }
    if validates
        && policy.build_pending
        && let Some(validate) = validation(relid, &policy)?
    {
        return Ok(BuildStep::Validate(validate));
    }
    Ok(match as_built(relid, &policy, clock) == policy {
        true => BuildStep::Done,
        false => BuildStep::Record,
    })
}

fn create_index(table: pg_sys::Oid, how: &str, definition: &str) -> Statement {
    Statement {
        table: table.to_u32(),
        text: format!(
            "CREATE INDEX {how}{} ON {} {}",
            quote_identifier(&missing_index::name_to_build(table)),
            qualified_name(table),
            definition
        ),
    }
}

fn drop_index(table: pg_sys::Oid, index: pg_sys::Oid) -> Statement {
    Statement {
        table: table.to_u32(),
        text: format!("DROP INDEX CONCURRENTLY {}", qualified_name(index)),
    }
}

/// The policy as it is once everything that is built is noted.
fn as_built(relid: pg_sys::Oid, policy: &Policy, clock: Clock) -> Policy {
    let mut built = policy.clone();
    built.build_pending = false;
    let names = &mut built.added.indexes;
    names.retain(|name| index_of(relid, name).is_some());
    for index in expiry_index::find(relid, &clock.ts, clock.ttl.as_ref()) {
        let name = catalog::relation_name(index);
        if missing_index::is_built_name(&name) && !names.contains(&name) {
            names.push(name);
        }
    }
    built
}

/// Writes to the label what is there now.
pub(in crate::worker) fn record(relid: pg_sys::Oid) -> Result<()> {
    locks::relation(relid, pg_sys::ShareUpdateExclusiveLock);
    // Otherwise the policy has changed meanwhile: the next step follows it.
    if next_step(relid, false)? == BuildStep::Record
        && let (Some(policy), Some((_, clock))) = (label_of(relid), has_clock(relid))
    {
        seclabel::set(relid, Some(&as_built(relid, &policy, clock)));
    }
    Ok(())
}

/// Validates the override's constraint, which was added without reading the table. Found by its
/// text, as it may have been renamed.
fn validation(relid: pg_sys::Oid, policy: &Policy) -> Result<Option<String>> {
    let Some(column) = &policy.ttl_column else {
        return Ok(None);
    };
    let query = format!(
        "SELECT conname::pg_catalog.text FROM pg_catalog.pg_constraint \
         WHERE conrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND contype OPERATOR(pg_catalog.=) 'c' \
           AND NOT convalidated \
           AND pg_catalog.pg_get_expr(conbin, conrelid) OPERATOR(pg_catalog.=) {} ORDER BY oid",
        relid.to_u32(),
        quote_literal(&override_check::shown(&quote_identifier(column)))
    );
    let mut names = values::texts::<1>(&query)?.into_iter();
    Ok(names.next().map(|[name]| name))
}
