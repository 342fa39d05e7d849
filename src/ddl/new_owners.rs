//! A table that gets another owner keeps what its former owner has left on it: triggers, and expressions of indexes,
//! constraints and defaults. The worker would run that as the new owner. So deletion that reaches the table waits for
//! `ttl.resume` (docs/decisions/0070-what-waits.md).
//!
//! The present owner alone does not tell: a table that was given away and came back belongs to the role that it belonged to.

use super::noted::{Altered, NOTED};
use crate::citus;
use crate::deletion::archive_check;
use crate::error::Error;
use crate::keys::restoring;
use crate::pg::catalog::{self, constraints, roles};
use crate::store::{cache, label_of, labels, policy_lock, seclabel};
use pgrx::pg_sys;
use std::collections::{HashMap, HashSet};

/// Notes the owner of a table that was altered, which the catalog's look-ups still find as it was before.
pub(super) fn note(relid: pg_sys::Oid) {
    const TABLES: [u8; 3] = [
        pg_sys::RELKIND_RELATION,
        pg_sys::RELKIND_PARTITIONED_TABLE,
        pg_sys::RELKIND_FOREIGN_TABLE,
    ];
    let Some(class) = catalog::class(relid).filter(|class| TABLES.contains(&class.relkind)) else {
        return;
    };
    let altered = Altered {
        relid,
        former: class.owner,
    };
    NOTED.change(|noted| {
        if noted.altered.last() != Some(&altered) {
            noted.altered.push(altered);
        }
    });
}

/// After the statement: deletion waits that would run, as the new owner of a table, what a former one has left who could not
/// act as that role. What belongs to none of the owners of a policy's tables is not run; then the policy notes that, for the
/// time when the table, or one of the policy's, comes to one of them.
pub(super) fn hold(mut changed: Vec<Altered>) {
    changed.retain(|it| catalog::class(it.relid).is_some_and(|class| class.owner != it.former));
    // The node from which the statement came holds the policy for all.
    if changed.is_empty() || citus::is_of_citus() {
        return;
    }
    let archives = archives();
    let mut run_as = OwnersBelow::new();
    for altered in &changed {
        pgrx::check_for_interrupts!();
        for policy in reaching(altered.relid, &archives) {
            hold_if_handed_over(altered, policy, &mut run_as);
        }
    }
}

/// By policy, and whether the policy was locked when they were looked up.
type OwnersBelow = HashMap<(pg_sys::Oid, bool), HashSet<pg_sys::Oid>>;

/// As whom rows are deleted by the policy of this table: a partition or child has a worker of its own owner's, or none.
fn owners_below(policy: pg_sys::Oid) -> HashSet<pg_sys::Oid> {
    let tables = catalog::all_inheritors(policy).into_iter();
    let served = tables.filter(|&table| catalog::cascade::may_act_below(policy, table));
    served.filter_map(catalog::owner).collect()
}

/// The table is reached by deletion from the one with this policy, or from those below it, which is run as these roles.
fn hold_if_handed_over(
    &Altered { relid, former }: &Altered,
    policy: pg_sys::Oid,
    run_as: &mut OwnersBelow,
) {
    let Some(new) = catalog::owner(relid) else {
        return;
    };
    let gains = |role: pg_sys::Oid| !roles::could_act_as(former, role);
    // Another session may hand over what this one does not see yet. No user can have a policy of others locked so.
    let is_locked = relid == policy || gains(new);
    if is_locked {
        policy_lock::lock_policy_for_change(policy);
    }
    let Some(label) = label_of(policy) else {
        return;
    };
    let run_as = run_as.entry((policy, is_locked));
    let run_as = run_as.or_insert_with(|| owners_below(policy));
    // What belongs to others no worker runs.
    let is_run_as = |role: &pg_sys::Oid| roles::has_rights_of(new, *role);
    let own: Vec<_> = run_as.iter().copied().filter(is_run_as).collect();
    let is_own = !own.is_empty();
    // What was noted may be of the table that comes to its owner now, over a role that could act as that one.
    if is_own && (own.into_iter().any(gains) || label.reaches_handed_over) {
        // A table's own label says so by now, by its owner's change. It is written all the same: it says so, too, when the table
        // has come back.
        let was_served = relid == policy && label.was_stored_for(former.to_u32());
        if was_served {
            seclabel::set(policy, Some(&label));
        }
        if (restoring::hold(policy, true) || was_served) && label.is_on() {
            waits(policy, relid, former).warn();
        }
    } else if !is_own && gains(new) && !label.reaches_handed_over {
        let mut label = label;
        label.reaches_handed_over = true;
        seclabel::set(policy, Some(&label));
    } else if relid == policy && !label.restored {
        // It is stored for the new owner: whether the former one could act as that role is decided now, and not asked again when
        // roles have changed.
        seclabel::set(policy, Some(&label));
    }
}

/// The tables with a policy by which rows are deleted from the table, rows that it refers to, or rows that go there.
fn reaching(relid: pg_sys::Oid, archives: &[(pg_sys::Oid, pg_sys::Oid)]) -> Vec<pg_sys::Oid> {
    let mut found: Vec<pg_sys::Oid> = archives
        .iter()
        .filter(|(_, archive)| archive_check::family(*archive).contains(&relid))
        .map(|(policy, _)| *policy)
        .collect();
    // Triggers and indexes of a partitioned table are those of its partitions, too, which may have a policy of their own.
    let mut next = catalog::all_inheritors(relid);
    let mut seen: HashSet<pg_sys::Oid> = next.iter().copied().collect();
    while let Some(table) = next.pop() {
        pgrx::check_for_interrupts!();
        // Also one that is not in force: the table may be detached.
        let family = catalog::ancestors(table).into_iter().chain([table]);
        found.extend(family.filter(|&table| cache::own_label(table).is_some()));
        // A partition may have foreign keys of its own.
        let referenced = constraints::referenced_by(table).into_iter();
        let referenced = referenced.flat_map(catalog::all_inheritors);
        next.extend(referenced.filter(|&table| seen.insert(table)));
    }
    // All sessions lock them in the same order.
    found.sort_unstable_by_key(|relid| relid.to_u32());
    found.dedup();
    found
}

/// The tables with a policy and their archives.
fn archives() -> Vec<(pg_sys::Oid, pg_sys::Oid)> {
    let archive = |(relid, policy): (pg_sys::Oid, crate::policy::Policy)| {
        Some((relid, policy.archive()?.chosen?.table.into()))
    };
    labels().into_iter().filter_map(archive).collect()
}

fn waits(policy: pg_sys::Oid, relid: pg_sys::Oid, former: pg_sys::Oid) -> Error {
    let table = catalog::qualified_name(policy);
    let owner = catalog::owner(relid).unwrap_or(pg_sys::InvalidOid);
    Error::for_warning(format!("deletion of expired rows of table {table} waits"))
        .detail(match roles::could_act_as(former, owner) {
            // By what was noted before.
            true => format!(
                "A table that its deletion reaches came to {} from a role whose triggers and expressions on it would run.",
                roles::name(owner)
            ),
            false => format!(
                "Table {} has belonged to {}, whose triggers and expressions on it would run as {}.",
                catalog::qualified_name(relid),
                roles::name(former),
                roles::name(owner)
            ),
        })
        .hint(format!(
            "Look at them. To start deletion, run: SELECT ttl.resume({});",
            catalog::quote_literal(&table)
        ))
}
