//! A table that gets another owner keeps what its former owner has left on it: triggers, and expressions of indexes,
//! constraints and defaults. The worker would run that as the new owner. So deletion that reaches the table waits for
//! `ttl.resume` (docs/decisions/0070-what-waits.md).
//!
//! The present owner alone does not tell: a table that was given away and came back belongs to the role that it belonged to.

use crate::citus;
use crate::deletion::archive_check;
use crate::error::Error;
use crate::keys::restoring;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::{self, constraints, roles};
use crate::store::{cache, label_of, labels, policy_lock, seclabel};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::HashSet;

/// A relation that the running statement has altered, and its owner before.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Altered {
    relid: pg_sys::Oid,
    former: pg_sys::Oid,
}

/// What the running statement has altered.
static ALTERED: Variable<RefCell<Vec<Altered>>> = Variable::new(RefCell::new(Vec::new()));

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
    ALTERED.with_borrow_mut(|all| {
        if all.last() != Some(&altered) {
            all.push(altered);
        }
    });
}

/// Called if the statement has failed and when another begins. Raises no error.
pub(super) fn forget() {
    ALTERED.with_borrow_mut(Vec::clear);
}

/// After the statement: deletion waits that would reach a table whose former owner could not act as the owner of the
/// policy, while the new one can. Where the new one cannot, either, the policy notes that for the time when it changes hands
/// itself.
pub(super) fn hold() {
    let mut changed = ALTERED.take();
    changed.retain(|it| catalog::class(it.relid).is_some_and(|class| class.owner != it.former));
    // The node from which the statement came holds the policy for all.
    if changed.is_empty() || citus::is_of_citus() {
        return;
    }
    let archives = archives();
    for altered in &changed {
        pgrx::check_for_interrupts!();
        for policy in reaching(altered.relid, &archives) {
            hold_if_handed_over(altered, policy);
        }
    }
}

/// The table is reached by deletion from the one with this policy.
fn hold_if_handed_over(&Altered { relid, former }: &Altered, policy: pg_sys::Oid) {
    let owners = catalog::owner(relid).zip(catalog::owner(policy));
    let (Some((new, runs_as)), Some(label)) = (owners, cache::own_label(policy)) else {
        return;
    };
    if !label.is_on() {
        return;
    }
    let gains = |role| !roles::could_act_as(former, role);
    // What belongs to others the worker does not run as this owner.
    let is_own = roles::has_rights_of(new, runs_as);
    let was_reached = relid == policy && label.reaches_handed_over;
    if is_own && (gains(runs_as) || was_reached) {
        if restoring::hold(policy, true) {
            waits(policy, relid, former).warn();
        }
    } else if !is_own && gains(new) && !label.reaches_handed_over {
        policy_lock::lock_policy_for_change(policy);
        if let Some(mut label) = label_of(policy) {
            label.reaches_handed_over = true;
            seclabel::set(policy, Some(&label));
        }
    }
}

/// The tables with a policy by which rows are deleted from the table, rows that it refers to, or rows that go there.
fn reaching(relid: pg_sys::Oid, archives: &[(pg_sys::Oid, pg_sys::Oid)]) -> Vec<pg_sys::Oid> {
    let mut found: Vec<pg_sys::Oid> = archives
        .iter()
        .filter(|(_, archive)| archive_check::family(*archive).contains(&relid))
        .map(|(policy, _)| *policy)
        .collect();
    let mut seen = HashSet::from([relid]);
    let mut next = vec![relid];
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
    let owner = catalog::class(policy).map_or(pg_sys::InvalidOid, |class| class.owner);
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
